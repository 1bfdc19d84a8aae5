use super::*;
use crate::records::record::SentBefore;
use trimtab_model::Dialect;

fn record(time_ms: u64, before: u64, after: u64, usage: Usage) -> Record {
    Record {
        time_ms,
        dialect: Some(Dialect::Messages),
        action: RecordAction::Edited,
        model: "claude-opus-5-5".to_owned(),
        session: "s".to_owned(),
        client_session: "s".to_owned(),
        status: 200,
        tokens_before: before,
        tokens_after: after,
        saved: SavedTokens::of_changed(before, after, Some(usage.prompt()), None),
        usage: Some(usage),
        ..Record::default()
    }
}

/// The same of a call that took `usage` and nothing else.
fn as_it_came(action: RecordAction, before: u64, usage: Usage) -> Record {
    Record {
        action,
        saved: SavedTokens::of_unchanged(usage.prompt()),
        ..record(1_000, before, 10_000, usage)
    }
}

fn recently(tokens: u64) -> SentBefore<u64> {
    SentBefore {
        recently: tokens,
        sometime: 0,
    }
}

fn savings() -> Savings {
    Savings::new(Catalogue::embedded())
}

#[test]
fn without_a_cache_every_token_counts() {
    let mut savings = savings();
    let usage = Usage {
        input: 10_000,
        ..Usage::default()
    };
    savings.add(&record(1, 110_000, 10_000, usage));
    savings.add(&record(2, 110_000, 10_000, usage));
    let total = savings.total();
    // 200,000 tokens at $4 a million.
    assert!((total.saved - 0.8).abs() < 1e-9, "{total:?}");
    assert_eq!(total.tokens.saved(), 200_000);
}

#[test]
fn earlier_prompt_counts_as_cached() {
    let mut savings = savings();
    let first = Usage {
        cache_creation: 10_000,
        ..Usage::default()
    };
    savings.add(&record(1_000, 110_000, 10_000, first));
    let at_first = savings.total().saved;
    let second = Usage {
        cache_read: 10_000,
        cache_creation: 1_000,
        ..Usage::default()
    };
    let branch = Record {
        // The client went back, so another branch continues its session.
        session: "s.1".to_owned(),
        sent_before: recently(110_000),
        ..record(2_000, 121_000, 11_000, second)
    };
    savings.add(&branch);
    // 100,000 more read from the cache and 10,000 more written to it.
    let prices = Catalogue::embedded()
        .find("claude-opus-5-5")
        .unwrap()
        .model
        .prices
        .unwrap();
    let expected = prices.cache_read.of(100_000) + prices.cache_write.of(10_000);
    let gained = savings.total().saved - at_first;
    assert!((gained - expected.dollars()).abs() < 1e-9, "{gained}");
}

#[test]
fn earlier_prompt_of_unknown_time_counts_as_cached_if_the_cache_is_warm() {
    let saved = |cache_read, recently, sometime| {
        let usage = Usage {
            cache_read,
            cache_creation: 10_000 - cache_read,
            ..Usage::default()
        };
        let sent_before = SentBefore { recently, sometime };
        let mut savings = savings();
        savings.add(&Record {
            sent_before,
            ..record(1_000, 110_000, 10_000, usage)
        });
        savings.total().saved
    };
    assert!(saved(9_000, 0, 100_000) < saved(9_000, 0, 0) / 2.0);
    // A few hits can be the instructions that all conversations have.
    assert!((saved(2_000, 0, 100_000) - saved(2_000, 0, 0)).abs() < 1e-9);
    // Later calls hit what was sent just now.
    assert!((saved(9_000, 20_000, 100_000) - saved(9_000, 20_000, 0)).abs() < 1e-9);
}

#[test]
fn broken_cache_reduces_the_savings() {
    let mut savings = savings();
    let first = Usage {
        cache_creation: 10_000,
        ..Usage::default()
    };
    savings.add(&record(1_000, 10_000, 10_000, first));
    // All but nothing was cut, and the cache had to be written anew.
    savings.add(&Record {
        sent_before: recently(10_000),
        ..record(2_000, 10_100, 10_000, first)
    });
    assert!(savings.total().saved < 0.0);
}

#[test]
fn unchanged_request_saves_nothing() {
    let mut savings = savings();
    let usage = Usage {
        input: 100,
        cache_read: 9_000,
        cache_creation: 900,
        output: 50,
        ..Usage::default()
    };
    // Whatever the estimates say.
    for (action, before) in [
        (RecordAction::Unchanged, 10_000),
        (RecordAction::Observed, 90_000),
    ] {
        savings.add(&as_it_came(action, before, usage));
    }
    assert!(savings.total().saved.abs() < 1e-12);
    assert_eq!(savings.total().tokens.saved(), 0);
    assert_eq!(savings.total().observed, 80_000);
}

