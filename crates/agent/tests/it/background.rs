//! A late summary in the background is used, or dropped with an event, and no message is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;
use trimtab::session::{ManualCompaction, SessionEventKind};
use trimtab_agent::model::{
    Model, ModelAnswer, ModelBackend, ModelClient, ModelError, ModelReply, ModelRequest, ReplyPiece,
};
use trimtab_agent::{Agent, AgentEvent};
use trimtab_model::{Dialect, Message};
use trimtab_store::{MemoryStore, SessionId, Store};

use super::common::{Set, preset, set, window};

/// Says a line to everything, and writes summaries once it is let.
#[derive(Clone)]
struct Slow {
    /// True while summaries may be finished.
    may_write: Arc<watch::Sender<bool>>,
    asked: Arc<AtomicUsize>,
}

impl Slow {
    fn new() -> Self {
        Self {
            may_write: Arc::new(watch::Sender::new(false)),
            asked: Arc::default(),
        }
    }

    fn may_write(&self, may: bool) {
        self.may_write.send_replace(may);
    }

    async fn summary(self) -> Result<ModelAnswer, ModelError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut may_write = self.may_write.subscribe();
        may_write.wait_for(|may| *may).await.unwrap();
        Ok(ModelAnswer::new(Message::assistant(
            "<summary>THE SUMMARY</summary>",
        )))
    }
}

impl ModelBackend for Slow {
    fn dialect(&self) -> Dialect {
        Dialect::Chat
    }

    fn call(&self, request: ModelRequest) -> ModelReply {
        let slow = self.clone();
        ModelReply::spawn(|sink| async move {
            if request.conversation.is_none() {
                return slow.summary().await;
            }
            let said = format!("yes, {} words on that: {}", 60, "word ".repeat(60));
            sink.send(ReplyPiece::Text(said.clone())).await;
            Ok(ModelAnswer::new(Message::assistant(said)))
        })
    }
}

/// A session whose summary is being written, after twelve turns.
async fn writing(slow: &Slow) -> Set {
    let mut set = set(slow.clone(), Arc::new(MemoryStore::new()), |settings| {
        settings.policy = preset("turns");
    });
    for n in 0..12 {
        say(&mut set.agent, n).await;
    }
    until(|| slow.asked.load(Ordering::SeqCst) > 0).await;
    assert!(!window(&mut set.agent).contains("THE SUMMARY"));
    kinds(&mut set);
    set
}

async fn say(agent: &mut Agent, n: usize) {
    agent.turn(format!("this is turn {n}.")).await.unwrap();
}

async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(Duration::from_mins(1), waiting).await.unwrap();
}

/// What happened in the session since the last look.
fn kinds(set: &mut Set) -> Vec<SessionEventKind> {
    let mut kinds = Vec::new();
    while let Ok(event) = set.events.try_recv() {
        if let AgentEvent::Session(event) = event {
            kinds.push(event.kind);
        }
    }
    kinds
}

/// Everything that was said is in the log, and everything since `first` in the window.
fn nothing_is_lost(agent: &mut Agent, turns: usize, first: usize) {
    let log = agent.session().projection().log().messages();
    let users = log.iter().filter(|message| message.is_real_user());
    assert_eq!(users.count(), turns);
    let window = window(agent);
    for n in first..turns {
        assert!(window.contains(&format!("this is turn {n}.")), "turn {n}");
    }
}

#[tokio::test]
async fn after_more_turns_it_is_used_and_they_stay() {
    let slow = Slow::new();
    let mut set = writing(&slow).await;
    for n in 12..15 {
        say(&mut set.agent, n).await;
    }
    slow.may_write(true);
    set.agent.settle().await.unwrap();
    assert_eq!(kinds(&mut set), [SessionEventKind::Compacted]);
    assert!(window(&mut set.agent).contains("THE SUMMARY"));
    nothing_is_lost(&mut set.agent, 15, 12);
}

