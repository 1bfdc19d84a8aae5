//! The contract of every backend. A new backend joins with one line in `backends.rs`.

pub(crate) mod collecting;
pub(crate) mod lasting;
pub(crate) mod linking;
pub(crate) mod outputs;
pub(crate) mod reading;
pub(crate) mod searching;
pub(crate) mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trimtab_model::Ref;
use trimtab_store::{Put, SessionId, Store};

/// When the test's clock starts, in milliseconds since 1970.
pub(crate) const START: u64 = 1_700_000_000_000;

/// A fresh store with a clock that only the test moves.
pub(crate) struct World {
    pub(crate) store: Box<dyn Store>,
    pub(crate) time: Arc<AtomicU64>,
    /// True if the backend can spill outputs to files.
    pub(crate) keeps_files: bool,
    /// Removed at the end.
    #[allow(dead_code, reason = "held for its drop")]
    pub(crate) folder: Option<tempfile::TempDir>,
}

impl World {
    pub(crate) fn put(&self, session: &SessionId, call: &str, bytes: impl AsRef<[u8]>) -> Ref {
        let put = Put::new(call, bytes.as_ref()).tool("bash");
        self.store.put(session, put).unwrap()
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.time.fetch_add(millis, Ordering::Relaxed);
    }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

/// Text of `lines` numbered lines, the same each time.
pub(crate) fn text(lines: usize) -> String {
    let line = |n| format!("line {n}: value {}\n", n * 7919 % 1000);
    (0..lines).map(line).collect::<Vec<_>>().concat()
}

/// Bytes that do not compress.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = std::iter::from_fn(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        Some(state.to_le_bytes()[3])
    });
    next.take(len).collect()
}

macro_rules! over {
    ($backend:ident, $world:ident) => {
        mod $backend {
            use super::{$world, suite};

            suite::tests! { $world;
                outputs: [
                    every_size_comes_back, a_reader_gives_the_same_ref, refs_are_stable,
                    equal_bytes_are_kept_once, metadata_is_what_was_said, outputs_are_listed_in_order,
                    text_is_kept_beside_the_bytes, a_failing_input_stores_nothing,
                    deleted_is_gone, deleting_a_session_leaves_the_others, many_threads_put_and_get,
                    spilled_is_a_private_file, large_outputs_span_the_index, storing_again_is_use,
                ],
                reading: [
                    lines_are_the_split_text, an_offset_past_the_end_says_so, long_lines_are_clipped,
                    reading_stops_at_its_size, ranges_of_bytes, random_ranges_of_lines,
                ],
                searching: [
                    a_literal_is_literal, a_regex_is_one, context_is_given_for_each_match,
                    caps_say_so, time_runs_out, a_whole_session_is_searched, binary_is_searched,
                    bad_patterns_are_refused, long_lines_are_searched_in_windows,
                    line_ends_of_other_systems, like_a_plain_search, costly_patterns_are_refused,
                    text_projections_are_searched, a_pattern_that_costs_too_much_gives_up,
                    work_is_counted_over_all_outputs,
                ],
                streams: [
                    entries_come_back_in_order, a_stale_position_conflicts,
                    streams_and_sessions_are_apart, one_of_two_writers_wins, large_entries,
                ],
                linking: [
                    foreign_refs_are_not_found, those_below_redeem_refs, links_that_cannot_be,
                    parents_are_found, redeemers_of_a_ref_are_found_by_prefix,
                ],
                lasting: [
                    the_secret_stays_the_same, removals_are_counted, leased_sessions_stay,
                    a_lease_can_be_ended, named_sessions_go_though_they_are_live,
                ],
                collecting: [
                    nothing_asked_nothing_gone, old_sessions_go, a_dry_run_changes_nothing,
                    size_takes_the_oldest, unreachable_outputs_go, sessions_are_listed,
                    age_of_a_prefix_replaces_the_general_age,
                ],
            }
        }
    };
}

macro_rules! tests {
    ($world:ident; $($module:ident: [$($case:ident),* $(,)?]),* $(,)?) => {
        $($(
            #[test]
            fn $case() {
                // A world without its servers was reported as skipped.
                if let Some(world) = $world() {
                    suite::$module::$case(&world);
                }
            }
        )*)*
    };
}

pub(crate) use {over, tests};
