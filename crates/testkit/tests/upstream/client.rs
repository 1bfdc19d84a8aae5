//! A small client of the three dialects.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use trimtab_model::{Call, Dialect, Message, Usage};
use trimtab_testkit::script::Script;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};
use trimtab_wire::answer::AnswerReader;
use trimtab_wire::sse::StreamEvent;

pub(crate) struct Client {
    http: Http<HttpConnector, Full<Bytes>>,
    url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    /// The body, as far as it came.
    pub(crate) body: Vec<u8>,
    /// True if the body did not end as it should.
    pub(crate) broken: bool,
}

/// What a stream or document says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) reasoning: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Usage,
    pub(crate) stop: String,
    pub(crate) error: String,
    pub(crate) ended: bool,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn message(&self) -> String {
        let json = self.json();
        json.pointer("/error/message")
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn said(&self, dialect: Dialect) -> Said {
        let mut said = Said::default();
        let mut reader = AnswerReader::new(dialect);
        reader.push(&self.body, |event| match event {
            StreamEvent::Text(delta) => said.text.push_str(&delta.text()),
            StreamEvent::Reasoning(delta) => said.reasoning.push_str(&delta.text()),
            StreamEvent::Usage(usage) => said.usage = usage,
            StreamEvent::Stop(stop) => said.stop = stop,
            StreamEvent::Error(error) => said.error = error.message,
            StreamEvent::End => said.ended = true,
            StreamEvent::Start | StreamEvent::Call => {}
            other => panic!("{other:?}"),
        });
        let message = reader.into_message();
        said.calls = message.iter().flat_map(Message::calls).cloned().collect();
        said
    }
}

impl Client {
    pub(crate) fn new(upstream: &Upstream) -> Self {
        Self {
            http: Http::builder(TokioExecutor::new()).build_http(),
            url: upstream.url(),
            headers: vec![("anthropic-version", "2023-06-01".to_owned())],
        }
    }

    /// The same client over HTTP/2.
    pub(crate) fn http2(mut self) -> Self {
        let mut builder = Http::builder(TokioExecutor::new());
        self.http = builder.http2_only(true).build_http();
        self
    }

    /// Sends bytes; an error if no answer begins.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Got, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("content-type", "application/json");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body.into())).unwrap();
        let response = self
            .http
            .request(request)
            .await
            .map_err(|error| format!("{error:?}"))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut incoming = response.into_body();
        let (mut body, mut broken) = (Vec::new(), false);
        while let Some(frame) = incoming.frame().await {
            match frame {
                Ok(frame) => body.extend_from_slice(&frame.into_data().unwrap()),
                Err(_) => broken = true,
            }
        }
        let status = StatusCode::as_u16(&status);
        Ok(Got {
            status,
            headers,
            body,
            broken,
        })
    }

    pub(crate) async fn post(&self, dialect: Dialect, body: &Value) -> Got {
        self.try_post(dialect, body).await.unwrap()
    }

    pub(crate) async fn try_post(&self, dialect: Dialect, body: &Value) -> Result<Got, String> {
        self.send("POST", path(dialect), body.to_string()).await
    }
}

pub(crate) fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "/v1/chat/completions",
        Dialect::Responses => "/v1/responses",
        Dialect::Messages => "/v1/messages",
    }
}

/// An upstream that plays a script of `replies`, and a client of it.
pub(crate) async fn start(options: UpstreamOptions) -> (Upstream, Client) {
    let upstream = Upstream::start(options).await.unwrap();
    let client = Client::new(&upstream);
    (upstream, client)
}

pub(crate) fn scripted(replies: &Value) -> UpstreamOptions {
    UpstreamOptions::new(ReplySource::script(
        Script::parse(&replies.to_string()).unwrap(),
    ))
}

/// A conversation as a client keeps it.
#[derive(Clone)]
pub(crate) struct Talk {
    pub(crate) dialect: Dialect,
    pub(crate) body: Value,
}