#[test]
fn summaries_reduce_the_savings() {
    let mut savings = savings();
    let usage = Usage {
        input: 100_000,
        ..Usage::default()
    };
    let asked = Record {
        action: RecordAction::Asked,
        saved: SavedTokens::of_extra(usage.prompt()),
        ..record(1, 0, 0, usage)
    };
    savings.add(&asked);
    let total = savings.total();
    // 100,000 tokens at $4 a million.
    assert!((total.spent - 0.4).abs() < 1e-9, "{total:?}");
    assert!((total.saved + 0.4).abs() < 1e-9, "{total:?}");
    assert_eq!((total.calls, total.summaries), (0, 1));
    assert_eq!(total.tokens.saved(), -100_000);
}

#[test]
fn retrieval_rounds_reduce_the_savings() {
    let mut savings = savings();
    let usage = Usage {
        input: 10_000,
        ..Usage::default()
    };
    savings.add(&record(1, 110_000, 10_000, usage));
    let before = savings.total().clone();
    let mut asked = Record {
        hidden: Some(usage),
        ..record(2, 110_000, 10_000, usage)
    };
    asked.saved += SavedTokens::of_extra(usage.prompt());
    savings.add(&asked);
    let total = savings.total();
    // Twice 10,000 tokens at $4 a million were spent, once 10,000 of them on asking.
    assert!(
        (total.spent - before.spent - 0.08).abs() < 1e-9,
        "{total:?}"
    );
    assert!(
        (total.saved - before.saved - 0.36).abs() < 1e-9,
        "{total:?}"
    );
    assert_eq!(total.tokens.saved() - before.tokens.saved(), 90_000);
}

#[test]
fn oversized_call_counts_as_a_full_window() {
    let mut savings = savings();
    let usage = Usage {
        input: 10_000,
        ..Usage::default()
    };
    savings.add(&Record {
        saved: SavedTokens::of_changed(110_000, 10_000, Some(10_000), Some(60_000)),
        beyond_window: 50_000,
        ..record(1, 110_000, 10_000, usage)
    });
    let total = savings.total();
    assert_eq!(total.tokens.saved(), 50_000);
    // 50,000 tokens at $4 a million, and 100,000 if the window had room for them.
    assert!((total.saved - 0.2).abs() < 1e-9, "{total:?}");
    assert!((total.saved_unbounded - 0.4).abs() < 1e-9, "{total:?}");
    assert_eq!(total.tokens.over_window, 1);
}

#[test]
fn new_part_of_an_oversized_call_is_not_cached() {
    let mut savings = savings();
    let usage = Usage {
        cache_read: 9_000,
        cache_creation: 1_000,
        ..Usage::default()
    };
    let call = |time_ms, came| Record {
        saved: SavedTokens::of_changed(came, 10_000, Some(10_000), Some(60_000)),
        beyond_window: came - 60_000,
        ..record(time_ms, came, 10_000, usage)
    };
    savings.add(&call(1, 100_000));
    let before = savings.total().clone();
    savings.add(&Record {
        sent_before: recently(100_000),
        ..call(2, 120_000)
    });
    let model = savings.priced("claude-opus-5-5").unwrap();
    let cost = |cache_read, cache_creation| {
        let usage = Usage {
            cache_read,
            cache_creation,
            ..Usage::default()
        };
        model.cost(&usage).unwrap().dollars()
    };
    let total = savings.total();
    let saved = total.saved - before.saved;
    let expected = cost(40_000, 20_000) - cost(9_000, 1_000);
    assert!((saved - expected).abs() < 1e-9, "{saved} {expected}");
    let unbounded = total.saved_unbounded - before.saved_unbounded;
    let expected = cost(100_000, 20_000) - cost(9_000, 1_000);
    assert!((unbounded - expected).abs() < 1e-9, "{unbounded}");
}

#[test]
fn unknown_prices_are_reported() {
    let mut savings = savings();
    let usage = Usage {
        input: 1,
        ..Usage::default()
    };
    let unknown = Record {
        model: "zzz".to_owned(),
        ..record(1, 1, 1, usage)
    };
    savings.add(&unknown);
    assert_eq!(savings.total().unpriced, 1);
}

#[test]
fn number_of_remembered_sessions_is_bounded() {
    let mut savings = savings();
    let usage = Usage {
        cache_creation: 10_000,
        ..Usage::default()
    };
    for at in 0..3 * SESSIONS as u64 {
        let mut other = record(1 + at, 110_000, 10_000, usage);
        other.client_session = format!("other-{at}");
        savings.add(&other);
        if at.is_multiple_of(1_000) {
            savings.add(&record(1 + at, 110_000, 10_000, usage));
        }
    }
    let remembered = savings.caching.len() + savings.older_caching.len();
    assert!(remembered <= 2 * SESSIONS, "{remembered}");
    // A session that is used stays remembered.
    let record = record(1, 110_000, 10_000, usage);
    assert!(savings.note_cache_use(&record, &Usage::default()));
}