#[tokio::test]
async fn background_summary_after_a_manual_plan_is_dropped_with_an_event() {
    let slow = Slow::new();
    let mut set = writing(&slow).await;
    say(&mut set.agent, 12).await;
    // Somebody drops turns by hand while it is written.
    let session = set.agent.session_mut();
    let by_hand = session
        .compact(&ManualCompaction::default())
        .unwrap()
        .unwrap();
    assert!(session.finish(by_hand).unwrap());
    let before = window(&mut set.agent);
    slow.may_write(true);
    set.agent.settle().await.unwrap();
    assert_eq!(
        kinds(&mut set),
        [SessionEventKind::Compacted, SessionEventKind::Stale]
    );
    assert_eq!(window(&mut set.agent), before);
    nothing_is_lost(&mut set.agent, 13, 12);
}

#[tokio::test]
async fn manual_compaction_waits_for_the_background_summary() {
    let slow = Slow::new();
    let mut set = writing(&slow).await;
    let interrupt = set.agent.interrupt();
    let pressing = async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        interrupt.interrupt();
    };
    let by_hand = ManualCompaction::default();
    let (done, ()) = tokio::join!(set.agent.compact(&by_hand), pressing);
    assert!(!done.unwrap());
    assert_eq!(kinds(&mut set), []);

    slow.may_write(true);
    set.agent.compact(&by_hand).await.unwrap();
    let told = kinds(&mut set);
    assert_eq!(told.first(), Some(&SessionEventKind::Compacted), "{told:?}");
    assert!(window(&mut set.agent).contains("THE SUMMARY"));
    nothing_is_lost(&mut set.agent, 12, 11);
}

#[tokio::test]
async fn undo_discards_the_background_summary() {
    let slow = Slow::new();
    let mut set = writing(&slow).await;
    slow.may_write(true);
    set.agent.settle().await.unwrap();
    slow.may_write(false);
    let asked = slow.asked.load(Ordering::SeqCst);
    for n in 12..22 {
        say(&mut set.agent, n).await;
    }
    until(|| slow.asked.load(Ordering::SeqCst) > asked).await;
    kinds(&mut set);
    // The second is being written: the first is taken back.
    assert!(set.agent.undo().unwrap());
    let before = window(&mut set.agent);
    assert!(!before.contains("THE SUMMARY"));
    slow.may_write(true);
    set.agent.settle().await.unwrap();
    assert_eq!(
        kinds(&mut set),
        [SessionEventKind::Undone, SessionEventKind::Stale]
    );
    assert_eq!(window(&mut set.agent), before);
    nothing_is_lost(&mut set.agent, 22, 0);
}

#[tokio::test]
async fn background_summary_survives_a_model_change() {
    let slow = Slow::new();
    let mut set = writing(&slow).await;
    let other = Model::new(ModelClient::new(slow.clone()), "gpt-4o");
    set.agent.set_model(other).unwrap();
    slow.may_write(true);
    set.agent.settle().await.unwrap();
    assert_eq!(kinds(&mut set), [SessionEventKind::Compacted]);
}

#[tokio::test]
async fn process_exit_loses_only_the_background_summary() {
    let slow = Slow::new();
    let mut set = writing(&slow).await;
    let before = window(&mut set.agent);
    let store: Arc<dyn Store> = Arc::clone(set.agent.session().store());
    let settings = set.agent.settings().clone();
    drop(set.agent);
    // Whoever wrote it was broken off with the agent.
    until(|| Arc::strong_count(&slow.asked) <= 2).await;

    let id = SessionId::new("s").unwrap();
    let (mut again, _events) = Agent::open(store, id, settings).unwrap();
    assert_eq!(window(&mut again), before);
    slow.may_write(true);
    say(&mut again, 12).await;
    again.settle().await.unwrap();
    assert!(window(&mut again).contains("THE SUMMARY"));
    nothing_is_lost(&mut again, 13, 12);
}