impl Talk {
    /// Begins with a user's words.
    pub(crate) fn new(dialect: Dialect, text: &str) -> Self {
        let schema = json!({"type": "object"});
        let function = json!({"name": "read", "parameters": schema});
        let body = match dialect {
            Dialect::Chat => json!({
                "messages": [{"role": "system", "content": "be brief"}],
                "tools": [{"type": "function", "function": function}],
            }),
            Dialect::Responses => json!({
                "instructions": "be brief", "input": [], "store": false,
                "include": ["reasoning.encrypted_content"],
                "tools": [{"type": "function", "name": "read", "parameters": schema}],
            }),
            Dialect::Messages => json!({
                "system": "be brief", "messages": [], "max_tokens": 100,
                "tools": [{"name": "read", "input_schema": schema}],
            }),
        };
        let mut talk = Self { dialect, body };
        talk.body["model"] = json!("scripted");
        talk.user(text);
        talk
    }

    /// The same talk, asked for as a stream.
    pub(crate) fn streaming(mut self) -> Self {
        self.body["stream"] = json!(true);
        if self.dialect == Dialect::Chat {
            self.body["stream_options"] = json!({"include_usage": true});
        }
        self
    }

    pub(crate) fn list(&mut self) -> &mut Vec<Value> {
        let name = if self.dialect == Dialect::Responses {
            "input"
        } else {
            "messages"
        };
        self.body[name].as_array_mut().unwrap()
    }

    pub(crate) fn user(&mut self, text: &str) {
        self.list().push(json!({"role": "user", "content": text}));
    }

    /// Takes a whole answer in, and answers its calls with `output`.
    pub(crate) fn take(&mut self, answer: &Value, output: &str) {
        match self.dialect {
            Dialect::Chat => {
                let message = answer["choices"][0]["message"].clone();
                let calls = message["tool_calls"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                self.list().push(message);
                for call in calls {
                    let output = json!({
                        "role": "tool", "tool_call_id": call["id"], "content": output,
                    });
                    self.list().push(output);
                }
            }
            Dialect::Responses => {
                let items = answer["output"].as_array().unwrap().clone();
                self.list().extend(items.clone());
                let calls = items.iter().filter(|item| item["type"] == "function_call");
                let outputs = calls.map(|call| {
                    json!({
                        "type": "function_call_output", "call_id": call["call_id"],
                        "output": output,
                    })
                });
                self.list().extend(outputs);
            }
            Dialect::Messages => {
                let content = answer["content"].as_array().unwrap().clone();
                self.list()
                    .push(json!({"role": "assistant", "content": content}));
                let calls = content.iter().filter(|part| part["type"] == "tool_use");
                let outputs: Vec<Value> = calls
                    .map(|call| {
                        json!({
                            "type": "tool_result", "tool_use_id": call["id"], "content": output,
                        })
                    })
                    .collect();
                if !outputs.is_empty() {
                    self.list()
                        .push(json!({"role": "user", "content": outputs}));
                }
            }
        }
    }
}

/// The document that a stream of `dialect` was made of.
pub(crate) fn gathered(dialect: Dialect, got: &Got) -> Value {
    let said = got.said(dialect);
    match dialect {
        Dialect::Chat => {
            let calls: Vec<Value> = said
                .calls
                .iter()
                .map(|call| {
                    let function = json!({"name": call.name, "arguments": call.arguments});
                    json!({"id": call.id, "type": "function", "function": function})
                })
                .collect();
            let mut message = json!({"role": "assistant", "content": said.text});
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            json!({"choices": [{"message": message}]})
        }
        Dialect::Responses => last_event(got, "response.completed")["response"].clone(),
        Dialect::Messages => {
            let mut content = Vec::new();
            if !said.reasoning.is_empty() {
                let signature = events(got)
                    .into_iter()
                    .find(|event| event["delta"]["type"] == "signature_delta")
                    .map(|event| event["delta"]["signature"].clone());
                content.push(json!({
                    "type": "thinking", "thinking": said.reasoning, "signature": signature,
                }));
            }
            if !said.text.is_empty() {
                content.push(json!({"type": "text", "text": said.text}));
            }
            content.extend(said.calls.iter().map(|call| {
                let input: Value = serde_json::from_str(&call.arguments).unwrap();
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
            }));
            json!({"content": content})
        }
    }
}

/// The data of the events of a stream.
pub(crate) fn events(got: &Got) -> Vec<Value> {
    let text = std::str::from_utf8(&got.body).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let data = data.filter(|data| *data != "[DONE]");
    data.map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

fn last_event(got: &Got, name: &str) -> Value {
    let mut events = events(got).into_iter();
    events.rfind(|event| event["type"] == name).unwrap()
}
