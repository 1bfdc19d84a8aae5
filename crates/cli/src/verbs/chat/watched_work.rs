//! Runs the agent while a user watches and may interrupt.

use std::future::{Future, ready};
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use trimtab_agent::tools::{Question, end_all_commands};
use trimtab_agent::{AgentEvent, AgentEvents, Interrupt};

/// Shells add this to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// Receives events and questions of the agent.
pub(super) trait AgentWatcher {
    /// An event occurred.
    fn event(&mut self, event: &AgentEvent);

    /// The agent asks for permission. Returns false to interrupt the agent.
    fn question(&mut self, question: Question) -> bool;

    /// The user pressed Ctrl-C: the turn will end.
    fn interrupted(&mut self);
}

/// Everything that can arrive while the agent works: events, questions, Ctrl-C.
pub(super) struct IncomingEvents {
    /// The events of the agent.
    pub(super) events: AgentEvents,
    questions: Option<Receiver<Question>>,
    interrupts: Signal,
}

impl IncomingEvents {
    /// Subscribes to events, questions and Ctrl-C, which from now on does not end the process.
    /// Requires a tokio runtime.
    pub(super) fn new(
        events: AgentEvents,
        questions: Option<Receiver<Question>>,
    ) -> io::Result<Self> {
        Ok(Self {
            events,
            questions,
            interrupts: signal(SignalKind::interrupt())?,
        })
    }

    /// Runs `work` to its end. The first Ctrl-C asks it to stop; the second drops it and returns
    /// nothing.
    pub(super) async fn drive<T>(
        &mut self,
        work: impl Future<Output = T>,
        interrupt: &Interrupt,
        watcher: &mut dyn AgentWatcher,
    ) -> Option<T> {
        self.forget_interrupts().await;
        let mut pressed = false;
        let mut work = std::pin::pin!(work);
        let ended = loop {
            tokio::select! {
                // Events first, so that the screen shows them in order before a question or the
                // end.
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
        // The work may have sent events just before it ended.
        self.deliver_rest(watcher);
        ended
    }

    /// Delivers the remaining events.
    pub(super) fn deliver_rest(&mut self, watcher: &mut dyn AgentWatcher) {
        while let Ok(event) = self.events.try_recv() {
            watcher.event(&event);
        }
    }

    /// Discards earlier Ctrl-C signals, for example from a pager, which were not meant for this
    /// turn.
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

/// Ends running commands when we are terminated or the terminal closes. Requires a tokio runtime.
pub(super) fn end_commands_with_us() -> io::Result<()> {
    for kind in [SignalKind::terminate(), SignalKind::hangup()] {
        let mut received = signal(kind)?;
        tokio::spawn(async move {
            if received.recv().await.is_some() {
                end_all_commands();
                // Exit as a shell reports a command that a signal ended.
                std::process::exit(BY_SIGNAL + kind.as_raw_value());
            }
        });
    }
    Ok(())
}

/// The next question; pending forever if nobody can ask.
async fn asked(questions: Option<&mut Receiver<Question>>) -> Question {
    if let Some(questions) = questions
        && let Some(question) = questions.recv().await
    {
        return question;
    }
    std::future::pending().await
}
