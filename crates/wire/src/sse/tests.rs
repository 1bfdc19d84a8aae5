use trimtab_model::{Dialect, Usage};

use super::*;
use crate::answer::AnswerReader;

const CHAT: &str = r#": keep-alive

data: {"id":"c1","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"content":"h\u00e9\n"}},{"index":1,"delta":{"content":"other"}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"mine","arguments":"{}"}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\":1}"}}]}}]}

data: {"id":"c1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"c1","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

"#;

const MESSAGES: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"m1","usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"b","name":"mine","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"h\u00e9\n"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"a","name":"look","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"p\""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":":1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

"#;

const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r1","output":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","sequence_number":2,"output_index":0,"delta":"hm"}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"type":"function_call","id":"fc_0","call_id":"b","name":"mine","arguments":""}}

event: response.function_call_arguments.done
data: {"type":"response.function_call_arguments.done","sequence_number":4,"output_index":1,"arguments":"{}"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":5,"output_index":1,"item":{"type":"function_call","id":"fc_0","call_id":"b","name":"mine","arguments":"{}"}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":6,"output_index":2,"item":{"type":"message","id":"m","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":7,"output_index":2,"delta":"h\u00e9\n"}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":8,"output_index":2,"item":{"type":"message","id":"m","content":[]}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":9,"output_index":3,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"look","arguments":""}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":10,"output_index":3,"item":{"type":"function_call","id":"fc_1","call_id":"a","name":"look","arguments":"{\"p\":1}"}}

event: response.completed
data: {"type":"response.completed","sequence_number":11,"response":{"id":"r1","status":"completed","output":[{"type":"function_call","call_id":"b","name":"mine"},{"type":"message","id":"m"},{"type":"function_call","call_id":"a","name":"look"}],"usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":3}}}

"#;

const STREAMS: [(Dialect, &str); 3] = [
    (Dialect::Chat, CHAT),
    (Dialect::Messages, MESSAGES),
    (Dialect::Responses, RESPONSES),
];

fn watch<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut watcher = StreamWatcher::new(dialect);
    let mut said = Vec::new();
    let mut note = |event: StreamEvent<'_>| said.push(format!("{event:?}"));
    for piece in pieces {
        watcher.push(piece, &mut note);
    }
    watcher.finish(&mut note);
    said
}

#[test]
fn all_dialects_tell_the_same() {
    for (dialect, stream) in STREAMS {
        let mut watcher = StreamWatcher::new(dialect);
        let (mut text, mut thought, mut called) = (String::new(), String::new(), false);
        let (mut stop, mut starts, mut ends) = (String::new(), 0, 0);
        watcher.push(stream.as_bytes(), |event| match event {
            StreamEvent::Start => starts += 1,
            StreamEvent::Text(delta) => text.push_str(&delta.text()),
            StreamEvent::Reasoning(delta) => thought.push_str(&delta.text()),
            StreamEvent::Call => called = true,
            StreamEvent::Stop(word) => stop = word,
            StreamEvent::End => ends += 1,
            StreamEvent::Usage(_) => {}
            other => panic!("{other:?}"),
        });
        assert_eq!(
            (text.as_str(), thought.as_str()),
            ("hé\n", "hm"),
            "{dialect}"
        );
        assert_eq!((called, starts, ends), (true, 1, 1), "{dialect}");
        let mut reader = AnswerReader::new(dialect);
        reader.push(stream.as_bytes(), |_| ());
        let message = reader.into_message().unwrap();
        let mut calls: Vec<(&str, &str, &str)> = (message.calls())
            .map(|call| (&*call.id, &*call.name, &*call.arguments))
            .collect();
        calls.sort_unstable();
        let expected = [("a", "look", "{\"p\":1}"), ("b", "mine", "{}")];
        assert_eq!(calls, expected, "{dialect}");
        assert!(["tool_calls", "tool_use", "completed"].contains(&stop.as_str()));
        let usage = watcher.usage();
        assert_eq!((usage.prompt(), usage.cache_read, usage.output), {
            // Messages counts what is cached beside the rest.
            let prompt = if dialect == Dialect::Messages { 14 } else { 10 };
            (prompt, 4, 3)
        });
    }
}

