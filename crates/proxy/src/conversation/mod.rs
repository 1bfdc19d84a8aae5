//! Conversations: which one a request continues, its messages and its window.

pub(crate) mod branch;
pub(crate) mod client_session_id;
pub(crate) mod client_sessions;
pub(crate) mod durability;
pub(crate) mod hidden_rounds;
pub(crate) mod message_map;
pub(crate) mod retrieval_tools;
pub(crate) mod store_state;
