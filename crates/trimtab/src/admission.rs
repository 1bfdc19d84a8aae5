//! Admission: an output is stored whole and shown short, before anybody was sent it.

use std::borrow::Cow;
use std::sync::Arc;

use trimtab_engine::observation::{observed, only_text, show};
use trimtab_engine::plan::{Plan, Reason};
use trimtab_engine::view::policy::Views;
use trimtab_engine::view::{Given, Shape, Spill, view};
use trimtab_engine::window::Projection;
use trimtab_model::{Kind, Message, Output, Part, RawJson, Ref};
use trimtab_store::{Error, Put, Result, SessionId, Spilled, Store};

/// Media type of an output that is more than text: its parts as JSON.
const PARTS: &str = "application/vnd.trimtab.parts+json";

/// Lets messages into a session: outputs go to the store whole and get their view.
///
/// The log keeps what came, with its ref; how it is shown is an edit in the journal. A store
/// that fails leaves nothing behind: the message is not admitted, and the error says why.
///
/// ```
/// use std::sync::Arc;
/// use trimtab::admission::Admission;
/// use trimtab::engine::normalise::Options;
/// use trimtab::engine::view::policy::{ViewPolicy, Views};
/// use trimtab::engine::view::{HeadLines, Shape};
/// use trimtab::engine::window::Projection;
/// use trimtab::model::{Call, Message};
/// use trimtab::store::{MemoryStore, SessionId, Store};
///
/// let (store, session) = (Arc::new(MemoryStore::new()), SessionId::new("demo")?);
/// let policy = ViewPolicy {
///     default: Shape::HeadLines(HeadLines { max_bytes: 8, ..HeadLines::default() }),
///     ..ViewPolicy::default()
/// };
/// let admission = Admission::new(store.clone(), session.clone(), Views::new(&policy).unwrap());
///
/// let mut projection = Projection::new(Options::default());
/// admission.admit(&mut projection, Message::user("what is in it?"))?;
/// let asks = Message::assistant("").with_call(Call::new("c1", "read", "{}"));
/// admission.admit(&mut projection, asks)?;
/// admission.admit(&mut projection, Message::output("c1", "one\ntwo\nthree"))?;
///
/// let window = projection.window().unwrap();
/// let shown = window.messages().last().unwrap().outputs().next().unwrap().clone();
/// assert!(shown.text().starts_with("one\ntwo\n"));
/// assert_eq!(store.get(&session, shown.stored.unwrap().id())?, b"one\ntwo\nthree");
/// # Ok::<_, trimtab::store::Error>(())
/// ```
pub struct Admission {
    store: Arc<dyn Store>,
    session: SessionId,
    views: Views,
}

/// A message with its outputs stored, and how they are shown.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The message as it came, its outputs with their refs.
    pub message: Message,
    /// For each output whose view leaves something out: its part, and what is shown.
    pub shown: Vec<(usize, Output)>,
    /// What the views want and the store could not do, in words.
    pub warnings: Vec<String>,
}

impl Admission {
    /// Admission to `session`, whose outputs are shown as `views` say.
    pub fn new(store: Arc<dyn Store>, session: SessionId, views: Views) -> Self {
        Self {
            store,
            session,
            views,
        }
    }

    /// Lets a message in and gives its position in the log.
    pub fn admit(&self, projection: &mut Projection, message: Message) -> Result<usize> {
        let Admitted { message, shown, .. } = self.prepare(projection, message)?;
        let message = Arc::new(message);
        let at = projection.admit(Arc::clone(&message));
        let edit = |(part, output)| show(&message, at, part, output);
        let edits = shown.into_iter().map(edit).collect();
        projection.carry_out(Plan::new(Reason::Admission, edits));
        Ok(at)
    }

    /// Stores the outputs of a message that is about to be let in, and makes their views.
    pub fn prepare(&self, projection: &Projection, message: Message) -> Result<Admitted> {
        let mut message = message;
        let (mut shown, mut warnings) = (Vec::new(), Vec::new());
        for (part, found) in message.parts.iter_mut().enumerate() {
            let Part::Output(output) = found else {
                continue;
            };
            let tool = tool_of(output, projection).to_owned();
            self.keep(output, &tool)?;
            let short = self.short(output, &tool, &mut warnings)?;
            shown.extend(short.map(|output| (part, output)));
        }
        let observation =
            only_text(&message).filter(|_| message.meta.kind == Some(Kind::Observation));
        if let Some(text) = observation {
            let call = format!("observation-{}", projection.log().len());
            let stored = self.store.put(&self.session, Put::new(&call, text))?;
            let stored = stored.with_lines_of(text);
            message.meta.stored = Some(stored);
            if let Some((part, output)) = observed(&message) {
                let short = self.short(&output, "", &mut warnings)?;
                shown.extend(short.map(|output| (part, output)));
            }
        }
        Ok(Admitted {
            message,
            shown,
            warnings,
        })
    }

