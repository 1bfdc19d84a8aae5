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

/// True for the requests that people look for: those to our own endpoints are not.
pub fn is_traffic(record: &Record) -> bool {
    record.action != trimtab_proxy::Action::Answered
}
