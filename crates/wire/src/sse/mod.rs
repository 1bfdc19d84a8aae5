//! Streamed answers.
