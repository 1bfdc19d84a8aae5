//! Channels that bring records and notices from the proxy to the thread that prints.

use tokio::sync::mpsc;
use trimtab_proxy::{NoticeLevel, Record};

/// How many records may wait to be printed. Further records are dropped, so that a stopped terminal
/// never stops the traffic.
const WAITING: usize = 4_096;

/// Records in the order in which their answers ended.
pub type RecordReceiver = mpsc::Receiver<Record>;

/// A sink for the records of the proxy, and the receiving end.
pub fn channel() -> (impl Fn(&Record) + Send + Sync + 'static, RecordReceiver) {
    let (sender, log) = mpsc::channel(WAITING);
    let sink = move |record: &Record| drop(sender.try_send(record.clone()));
    (sink, log)
}

/// How many notices may wait to be printed.
const NOTICES: usize = 64;

/// Notices to the operator, in order.
pub type NoticeReceiver = mpsc::Receiver<(NoticeLevel, String)>;

/// A sink for the notices of the proxy, and the receiving end.
pub fn notices() -> (
    impl Fn(NoticeLevel, &str) + Send + Sync + 'static,
    NoticeReceiver,
) {
    let (sender, notices) = mpsc::channel(NOTICES);
    let sink = move |level, notice: &str| drop(sender.try_send((level, notice.to_owned())));
    (sink, notices)
}

/// False for requests to our own endpoints, which are not printed.
pub fn is_traffic(record: &Record) -> bool {
    record.action != trimtab_proxy::RecordAction::Answered
}
