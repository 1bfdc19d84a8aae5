//! A conversation in each of the dialects.

use super::{Answer, Said, Talk};
use crate::bodies::json::Node;

fn marker() -> Node {
    Node::object([("type", Node::text("ephemeral"))])
}

fn text_part(type_name: &str, text: &str) -> Node {
    Node::object([("type", Node::text(type_name)), ("text", Node::text(text))])
}

fn id(round: usize, call: usize) -> Node {
    Node::text(format!("c{round}_{call}"))
}

fn body(list: &str, entries: Vec<Node>) -> Node {
    Node::object([
        ("model", Node::text("some-model")),
        ("stream", Node::Raw("true".to_owned())),
        (list, Node::List(entries)),
        ("temperature", Node::Raw("1.0".to_owned())),
    ])
}

pub(super) fn chat(talk: &Talk) -> Node {
    let mut entries = Vec::new();
    if let Some(system) = &talk.system {
        entries.push(Node::object([
            ("role", Node::text("system")),
            ("content", Node::text(system)),
        ]));
    }
    for (round, said) in talk.said.iter().enumerate() {
        match said {
            Said::User {
                texts,
                image,
                marked,
            } => entries.push(chat_user(texts, *image, *marked)),
            Said::Model {
                thought,
                text,
                outputs,
                aside,
            } => {
                entries.push(chat_answer(round, *thought, text.as_deref(), outputs.len()));
                let answers = outputs.iter().enumerate().rev();
                entries.extend(answers.map(|(call, output)| chat_output(round, call, output)));
                entries.extend(aside.iter().map(|aside| {
                    let texts = std::slice::from_ref(aside);
                    chat_user(texts, false, false)
                }));
            }
        }
    }
    body("messages", entries).with("max_tokens", Node::Raw("4096".to_owned()))
}

fn chat_user(texts: &[String], image: bool, marked: bool) -> Node {
    let content = match texts {
        [only] if !image && !marked => Node::text(only),
        many => {
            let mut parts: Vec<Node> = many.iter().map(|text| text_part("text", text)).collect();
            if image {
                let url = Node::object([("url", Node::text("data:image/png;base64,AAAA"))]);
                let image = Node::object([("type", Node::text("image_url")), ("image_url", url)]);
                parts.insert(0, image);
            }
            mark_last(&mut parts, marked);
            Node::List(parts)
        }
    };
    Node::object([("role", Node::text("user")), ("content", content)])
}

fn mark_last(parts: &mut [Node], marked: bool) {
    if let Some(last) = parts.last_mut() {
        *last = last.clone().with_if(marked, "cache_control", marker());
    }
}

fn chat_answer(round: usize, thought: Option<bool>, text: Option<&str>, calls: usize) -> Node {
    let content = text.map_or(Node::Raw("null".to_owned()), Node::text);
    let call = |call| {
        let function = Node::object([
            ("name", Node::text("look")),
            ("arguments", Node::text("{\"path\": \"a\"}")),
        ]);
        Node::object([
            ("id", id(round, call)),
            ("type", Node::text("function")),
            ("function", function),
        ])
    };
    let calls: Vec<Node> = (0..calls).map(call).collect();
    Node::object([("content", content), ("role", Node::text("assistant"))])
        .with_if(thought.is_some(), "reasoning_content", Node::text("hm"))
        .with_if(!calls.is_empty(), "tool_calls", Node::List(calls))
}

fn chat_output(round: usize, call: usize, output: &Answer) -> Node {
    let content = if output.list {
        let part = text_part("text", &output.text);
        Node::List(vec![part.with_if(output.marked, "cache_control", marker())])
    } else {
        Node::text(&output.text)
    };
    Node::object([
        ("role", Node::text("tool")),
        ("tool_call_id", id(round, call)),
        ("content", content),
    ])
}

pub(super) fn messages(talk: &Talk) -> Node {
    let mut entries = Vec::new();
    for (round, said) in talk.said.iter().enumerate() {
        match said {
            Said::User {
                texts,
                image,
                marked,
            } => entries.push(messages_user(texts, *image, *marked)),
            Said::Model {
                thought,
                text,
                outputs,
                aside,
            } => {
                let calls = outputs.len();
                entries.push(messages_answer(round, *thought, text.as_deref(), calls));
                if calls > 0 {
                    entries.push(messages_outputs(round, outputs, aside.as_deref()));
                }
            }
        }
    }
    let body = body("messages", entries).with("max_tokens", Node::Raw("4096".to_owned()));
    match &talk.system {
        Some(text) if talk.system_list => {
            body.with("system", Node::List(vec![text_part("text", text)]))
        }
        Some(text) => body.with("system", Node::text(text)),
        None => body,
    }
}

