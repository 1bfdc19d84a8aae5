//! Replays every conversation under every contender, on several threads.

use trimtab::replay::manager::ManagerError;
use trimtab::replay::{
    ReplayReport, ReplaySettings, ReplayStep, SendAll, WindowManager, parallel, replay_needing,
};

use super::contenders::Contender;
use super::recorded_sessions::RecordedSession;
use super::windows::{WindowWriter, line};
use crate::ui::progress::Progress;

/// One conversation under one contender, or with everything sent.
pub struct ReplayJob<'a> {
    /// The conversation.
    pub recorded: &'a RecordedSession,
    /// The contender; none for sending everything.
    pub contender: Option<&'a Contender>,
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

/// All jobs: every conversation with everything sent, then under each contender.
pub fn jobs<'a>(
    conversations: &'a [RecordedSession],
    contenders: &'a [Contender],
) -> Vec<ReplayJob<'a>> {
    let all = std::iter::once(None).chain(contenders.iter().map(Some));
    let pairs = all.flat_map(|contender| {
        let recorded = conversations.iter().enumerate();
        recorded.map(move |(place, recorded)| ReplayJob {
            recorded,
            contender,
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
        let done = run_job(job, settings, windows);
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
    // Flags name one model for all conversations, but each has its own tools.
    let settings = &ReplaySettings {
        tools: recorded.settings.tools,
        shows_refs: windows.is_some(),
        ..settings.clone()
    };
    let managers = match job.contender {
        None => Ok(vec![Box::<SendAll>::default() as Box<dyn WindowManager>]),
        Some(contender) => contender.managers(recorded, settings),
    };
    let writes = windows.filter(|_| job.contender.is_some());
    let tried = match managers {
        Ok(managers) => managers
            .into_iter()
            .map(|mut manager| replay_under(recorded, manager.as_mut(), settings, writes.is_some()))
            .collect(),
        Err(failed) => vec![without_manager(&failed)],
    };
    // The manager with the fewest windows that do not fit counts, then the cheapest.
    let best = |(done, _): &(FinishedJob, String)| (done.report.over, done.report.effective());
    let best = tried.into_iter().min_by_key(best);
    let (done, lines) = best.unwrap_or_default();
    if let Some(windows) = writes {
        windows.write(job.place, lines.into_bytes());
    }
    done
}

/// Replays a conversation under a manager. Also returns its windows if they are to be written.
fn replay_under(
    recorded: &RecordedSession,
    manager: &mut dyn WindowManager,
    settings: &ReplaySettings,
    writes: bool,
) -> (FinishedJob, String) {
    let mut lines = String::new();
    let mut sizes = Vec::new();
    let mut see = |step: &ReplayStep<'_>| {
        sizes.push(step.tokens);
        if writes {
            lines.push_str(&line(&recorded.id, step));
        }
    };
    let report = replay_needing(&recorded.log, &recorded.needs, manager, settings, &mut see);
    (FinishedJob { report, sizes }, lines)
}

/// The result if the manager could not be created.
fn without_manager(failed: &ManagerError) -> (FinishedJob, String) {
    let report = ReplayReport {
        faults: 1,
        fault_texts: vec![failed.to_string()],
        ..ReplayReport::default()
    };
    let done = FinishedJob {
        report,
        sizes: Vec::new(),
    };
    (done, String::new())
}
