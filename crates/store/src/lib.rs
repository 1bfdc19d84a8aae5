//! Where outputs, logs and journals live. The only crate that opens files or databases.
