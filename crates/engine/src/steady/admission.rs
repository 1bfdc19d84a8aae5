//! How an output comes in.

use trimtab_model::estimate::Measure;
use trimtab_model::{Output, Part, Ref};

use super::card::{self, BYTES_PER_TOKEN};
use super::names::Known;
use super::settings::{Steady, percent};
use crate::view::placeholder::read_call;
use crate::view::structure::{self, Cut};

/// The room that an output comes into, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The room for messages: the window without tools and the answer's reserve.
    pub messages: u64,
    /// What the window takes already.
    pub used: u64,
    /// What the outputs of the same round take of that.
    pub round: u64,
}

/// No view is made shorter than this, in tokens: a marker and a few lines.
const LEAST: u64 = 100;

impl Steady {
    /// The most that an output may take when it comes in, in tokens: less, the nearer the
    /// high-water mark is. The outputs of one round never take more than what is between the
    /// marks, so that a rewrite can make room for them.
    ///
    /// ```
    /// # use trimtab_engine::steady::{Room, Steady};
    /// let steady = Steady::default();
    /// let cap = |used, round| steady.cap(Room { messages: 40_000, used, round });
    /// assert!(cap(30_000, 0) < cap(5_000, 0));
    /// assert!(cap(30_000, 23_000) < cap(30_000, 0));
    /// ```
    pub fn cap(&self, room: Room) -> u64 {
        let most = percent(room.messages, self.cap_percent).min(self.cap_tokens);
        let least = percent(room.messages, self.near_percent).min(most);
        let high = self.high(room.messages);
        let left = high.saturating_sub(room.used);
        let share = u128::from(most - least) * u128::from(left) / u128::from(high.max(1));
        let one = least + u64::try_from(share).unwrap_or(u64::MAX);
        let between = high - self.low(room.messages);
        one.min(between.saturating_sub(room.round) / 2).max(LEAST)
    }

    /// What an output is shown as when it comes in; none where it is shown as it came.
    ///
    /// `earlier` is the output that shows the same text whole already: it becomes a
    /// back-reference to that. What is over its cap is cut by structure, and the names in it
    /// that were cut off are listed behind.
    pub fn admit(
        &self,
        earlier: Option<&Output>,
        output: &Output,
        room: Room,
        weigh: &dyn Fn(&Measure) -> u64,
    ) -> Option<Output> {
        let [Part::Text(only)] = output.content.as_slice() else {
            return None;
        };
        let text = earlier
            .and_then(|earlier| self.back_reference(earlier, output))
            .or_else(|| self.cut(&only.text, output.stored.as_ref(), self.cap(room), weigh))?;
        Some(Output {
            content: vec![Part::text(text)],
            trimmed: true,
            ..output.clone()
        })
    }

    /// The same for an observation. Not every agent that tells of its tools like this can ask for
    /// what was left out, so twice as much is shown of it, and text instead of names.
    pub fn admit_observation(
        &self,
        output: &Output,
        room: Room,
        weigh: &dyn Fn(&Measure) -> u64,
    ) -> Option<Output> {
        let text = output.text();
        let between = self.high(room.messages) - self.low(room.messages);
        let how = Cut {
            cap: self.cap(room).saturating_mul(2).min(between / 2).max(LEAST),
            measure: &|text| weigh(&Measure::of_text(text)),
            stored: output.stored.as_ref(),
        };
        let view = structure::cut(&text, &how);
        view.trimmed.then(|| Output {
            content: vec![Part::text(view.text)],
            trimmed: true,
            ..output.clone()
        })
    }

    /// A text cut by structure, with the names of what was cut off.
    fn cut(
        &self,
        text: &str,
        stored: Option<&Ref>,
        cap: u64,
        weigh: &dyn Fn(&Measure) -> u64,
    ) -> Option<String> {
        let measure = |text: &str| weigh(&Measure::of_text(text));
        let cut_to = |cap| {
            let how = Cut {
                cap,
                measure: &measure,
                stored,
            };
            structure::cut(text, &how)
        };
        let view = cut_to(cap);
        if !view.trimmed {
            return None;
        }
        let names = percent(cap, self.names_percent);
        if structure::detect(text) == structure::Kind::Json || names < LEAST / 2 {
            return Some(view.text.into_owned());
        }
        let shown = cut_to(cap.saturating_sub(names)).text.into_owned();
        let mut known = Known::default();
        known.add(&shown);
        let bytes = usize::try_from(names.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
        let listed = card::chosen(text, bytes, &known);
        if listed.is_empty() {
            return Some(view.text.into_owned());
        }
        let listed = format!("{}{listed}", card::NAMES);
        // Names that did not take their share leave it to the lines.
        let left = cap.saturating_sub(measure(&listed) + 1);
        let longer = cut_to(left.max(cap - names)).text.into_owned();
        let fits = |shown: String| {
            let both = format!("{shown}{listed}");
            (measure(&both) <= cap).then_some(both)
        };
        let both = fits(longer).or_else(|| fits(shown));
        Some(both.unwrap_or_else(|| view.text.into_owned()))
    }

    /// The back-reference that an output becomes whose text `earlier` shows whole already.
    pub fn back_reference(&self, earlier: &Output, output: &Output) -> Option<String> {
        let stored = output.stored.as_ref()?;
        if output.text().len() < self.small_bytes {
            return None;
        }
        Some(said_before(stored, earlier.stored.as_ref()))
    }
}

fn said_before(stored: &Ref, first: Option<&Ref>) -> String {
    let call = read_call(stored, 0);
    match first {
        Some(first) if first.id() != stored.id() => {
            format!("[trimtab: the same output as before, ref={first}; all of it: {call}]")
        }
        _ => format!("[trimtab: the same output as before; all of it: {call}]"),
    }
}
