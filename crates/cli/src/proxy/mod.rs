//! Code shared by the verbs that run the proxy: settings, start-up, log lines and savings.

pub mod destinations;
pub mod http;
pub mod line;
pub mod listen;
pub mod log;
mod otlp;
pub mod savings;
pub mod settings;
pub mod signals;

use std::future::Future;

use trimtab_proxy::{Proxy, ProxyConfigError, RunningProxy, StartError, StoreOpening};

use crate::catalogue;
use crate::exit::Failure;
use crate::proxy::log::{NoticeReceiver, RecordReceiver};
use crate::proxy::settings::ResolvedProxy;
use crate::ui::split_hint;

/// Runs a future on a new runtime until it completes.
pub fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(future);
    // A blocking thread that is still planning must not keep the process alive.
    runtime.shutdown_background();
    done
}

/// Raises the soft limit of open files to the hard limit. Every request needs two, and the usual
/// soft limit is below the limit of connections.
#[cfg(unix)]
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // On failure, fewer clients can be served at once.
    setrlimit(Resource::Nofile, raised).unwrap_or(());
}

#[cfg(not(unix))]
fn raise_file_limit() {}

/// Starts a proxy and returns it with its log and its notices. Its dashboard shows the result of
/// `checks` on its settings.
pub async fn start(
    resolved: &ResolvedProxy,
    checks: fn(&ResolvedProxy) -> serde_json::Value,
) -> Result<(RunningProxy, RecordReceiver, NoticeReceiver), Failure> {
    raise_file_limit();
    let place = resolved.store.place()?;
    let (sink, log) = log::channel();
    let (tell, notices) = log::notices();
    let open = move |opening| match opening {
        // A store that disappears while the proxy runs must not be replaced by an empty one: refs
        // that models have seen would become invalid.
        StoreOpening::Again => place.open(),
        StoreOpening::First => place.create(),
    };
    let checked = resolved.clone();
    let proxy = Proxy::opening(resolved.proxy.clone(), open)
        .checks(move || checks(&checked))
        .otlp(otlp::target())
        .log(sink)
        .notices(tell)
        .network(resolved.outgoing.clone())
        .catalogue(catalogue::load()?);
    let running = proxy.run().await.map_err(|error| match error {
        StartError::Config(error) => config_failure(&error),
        other => failure_with_hint(&other.to_string()),
    })?;
    Ok((running, log, notices))
}

/// The failure for settings that the proxy rejects.
pub fn config_failure(error: &ProxyConfigError) -> Failure {
    let text = error.to_string();
    // Each of several problems may have a hint of its own, and many have the same.
    let (mut lines, mut hints) = (Vec::new(), Vec::new());
    for line in text.lines() {
        match line.strip_prefix("hint: ") {
            Some(hint) if hints.contains(&hint) => {}
            Some(hint) => hints.push(hint),
            None => lines.push(line),
        }
    }
    if hints.is_empty() {
        hints.push("docs/proxy.md describes every setting");
    }
    let message = format!("settings of the proxy: {}", lines.join("\n"));
    Failure::input(message, hints.join("\n"))
}

/// A failure whose text may end with a `hint:` line.
pub fn failure_with_hint(text: &str) -> Failure {
    let (message, hint) = split_hint(text);
    Failure::WithHint {
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
    }
}
