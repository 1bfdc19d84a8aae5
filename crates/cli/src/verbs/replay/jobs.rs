//! Replays every conversation under every policy, on several threads.

use trimtab::engine::policy::Policy;
use trimtab::replay::{
    ReplayReport, ReplaySettings, ReplayStep, parallel, replay, replay_everything,
};

use super::recorded_sessions::RecordedSession;
use super::windows::{WindowWriter, line};
use crate::ui::progress::Progress;

/// One conversation under one policy.
pub struct ReplayJob<'a> {
    /// The conversation.
    pub recorded: &'a RecordedSession,
    /// The policy; none for sending everything.
    pub policy: Option<&'a Policy>,
    /// The position of its windows in the output file.
    pub place: usize,
}

/// The result of a job.
#[derive(Default)]
pub struct FinishedJob {
    /// The report.
    pub report: ReplayReport,
    /// Tokens of the window at each call.
    pub sizes: Vec<u64>,
}

/// All jobs: every conversation with everything sent, then under each policy.
pub fn jobs<'a>(
    conversations: &'a [RecordedSession],
    policies: &'a [Policy],
) -> Vec<ReplayJob<'a>> {
    let all = std::iter::once(None).chain(policies.iter().map(Some));
    let pairs = all.flat_map(|policy| {
        let recorded = conversations.iter().enumerate();
        recorded.map(move |(place, recorded)| ReplayJob {
            recorded,
            policy,
            place,
        })
    });
    pairs.collect()
}

/// Runs all jobs. The results are in the order of the jobs.
pub fn run(
    jobs: &[ReplayJob<'_>],
    settings: &ReplaySettings,
    windows: Option<&WindowWriter>,
    progress: &Progress,
) -> Vec<FinishedJob> {
    parallel::map(jobs, |job| {
        // Flags name one model for all conversations, but each has its own tools.
        let settings = ReplaySettings {
            tools: job.recorded.settings.tools,
            ..settings.clone()
        };
        let done = run_job(job, &settings, windows);
        progress.advance();
        done
    })
}

/// Runs one job.
pub(super) fn run_job(
    job: &ReplayJob<'_>,
    settings: &ReplaySettings,
    windows: Option<&WindowWriter>,
) -> FinishedJob {
    let recorded = job.recorded;
    let mut lines = String::new();
    let mut sizes = Vec::new();
    let writes = windows.filter(|_| job.policy.is_some());
    let mut see = |step: ReplayStep<'_>| {
        sizes.push(step.tokens);
        if writes.is_some() {
            lines.push_str(&line(&recorded.id, &step));
        }
    };
    let report = match job.policy {
        Some(policy) => replay(&recorded.log, policy.clone(), settings, &mut see),
        None => replay_everything(&recorded.log, settings, &mut see),
    };
    let report = report.unwrap_or_else(|error| ReplayReport {
        refused: 1,
        fault_texts: vec![error.to_string()],
        ..ReplayReport::default()
    });
    if let Some(windows) = writes {
        windows.write(job.place, lines.into_bytes());
    }
    FinishedJob { report, sizes }
}