fn messages_user(texts: &[String], image: bool, marked: bool) -> Node {
    let content = match texts {
        [only] if !image && !marked => Node::text(only),
        many => {
            let mut parts: Vec<Node> = many.iter().map(|text| text_part("text", text)).collect();
            if image {
                let source = Node::object([
                    ("type", Node::text("base64")),
                    ("media_type", Node::text("image/png")),
                    ("data", Node::text("AAAA")),
                ]);
                let image = Node::object([("type", Node::text("image")), ("source", source)]);
                parts.insert(0, image);
            }
            mark_last(&mut parts, marked);
            Node::List(parts)
        }
    };
    Node::object([("role", Node::text("user")), ("content", content)])
}

fn messages_answer(round: usize, thought: Option<bool>, text: Option<&str>, calls: usize) -> Node {
    let mut parts = Vec::new();
    if let Some(sealed) = thought {
        let thought = Node::object([("type", Node::text("thinking"))]);
        let thought = thought.with("thinking", Node::text("hm"));
        parts.push(thought.with_if(sealed, "signature", Node::text("c2ln")));
    }
    parts.extend(text.map(|text| text_part("text", text)));
    parts.extend((0..calls).map(|call| {
        Node::object([
            ("type", Node::text("tool_use")),
            ("id", id(round, call)),
            ("name", Node::text("look")),
            ("input", Node::object([("path", Node::text("a"))])),
        ])
    }));
    Node::object([
        ("role", Node::text("assistant")),
        ("content", Node::List(parts)),
    ])
}

fn messages_outputs(round: usize, outputs: &[Answer], aside: Option<&str>) -> Node {
    let mut parts: Vec<Node> = outputs
        .iter()
        .enumerate()
        .map(|(call, output)| {
            let content = if output.list {
                Node::List(vec![text_part("text", &output.text)])
            } else {
                Node::text(&output.text)
            };
            Node::object([
                ("type", Node::text("tool_result")),
                ("tool_use_id", id(round, call)),
                ("content", content),
            ])
            .with_if(output.error, "is_error", Node::Raw("true".to_owned()))
            .with_if(output.marked, "cache_control", marker())
        })
        .collect();
    parts.extend(aside.map(|text| text_part("text", text)));
    Node::object([("role", Node::text("user")), ("content", Node::List(parts))])
}

pub(super) fn responses(talk: &Talk) -> Node {
    let mut entries = Vec::new();
    for (round, said) in talk.said.iter().enumerate() {
        match said {
            Said::User { texts, image, .. } => entries.push(responses_user(texts, *image)),
            Said::Model {
                thought,
                text,
                outputs,
                aside,
            } => {
                responses_answer(
                    round,
                    *thought,
                    text.as_deref(),
                    outputs.len(),
                    &mut entries,
                );
                let answers = outputs.iter().enumerate();
                entries.extend(answers.map(|(call, output)| responses_output(round, call, output)));
                entries.extend(aside.iter().map(|aside| {
                    let texts = std::slice::from_ref(aside);
                    responses_user(texts, false)
                }));
            }
        }
    }
    let body = body("input", entries).with("store", Node::Raw("false".to_owned()));
    match &talk.system {
        Some(text) => body.with("instructions", Node::text(text)),
        None => body,
    }
}

fn responses_user(texts: &[String], image: bool) -> Node {
    let content = match texts {
        [only] if !image => Node::text(only),
        many => {
            let part = |text: &String| text_part("input_text", text);
            let mut parts: Vec<Node> = many.iter().map(part).collect();
            if image {
                let url = Node::text("data:image/png;base64,AAAA");
                parts.push(Node::object([
                    ("type", Node::text("input_image")),
                    ("image_url", url),
                ]));
            }
            Node::List(parts)
        }
    };
    Node::object([("role", Node::text("user")), ("content", content)])
}

fn responses_answer(
    round: usize,
    thought: Option<bool>,
    text: Option<&str>,
    calls: usize,
    entries: &mut Vec<Node>,
) {
    if let Some(sealed) = thought {
        let entry = Node::object([
            ("type", Node::text("reasoning")),
            ("id", Node::text(format!("rs_{round}"))),
            ("summary", Node::List(Vec::new())),
        ]);
        entries.push(entry.with_if(sealed, "encrypted_content", Node::text("gAAA")));
    }
    if let Some(text) = text {
        entries.push(Node::object([
            ("type", Node::text("message")),
            ("id", Node::text(format!("msg_{round}"))),
            ("role", Node::text("assistant")),
            ("content", Node::List(vec![text_part("output_text", text)])),
        ]));
    }
    entries.extend((0..calls).map(|call| {
        Node::object([
            ("type", Node::text("function_call")),
            ("call_id", id(round, call)),
            ("name", Node::text("look")),
            ("arguments", Node::text("{\"path\": \"a\"}")),
        ])
    }));
}

fn responses_output(round: usize, call: usize, output: &Answer) -> Node {
    let content = if output.list {
        Node::List(vec![text_part("input_text", &output.text)])
    } else {
        Node::text(&output.text)
    };
    Node::object([
        ("type", Node::text("function_call_output")),
        ("call_id", id(round, call)),
        ("output", content),
    ])
}
