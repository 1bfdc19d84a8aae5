//! Pictures of every page, for people to look at.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::chromium::Browser;
use crate::run::{Served, finished, say};
use crate::stage::{PlayedDemo, plain_upstream};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/fix-failing-test.json"
);

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
    let upstream = plain_upstream().await;
    let served = Served::start(&["--upstream", &upstream.url()]);
    let page = |name: &str| format!("{}/dashboard#/{name}", demo.url);
    let mut pages = vec![
        ("sessions", page("sessions"), "claude-sonnet-4-5"),
        ("session", demo.session_page().await, "Largest:"),
        ("savings", page("savings"), "Net money saved"),
        ("store", page("store"), "Largest outputs"),
        (
            "doctor",
            format!("{}/dashboard#/doctor", served.url),
            "This proxy",
        ),
        ("empty", format!("{}/dashboard", served.url), "No calls yet"),
    ];
    for (verb, text) in [("inspect", "Under steady"), ("replay", "All conversations")] {
        let out = folder.join(format!("{verb}.html")).display().to_string();
        let args = [verb, EXAMPLE, "--window", "16k", "--html", &out];
        assert!(finished(&folder, &args).status.success(), "{verb}");
        let path = Path::new(&out).canonicalize().unwrap();
        pages.push((verb, format!("file://{}", path.display()), text));
    }
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
            picture(&mut browser, &folder, &format!("{name}-{look}"));
            if *name == "session" {
                dialogs(&mut browser, &folder, look);
            }
        }
    }
}

fn picture(browser: &mut Browser, folder: &Path, name: &str) {
    // Fonts and transitions.
    std::thread::sleep(Duration::from_millis(600));
    browser.picture(&folder.join(format!("{name}.png")));
}

/// What opens on the page of a session.
fn dialogs(browser: &mut Browser, folder: &Path, look: &str) {
    browser.click("message ");
    browser.wait("document.querySelector('dialog[open]')");
    picture(browser, folder, &format!("message-{look}"));
    browser.eval("document.querySelector('dialog').close()");
    browser.eval("document.querySelector('.list').scrollIntoView({block: 'center'})");
    browser.wait("document.querySelector('.message .badge')");
    picture(browser, folder, &format!("messages-{look}"));
}
