//! A real Prometheus scrapes the metrics, and the Grafana dashboard asks for what is there.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::Value;
use tempfile::TempDir;

use crate::run::{PATIENCE, say};
use crate::stage::{PlayedDemo, ask};

const GRAFANA: &str = include_str!("../../../../docs/grafana.json");
const DOCUMENTED: &str = include_str!("../../../../docs/metrics.md");

/// Every expression of the Grafana dashboard, with the title of its panel.
fn expressions() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(GRAFANA).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().into_iter().flatten();
        targets.map(move |target| (title.clone(), target["expr"].as_str().unwrap().to_owned()))
    });
    let found: Vec<(String, String)> = targets.collect();
    assert!(found.len() > 10, "{}", found.len());
    found
}

/// The names of our metrics in an expression, without the parts of histograms.
fn metric_names(expression: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = expression.split(|c| !is_name(c));
    let names = words.filter(|word| word.starts_with("trimtab_"));
    names.map(|name| name.trim_end_matches("_bucket")).collect()
}

/// The labels that an expression groups or filters by.
fn labels(expression: &str) -> Vec<&str> {
    let groups = expression.split("by (").skip(1);
    let groups = groups.flat_map(|group| group.split(')').next().unwrap().split(','));
    let filters = expression.split('{').skip(1);
    let filters = filters.map(|filter| filter.split(['=', '!']).next().unwrap());
    groups.chain(filters).map(str::trim).collect()
}

async fn scrape(demo: &PlayedDemo) -> String {
    let url = format!("{}/metrics", demo.url);
    let answer = ask(Method::GET, &url, &[], Vec::new()).await;
    String::from_utf8(answer.body.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn grafana_dashboard_asks_for_metrics_that_exist() {
    let demo = PlayedDemo::start();
    let scraped = scrape(&demo).await;
    for (panel, expression) in expressions() {
        let names = metric_names(&expression);
        assert!(!names.is_empty(), "{panel}: {expression}");
        for name in names {
            let is_there = scraped.contains(&format!("\n# TYPE {name} "));
            assert!(is_there, "{panel}: there is no {name}");
            let row = DOCUMENTED
                .lines()
                .find(|line| line.contains(&format!("| `{name}` |")));
            let row = row.unwrap_or_else(|| panic!("{name} is not documented"));
            for label in labels(&expression)
                .into_iter()
                .filter(|label| *label != "le")
            {
                assert!(
                    row.contains(&format!("`{label}`")),
                    "{panel}: {name} has no {label}"
                );
            }
        }
    }
}

/// A running Prometheus that scrapes a proxy every second.
struct Prometheus {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts it; none, and a word about it, if it is not installed.
    fn start(demo: &PlayedDemo) -> Option<Self> {
        if Command::new("prometheus")
            .arg("--version")
            .output()
            .is_err()
        {
            say("SKIPPED: prometheus is not installed; ./test installs it");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("prometheus.yml");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let target = demo.url.trim_start_matches("http://");
        let text = format!(
            "scrape_configs: [{{job_name: trimtab, scrape_interval: 1s, \
             static_configs: [{{targets: [\"{target}\"]}}]}}]"
        );
        std::fs::write(&file, text).unwrap();
        let data = folder.path().join("data");
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Self {
            child,
            url: format!("http://{address}"),
            _folder: folder,
        })
    }

    /// The answer to a query; null while it starts.
    async fn query(&self, expression: &str) -> Value {
        let form = http_form("query", expression);
        let kind = [("content-type", "application/x-www-form-urlencoded")];
        let client = trimtab_cli::proxy::http::HttpClient::default();
        let url = format!("{}/api/v1/query", self.url);
        let sent = client.send(Method::POST, &url, &kind, form, PATIENCE).await;
        let body = sent.map(|answer| answer.body).unwrap_or_default();
        serde_json::from_slice(&body).unwrap_or_default()
    }
}

/// A form with one field.
fn http_form(name: &str, value: &str) -> Vec<u8> {
    let mut form = format!("{name}=").into_bytes();
    for byte in value.bytes() {
        write!(form, "%{byte:02X}").unwrap();
    }
    form
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_scrapes_the_metrics_and_answers_the_dashboard() {
    let demo = PlayedDemo::start();
    let Some(prometheus) = Prometheus::start(&demo) else {
        return;
    };
    let until = Instant::now() + PATIENCE;
    let found = loop {
        let answer = prometheus.query("trimtab_prompt_tokens_total").await;
        let series = answer["data"]["result"].as_array().map_or(0, Vec::len);
        if series > 0 || Instant::now() > until {
            break series;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(found, 2, "before and after");
    for (panel, expression) in expressions() {
        let expression = expression
            .replace("$__rate_interval", "1m")
            .replace("$__interval", "1m");
        let answer = prometheus.query(&expression).await;
        assert_eq!(answer["status"], "success", "{panel}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn promtool_finds_no_fault_in_the_metrics() {
    if Command::new("promtool").arg("--version").output().is_err() {
        say("SKIPPED: promtool is not installed; ./test installs it");
        return;
    }
    let demo = PlayedDemo::start();
    let scraped = scrape(&demo).await;
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(scraped.as_bytes()).unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && said.is_empty(), "{said}");
}
