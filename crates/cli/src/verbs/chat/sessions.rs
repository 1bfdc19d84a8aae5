//! Saved chats: their names, their saved options, and how to find one.

use std::io::Write;

use serde::Deserialize;
use serde_json::json;
use trimtab::store::{Error, OutputMetadata, Put, SessionId, SessionInfo, Store, Stream};
use trimtab_model::{Message, Role};

use super::choice::ChatChoice;
use super::text::on_one_line;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::clipped::clipped;
use crate::ui::columns::{Align, lined_up};
use crate::ui::visible::visible;
use crate::ui::{Terminal, number, units};
use crate::verbs::output::prefix::unique_name;

/// The prefix of chat names, because the store also holds other sessions.
const PREFIX: &str = "chat-";
/// The label and media type of saved options.
const CHOICE: &str = "chat-choice";
const CHOICE_TYPE: &str = "application/vnd.trimtab.chat+json";
/// How many messages are searched for the user's first one.
const FIRST: usize = 8;
/// How many entries are read at a time.
const BATCH: usize = 256;
/// How much of the user's first message is shown.
const SHOWN: usize = 50;

/// The part of a log entry that matters here.
#[derive(Deserialize)]
struct LogMessage {
    message: Message,
}

/// A name for a new chat: a readable time, plus a suffix that distinguishes chats of the same
/// second.
pub(super) fn new_id() -> Result<SessionId, Error> {
    let now = trimtab::store::since_epoch();
    let (year, month, day) = date(now.as_secs() / 86_400);
    let second = now.as_secs() % 86_400;
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    // Two chats of the same second differ in their process or in the nanoseconds.
    let mark = (u64::from(now.subsec_nanos()) >> 8) ^ (u64::from(std::process::id()) << 4);
    SessionId::new(format!(
        "{PREFIX}{year:04}{month:02}{day:02}-{hour:02}{minute:02}{:02}-{:04x}",
        second % 60,
        mark & 0xffff
    ))
}

