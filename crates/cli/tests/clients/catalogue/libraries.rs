//! The SDKs of the providers, and frameworks for agents, each in a small program of ours.

use crate::install::{NODE_SDKS, PYTHON_SDKS, Package};
use crate::setup::{ClientSetup, Launch, RunPlace};

const LANGCHAIN: Package = Package::Python {
    folder: "venv-langchain",
    minor: 10,
    packages: &["langchain", "langchain-openai", "langchain-anthropic"],
    modules: &["langchain", "langchain_openai", "langchain_anthropic"],
};
const SMOLAGENTS: Package = Package::Python {
    folder: "venv-smolagents",
    minor: 10,
    packages: &["smolagents[openai]"],
    modules: &["smolagents", "openai"],
};
const OPENHANDS: Package = Package::Python {
    folder: "venv-openhands",
    minor: 12,
    packages: &["openhands-sdk", "openhands-tools"],
    modules: &["openhands.sdk", "openhands.tools"],
};
const AI_SDK: Package = Package::NodeLibraries {
    folder: "ai-sdk-node",
    packages: &[
        "ai",
        "@ai-sdk/openai",
        "@ai-sdk/anthropic",
        "@ai-sdk/openai-compatible",
        "zod",
    ],
};

pub(super) const CLIENTS: &[ClientSetup] = &[
    library("python-anthropic", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "stream")
    }),
    library("python-anthropic-thinking", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "thinking-stream")
    }),
    library("python-anthropic-thinking-plain", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "thinking-plain")
    }),
    library("python-openai-chat", PYTHON_SDKS, |place| {
        place.python("openai_sdk.py", "chat-stream")
    }),
    library("python-openai-responses", PYTHON_SDKS, |place| {
        place.python("openai_sdk.py", "responses-stream")
    }),
    library("python-openai-responses-plain", PYTHON_SDKS, |place| {
        place.python("openai_sdk.py", "responses-plain")
    }),
    library("node-anthropic", NODE_SDKS, |place| {
        place.node("anthropic_sdk.mjs", "plain")
    }),
    library("node-anthropic-thinking", NODE_SDKS, |place| {
        place.node("anthropic_sdk.mjs", "thinking-stream")
    }),
    library("node-openai-chat", NODE_SDKS, |place| {
        place.node("openai_sdk.mjs", "chat-plain")
    }),
    library("node-openai-responses", NODE_SDKS, |place| {
        place.node("openai_sdk.mjs", "responses-stream")
    }),
    library("langchain-chat", LANGCHAIN, |place| {
        place.python("langchain_agent.py", "chat")
    }),
    library("langchain-responses", LANGCHAIN, |place| {
        place.python("langchain_agent.py", "responses")
    }),
    library("langchain-anthropic", LANGCHAIN, |place| {
        place.python("langchain_agent.py", "anthropic")
    }),
    library("ai-sdk-chat", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "chat")
    }),
    library("ai-sdk-compatible", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "compatible")
    }),
    library("ai-sdk-responses", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "responses")
    }),
    library("ai-sdk-anthropic", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "anthropic")
    }),
    library("smolagents-code", SMOLAGENTS, |place| {
        place.python("smolagents_agent.py", "code")
    }),
    library("smolagents-calls", SMOLAGENTS, |place| {
        place.python("smolagents_agent.py", "calls")
    }),
    library("openhands-chat", OPENHANDS, |place| {
        place.python("openhands_agent.py", "chat")
    }),
    library("openhands-anthropic", OPENHANDS, |place| {
        place.python("openhands_agent.py", "anthropic")
    }),
];

const fn library(
    name: &'static str,
    package: Package,
    launch: fn(&RunPlace) -> Vec<Launch>,
) -> ClientSetup {
    ClientSetup {
        name,
        package,
        launch,
    }
}
