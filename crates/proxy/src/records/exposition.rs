//! The text format in which Prometheus reads metrics.

use std::fmt::Write as _;

/// The media type of the format.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Writes metrics, one family after the other.
#[derive(Default)]
pub(crate) struct Exposition(String);

impl Exposition {
    /// Starts a family. Its samples follow.
    pub(crate) fn family(&mut self, name: &str, kind: MetricKind, help: &str) {
        // Writing into a String cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}");
        let _ = writeln!(self.0, "# TYPE {name} {}", kind.as_str());
    }

    /// Writes one sample.
    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        if !labels.is_empty() {
            let labels: Vec<String> = labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            let _ = write!(self.0, "{{{}}}", labels.join(","));
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// A family with one sample and no labels.
    pub(crate) fn single(&mut self, name: &str, kind: MetricKind, help: &str, value: f64) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// The text so far.
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut written = Exposition::default();
        written.family("a_total", MetricKind::Counter, "Some.");
        written.sample("a_total", &[("b", "x\"y\\z\n")], 2.0);
        let text = written.into_text();
        assert!(
            text.ends_with("a_total{b=\"x\\\"y\\\\z\\n\"} 2\n"),
            "{text}"
        );
    }
}
