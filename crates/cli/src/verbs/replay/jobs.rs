//! Every conversation under everything that is compared, on several threads.

use trimtab::replay::manager::ManagerError;
use trimtab::replay::{
    ReplayReport, ReplaySettings, ReplayStep, SendAll, WindowManager, parallel, replay_needing,
};

use super::contenders::Contender;
use super::recorded_sessions::RecordedSession;
use super::windows::{WindowWriter, line};
use crate::ui::progress::Progress;

/// A conversation under what decides, or sent as it came.
pub struct ReplayJob<'a> {
    /// The conversation.
    pub recorded: &'a RecordedSession,
    /// What decides; none for sending everything.
    pub contender: Option<&'a Contender>,
    /// Its place among the windows that are written, where they are.
    pub place: usize,
}

/// What became of a job.
#[derive(Default)]
pub struct FinishedJob {
    /// The report.
    pub report: ReplayReport,
    /// Tokens of the window at each call.
    pub sizes: Vec<u64>,
}

/// Every conversation sent as it came, then under each contender.
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

/// Runs them all; what they gave is in their order.
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

/// Runs one of them.
pub(super) fn run_job(
    job: &ReplayJob<'_>,
    settings: &ReplaySettings,
    windows: Option<&WindowWriter>,
) -> FinishedJob {
    let recorded = job.recorded;
    let managers = match job.contender {
        None => Ok(vec![Box::<SendAll>::default() as Box<dyn WindowManager>]),
        Some(contender) => contender.managers(recorded, settings),
    };
    let writes = windows.filter(|_| job.contender.is_some());
    let tried = match managers {
        Ok(managers) => managers
            .into_iter()
            .map(|mut manager| replayed(recorded, manager.as_mut(), settings, writes.is_some()))
            .collect(),
        Err(failed) => vec![refused(&failed)],
    };
    // Of several, the one that fits most windows, then the cheapest.
    let best = |(done, _): &(FinishedJob, String)| (done.report.over, done.report.effective());
    let best = tried.into_iter().min_by_key(best);
    let (done, lines) = best.unwrap_or_default();
    if let Some(windows) = writes {
        windows.write(job.place, lines.into_bytes());
    }
    done
}

/// A conversation under a manager, and its windows where they are to be written.
fn replayed(
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

/// There was no manager.
fn refused(failed: &ManagerError) -> (FinishedJob, String) {
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
