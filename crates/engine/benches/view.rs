//! Cutting large outputs, beside counting their lines: the least that any cut has to do.

use std::rc::Rc;

use trimtab_engine::view::structure::{CutRequest, cut};
use trimtab_testkit::bench::BenchComparison;

const SIZE: usize = 10 << 20;

fn main() {
    compare(
        "10 MB of log lines",
        grow(|n| {
            let level = if n % 500 == 0 { "ERROR" } else { "INFO" };
            format!(
                "2026-11-15T04:{:02}:{:02} {level} worker-{} handled request {n} for /api/items/{}\n",
                n / 60 % 60,
                n % 60,
                n % 7,
                n * 31 % 9_973
            )
        }),
    );
    compare(
        "10 MB of CSV",
        grow(|n| format!("{n},item {n},{},{}\n", n * 7 % 1_000, n % 13)),
    );
    compare("10 MB on one line", "one line of JSON, ".repeat(SIZE / 18));
}

fn grow(line: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(SIZE + 200);
    for n in 0.. {
        if text.len() >= SIZE {
            break;
        }
        text.push_str(&line(n));
    }
    text
}

fn compare(title: &str, text: String) {
    let text: Rc<str> = text.into();
    let candidate = |run: fn(&str) -> usize| {
        let text = Rc::clone(&text);
        move || run(&text)
    };
    BenchComparison::new(title, 15)
        .candidate("count the newlines (memchr)", candidate(newlines))
        .candidate("cut to 24,000 bytes", candidate(cut_by_bytes))
        .candidate("cut to 6,000 tokens, bytes/4", candidate(cut_by_tokens))
        .run();
}

fn newlines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

fn cut_by_bytes(text: &str) -> usize {
    let measure = |text: &str| text.len() as u64;
    cut(
        text,
        &CutRequest {
            cap: 24_000,
            measure: &measure,
            stored: None,
        },
    )
    .len()
}

fn cut_by_tokens(text: &str) -> usize {
    let measure = |text: &str| text.len().div_ceil(4) as u64;
    cut(
        text,
        &CutRequest {
            cap: 6_000,
            measure: &measure,
            stored: None,
        },
    )
    .len()
}
