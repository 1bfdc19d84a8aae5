//! The context engine between an agent and its model.

pub mod admission;
pub mod config;
pub mod replay;
pub mod request;
pub mod retrieval;
pub mod session;

pub use trimtab_engine as engine;
pub use trimtab_model as model;
pub use trimtab_store as store;
pub use trimtab_wire as wire;
