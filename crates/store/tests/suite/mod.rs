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
                    outputs_of_every_size_are_read_back, streamed_output_gets_the_same_ref, same_put_gives_the_same_ref,
                    equal_bytes_are_stored_once, metadata_has_the_labels_of_the_put, outputs_are_listed_in_order,
                    text_projection_is_stored_beside_the_bytes, failing_input_stores_nothing,
                    deleted_output_is_not_found, deleting_a_session_keeps_other_sessions, many_threads_put_and_get,
                    spilled_file_is_private, large_outputs_use_several_index_tables, storing_an_output_again_marks_the_session_as_used,
                ],
                reading: [
                    lines_are_split_at_newlines, offset_past_the_end_is_an_error, long_lines_are_clipped,
                    reading_stops_at_the_size_limit, byte_ranges_are_read, random_line_ranges_are_read,
                ],
                searching: [
                    literal_pattern_is_not_a_regex, regex_pattern_matches, each_match_has_its_context,
                    reached_limits_are_reported, search_stops_when_its_time_is_up, all_outputs_of_a_session_are_searched, binary_outputs_are_searched,
                    invalid_patterns_are_rejected, long_lines_are_searched_in_windows,
                    crlf_line_ends_are_handled, search_agrees_with_a_naive_search, expensive_patterns_are_rejected,
                    text_projections_are_searched, search_gives_up_if_it_becomes_too_expensive,
                    work_is_counted_over_all_outputs,
                ],
                streams: [
                    entries_are_read_in_order, stale_position_is_a_conflict,
                    streams_and_sessions_are_separate, one_of_two_concurrent_writers_gets_a_conflict, large_entries_are_read_back,
                ],
                linking: [
                    foreign_refs_are_not_found, child_sessions_redeem_refs_of_their_parents, impossible_links_are_rejected, session_reads_refs_of_any_number_of_parents,
                    parent_of_a_session_is_returned, relinked_session_keeps_shared_bytes,
                    redeemers_of_a_ref_are_found_by_prefix, fork_begins_like_its_origin,
                    several_outputs_are_opened_at_once,
                ],
                lasting: [
                    secret_stays_the_same, removals_are_counted, leased_sessions_are_kept,
                    lease_of_zero_ends_an_earlier_one, named_sessions_are_removed_even_if_live,
                ],
                collecting: [
                    empty_collection_removes_nothing, old_sessions_are_removed, dry_run_changes_nothing,
                    size_limit_removes_the_oldest_sessions, sessions_are_listed,
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
