//! Pictures of every page, for people to look at.

use std::path::PathBuf;
use std::time::Duration;

use crate::chromium::Browser;
use crate::run::say;
use crate::stage::PlayedDemo;

#[tokio::test(flavor = "multi_thread")]
async fn screenshots_of_every_page() {
    let Some(folder) = std::env::var_os("TRIMTAB_SCREENSHOTS").map(PathBuf::from) else {
        say("SKIPPED: TRIMTAB_SCREENSHOTS names no folder for the pictures");
        return;
    };
    let Some(mut browser) = Browser::start() else {
        return;
    };
    std::fs::create_dir_all(&folder).unwrap();
    let demo = PlayedDemo::start();
    let page = |name: &str| format!("{}/dashboard#/{name}", demo.url);
    let pages = [
        ("sessions", page("sessions"), "claude-sonnet-4-5"),
        ("session", demo.session_page().await, "as it was"),
        ("savings", page("savings"), "Net money saved"),
        ("store", page("store"), "Largest outputs"),
        ("doctor", page("doctor"), "This proxy"),
    ];
    let looks = [
        ("light", 1280, 1000, false),
        ("dark", 1280, 1000, true),
        ("narrow", 420, 1400, false),
    ];
    for (look, width, height, is_dark) in looks {
        browser.resize(width, height, is_dark);
        for (name, url, text) in &pages {
            browser.goto(url);
            browser.wait_for_text(text);
            // Fonts and transitions.
            std::thread::sleep(Duration::from_millis(600));
            browser.picture(&folder.join(format!("{name}-{look}.png")));
        }
    }
}