/// Year, month and day of a day since 1970 (Gregorian; the computation starts years in March).
fn date(days: u64) -> (u64, u64, u64) {
    // Count from 1 March of year 0, so that leap days come last.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// All non-empty chats, the newest first.
fn chats(store: &dyn Store) -> Result<Vec<SessionInfo>, Error> {
    let mut chats = Vec::new();
    for info in store.sessions()? {
        let is_chat = info.session.as_str().starts_with(PREFIX) && info.parent.is_none();
        // The first entry is the system prompt. A chat with nothing else is empty.
        if is_chat && store.position(&info.session, Stream::Log)? > 1 {
            chats.push(info);
        }
    }
    // The time of use is precise to a minute only, but names to a second.
    chats.sort_by_key(|info| std::cmp::Reverse((info.used, info.session.clone())));
    Ok(chats)
}

/// Finds a chat by a prefix of its name, with or without `chat-`. Without a prefix, the newest
/// chat.
pub(super) fn find(store: &dyn Store, given: &str) -> Result<SessionId, Failure> {
    let hint = "`trimtab chat --list` lists the sessions";
    let chats = chats(store).map_err(|error| store_failure(&error))?;
    let begins = |info: &&SessionInfo| {
        let name = info.session.as_str();
        name.starts_with(given)
            || name
                .strip_prefix(PREFIX)
                .is_some_and(|n| n.starts_with(given))
    };
    let mut found = chats.iter().filter(begins);
    match (found.next(), found.next()) {
        (None, _) if given.is_empty() => Err(Failure::input(
            "there is no session to resume",
            "start one with `trimtab chat --model NAME`",
        )),
        (None, _) => Err(Failure::input(
            format!("no session '{}'", visible(given)),
            hint,
        )),
        (Some(info), None) => Ok(info.session.clone()),
        (Some(info), _) if given.is_empty() || info.session.as_str() == given => {
            Ok(info.session.clone())
        }
        (Some(_), Some(_)) => {
            let names = chats.iter().map(|info| info.session.as_str());
            let found = unique_name(given, "session", names)?;
            let id = SessionId::new(found.unwrap_or(given));
            id.map_err(|error| store_failure(&error))
        }
    }
}

/// The number of answers in a chat.
pub(super) fn answers(store: &dyn Store, id: &SessionId) -> Result<usize, Error> {
    let (mut from, mut answers) = (0, 0);
    loop {
        let entries = store.read(id, Stream::Log, from, BATCH)?;
        if entries.is_empty() {
            return Ok(answers);
        }
        from += entries.len() as u64;
        let read = entries
            .iter()
            .filter_map(|bytes| serde_json::from_slice(bytes).ok());
        answers += read
            .filter(|entry: &LogMessage| entry.message.role == Role::Assistant)
            .count();
    }
}

/// The saved options of a chat.
pub(super) fn saved_choice(store: &dyn Store, id: &SessionId) -> Result<ChatChoice, Error> {
    let outputs = store.list(id)?;
    let Some(newest) = outputs.iter().rfind(|output| is_choice(output)) else {
        return Ok(ChatChoice::default());
    };
    let bytes = store.get(id, newest.reference.id())?;
    // Options written by another version are ignored.
    Ok(serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Saves the options of a chat.
pub(super) fn save_choice(
    store: &dyn Store,
    id: &SessionId,
    choice: &ChatChoice,
) -> Result<(), Error> {
    // Options are outputs of the session, so do not store equal ones again.
    if saved_choice(store, id)? == *choice {
        return Ok(());
    }
    let bytes = serde_json::to_vec(choice).unwrap_or_default();
    // Equal bytes under an equal label are stored once. A new label makes these options the newest.
    let label = format!("{CHOICE}-{}", store.list(id)?.len());
    store.put(id, Put::new(&label, &bytes).media_type(CHOICE_TYPE))?;
    Ok(())
}

/// True for saved options, which are not an output of a tool.
pub(super) fn is_choice(output: &OutputMetadata) -> bool {
    output.labels.media_type == CHOICE_TYPE
}

/// The failure for an error of the store.
pub(super) fn store_failure(error: &Error) -> Failure {
    let (message, hint) = crate::exit::with_hint(&error.to_string());
    Failure::WithHint { message, hint }
}

/// One chat in the list.
struct ListedChat {
    info: SessionInfo,
    messages: u64,
    model: String,
    first: String,
}

/// The list of `trimtab chat --list`.
pub(super) fn list(common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let place = common.store.make()?;
    let look = || {
        let chats = chats(place.store.as_ref())?.into_iter();
        chats
            .map(|info| listed(place.store.as_ref(), info))
            .collect::<Result<Vec<_>, Error>>()
    };
    let chats = look().map_err(|error| place.failed(&error))?;
    if common.json {
        for chat in &chats {
            terminal.json(&as_json(chat))?;
        }
        return Ok(());
    }
    if chats.is_empty() {
        terminal.note("no sessions yet: start one with `trimtab chat --model NAME`");
        return Ok(());
    }
    let text = as_text(&chats);
    terminal.out().write_all(text.as_bytes())?;
    Ok(())
}

fn listed(store: &dyn Store, info: SessionInfo) -> Result<ListedChat, Error> {
    let entries = store.read(&info.session, Stream::Log, 0, FIRST)?;
    let messages = entries
        .iter()
        .filter_map(|bytes| serde_json::from_slice(bytes).ok());
    let first = messages
        .map(|entry: LogMessage| entry.message)
        .find(Message::is_real_user)
        .map(|message| on_one_line(&message.text()));
    Ok(ListedChat {
        messages: store.position(&info.session, Stream::Log)?,
        model: saved_choice(store, &info.session)?
            .model
            .unwrap_or_default(),
        first: first.unwrap_or_default(),
        info,
    })
}

fn as_json(chat: &ListedChat) -> serde_json::Value {
    json!({
        "session": chat.info.session.as_str(),
        "model": chat.model,
        "messages": chat.messages,
        "outputs": chat.info.outputs,
        "created": chat.info.created,
        "used": chat.info.used,
        "first": chat.first,
    })
}

fn as_text(chats: &[ListedChat]) -> String {
    let now = trimtab::store::now_millis();
    let heading = ["SESSION", "USED", "MESSAGES", "MODEL", "BEGINS WITH"].map(str::to_owned);
    let row = |chat: &ListedChat| {
        [
            chat.info.session.to_string(),
            units::age(now.saturating_sub(chat.info.used)),
            number::grouped(chat.messages),
            clipped(&on_one_line(&chat.model), 24).into_owned(),
            clipped(&chat.first, SHOWN).into_owned(),
        ]
    };
    let rows: Vec<_> = [heading].into_iter().chain(chats.iter().map(row)).collect();
    let (left, right) = (Align::Left, Align::Right);
    lined_up(&rows, [left, right, right, left, left])
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab::store::MemoryStore;

    #[test]
    fn dates_of_days_are_correct() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (58, (1970, 2, 28)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_772, (2026, 11, 15)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), expected, "{days}");
        }
    }

    #[test]
    fn chat_is_found_by_prefix() {
        let store = MemoryStore::new();
        for name in [
            "chat-20260101-000000-aaaa",
            "chat-20260102-000000-bbbb",
            "proxy-1",
        ] {
            let id = SessionId::new(name).unwrap();
            store.append(&id, Stream::Log, 0, &[b"{}", b"{}"]).unwrap();
        }
        // Somebody began it and was killed before anything was said.
        let empty = SessionId::new("chat-20260103-000000-cccc").unwrap();
        store.append(&empty, Stream::Log, 0, &[b"{}"]).unwrap();
        let found = |given: &str| find(&store, given).map(|id| id.to_string());
        assert_eq!(found("20260101").unwrap(), "chat-20260101-000000-aaaa");
        assert_eq!(found("chat-20260102").unwrap(), "chat-20260102-000000-bbbb");
        assert_eq!(found("").unwrap(), "chat-20260102-000000-bbbb");
        assert!(
            found("2026")
                .unwrap_err()
                .to_string()
                .contains("2 sessions begin with '2026'")
        );
        assert!(
            found("proxy-1")
                .unwrap_err()
                .to_string()
                .contains("no session")
        );
    }

    #[test]
    fn newest_options_are_returned() {
        let store = MemoryStore::new();
        let id = SessionId::new("chat-1").unwrap();
        assert_eq!(saved_choice(&store, &id).unwrap(), ChatChoice::default());
        for model in ["a", "b", "b", "a"] {
            let choice = ChatChoice::default().with_model(model);
            save_choice(&store, &id, &choice).unwrap();
            assert_eq!(saved_choice(&store, &id).unwrap(), choice);
        }
        assert_eq!(store.list(&id).unwrap().len(), 3);
    }
}
