//! Executes admission: stores an output in full before its view is shown.
//!
//! [`trimtab_engine::decide::admit`] decides how it is shown.

use trimtab_engine::decide::admit;
use trimtab_engine::observation::only_text;
use trimtab_engine::view::Spill;
use trimtab_engine::view::policy::CompiledViews;
use trimtab_engine::window::Projection;
use trimtab_model::{Message, MessageKind, Output, Part, RawJson, Ref};
use trimtab_store::{OpenOutput, Put, Result, SessionId, SpilledFile, Store};

/// Media type of an output that is not one plain text: its parts as JSON.
const PARTS: &str = "application/vnd.trimtab.parts+json";

/// Stores the outputs of a message before it is admitted, and sets their refs, as `named` returns
/// them. If the store fails, nothing is left behind, and the error says why.
pub(crate) fn store_outputs(
    store: &dyn Store,
    session: &SessionId,
    projection: &Projection,
    message: &mut Message,
    named: impl Fn(Ref) -> Ref,
) -> Result<()> {
    for part in &mut message.parts {
        if let Part::Output(output) = part {
            let tool = tool_of(output, projection).to_owned();
            // The store does not know which tool reads it in this conversation.
            output.stored = Some(named(store_output(store, session, output, &tool)?));
        }
    }
    let observation =
        only_text(message).filter(|_| message.meta.kind == Some(MessageKind::Observation));
    if let Some(text) = observation {
        // An observation answers no call. The position makes the label unique within the session.
        let call = format!("observation-{}", projection.log().len());
        let stored = store.put(session, Put::new(&call, text))?;
        message.meta.stored = Some(named(stored.with_lines_of(text)));
    }
    Ok(())
}

fn store_output(
    store: &dyn Store,
    session: &SessionId,
    output: &Output,
    tool: &str,
) -> Result<Ref> {
    let (call, text) = (&output.call_id, output.text());
    let stored = match output.content.as_slice() {
        // Further fields of the text, such as cache markers, must survive, so only bare text is
        // stored as text.
        [Part::Text(plain)] if plain.extra.is_empty() => {
            store.put(session, Put::new(call, &plain.text).tool(tool))?
        }
        parts => {
            // Stored with its text, so that retrieval can page and search it like any other output.
            let parts = RawJson::of(&parts);
            let put = Put::new(call, parts.as_str()).tool(tool).media_type(PARTS);
            store.put(session, put.text(&text))?
        }
    };
    Ok(stored.with_lines_of(&text))
}

/// The original content of a stored output.
pub(crate) fn contents(stored: &OpenOutput) -> Result<Vec<Part>> {
    let bytes = stored.bytes()?;
    // A client chooses no media type: only `store_output` writes this one.
    if stored.metadata().labels.media_type == PARTS
        && let Ok(parts) = serde_json::from_slice(&bytes)
    {
        return Ok(parts);
    }
    Ok(vec![Part::text(String::from_utf8_lossy(&bytes))])
}

/// Writes a stored output to a file of its own, if its view needs that.
pub(crate) fn spill_file(
    store: &dyn Store,
    session: &SessionId,
    views: &CompiledViews,
    (tool, output): (&str, &Output),
) -> Option<Spill> {
    let stored = output.stored.as_ref();
    let stored = stored.filter(|_| admit::needs_spill_file(views, tool, output))?;
    Some(match store.spill(session, stored.id()) {
        Ok(SpilledFile { path, sha256, .. }) => Spill::Saved {
            path: path.to_string_lossy().into_owned(),
            sha256,
        },
        // Nothing is lost: the reason names the ref.
        Err(error) => {
            let id = stored.id();
            Spill::Failed(format!("{error}; it is whole behind ref {id}"))
        }
    })
}

/// The tool of an output, if the output or the newest round names it; otherwise empty.
pub(crate) fn tool_of<'o>(output: &'o Output, projection: &'o Projection) -> &'o str {
    let named = output.tool.as_deref();
    named
        .or_else(|| projection.called_tool(&output.call_id))
        .unwrap_or_default()
}
