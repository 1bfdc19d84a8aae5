//! Work of the agent that is watched and can be interrupted.

use std::future::{Future, ready};
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use trimtab_agent::tools::{Question, end_all_commands};
use trimtab_agent::{Event, Events, Interrupt};

/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// Whoever watches the agent work.
pub(super) trait Watcher {
    /// Something happened.
    fn event(&mut self, event: &Event);

    /// The agent asks whether it may do something. False to interrupt it altogether.
    fn question(&mut self, question: Question) -> bool;

    /// The user pressed Ctrl-C: the turn is about to end.
    fn interrupted(&mut self);
}

/// Everything that can come in while the agent works.
pub(super) struct Ears {
    /// What the agent tells.
    pub(super) events: Events,
    questions: Option<Receiver<Question>>,
    interrupts: Signal,
}

impl Ears {
    /// Listens to the agent, to its questions, and to Ctrl-C, which from now on ends nothing by
    /// itself. Must be called within a tokio runtime.
    pub(super) fn new(events: Events, questions: Option<Receiver<Question>>) -> io::Result<Self> {
        Ok(Self {
            events,
            questions,
            interrupts: signal(SignalKind::interrupt())?,
        })
    }

    /// Does `work` until it ends. The first Ctrl-C asks it to end; the second drops it, which
    /// gives none.
    pub(super) async fn drive<T>(
        &mut self,
        work: impl Future<Output = T>,
        interrupt: &Interrupt,
        watcher: &mut dyn Watcher,
    ) -> Option<T> {
        self.forget_interrupts().await;
        let mut pressed = false;
        let mut work = std::pin::pin!(work);
        let ended = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => watcher.event(&event),
                question = asked(self.questions.as_mut()) => {
                    if !watcher.question(question) {
                        pressed = true;
                        interrupt.interrupt();
                    }
                }
                _ = self.interrupts.recv() => {
                    watcher.interrupted();
                    if std::mem::replace(&mut pressed, true) {
                        break None;
                    }
                    interrupt.interrupt();
                }
                ended = &mut work => break Some(ended),
            }
        };
        self.tell_rest(watcher);
        ended
    }

    /// Tells what has happened since.
    pub(super) fn tell_rest(&mut self, watcher: &mut dyn Watcher) {
        while let Ok(event) = self.events.try_recv() {
            watcher.event(&event);
        }
    }

    /// A Ctrl-C from before, in a pager for example, was not meant for what begins now.
    async fn forget_interrupts(&mut self) {
        loop {
            tokio::select! {
                biased;
                Some(()) = self.interrupts.recv() => {}
                () = ready(()) => return,
            }
        }
    }
}

/// Lets commands that run end with us when we are told to end, or our terminal goes away. Must
/// be called within a tokio runtime.
pub(super) fn end_commands_with_us() -> io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::hangup()] {
        let mut told = signal(kind)?;
        tokio::spawn(async move {
            if told.recv().await.is_some() {
                end_all_commands();
                // As a shell reports a command that a signal ended.
                std::process::exit(BY_SIGNAL + kind.as_raw_value());
            }
        });
    }
    Ok(())
}

/// The next question; waits for ever where nobody asks.
async fn asked(questions: Option<&mut Receiver<Question>>) -> Question {
    if let Some(questions) = questions
        && let Some(question) = questions.recv().await
    {
        return question;
    }
    std::future::pending().await
}
