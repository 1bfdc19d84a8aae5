//! The SDKs of the providers, and frameworks for agents, each in a small program of ours.

use crate::install::{NODE_SDKS, PYTHON_SDKS, Package};
use crate::setup::ClientSetup;

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
const OPENAI_AGENTS: Package = Package::Python {
    folder: "venv-openai-agents",
    minor: 10,
    packages: &["openai-agents"],
    modules: &["agents", "openai"],
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
    ClientSetup::new("python-anthropic", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "stream")
    }),
    ClientSetup::new("python-anthropic-thinking", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "thinking-stream")
    }),
    ClientSetup::new("python-anthropic-thinking-plain", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "thinking-plain")
    }),
    ClientSetup::new("python-anthropic-newest", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "newest-stream")
    })
    .under_all_presets(),
    ClientSetup::new("python-anthropic-between", PYTHON_SDKS, |place| {
        place.python("anthropic_sdk.py", "between-plain")
    }),
    ClientSetup::new("python-openai-chat", PYTHON_SDKS, |place| {
        place.python("openai_sdk.py", "chat-stream")
    }),
    ClientSetup::new("python-openai-responses", PYTHON_SDKS, |place| {
        place.python("openai_sdk.py", "responses-stream")
    })
    .under_all_presets(),
    ClientSetup::new("python-openai-responses-plain", PYTHON_SDKS, |place| {
        place.python("openai_sdk.py", "responses-plain")
    }),
    ClientSetup::new("node-anthropic", NODE_SDKS, |place| {
        place.node("anthropic_sdk.mjs", "plain")
    }),
    ClientSetup::new("node-anthropic-thinking", NODE_SDKS, |place| {
        place.node("anthropic_sdk.mjs", "thinking-stream")
    }),
    ClientSetup::new("node-anthropic-newest", NODE_SDKS, |place| {
        place.node("anthropic_sdk.mjs", "newest-plain")
    }),
    ClientSetup::new("node-openai-chat", NODE_SDKS, |place| {
        place.node("openai_sdk.mjs", "chat-plain")
    }),
    ClientSetup::new("node-openai-responses", NODE_SDKS, |place| {
        place.node("openai_sdk.mjs", "responses-stream")
    }),
    ClientSetup::new("openai-agents", OPENAI_AGENTS, |place| {
        place.python("openai_agents.py", "direct")
    }),
    ClientSetup::new("openai-agents-programs", OPENAI_AGENTS, |place| {
        place.python("openai_agents.py", "programs")
    })
    .under_all_presets(),
    ClientSetup::new("langchain-chat", LANGCHAIN, |place| {
        place.python("langchain_agent.py", "chat")
    }),
    ClientSetup::new("langchain-responses", LANGCHAIN, |place| {
        place.python("langchain_agent.py", "responses")
    }),
    ClientSetup::new("langchain-anthropic", LANGCHAIN, |place| {
        place.python("langchain_agent.py", "anthropic")
    }),
    ClientSetup::new("ai-sdk-chat", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "chat")
    }),
    ClientSetup::new("ai-sdk-compatible", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "compatible")
    }),
    ClientSetup::new("ai-sdk-responses", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "responses")
    }),
    ClientSetup::new("ai-sdk-anthropic", AI_SDK, |place| {
        place.node("ai_sdk.mjs", "anthropic")
    }),
    ClientSetup::new("smolagents-code", SMOLAGENTS, |place| {
        place.python("smolagents_agent.py", "code")
    }),
    ClientSetup::new("smolagents-calls", SMOLAGENTS, |place| {
        place.python("smolagents_agent.py", "calls")
    }),
    ClientSetup::new("openhands-chat", OPENHANDS, |place| {
        place.python("openhands_agent.py", "chat")
    }),
    ClientSetup::new("openhands-anthropic", OPENHANDS, |place| {
        place.python("openhands_agent.py", "anthropic")
    }),
];