#[test]
fn any_split_and_any_line_end_tells_the_same() {
    for (dialect, stream) in STREAMS {
        let whole = watch(dialect, [stream.as_bytes()]);
        for ends in ["\n", "\r\n", "\r"] {
            let stream = format!("\u{feff}{}", stream.replace('\n', ends));
            let bytes = stream.as_bytes();
            assert_eq!(watch(dialect, bytes.chunks(1)), whole, "{dialect}");
            for at in 0..bytes.len() {
                let (one, two) = bytes.split_at(at);
                assert_eq!(watch(dialect, [one, two]), whole, "{dialect} {ends:?} {at}");
            }
        }
    }
}

#[test]
fn data_over_several_lines_is_one_event() {
    let stream =
        "data: {\"choices\":\ndata:[{\"index\":0,\ndata: \"delta\":{\"content\":\"x\"}}]}\n\n";
    let said = watch(Dialect::Chat, [stream.as_bytes()]);
    assert_eq!(said, ["Start", "Text(TextDelta { json: \"\\\"x\\\"\" })"]);
}

#[test]
fn errors_are_told_wherever_they_come() {
    let error = |dialect, stream: &str| {
        let mut found = None;
        let mut watcher = StreamWatcher::new(dialect);
        watcher.push(stream.as_bytes(), |event| {
            if let StreamEvent::Error(error) = event {
                found = Some((error.code, error.message));
            }
        });
        found.unwrap()
    };
    let pair = |code: &str, message: &str| (code.to_owned(), message.to_owned());
    assert_eq!(
        error(
            Dialect::Messages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"
        ),
        pair("overloaded_error", "busy")
    );
    assert_eq!(
        error(
            Dialect::Responses,
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"long\"}}}\n\n"
        ),
        pair("context_length_exceeded", "long")
    );
    assert_eq!(
        error(
            Dialect::Responses,
            "data: {\"type\":\"error\",\"code\":\"rate_limit\",\"message\":\"slow\"}\n\n"
        ),
        pair("rate_limit", "slow")
    );
    assert_eq!(
        error(
            Dialect::Chat,
            "data: {\"error\":{\"code\":400,\"message\":\"no\"}}\n\n"
        ),
        pair("400", "no")
    );
}

#[test]
fn a_giant_event_passes_unread_and_the_next_is_read() {
    let mut watcher = StreamWatcher::with_limit(Dialect::Chat, 1000);
    let mut said = Vec::new();
    let mut note = |event: StreamEvent<'_>| said.push(format!("{event:?}"));
    watcher.push(b"data: {\"choices\": \"", &mut note);
    for _ in 0..100 {
        watcher.push(&[b'a'; 997], &mut note);
    }
    watcher.push(b"\"}\n\ndata: [DONE]\n\n", &mut note);
    assert_eq!(said, ["Overlong", "End"]);
}

#[test]
fn nonsense_is_told_and_does_no_harm() {
    let stream = b"data: {\"choices\n\ndata: \xff\n\nevent: x\nid: 1\n\ndata\n\n:\n\ndata: 1\n\n";
    let said = watch(Dialect::Chat, [stream.as_slice()]);
    assert_eq!(said, ["Malformed", "Malformed", "Malformed", "Malformed"]);
}

fn filtered(filter: &mut CallFilter, stream: &str, size: usize) -> String {
    let mut out = Vec::new();
    for piece in stream.as_bytes().chunks(size) {
        filter.push(piece, &mut out);
    }
    filter.finish(&mut out);
    String::from_utf8(out).unwrap()
}

fn calls(dialect: Dialect, stream: &str) -> Vec<String> {
    let mut reader = AnswerReader::new(dialect);
    reader.push(stream.as_bytes(), |_| ());
    let message = reader.into_message().unwrap();
    message.calls().map(|call| call.name.clone()).collect()
}

