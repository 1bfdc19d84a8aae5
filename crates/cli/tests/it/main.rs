//! What a user of the command line sees.

mod bad_input;
mod corpus;
mod forms;
mod models;
mod run;
mod snapshots;
