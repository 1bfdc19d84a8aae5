//! Work grows with the input and no faster: twice the input costs about twice the work, in
//! every stage and for every hostile shape. Work is counted (`model::work`), not timed.

mod shapes;
mod stages;
mod streams;

use trimtab::model::work::counted;
use trimtab_testkit::is_long;

use shapes::SHAPES;
use stages::STAGES;
use streams::{STREAMS, WATCHERS};

/// How much more than twice the work twice the input may cost, in percent of the work: sorting
/// and trees cost a little more than twice, and some plans are only made for larger windows.
/// Work that is quadratic costs four times as much.
const TOLERANCE_PERCENT: u64 = 40;
/// Units that do not depend on the input: texts and limits of our own.
const FIXED_UNITS: u64 = 10_000;

/// How many messages, calls or lines the smaller of two inputs has.
fn size() -> usize {
    if is_long() { 8_000 } else { 2_000 }
}

/// Says so if work on an input of twice the size is far more than twice the work.
fn grows_faster(stage: &str, shape: &str, work: impl Fn(usize) -> u64) -> Option<String> {
    let (once, twice) = (work(size()), work(2 * size()));
    let most = 2 * once + 2 * once * TOLERANCE_PERCENT / 100 + FIXED_UNITS;
    let text = format!("{stage} on {shape}: {once} units, {twice} for twice as much");
    (twice > most).then_some(text)
}

#[test]
fn work_on_conversations_is_linear_in_their_size() {
    let mut faster = Vec::new();
    for (stage, run) in STAGES {
        for (shape, make) in SHAPES {
            faster.extend(grows_faster(stage, shape, |size| {
                let conversation = make(size);
                counted(|| run(&conversation)).1
            }));
        }
    }
    assert!(faster.is_empty(), "{faster:#?}");
}

#[test]
fn every_stage_reports_its_work() {
    let (_, make) = SHAPES[0];
    let conversation = make(size());
    for (stage, run) in STAGES {
        let units = counted(|| run(&conversation)).1;
        assert!(units >= size() as u64, "{stage} reports {units} units");
    }
}

#[test]
fn work_on_streams_is_linear_in_their_size() {
    let mut faster = Vec::new();
    for (watcher, run) in WATCHERS {
        for (stream, dialect, make) in STREAMS {
            faster.extend(grows_faster(watcher, stream, |size| {
                let stream = make(size);
                let units = counted(|| run(dialect, &stream)).1;
                assert!(units >= size as u64, "{watcher} reports {units} units");
                units
            }));
        }
    }
    assert!(faster.is_empty(), "{faster:#?}");
}
