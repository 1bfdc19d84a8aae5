//! Scans the fields of a body.

use trimtab_model::{Dialect, Role};

use super::element::{BodyReader, is_null};
use super::memo::BodyHead;
use super::request::{AnswerLimit, LimitName, MarkerName, SessionHints, ToolSpan};
use super::table::ScanTables;
use super::{BodyScan, chat, messages, responses};
use crate::json::cursor::{OpenContainer, ScanResult};
use crate::json::span::Span;
use crate::json::unscannable::UnscannableReason;

/// Scans a whole body.
pub(super) fn read(text: &str, dialect: Dialect) -> ScanResult<BodyScan<'_>> {
    let mut reader = BodyReader::new(text, dialect);
    if reader.cursor.peek() != Some(b'{') {
        return reader.cursor.fail(UnscannableReason::NotAnObject);
    }
    reader.start = reader.cursor.offset();
    let open = reader.cursor.open()?;
    finish(reader, open)
}

/// Scans what follows the known entries.
pub(super) fn resume(mut reader: BodyReader<'_>, list: usize) -> ScanResult<BodyScan<'_>> {
    reader.rest_of_entries(OpenContainer::past_first(b']'))?;
    reader.request.list = Span::new(list, reader.cursor.offset());
    finish(reader, OpenContainer::past_first(b'}'))
}

/// Scans the remaining fields, and assembles the result.
fn finish(mut reader: BodyReader<'_>, mut open: OpenContainer) -> ScanResult<BodyScan<'_>> {
    while let Some(key) = reader.cursor.field(&mut open)? {
        reader.field(&key.name, key.start)?;
    }
    let end = reader.cursor.offset();
    reader.cursor.clone().finish()?;
    reader.request.body = Span::new(reader.start, end);
    // A marker of the body was found before the end of the body was known.
    reader.settle_markers(0, reader.request.body);
    // Without a list of messages this is no request that could be managed.
    if reader.request.list.is_empty() {
        return reader.cursor.fail(UnscannableReason::NoMessages);
    }
    reader.request.partial |= is_partial(reader.text, &reader.request.session);
    let has_head = !reader.head.messages.is_empty();
    Ok(BodyScan {
        text: reader.text,
        dialect: reader.dialect,
        request: reader.request,
        tables: reader.tables,
        head: has_head.then_some(reader.head.parts),
        // With two lists the second one counts, and a body that continues this one may have
        // another.
        head_state: reader.head_state.filter(|_| reader.lists == 1),
    })
}

fn is_partial(text: &str, session: &SessionHints) -> bool {
    let set = |span: Span| !span.is_empty() && !is_null(text, span);
    let kept = [
        session.previous_response_id,
        session.conversation,
        session.stored_prompt,
    ];
    kept.into_iter().any(set)
}

impl BodyReader<'_> {
    fn field(&mut self, name: &str, start: usize) -> ScanResult<()> {
        match (name, self.dialect) {
            ("messages", Dialect::Chat | Dialect::Messages) | ("input", Dialect::Responses) => {
                self.list()
            }
            ("system", Dialect::Messages) | ("instructions", Dialect::Responses) => {
                self.system(start)
            }
            ("tools", _) => self.tools(),
            ("metadata", _) => self.metadata(),
            // A marker of the whole body: the provider chooses the position.
            ("cache_control", _) => self.marker(MarkerName::CacheControl, start, 0),
            _ => {
                let value = self.cursor.value()?;
                self.plain_field(name, value);
                Ok(())
            }
        }
    }

    /// Records the value of a simple field.
    fn plain_field(&mut self, name: &str, value: Span) {
        let request = &mut self.request;
        let place = match name {
            "model" => &mut request.model,
            "stream" => &mut request.stream,
            "background" => &mut request.background,
            "thinking" => &mut request.thinking,
            "user" => &mut request.session.user,
            "prompt_cache_key" => &mut request.session.prompt_cache_key,
            "previous_response_id" => &mut request.session.previous_response_id,
            "conversation" => &mut request.session.conversation,
            "store" => &mut request.session.store,
            "max_tokens" => return self.limit(LimitName::MaxTokens, value),
            "max_completion_tokens" => return self.limit(LimitName::MaxCompletionTokens, value),
            "max_output_tokens" => return self.limit(LimitName::MaxOutputTokens, value),
            "prompt" if self.dialect == Dialect::Responses => &mut request.session.stored_prompt,
            _ => return,
        };
        *place = value;
    }

    fn limit(&mut self, name: LimitName, span: Span) {
        let limits = &mut self.request.limits;
        // Of duplicate fields the last one counts, as in every JSON parser.
        limits.retain(|limit| limit.name != name);
        if !is_null(self.text, span) {
            limits.push(AnswerLimit { name, span });
        }
    }

    fn list(&mut self) -> ScanResult<()> {
        self.forget_list();
        let first = self.cursor.peek();
        let start = self.cursor.offset();
        self.lists += 1;
        // Saved before the list is scanned: a longer body with the same beginning continues from
        // here.
        self.head_state = (first == Some(b'[')).then(|| {
            Box::new(BodyHead {
                start: self.start,
                list: start,
                request: self.request.clone(),
                head: self.head.clone(),
            })
        });
        match first {
            Some(b'[') => self.entries()?,
            Some(b'"') if self.dialect == Dialect::Responses => responses::text_input(self)?,
            // Another field of this name may follow and override it.
            _ => {
                self.request.list = Span::default();
                return self.cursor.value().map(drop);
            }
        }
        self.request.list = Span::new(start, self.cursor.offset());
        Ok(())
    }

    fn entries(&mut self) -> ScanResult<()> {
        let open = self.cursor.open()?;
        self.rest_of_entries(open)
    }

    fn rest_of_entries(&mut self, mut open: OpenContainer) -> ScanResult<()> {
        while self.cursor.more(&mut open)? {
            match self.dialect {
                Dialect::Chat => chat::entry(self)?,
                Dialect::Messages => messages::entry(self)?,
                Dialect::Responses => responses::entry(self)?,
            }
        }
        Ok(())
    }

    /// A second list overrides the first, as in every JSON parser.
    fn forget_list(&mut self) {
        self.forget_markers(self.request.list);
        self.tables = ScanTables::default();
        self.speaking = false;
    }

    fn system(&mut self, start: usize) -> ScanResult<()> {
        self.forget_markers(self.request.system);
        self.head = ScanTables::default();
        // The field may stand behind the messages, and its message is the first all the same. So it
        // is scanned into tables of its own.
        let list = std::mem::take(&mut self.tables);
        let first = self.cursor.peek();
        let value_start = self.cursor.offset();
        let spoken = match self.dialect {
            // `null` says the same as no field at all.
            Dialect::Messages => first != Some(b'n'),
            Dialect::Chat | Dialect::Responses => first == Some(b'"'),
        };
        if spoken {
            self.tables.message(Role::System);
            let content = messages::content(self);
            self.head = std::mem::take(&mut self.tables);
            content?;
        } else {
            self.cursor.value()?;
        }
        self.tables = list;
        let end = self.cursor.offset();
        self.request.system = Span::new(value_start, end);
        self.request.system_field = Span::new(start, end);
        Ok(())
    }

    fn tools(&mut self) -> ScanResult<()> {
        self.forget_markers(self.request.tools);
        self.request.tool_list.clear();
        self.request.tools = self.list_or_value(|reader| {
            let tool = reader.tool()?;
            reader.request.tool_list.push(tool);
            reader.check_size(&[])
        })?;
        Ok(())
    }

    fn tool(&mut self) -> ScanResult<ToolSpan> {
        let read = self.object_or_value(Span::default(), |reader, key, name| {
            match key {
                // Chat Completions nests the definition in a field named like its type. The name
                // inside it is the one that counts, wherever the other stands.
                "function" | "custom" => {
                    let [inner] = reader.fields(["name"])?.value;
                    *name = if inner.is_empty() { *name } else { inner };
                }
                "name" => *name = reader.cursor.value()?,
                _ => drop(reader.cursor.value()?),
            }
            Ok(())
        })?;
        let (span, name) = (read.span, read.value);
        Ok(ToolSpan { span, name })
    }

    fn metadata(&mut self) -> ScanResult<()> {
        let [user_id] = self.fields(["user_id"])?.value;
        self.request.session.metadata_user_id = user_id;
        Ok(())
    }
}
