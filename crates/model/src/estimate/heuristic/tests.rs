use serde_json::{Value, json};

use super::*;
use crate::estimate::Measure;
use crate::{Call, Media, MediaKind, Part, RawJson, Role};

fn image() -> Part {
    Part::Media(Media {
        kind: MediaKind::Image,
        raw: RawJson::of(&json!({})),
    })
}

fn called() -> Message {
    let mut message = Message::new(Role::Assistant, vec![Part::reasoning("дума")]);
    message.parts.push(Part::text("né"));
    message.with_call(Call::new("call_1", "grep", "{\"q\":\"é\"}"))
}

#[test]
fn refs_counts_bytes_of_the_projection() {
    let heuristic = Heuristic::REFS;
    assert_eq!(["", "a", "ñññ"].map(|text| heuristic.text(text)), [0, 1, 2]);
    let message = Message::new(Role::User, vec![Part::text("ab"), image()]);
    assert_eq!(heuristic.message(&message), 3, "[image] is seven bytes");
    assert_eq!(
        heuristic.message(&called()),
        1,
        "calls and thoughts are no text"
    );
}

#[test]
fn turns_counts_every_field_and_rounds_down_per_message() {
    let heuristic = Heuristic::TURNS;
    // 4 + 2 characters, 6 + 8 + 4 + 10 bytes, 12 for the message: 46 * 2 / 5.
    assert_eq!(heuristic.message(&called()), 18);
    // 8 for the id, 3 characters, 12: 23 * 2 / 5.
    assert_eq!(heuristic.message(&Message::output("call_abc", "añb")), 9);
    assert_eq!(heuristic.message(&Message::user("")), 4);
    let pictures = Message::new(Role::User, vec![image(), image()]);
    assert_eq!(heuristic.message(&pictures), 4 + 512);
}

#[test]
fn archive_counts_characters_and_skips_what_is_hidden() {
    let heuristic = Heuristic::ARCHIVE;
    // 4 + 2 + 4 + 9 characters.
    assert_eq!(heuristic.message(&called()), 5);
    let mut hidden = called();
    hidden.meta.agent_visible = Some(false);
    assert_eq!(heuristic.message(&hidden), 0);
    let picture = Message::new(Role::User, vec![image()]);
    assert_eq!(heuristic.message(&picture), 1200);
    assert_eq!(heuristic.message(&Message::user("")), 0);
}

#[test]
fn checkpoint_counts_twenty_characters_more_per_message() {
    assert_eq!(Heuristic::CHECKPOINT.message(&Message::user("a")), 6);
    assert_eq!(Heuristic::CHECKPOINT.message(&Message::user("")), 5);
}

#[test]
fn tool_definitions_count_alike_in_every_dialect() {
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let chat = json!({"type": "function", "function":
        {"name": "find", "description": "Finds.", "parameters": schema}});
    let responses =
        json!({"type": "function", "name": "find", "description": "Finds.", "parameters": schema});
    let messages = json!({"name": "find", "description": "Finds.", "input_schema": schema});
    // 4 + 6 + 46 + 20 characters.
    let tokens =
        |tools: Value| Heuristic::TURNS.tools(Measure::of_tools(&tools.to_string()).sizes());
    for tool in [&chat, &responses, &messages] {
        assert_eq!(tokens(json!([tool])), 76 * 2 / 5);
        assert_eq!(tokens(tool.clone()), 76 * 2 / 5);
    }
    assert_eq!(tokens(json!([chat, messages])), 152 * 2 / 5);
    assert_eq!(tokens(json!([{"name": "x"}])), 21 * 2 / 5);
    assert_eq!(tokens(json!([])), 0);
}
