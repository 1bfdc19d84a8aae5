//! What the crate promises about real transcripts.

mod corpus;