    /// True if an output is never shortened, because its tool is protected.
    pub(crate) fn protects(&self, output: &Output, projection: &Projection) -> bool {
        self.views.protects(tool_of(output, projection))
    }

    /// The content of a stored output, as it came.
    pub(crate) fn contents(store: &dyn Store, session: &SessionId, id: &str) -> Result<Vec<Part>> {
        let media_type = store.metadata(session, id)?.labels.media_type;
        let bytes = store.get(session, id)?;
        if media_type == PARTS
            && let Ok(parts) = serde_json::from_slice(&bytes)
        {
            return Ok(parts);
        }
        Ok(vec![Part::text(String::from_utf8_lossy(&bytes))])
    }

    /// Stores an output whole and notes its ref.
    fn keep(&self, output: &mut Output, tool: &str) -> Result<()> {
        let (call, text) = (&output.call_id, output.text());
        let stored = if let Some(text) = plain_text(output) {
            self.store
                .put(&self.session, Put::new(call, text).tool(tool))?
        } else {
            let parts = RawJson::of(&output.content);
            let put = Put::new(call, parts.as_str()).tool(tool).media_type(PARTS);
            self.store.put(&self.session, put.text(&text))?
        };
        let stored = stored.with_lines_of(&text);
        output.stored = Some(stored);
        Ok(())
    }

    /// The output as it is shown, if that is not all of it. One with media is shown as it is.
    fn short(
        &self,
        output: &Output,
        tool: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Output>> {
        let (shape, stored) = (self.views.shape(tool), output.stored.as_ref());
        let Some(text) = plain_text(output) else {
            return Ok(None);
        };
        let spilled = match (shape, stored) {
            (Shape::Limits(limits), Some(stored)) if limits.spills(text) => {
                Some(self.spill(stored)?)
            }
            _ => None,
        };
        if let Some(Err(why)) = &spilled {
            warnings.push(format!("an output has no file of its own: {why}"));
        }
        let path = spilled.as_ref().and_then(|spilled| spilled.as_ref().ok());
        let path = path.map(spill_path).unwrap_or_default();
        let spill = spilled.as_ref().map(|spilled| match spilled {
            Ok(spilled) => Spill::Saved {
                path: &path,
                sha256: &spilled.sha256,
            },
            Err(why) => Spill::Failed(why),
        });
        let given = Given {
            stored,
            spill,
            ..Given::default()
        };
        let shown = view(text, shape, &given);
        Ok(shown.trimmed.then(|| Output {
            content: vec![Part::text(shown.text)],
            trimmed: true,
            ..output.clone()
        }))
    }

    /// Writes a stored output to a file. Where that cannot be, nothing is lost: the reason
    /// names the ref that it is behind all the same.
    fn spill(&self, stored: &Ref) -> Result<std::result::Result<Spilled, String>> {
        match self.store.spill(&self.session, stored.id()) {
            // It can be asked for again.
            Err(Error::WouldWait) => Err(Error::WouldWait),
            spilled => {
                Ok(spilled
                    .map_err(|error| format!("{error}; it is whole behind ref {}", stored.id())))
            }
        }
    }
}

fn spill_path(spilled: &Spilled) -> Cow<'_, str> {
    spilled.path.to_string_lossy()
}

/// The text of an output that is nothing but text in one piece, without further fields.
fn plain_text(output: &Output) -> Option<&str> {
    match output.content.as_slice() {
        [Part::Text(text)] if text.extra.is_empty() => Some(&text.text),
        _ => None,
    }
}

/// The tool that gave an output, where it says so itself or the newest round tells; else empty.
fn tool_of<'o>(output: &'o Output, projection: &'o Projection) -> &'o str {
    let named = output.tool.as_deref();
    named
        .or_else(|| projection.called_tool(&output.call_id))
        .unwrap_or_default()
}
