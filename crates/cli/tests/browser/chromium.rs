//! A browser without a screen, and its pages.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{PATIENCE, say};

/// Names under which systems install it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A running browser with one page.
pub(crate) struct Browser {
    child: Child,
    orders: File,
    messages: Receiver<Value>,
    next: u64,
    page: String,
    /// What the page reported as an error, and what its policy refused.
    pub(crate) complaints: Vec<String>,
    _folder: TempDir,
}

/// The program, if there is one and no other run of the same tests has it.
fn program() -> Option<PathBuf> {
    if std::env::var_os("TRIMTAB_BROWSER").is_some_and(|wanted| wanted == "none") {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut places = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |f| f.join(name)));
    places.find(|place| place.is_file())
}

impl Browser {
    /// Starts it; none, and a word about it, if there is no browser on this machine.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = program() else {
            say("SKIPPED: chromium is not installed, or TRIMTAB_BROWSER is none; ./test runs it");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let (to, from) = (folder.path().join("to"), folder.path().join("from"));
        for pipe in [&to, &from] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        let mut child = Command::new("sh")
            .arg("-c")
            .arg("exec \"$@\" 3<\"$TO\" 4>\"$FROM\"")
            .arg("sh")
            .arg(program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!(
                "--user-data-dir={}",
                folder.path().join("user").display()
            ))
            .env("TO", &to)
            .env("FROM", &from)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let orders = OpenOptions::new().write(true).open(&to);
        let answers = File::open(&from);
        let (Ok(orders), Ok(answers)) = (orders, answers) else {
            drop(child.kill());
            panic!("the pipes of the browser cannot be opened");
        };
        let mut browser = Self {
            child,
            orders,
            messages: read_messages(answers),
            next: 0,
            page: String::new(),
            complaints: Vec::new(),
            _folder: folder,
        };
        browser.open_page();
        Some(browser)
    }

    fn open_page(&mut self) {
        let made = self.order("Target.createTarget", &json!({"url": "about:blank"}));
        let target = json!({"targetId": made["targetId"], "flatten": true});
        let attached = self.order("Target.attachToTarget", &target);
        let session = attached["sessionId"].as_str();
        session.unwrap().clone_into(&mut self.page);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            self.order(domain, &json!({}));
        }
        self.resize(1280, 900, false);
    }

    /// Gives an order and waits for its answer.
    pub(crate) fn order(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let mut order = json!({"id": self.next, "method": method, "params": params});
        if !self.page.is_empty() {
            order["sessionId"] = self.page.clone().into();
        }
        self.orders.write_all(order.to_string().as_bytes()).unwrap();
        self.orders.write_all(&[0]).unwrap();
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.note(&message);
        }
    }

    fn note(&mut self, event: &Value) {
        let params = &event["params"];
        let text = match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => params["exceptionDetails"].to_string(),
            "Log.entryAdded" if params["entry"]["level"] == "error" => {
                params["entry"]["text"].to_string()
            }
            _ => return,
        };
        self.complaints.push(text);
    }

    /// Goes to an address.
    pub(crate) fn goto(&mut self, url: &str) {
        // A new hash alone would not load the page anew.
        self.order("Page.navigate", &json!({"url": "about:blank"}));
        self.order("Page.navigate", &json!({"url": url}));
    }

    /// Evaluates an expression in the page.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let done = self.order("Runtime.evaluate", &params);
        let thrown = &done["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        done["result"]["value"].clone()
    }

    /// Waits until an expression is true, and gives its value.
    #[track_caller]
    pub(crate) fn wait(&mut self, expression: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        // While a page loads there may be nothing to look at yet.
        let guarded =
            format!("(() => {{ try {{ return {expression} }} catch {{ return null }} }})()");
        loop {
            let value = self.eval(&guarded);
            if value != Value::Null && value != json!(false) && value != json!("") {
                return value;
            }
            if Instant::now() > until {
                let text = self.text();
                panic!("never true: {expression}\n{:?}\n{text}", self.complaints);
            }
            std::thread::sleep(Duration::from_millis(40));
        }
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub(crate) fn wait_for_text(&mut self, text: &str) {
        let wanted = json!(text).to_string();
        self.wait(&format!("document.body.innerText.includes({wanted})"));
    }

    /// Everything that can be read on the page.
    pub(crate) fn text(&mut self) -> String {
        let text = self.eval("document.body.innerText");
        text.as_str()
            .unwrap_or_default()
            .chars()
            .take(3_000)
            .collect()
    }

    /// Clicks the button or link with a text, as a person does.
    #[track_caller]
    pub(crate) fn click(&mut self, text: &str) {
        let wanted = json!(text).to_string();
        let find = format!(
            "[...document.querySelectorAll('button, a, summary')].find((e) => \
             e.innerText.trim().startsWith({wanted}) && !e.disabled && e.offsetParent !== null)"
        );
        self.wait(&format!("Boolean({find})"));
        let place = self.eval(&format!(
            "(() => {{ const e = {find}; e.scrollIntoView({{block: 'center'}}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] }})()"
        ));
        self.click_at(&place);
    }

    /// Clicks at a place.
    pub(crate) fn click_at(&mut self, place: &Value) {
        for kind in ["mousePressed", "mouseReleased"] {
            let params = json!({"type": kind, "x": place[0], "y": place[1],
                "button": "left", "buttons": 1, "clickCount": 1});
            self.order("Input.dispatchMouseEvent", &params);
        }
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({"type": kind, "key": key, "code": key,
                "windowsVirtualKeyCode": key_code(key)});
            // Buttons are pressed by the text of the key.
            if key == "Enter" && kind == "keyDown" {
                params["text"] = "\r".into();
            }
            self.order("Input.dispatchKeyEvent", &params);
        }
    }

    /// Sets the size of the page, and whether the user likes it dark.
    pub(crate) fn resize(&mut self, width: u32, height: u32, is_dark: bool) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.order("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.order("Emulation.setEmulatedMedia", &media);
    }

    /// Writes a picture of the page to a file.
    pub(crate) fn picture(&mut self, file: &Path) {
        let shot = self.order("Page.captureScreenshot", &json!({"format": "png"}));
        let data = shot["data"].as_str().unwrap().as_bytes();
        let bytes = data_encoding::BASE64.decode(data).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}

fn key_code(key: &str) -> u32 {
    match key {
        "ArrowLeft" => 37,
        "ArrowRight" => 39,
        "Home" => 36,
        "End" => 35,
        "ArrowDown" => 40,
        "Enter" => 13,
        "Escape" => 27,
        _ => 0,
    }
}

/// Reads messages, which end with a zero byte, on a thread of its own.
fn read_messages(answers: File) -> Receiver<Value> {
    let (sender, messages) = channel();
    std::thread::spawn(move || {
        let mut answers = BufReader::new(answers);
        let mut bytes = Vec::new();
        while answers.read_until(0, &mut bytes).is_ok_and(|read| read > 0) {
            bytes.pop();
            if let Ok(message) = serde_json::from_slice(&bytes) {
                drop(sender.send(message));
            }
            bytes.clear();
        }
    });
    messages
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
