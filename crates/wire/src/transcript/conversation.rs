//! One recorded conversation.

use trimtab_model::{Message, RawJson, Role};

use super::TranscriptForm;

/// One recorded conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The id in the transcript.
    pub id: Option<String>,
    /// The form of the transcript.
    pub form: TranscriptForm,
    /// All original messages. The system prompt, if known, is the first.
    pub messages: Vec<Message>,
    /// The tool definitions, if the transcript has them.
    pub tools: Vec<RawJson>,
    /// The model that answered last.
    pub model: Option<String>,
    /// The model's window in tokens, if the transcript names it.
    pub window: Option<u64>,
    /// The index of the first message after each compaction of the agent: earlier messages, except
    /// leading system messages, were no longer sent.
    pub compactions: Vec<usize>,
    /// The number of messages that our own compaction left, if it wrote the transcript: all later
    /// messages came since. 0 if it did not, or if the form has no place for it.
    pub already_compacted: usize,
}

impl Conversation {
    /// An empty conversation.
    pub fn new(form: TranscriptForm) -> Self {
        Self {
            form,
            ..Self::default()
        }
    }

    /// The last window: the leading system messages and everything since the last compaction.
    ///
    /// ```
    /// # use trimtab_model::Message;
    /// # use trimtab_wire::transcript::{Conversation, TranscriptForm};
    /// let mut conversation = Conversation::new(TranscriptForm::Codex);
    /// conversation.messages = ["rules", "old", "summary", "new"].map(Message::user).into();
    /// conversation.messages[0] = Message::system("rules");
    /// conversation.compactions = vec![2];
    /// let texts: Vec<_> = conversation.in_window().iter().map(|m| m.text()).collect();
    /// assert_eq!(texts, ["rules", "summary", "new"]);
    /// ```
    pub fn in_window(&self) -> Vec<&Message> {
        let start = self.compactions.last().copied().unwrap_or(0);
        let head = self
            .messages
            .iter()
            .take(start)
            .take_while(|message| message.role == Role::System);
        head.chain(self.messages.iter().skip(start)).collect()
    }
}
