//! Pages that everybody can use: names for screen readers, contrast, and small screens.

use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::stage::PlayedDemo;

/// Every page with a text that is there when it is complete.
async fn pages(demo: &PlayedDemo) -> [(String, &'static str); 5] {
    let page = |name: &str| format!("{}/dashboard#/{name}", demo.url);
    [
        (page("sessions"), "trimtab-demo"),
        (demo.session_page().await, "Largest:"),
        (page("savings"), "Net money saved"),
        (page("store"), "Largest outputs"),
        (page("doctor"), "This proxy"),
    ]
}

/// Roles of things that people operate or must be told about.
const NAMED_ROLES: [&str; 11] = [
    "button",
    "link",
    "textbox",
    "searchbox",
    "slider",
    "combobox",
    "meter",
    "img",
    "dialog",
    "application",
    "region",
];

#[tokio::test(flavor = "multi_thread")]
async fn everything_has_a_name_for_screen_readers() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    for (url, text) in pages(&demo).await {
        browser.goto(&url);
        browser.wait_for_text(text);
        let tree = browser.order("Accessibility.getFullAXTree", &json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter();
        let seen: Vec<&Value> = nodes.filter(|node| node["ignored"] != true).collect();
        let has_role = |node: &Value, role: &str| node["role"]["value"] == role;
        for landmark in ["banner", "navigation", "main"] {
            assert!(
                seen.iter().any(|node| has_role(node, landmark)),
                "{url}: no {landmark}"
            );
        }
        assert!(seen.iter().any(|node| has_role(node, "heading")), "{url}");
        for node in seen {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            let name = node["name"]["value"].as_str().unwrap_or_default();
            assert!(
                !NAMED_ROLES.contains(&role) || !name.trim().is_empty(),
                "{url}: {node}"
            );
        }
    }
}

/// The texts of the page that are hard to read: their contrast is below that of the guidelines
/// for accessible pages.
const FAINT_TEXTS: &str = r"(() => {
  const parse = (text) => { const n = text.match(/[\d.]+/g).map(Number);
    if (text.startsWith('color(srgb')) return [n[0] * 255, n[1] * 255, n[2] * 255, n[3] ?? 1];
    return [n[0], n[1], n[2], n[3] ?? 1]; };
  const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = (e) => { for (let at = e; at; at = at.parentElement) {
    const c = parse(getComputedStyle(at).backgroundColor); if (c[3] > 0.9) return c; } return [255, 255, 255, 1]; };
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || e.closest('noscript, :disabled') || !e.checkVisibility()) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(parse(style.color)), light(ground(e))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const least = parseFloat(style.fontSize) >= 18.5 && style.fontWeight >= 600 ? 3 : 4.5;
    if (ratio < least) faint.push(`${ratio.toFixed(2)} ${walk.currentNode.textContent.slice(0, 40)}`);
  }
  return faint;
})()";

#[tokio::test(flavor = "multi_thread")]
async fn texts_can_be_read_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    for is_dark in [false, true] {
        browser.resize(1280, 1000, is_dark);
        for (url, text) in pages(&demo).await {
            browser.goto(&url);
            browser.wait_for_text(text);
            browser.wait(
                "!document.querySelector('.list') || document.querySelector('.message .badge')",
            );
            let faint = browser.eval(FAINT_TEXTS);
            assert_eq!(faint, json!([]), "{url}, dark: {is_dark}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_fit_a_phone() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let demo = PlayedDemo::start();
    browser.resize(420, 900, false);
    for (url, text) in pages(&demo).await {
        browser.goto(&url);
        browser.wait_for_text(text);
        let width = browser.eval("document.documentElement.scrollWidth");
        assert!(width.as_u64() <= Some(420), "{url}: {width}");
    }
}
