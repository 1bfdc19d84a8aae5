//! Programs that the provider runs. The model writes one, and it calls the tools of the client.
//!
//! A call of a program names it in `caller`. Its output goes to the program, not to the model, so
//! it must be whole. The program itself and what it prints are opaque parts.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Call, ExtraFields, Opaque, Output, Part, Treatment, work};

/// The field of a call or an output that names its caller.
pub const CALLER: &str = "caller";

#[derive(Deserialize)]
struct CallerFields {
    #[serde(rename = "type")]
    kind: Option<String>,
    tool_id: Option<String>,
    caller_id: Option<String>,
}

/// The id of the program that `caller` names; none if the model itself calls. Empty if the caller
/// has no id that we know.
fn program_of(extra: &ExtraFields) -> Option<String> {
    let (_, caller) = extra.iter().find(|(name, _)| name == CALLER)?;
    let caller: CallerFields = serde_json::from_str(caller.as_str()).ok()?;
    let is_program = caller.kind.is_some_and(|kind| kind != "direct");
    let id = caller.tool_id.or(caller.caller_id).unwrap_or_default();
    is_program.then_some(id)
}

impl Call {
    /// The id of the program that made the call; none if the model made it.
    ///
    /// ```
    /// use trimtab_model::{Call, RawJson};
    ///
    /// let mut call = Call::new("c1", "read", "{}");
    /// assert_eq!(call.program(), None);
    /// let caller = r#"{"type":"program","caller_id":"p1"}"#;
    /// call.extra.push(("caller".to_owned(), RawJson::parse(caller).unwrap()));
    /// assert_eq!(call.program().as_deref(), Some("p1"));
    /// ```
    pub fn program(&self) -> Option<String> {
        program_of(&self.extra)
    }
}

impl Output {
    /// True if a program reads it. `call` is the call that it answers: Messages names the caller
    /// only there.
    pub fn is_for_program(&self, call: Option<&Call>) -> bool {
        program_of(&self.extra).is_some() || call.is_some_and(|call| call.program().is_some())
    }

    /// True if it loads something for the model, such as a tool.
    pub fn loads(&self) -> bool {
        self.content.iter().any(|part| part.has(Treatment::Always))
    }
}

#[derive(Deserialize)]
struct IdFields<'a> {
    #[serde(borrow)]
    tool_use_id: Option<&'a RawValue>,
    #[serde(borrow)]
    call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    approval_request_id: Option<&'a RawValue>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// The ids in an opaque part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartIds {
    /// The id that it shares with the parts that belong to it: those of a program and its result,
    /// or of a request for approval and its answer.
    pub shared: Option<String>,
    /// Its own id.
    pub own: Option<String>,
}

impl Opaque {
    /// The ids in it.
    ///
    /// ```
    /// use trimtab_model::{Opaque, RawJson};
    ///
    /// let raw = RawJson::parse(r#"{"type":"program_output","id":"o1","call_id":"p1"}"#).unwrap();
    /// let output = Opaque { type_name: "program_output".to_owned(), raw };
    /// assert_eq!(output.ids().shared.as_deref(), Some("p1"));
    /// ```
    pub fn ids(&self) -> PartIds {
        work::step_text(self.raw.as_str());
        let Ok(fields) = serde_json::from_str::<IdFields<'_>>(self.raw.as_str()) else {
            return PartIds::default();
        };
        let text = |id: &RawValue| serde_json::from_str::<String>(id.get()).ok();
        let shared = [
            fields.tool_use_id,
            fields.call_id,
            fields.approval_request_id,
        ];
        PartIds {
            shared: shared.into_iter().flatten().find_map(text),
            own: fields.id.and_then(text),
        }
    }
}

/// Links messages whose parts name each other.
#[derive(Debug, Default)]
pub(crate) struct PartLinks {
    /// The first and the last message of each group.
    pub(crate) spans: Vec<(usize, usize)>,
    /// For each shared id its group.
    groups: HashMap<String, usize>,
}

impl PartLinks {
    /// Adds a part of message number `index`.
    pub(crate) fn add(&mut self, index: usize, part: &Part) {
        match part {
            Part::Call(call) => {
                if let Some(program) = call.program() {
                    self.link(index, program);
                }
            }
            Part::Opaque(opaque) => self.add_opaque(index, opaque),
            _ => {}
        }
    }

    fn add_opaque(&mut self, index: usize, opaque: &Opaque) {
        let ids = opaque.ids();
        if let Some(shared) = ids.shared {
            self.link(index, shared);
        } else if let Some(own) = ids.own {
            // A part whose own id was used before begins something new.
            self.groups.remove(&own);
            self.link(index, own);
        }
    }

    fn link(&mut self, index: usize, id: String) {
        let group = *self.groups.entry(id).or_insert(self.spans.len());
        match self.spans.get_mut(group) {
            Some((_, last)) => *last = index,
            None => self.spans.push((index, index)),
        }
    }
}