#[test]
fn stream_without_hidden_calls_is_unchanged() {
    for (dialect, stream) in STREAMS {
        for ends in ["\n", "\r\n", "\r"] {
            let stream = stream.replace('\n', ends);
            for size in [1, 2, 3, 50, 100_000] {
                let mut filter = CallFilter::new(dialect, ["absent"]);
                let found = filtered(&mut filter, &stream, size);
                assert_eq!(found, stream, "{dialect}");
            }
        }
    }
}

#[test]
fn a_hidden_call_leaves_no_gap() {
    for (dialect, stream) in STREAMS {
        let mut filter = CallFilter::new(dialect, ["mine"]);
        let found = filtered(&mut filter, stream, 33);
        assert!(!filter.is_waiting());
        assert!(!found.contains("mine"), "{found}");
        assert_eq!(calls(dialect, &found), ["look"]);
        match dialect {
            Dialect::Chat => assert!(!found.contains("\"index\":1,\"id\"")),
            Dialect::Messages => {
                assert!(found.contains("\"index\":2,\"content_block\":{\"type\":\"tool_use\""));
                assert!(!found.contains("\"index\":3"));
            }
            Dialect::Responses => {
                let numbers: Vec<&str> = found
                    .match_indices("sequence_number\":")
                    .filter_map(|(at, name)| found.get(at + name.len()..)?.split([',', '}']).next())
                    .collect();
                let expected: Vec<String> = (0..9).map(|number| number.to_string()).collect();
                assert_eq!(numbers, expected);
            }
        }
    }
}

#[test]
fn an_answer_of_hidden_calls_goes_on_with_the_next() {
    for (dialect, stream) in STREAMS {
        let mut filter = CallFilter::new(dialect, ["mine", "look"]);
        let first = filtered(&mut filter, stream, 41);
        assert!(filter.is_waiting(), "{dialect}");
        filter.continue_answer();
        let second = stream.replace("\"look\"", "\"other\"");
        let whole = format!("{first}{}", filtered(&mut filter, &second, 17));
        let mut watcher = StreamWatcher::new(dialect);
        let (mut text, mut ends, mut starts) = (String::new(), 0, 0);
        watcher.push(whole.as_bytes(), |event| match event {
            StreamEvent::Text(delta) => text.push_str(&delta.text()),
            StreamEvent::Start => starts += 1,
            StreamEvent::End => ends += 1,
            _ => {}
        });
        assert_eq!(
            (text.as_str(), starts, ends),
            ("hé\nhé\n", 1, 1),
            "{dialect}"
        );
        assert_eq!(calls(dialect, &whole), ["other"]);
        check_dense(dialect, &whole);
    }
}

