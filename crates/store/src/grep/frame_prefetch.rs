//! Decodes frames ahead of the search, on other threads if that is worthwhile.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::frames::frame_count;
use crate::source::FrameSource;
use crate::{Error, Result};

/// Frames that one thread decodes at a time: half a mebibyte.
const GROUP: u64 = 8;
/// Outputs with fewer groups are decoded on the search thread.
const WORTH_THREADS: u64 = 4;
/// More threads would only wait for the search.
const MOST_THREADS: usize = 4;

type FrameGroup = Vec<Vec<u8>>;

/// Returns the frames of an output in order, a group at a time.
pub(super) struct FramePrefetch<'a> {
    source: &'a dyn FrameSource,
    free_buffers: &'a Mutex<Vec<FrameGroup>>,
    next: u64,
    /// The decoding threads, in turn; if empty, decode here.
    workers: Vec<Receiver<Result<FrameGroup>>>,
}

impl FramePrefetch<'_> {
    /// The next group. `used` is a group whose memory can be reused.
    pub(super) fn next(&mut self, used: FrameGroup) -> Result<Option<FrameGroup>> {
        // Reuse the memory of decoded groups.
        if let Ok(mut spare) = self.free_buffers.lock() {
            spare.push(used);
        }
        let number = self.next;
        if number >= group_count(self.source) {
            return Ok(None);
        }
        self.next += 1;
        if self.workers.is_empty() {
            return decode(self.source, number, self.free_buffers).map(Some);
        }
        // Threads decode groups in turn, so group `n` comes from thread `n % threads`.
        let turn = usize::try_from(number).unwrap_or(0) % self.workers.len();
        let worker = self.workers.get(turn);
        let group = worker.and_then(|worker| worker.recv().ok());
        group
            .unwrap_or_else(|| Err(Error::damaged("a frame")))
            .map(Some)
    }
}

/// Runs `search` over the frames of `source`.
pub(super) fn with_frames<T>(
    source: &dyn FrameSource,
    search: impl FnOnce(FramePrefetch<'_>) -> T,
) -> T {
    let spare = Mutex::new(Vec::new());
    let threads = if group_count(source) < WORTH_THREADS {
        0
    } else {
        thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MOST_THREADS)
    };
    thread::scope(|scope| {
        let mut workers = Vec::new();
        for first in 0..threads {
            // Each thread may be one group ahead, which bounds the memory.
            let (sender, receiver) = sync_channel(1);
            let spare = &spare;
            let decoding = thread::Builder::new().spawn_scoped(scope, move || {
                for number in (first as u64..group_count(source)).step_by(threads) {
                    let group = decode(source, number, spare);
                    // The search has ended and dropped its receivers.
                    if sender.send(group).is_err() {
                        break;
                    }
                }
            });
            if decoding.is_err() {
                // With a missing thread the order would be wrong. Dropping the receivers ends the
                // others.
                workers.clear();
                break;
            }
            workers.push(receiver);
        }
        search(FramePrefetch {
            source,
            free_buffers: &spare,
            next: 0,
            workers,
        })
    })
}

fn group_count(source: &dyn FrameSource) -> u64 {
    frame_count(source.byte_size()).div_ceil(GROUP)
}

fn decode(
    source: &dyn FrameSource,
    number: u64,
    spare: &Mutex<Vec<FrameGroup>>,
) -> Result<FrameGroup> {
    let mut group = spare
        .lock()
        .ok()
        .and_then(|mut spare| spare.pop())
        .unwrap_or_default();
    let first = number * GROUP;
    let last = (first + GROUP).min(frame_count(source.byte_size()));
    let frames = usize::try_from(last - first).unwrap_or(0);
    group.resize_with(frames, Vec::new);
    for (number, frame) in (first..last).zip(&mut group) {
        source.frame(number, frame)?;
    }
    Ok(group)
}
