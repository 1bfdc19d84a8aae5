//! Every conversation under every preset, on several threads.

use trimtab::engine::policy::Policy;
use trimtab::replay::SendAll;
use trimtab::replay::managed::Managed;
use trimtab::replay::{Manager, Report, Settings, Step, each, replay_needing};

use super::read::Recorded;
use super::windows::{Windows, line};
use crate::ui::progress::Progress;

/// A conversation under a preset, or sent as it came.
pub struct Job<'a> {
    /// The conversation.
    pub recorded: &'a Recorded,
    /// The preset; none for sending everything.
    pub policy: Option<&'a Policy>,
    /// Its place among the windows that are written, where they are.
    pub place: usize,
}

/// What became of a job.
pub struct Done {
    /// The report.
    pub report: Report,
    /// Tokens of the window at each call.
    pub sizes: Vec<u64>,
}

/// Every conversation sent as it came, then under each preset.
pub fn jobs<'a>(conversations: &'a [Recorded], presets: &'a [Policy]) -> Vec<Job<'a>> {
    let policies = std::iter::once(None).chain(presets.iter().map(Some));
    let pairs = policies.flat_map(|policy| {
        let recorded = conversations.iter().enumerate();
        recorded.map(move |(place, recorded)| Job {
            recorded,
            policy,
            place,
        })
    });
    pairs.collect()
}

/// Runs them all; what they gave is in their order.
pub fn run(
    jobs: &[Job<'_>],
    settings: &Settings,
    windows: Option<&Windows>,
    progress: &Progress,
) -> Vec<Done> {
    each::map(jobs, |job| {
        let done = one(job, settings, windows);
        progress.advance();
        done
    })
}

fn one(job: &Job<'_>, settings: &Settings, windows: Option<&Windows>) -> Done {
    let recorded = job.recorded;
    let mut lines = String::new();
    let mut sizes = Vec::new();
    let writes = windows.is_some() && job.policy.is_some();
    let mut see = |step: &Step<'_>| {
        sizes.push(step.tokens);
        if writes {
            lines.push_str(&line(&recorded.id, step));
        }
    };
    let manager: Result<Box<dyn Manager>, _> = match job.policy {
        None => Ok(Box::new(SendAll::default())),
        Some(policy) => Managed::new(policy.clone(), settings, recorded.tools)
            .map(|managed| Box::new(managed) as Box<dyn Manager>),
    };
    let report = match manager {
        Ok(mut manager) => {
            let manager = manager.as_mut();
            replay_needing(&recorded.log, &recorded.needs, manager, settings, &mut see)
        }
        Err(failed) => Report {
            faults: 1,
            fault_texts: vec![failed.to_string()],
            ..Report::default()
        },
    };
    if let Some(windows) = windows.filter(|_| writes) {
        windows.write(job.place, lines.into_bytes());
    }
    Done { report, sizes }
}
