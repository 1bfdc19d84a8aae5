//! Records of the proxy, brought to the one who may print.

use tokio::sync::mpsc;
use trimtab_proxy::Record;

/// How many records may wait to be printed. When nobody reads, more are lost, so that a
/// terminal that is stopped never stops the traffic.
const WAITING: usize = 4_096;

/// Records, in the order in which their answers ended.
pub type Log = mpsc::Receiver<Record>;

/// A place where the proxy puts its records, and where they come out.
pub fn channel() -> (impl Fn(&Record) + Send + Sync + 'static, Log) {
    let (sender, log) = mpsc::channel(WAITING);
    let sink = move |record: &Record| drop(sender.try_send(record.clone()));
    (sink, log)
}

/// How many notices may wait to be printed.
const NOTICES: usize = 64;

/// What an operator should know, in the order in which it was said.
pub type Notices = mpsc::Receiver<String>;

/// A place where the proxy puts its notices, and where they come out.
pub fn notices() -> (impl Fn(&str) + Send + Sync + 'static, Notices) {
    let (sender, notices) = mpsc::channel(NOTICES);
    let sink = move |notice: &str| drop(sender.try_send(notice.to_owned()));
    (sink, notices)
}

/// True for the requests that people look for: those to our own endpoints are not.
pub fn is_traffic(record: &Record) -> bool {
    record.action != trimtab_proxy::Action::Answered
}