#[test]
fn the_client_knows_an_answer_by_one_id() {
    let answer = |id: &str, name: &str| {
        format!(
            "data: {{\"type\":\"response.created\",\"response\":{{\"id\":\"{id}\"}}}}\n\n\
             data: {{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":\
             {{\"type\":\"function_call\",\"id\":\"f\",\"name\":\"{name}\"}}}}\n\n\
             data: {{\"type\":\"response.completed\",\"response\":{{\"id\":\"{id}\",\"output\":[]}}}}\n\n"
        )
    };
    let mut filter = CallFilter::new(Dialect::Responses, ["mine"]);
    let mut whole = filtered(&mut filter, &answer("r1", "mine"), 9);
    filter.continue_answer();
    whole.push_str(&filtered(&mut filter, &answer("r2", "other"), 9));
    assert_eq!(whole.matches("\"id\":\"r1\"").count(), 2, "{whole}");
    assert!(!whole.contains("r2"), "{whole}");
}

#[test]
fn a_chat_stream_names_its_role_once() {
    let answer = |text: &str, name: &str| {
        let chunk = |delta: &str, stop: &str| {
            format!(
                "data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{stop}}}]}}\n\n"
            )
        };
        let role = "{\"role\":\"assistant\",\"content\":\"\"}";
        let says = format!("{{\"role\":\"assistant\",\"content\":\"{text}\"}}");
        let calls = format!(
            "{{\"tool_calls\":[{{\"index\":0,\"id\":\"t\",\"function\":{{\"name\":\"{name}\",\"arguments\":\"{{}}\"}}}}]}}"
        );
        let end = chunk("{}", "\"tool_calls\"");
        let chunks = [role, says.as_str(), calls.as_str()].map(|delta| chunk(delta, "null"));
        format!("{}{end}data: [DONE]\n\n", chunks.concat())
    };
    let mut filter = CallFilter::new(Dialect::Chat, ["mine"]);
    let mut whole = filtered(&mut filter, &answer("one", "mine"), 9);
    filter.continue_answer();
    let second = filtered(&mut filter, &answer("two", "other"), 9);
    assert!(!second.contains("role"), "{second}");
    assert!(!second.contains("\"content\":\"\""), "{second}");
    whole.push_str(&second);
    let texts: Vec<&str> = ["one", "two", "other"]
        .into_iter()
        .filter(|text| whole.contains(text))
        .collect();
    assert_eq!(texts, ["one", "two", "other"]);
    assert_eq!(calls(Dialect::Chat, &whole), ["other"]);
}

/// Parts are numbered from 0, without gaps, in the order in which they begin.
fn check_dense(dialect: Dialect, stream: &str) {
    let (begin, name) = match dialect {
        Dialect::Chat => return,
        Dialect::Messages => ("\"content_block_start\"", "\"index\":"),
        Dialect::Responses => ("\"response.output_item.added\"", "\"output_index\":"),
    };
    let mut numbers = Vec::new();
    for (at, _) in stream.match_indices(begin) {
        let digits = stream.get(at..).unwrap().split(name).nth(1).unwrap();
        numbers.push(digits.split(|c: char| !c.is_ascii_digit()).next().unwrap());
    }
    let expected: Vec<String> = (0..numbers.len()).map(|at| at.to_string()).collect();
    assert_eq!(numbers, expected, "{stream}");
}

#[test]
fn the_end_that_was_held_back_can_be_had() {
    for (dialect, stream) in STREAMS {
        let mut filter = CallFilter::new(dialect, ["mine", "look"]);
        let mut whole = filtered(&mut filter, stream, 41).into_bytes();
        filter.release(&mut whole);
        assert!(!filter.is_waiting());
        let mut watcher = StreamWatcher::new(dialect);
        watcher.push(&whole, |_| {});
        assert!(watcher.is_ended());
        let usage = Usage {
            input: if dialect == Dialect::Messages { 10 } else { 6 },
            cache_read: 4,
            output: 3,
            ..Usage::default()
        };
        assert_eq!(watcher.usage(), usage);
    }
}

#[test]
fn numbers_of_events_go_on_from_the_first_one() {
    let event = |number: u64| {
        format!("data: {{\"type\":\"response.in_progress\",\"sequence_number\":{number}}}\n\n")
    };
    let stream = event(1) + &event(2);
    let mut filter = CallFilter::new(Dialect::Responses, ["ours"]);
    assert_eq!(filtered(&mut filter, &stream, 9), stream);
}

#[test]
fn a_role_that_comes_with_a_hidden_call_is_named() {
    let mut filter = CallFilter::new(Dialect::Chat, ["ours"]);
    let first = "data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"ours\",\"arguments\":\"{}\"}}]},\"finish_reason\":null}]}\n\n";
    let shown = filtered(&mut filter, first, 50);
    assert!(
        shown.contains("\"role\":\"assistant\"") && !shown.contains("ours"),
        "{shown}"
    );
}

#[test]
fn figures_of_a_prompt_that_the_client_did_not_see_stand_at_the_end() {
    let mut filter = CallFilter::new(Dialect::Messages, ["ours"]);
    filter.continue_answer();
    filter.note_in_usage("note", "{\"requests\":1}".to_owned());
    let stream = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":3}}}\n\n\
        data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n";
    let shown = filtered(&mut filter, stream, 11);
    let usage = "\"usage\":{\"output_tokens\":2,\"input_tokens\":7,\"cache_read_input_tokens\":3,\"note\":{\"requests\":1}}";
    assert!(shown.contains(usage), "{shown}");
    assert!(!shown.contains("message_start"), "{shown}");
}
