//! Conversations that grow.

use bytes::Bytes;

/// Bytes of one round with an output of eighty lines, about.
const ROUND: usize = 3_700;

/// A conversation of which one longer body after the other is sent.
pub(crate) struct Talk {
    body: String,
    rounds: usize,
    lines: usize,
}

impl Talk {
    /// A conversation about `topic` with outputs of so many lines.
    pub(crate) fn new(model: &str, topic: &str, lines: usize) -> Self {
        let body = format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":"read all files of {topic}"}}"#
        );
        Self {
            body,
            rounds: 0,
            lines,
        }
    }

    /// The same, grown until its body has about so many bytes.
    pub(crate) fn of_bytes(mut self, bytes: usize) -> Self {
        while self.body.len() + ROUND / 2 < bytes {
            self.round();
        }
        self
    }

    /// The same with so many rounds.
    pub(crate) fn of_rounds(mut self, rounds: usize) -> Self {
        while self.rounds < rounds {
            self.round();
        }
        self
    }

    fn round(&mut self) {
        let at = self.rounds;
        self.rounds += 1;
        let line = |line| format!("{at}:{line} some output of a tool that ran\\n");
        let output: String = (0..self.lines).map(line).collect();
        let round = format!(
            r#",{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{at}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"src/{at}.rs\"}}"}}}}]}},{{"role":"tool","tool_call_id":"c{at}","content":"{output}"}}"#
        );
        self.body.push_str(&round);
    }

    /// Its body now.
    pub(crate) fn body(&self) -> Bytes {
        Bytes::from(format!("{}]}}", self.body))
    }

    /// Its body, and one round more for the next time.
    pub(crate) fn next(&mut self) -> Bytes {
        let body = self.body();
        self.round();
        body
    }
}

/// So many bodies of about so many bytes, each with one round more than the one before. Where
/// a round is much of the body, after a few rounds another conversation begins.
pub(crate) fn growing(model: &str, topic: &str, bytes: usize, count: usize) -> Vec<Bytes> {
    if bytes < 64 << 10 {
        let few = (0..count).map(|at| {
            let topic = format!("{topic} {}", at / 4);
            let talk = Talk::new(model, &topic, 2);
            talk.of_rounds(bytes / 512 + at % 4).body()
        });
        return few.collect();
    }
    let mut talk = Talk::new(model, topic, 80).of_bytes(bytes.saturating_sub(count * ROUND / 2));
    (0..count).map(|_| talk.next()).collect()
}
