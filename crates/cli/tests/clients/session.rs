//! One run of a client: directly against the provider, or through the proxy.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::judge::{RunReport, judge};
use crate::launch::run_all;
use crate::model::{AuditModel, Progress};
use crate::run::{Served, user_file};
use crate::scenario::{Scenario, write_folder};
use crate::setup::{ClientSetup, RunPlace};

/// A machine that runs two clients at once is slow.
const PATIENT: &str = "[proxy.limits]\nplan_ms = 60000\n";

/// How often a run is made in which the client loses the needle.
const ATTEMPTS: usize = 3;

/// The proxy of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Through {
    pub(crate) preset: &'static str,
    /// The window that it is told of, in tokens.
    pub(crate) window: Option<u64>,
}

/// Runs `client`, which is in folder `installed`, through a scenario, and judges what came of it.
/// A run in which the client itself lost the needle is made again.
pub(crate) async fn run(
    client: &'static ClientSetup,
    installed: &Path,
    scenario: Scenario,
    through: Option<Through>,
) -> RunReport {
    for _ in 1..ATTEMPTS {
        let report = attempt(client, installed, scenario, through).await;
        if !report.is_spoiled {
            return report;
        }
    }
    attempt(client, installed, scenario, through).await
}

async fn attempt(
    client: &'static ClientSetup,
    installed: &Path,
    scenario: Scenario,
    through: Option<Through>,
) -> RunReport {
    let progress = Arc::new(Mutex::new(Progress::default()));
    let pause = scenario
        .resumed_before()
        .filter(|_| client.resume.is_some());
    let model = AuditModel::new(scenario, pause, Arc::clone(&progress));
    let enforced = through.filter(|_| scenario.is_enforced());
    let upstream = Upstream::start(UpstreamOptions {
        window: enforced.and_then(|through| through.window),
        answer_counts: false,
        sign: true,
        ..UpstreamOptions::new(ReplySource::with(move |received| model.reply(received)))
    })
    .await
    .unwrap();
    let served = through.map(|through| serve(&upstream.url(), through));
    let url = served.as_ref().map(|served| served.url.clone());
    let url = url.unwrap_or_else(|| upstream.url());
    let way = through.map_or("direct", |through| through.preset);
    let records = records(client.name, scenario, way);
    let ended = {
        let (records, installed) = (records.clone(), installed.to_owned());
        tokio::task::spawn_blocking(move || {
            let root = tempfile::tempdir().unwrap();
            let place = RunPlace {
                url,
                folder: root.path().join("work"),
                home: root.path().join("home"),
                installed,
            };
            std::fs::create_dir_all(&place.home).unwrap();
            write_folder(&place.folder);
            let mut launches = (client.launch)(&place);
            if let Some(resume) = client.resume.filter(|_| pause.is_some()) {
                launches.push(resume(&place));
            }
            run_all(&launches, &place, &records)
        })
        .await
        .unwrap()
    };
    let progress = progress.lock().unwrap().clone();
    let requests = upstream.requests();
    let mut report = judge(&ended, &progress, &requests);
    if through.is_some() && progress.is_finished {
        report.expect(scenario);
    }
    keep(&records, &requests, served.as_ref());
    report
}

fn serve(upstream: &str, through: Through) -> Served {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(user_file(place.path()), PATIENT).unwrap();
    let mut args = vec!["--upstream", upstream, "--preset", through.preset];
    let window = through.window.map(|window| window.to_string());
    if let Some(window) = &window {
        args.extend(["--window", window]);
    }
    Served::start_in(place, &args)
}

/// The folder for what a run leaves, emptied.
fn records(client: &str, scenario: Scenario, way: &str) -> PathBuf {
    let scenario = scenario.name().replace(' ', "-");
    let folder = crate::records_folder().join(format!("{client}-{scenario}-{way}"));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Keeps the bodies that reached the provider, what it said of them, and the log of the proxy.
fn keep(
    records: &Path,
    requests: &[Arc<trimtab_testkit::upstream::ReceivedRequest>],
    served: Option<&Served>,
) {
    let mut outcomes = String::new();
    for one in requests {
        let line = format!(
            "{:03} {} {:?} {} tokens, {} stable, {:?}\n",
            one.serial, one.path, one.outcome, one.tokens, one.stable, one.violations
        );
        outcomes.push_str(&line);
        let name = format!("{:03}.json", one.serial);
        std::fs::write(records.join(name), &one.body).unwrap();
    }
    std::fs::write(records.join("requests.txt"), outcomes).unwrap();
    let log = served.map(Served::lines_so_far).unwrap_or_default();
    std::fs::write(records.join("serve.txt"), log.join("\n")).unwrap();
}
