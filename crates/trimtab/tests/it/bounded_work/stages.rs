//! What is done with a conversation, stage by stage.

use std::io::Cursor;
use std::sync::Arc;

use trimtab::engine::log::Log;
use trimtab::engine::normalise::{NormaliseOptions, OpenCallRepair, normalise};
use trimtab::engine::policy::PRESETS;
use trimtab::engine::view::{Shape, StructureCut, ViewContext, view};
use trimtab::engine::{removal, verify};
use trimtab::model::{Dialect, Message, RawJson, rounds};
use trimtab::request;
use trimtab::session::{Limits, ManualCompaction, Moment, Session, Setup};
use trimtab::wire::scan::BodyScan;
use trimtab::wire::splice::splice;
use trimtab::wire::transcript::TranscriptReader;
use trimtab::wire::validate::validate;

use crate::common;

/// A stage: its name, and what it does.
pub(super) type NamedStage = (&'static str, fn(&[Message]));

pub(super) const STAGES: [NamedStage; 8] = [
    ("pairing", |log| drop(rounds::pair(log))),
    ("normalising", normalising),
    ("verifying", verifying),
    ("removal", removing),
    ("views", views),
    ("planning", planning),
    ("scanning and splicing", scanning_and_splicing),
    ("reading a transcript", reading_a_transcript),
];

/// A window, in tokens, that all but the smallest conversations are too large for.
const WINDOW: u64 = 8_000;

fn shared(log: &[Message]) -> Vec<Arc<Message>> {
    log.iter().cloned().map(Arc::new).collect()
}

fn normalising(log: &[Message]) {
    let log = shared(log);
    for dialect in Dialect::ALL {
        for habit in [
            OpenCallRepair::Synthesise,
            OpenCallRepair::Tell,
            OpenCallRepair::Strip,
            OpenCallRepair::DropRound,
        ] {
            let options = NormaliseOptions::for_dialect(dialect);
            normalise(&log, NormaliseOptions { habit, ..options });
        }
    }
}

fn verifying(log: &[Message]) {
    for dialect in Dialect::ALL {
        verify::verify(log, dialect);
    }
}

fn removing(log: &[Message]) {
    removal::with_counterparts(log, 0..log.len());
    removal::with_counterparts(log, [log.len() / 2]);
    removal::safe_cut(log, log.len() / 2);
    removal::safe_cut(log, 1);
}

fn views(log: &[Message]) {
    let shape = Shape::Structure(StructureCut {
        cap: 2_000,
        ..StructureCut::default()
    });
    for output in log.iter().flat_map(Message::outputs) {
        view(&output.text(), &shape, &ViewContext::default());
    }
}

/// Everything that a session decides about a conversation, under every preset.
fn planning(log: &[Message]) {
    for preset in PRESETS {
        let mut session = session(preset.name, Dialect::Messages);
        for message in log {
            session.admit(message.clone()).unwrap();
        }
        for moment in [
            Moment::AfterOutputs,
            Moment::BeforeCall,
            Moment::AfterAnswer,
        ] {
            let pending = session.check(moment).unwrap_or_default();
            if let Some(pending) = pending {
                session.finish(pending).unwrap();
            }
        }
        // One that cannot be made to fit is an error, which is as good here.
        session.ready().ok();
        if let Ok(Some(pending)) = session.compact(&ManualCompaction::default()) {
            session.finish(pending).unwrap();
        }
        session.window().unwrap();
    }
}

fn session(preset: &str, dialect: Dialect) -> Session {
    let limits = Limits {
        window: Some(WINDOW),
        ..Limits::default()
    };
    common::open(Setup {
        dialect,
        ..common::setup(preset, limits)
    })
}

/// A body with the conversation, scanned; the window of it spliced in; the result judged.
fn scanning_and_splicing(log: &[Message]) {
    for dialect in Dialect::ALL {
        let fields = request::fields(log, dialect);
        let fields = fields.iter().map(|field| {
            let value = field.value.as_str();
            format!("{:?}:{value}", field.name)
        });
        let tools: Vec<String> = log.iter().map(|_| r#"{"name":"t"}"#.to_owned()).collect();
        let fields: Vec<String> = fields
            .chain([format!("\"tools\":[{}]", tools.join(","))])
            .collect();
        let body = format!("{{{}}}", fields.join(","));
        let scan = BodyScan::new(body.as_bytes(), dialect).unwrap();
        let came: Log = scan.messages(0).map(Option::unwrap).collect();
        let mut session = session("steady", dialect);
        for message in came.messages() {
            session.admit(Message::clone(message)).unwrap();
        }
        session.check(Moment::BeforeCall).ok();
        session.ready().ok();
        let window = session.window().unwrap();
        let changes = request::changes(&came, window, dialect);
        let spliced = splice(&scan, &changes).unwrap();
        validate(&BodyScan::new(&spliced.body, dialect).unwrap());
        validate(&scan);
    }
}

fn reading_a_transcript(log: &[Message]) {
    let lines: Vec<String> = log
        .iter()
        .flat_map(trimtab::wire::chat::write_message)
        .map(|line| RawJson::as_str(&line).to_owned())
        .collect();
    let file = Cursor::new(lines.join("\n"));
    let read = TranscriptReader::new(file).map(|read| read.unwrap().messages.len());
    assert!(read.sum::<usize>() > 0);
}
