//! A conversation in each of the dialects.

use super::{GeneratedConversation, GeneratedMessage, GeneratedOutput};
use crate::bodies::json::GeneratedJson;

fn marker() -> GeneratedJson {
    GeneratedJson::object([("type", GeneratedJson::text("ephemeral"))])
}

fn text_part(type_name: &str, text: &str) -> GeneratedJson {
    GeneratedJson::object([
        ("type", GeneratedJson::text(type_name)),
        ("text", GeneratedJson::text(text)),
    ])
}

fn id(round: usize, call: usize) -> GeneratedJson {
    GeneratedJson::text(format!("c{round}_{call}"))
}

fn body(list: &str, entries: Vec<GeneratedJson>) -> GeneratedJson {
    GeneratedJson::object([
        ("model", GeneratedJson::text("some-model")),
        ("stream", GeneratedJson::Raw("true".to_owned())),
        (list, GeneratedJson::List(entries)),
        ("temperature", GeneratedJson::Raw("1.0".to_owned())),
    ])
}

pub(super) fn chat(talk: &GeneratedConversation) -> GeneratedJson {
    let mut entries = Vec::new();
    if let Some(system) = &talk.system {
        entries.push(GeneratedJson::object([
            ("role", GeneratedJson::text("system")),
            ("content", GeneratedJson::text(system)),
        ]));
    }
    for (round, said) in talk.said.iter().enumerate() {
        match said {
            GeneratedMessage::User {
                texts,
                image,
                marked,
            } => entries.push(chat_user(texts, *image, *marked)),
            GeneratedMessage::Model {
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
    body("messages", entries).with("max_tokens", GeneratedJson::Raw("4096".to_owned()))
}

fn chat_user(texts: &[String], image: bool, marked: bool) -> GeneratedJson {
    let content = match texts {
        [only] if !image && !marked => GeneratedJson::text(only),
        many => {
            let mut parts: Vec<GeneratedJson> =
                many.iter().map(|text| text_part("text", text)).collect();
            if image {
                let url = GeneratedJson::object([(
                    "url",
                    GeneratedJson::text("data:image/png;base64,AAAA"),
                )]);
                let image = GeneratedJson::object([
                    ("type", GeneratedJson::text("image_url")),
                    ("image_url", url),
                ]);
                parts.insert(0, image);
            }
            mark_last(&mut parts, marked);
            GeneratedJson::List(parts)
        }
    };
    GeneratedJson::object([("role", GeneratedJson::text("user")), ("content", content)])
}

fn mark_last(parts: &mut [GeneratedJson], marked: bool) {
    if let Some(last) = parts.last_mut() {
        *last = last.clone().with_if(marked, "cache_control", marker());
    }
}

fn chat_answer(
    round: usize,
    thought: Option<bool>,
    text: Option<&str>,
    calls: usize,
) -> GeneratedJson {
    let content = text.map_or(GeneratedJson::Raw("null".to_owned()), GeneratedJson::text);
    let call = |call| {
        let function = GeneratedJson::object([
            ("name", GeneratedJson::text("look")),
            ("arguments", GeneratedJson::text("{\"path\": \"a\"}")),
        ]);
        GeneratedJson::object([
            ("id", id(round, call)),
            ("type", GeneratedJson::text("function")),
            ("function", function),
        ])
    };
    let calls: Vec<GeneratedJson> = (0..calls).map(call).collect();
    GeneratedJson::object([
        ("content", content),
        ("role", GeneratedJson::text("assistant")),
    ])
    .with_if(
        thought.is_some(),
        "reasoning_content",
        GeneratedJson::text("hm"),
    )
    .with_if(!calls.is_empty(), "tool_calls", GeneratedJson::List(calls))
}

fn chat_output(round: usize, call: usize, output: &GeneratedOutput) -> GeneratedJson {
    let content = if output.list {
        let part = text_part("text", &output.text);
        GeneratedJson::List(vec![part.with_if(output.marked, "cache_control", marker())])
    } else {
        GeneratedJson::text(&output.text)
    };
    GeneratedJson::object([
        ("role", GeneratedJson::text("tool")),
        ("tool_call_id", id(round, call)),
        ("content", content),
    ])
}

pub(super) fn messages(talk: &GeneratedConversation) -> GeneratedJson {
    let mut entries = Vec::new();
    for (round, said) in talk.said.iter().enumerate() {
        match said {
            GeneratedMessage::User {
                texts,
                image,
                marked,
            } => entries.push(messages_user(texts, *image, *marked)),
            GeneratedMessage::Model {
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
    let body = body("messages", entries).with("max_tokens", GeneratedJson::Raw("4096".to_owned()));
    match &talk.system {
        Some(text) if talk.system_list => {
            body.with("system", GeneratedJson::List(vec![text_part("text", text)]))
        }
        Some(text) => body.with("system", GeneratedJson::text(text)),
        None => body,
    }
}

fn messages_user(texts: &[String], image: bool, marked: bool) -> GeneratedJson {
    let content = match texts {
        [only] if !image && !marked => GeneratedJson::text(only),
        many => {
            let mut parts: Vec<GeneratedJson> =
                many.iter().map(|text| text_part("text", text)).collect();
            if image {
                let source = GeneratedJson::object([
                    ("type", GeneratedJson::text("base64")),
                    ("media_type", GeneratedJson::text("image/png")),
                    ("data", GeneratedJson::text("AAAA")),
                ]);
                let image = GeneratedJson::object([
                    ("type", GeneratedJson::text("image")),
                    ("source", source),
                ]);
                parts.insert(0, image);
            }
            mark_last(&mut parts, marked);
            GeneratedJson::List(parts)
        }
    };
    GeneratedJson::object([("role", GeneratedJson::text("user")), ("content", content)])
}

fn messages_answer(
    round: usize,
    thought: Option<bool>,
    text: Option<&str>,
    calls: usize,
) -> GeneratedJson {
    let mut parts = Vec::new();
    if let Some(sealed) = thought {
        let thought = GeneratedJson::object([("type", GeneratedJson::text("thinking"))]);
        let thought = thought.with("thinking", GeneratedJson::text("hm"));
        parts.push(thought.with_if(sealed, "signature", GeneratedJson::text("c2ln")));
    }
    parts.extend(text.map(|text| text_part("text", text)));
    parts.extend((0..calls).map(|call| {
        GeneratedJson::object([
            ("type", GeneratedJson::text("tool_use")),
            ("id", id(round, call)),
            ("name", GeneratedJson::text("look")),
            (
                "input",
                GeneratedJson::object([("path", GeneratedJson::text("a"))]),
            ),
        ])
    }));
    GeneratedJson::object([
        ("role", GeneratedJson::text("assistant")),
        ("content", GeneratedJson::List(parts)),
    ])
}

fn messages_outputs(
    round: usize,
    outputs: &[GeneratedOutput],
    aside: Option<&str>,
) -> GeneratedJson {
    let mut parts: Vec<GeneratedJson> = outputs
        .iter()
        .enumerate()
        .map(|(call, output)| {
            let content = if output.list {
                GeneratedJson::List(vec![text_part("text", &output.text)])
            } else {
                GeneratedJson::text(&output.text)
            };
            GeneratedJson::object([
                ("type", GeneratedJson::text("tool_result")),
                ("tool_use_id", id(round, call)),
                ("content", content),
            ])
            .with_if(
                output.error,
                "is_error",
                GeneratedJson::Raw("true".to_owned()),
            )
            .with_if(output.marked, "cache_control", marker())
        })
        .collect();
    parts.extend(aside.map(|text| text_part("text", text)));
    GeneratedJson::object([
        ("role", GeneratedJson::text("user")),
        ("content", GeneratedJson::List(parts)),
    ])
}

pub(super) fn responses(talk: &GeneratedConversation) -> GeneratedJson {
    let mut entries = Vec::new();
    for (round, said) in talk.said.iter().enumerate() {
        match said {
            GeneratedMessage::User { texts, image, .. } => {
                entries.push(responses_user(texts, *image));
            }
            GeneratedMessage::Model {
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
    let body = body("input", entries).with("store", GeneratedJson::Raw("false".to_owned()));
    match &talk.system {
        Some(text) => body.with("instructions", GeneratedJson::text(text)),
        None => body,
    }
}

fn responses_user(texts: &[String], image: bool) -> GeneratedJson {
    let content = match texts {
        [only] if !image => GeneratedJson::text(only),
        many => {
            let part = |text: &String| text_part("input_text", text);
            let mut parts: Vec<GeneratedJson> = many.iter().map(part).collect();
            if image {
                let url = GeneratedJson::text("data:image/png;base64,AAAA");
                parts.push(GeneratedJson::object([
                    ("type", GeneratedJson::text("input_image")),
                    ("image_url", url),
                ]));
            }
            GeneratedJson::List(parts)
        }
    };
    GeneratedJson::object([("role", GeneratedJson::text("user")), ("content", content)])
}

fn responses_answer(
    round: usize,
    thought: Option<bool>,
    text: Option<&str>,
    calls: usize,
    entries: &mut Vec<GeneratedJson>,
) {
    if let Some(sealed) = thought {
        let entry = GeneratedJson::object([
            ("type", GeneratedJson::text("reasoning")),
            ("id", GeneratedJson::text(format!("rs_{round}"))),
            ("summary", GeneratedJson::List(Vec::new())),
        ]);
        entries.push(entry.with_if(sealed, "encrypted_content", GeneratedJson::text("gAAA")));
    }
    if let Some(text) = text {
        entries.push(GeneratedJson::object([
            ("type", GeneratedJson::text("message")),
            ("id", GeneratedJson::text(format!("msg_{round}"))),
            ("role", GeneratedJson::text("assistant")),
            (
                "content",
                GeneratedJson::List(vec![text_part("output_text", text)]),
            ),
        ]));
    }
    entries.extend((0..calls).map(|call| {
        GeneratedJson::object([
            ("type", GeneratedJson::text("function_call")),
            ("call_id", id(round, call)),
            ("name", GeneratedJson::text("look")),
            ("arguments", GeneratedJson::text("{\"path\": \"a\"}")),
        ])
    }));
}

fn responses_output(round: usize, call: usize, output: &GeneratedOutput) -> GeneratedJson {
    let content = if output.list {
        GeneratedJson::List(vec![text_part("input_text", &output.text)])
    } else {
        GeneratedJson::text(&output.text)
    };
    GeneratedJson::object([
        ("type", GeneratedJson::text("function_call_output")),
        ("call_id", id(round, call)),
        ("output", content),
    ])
}
