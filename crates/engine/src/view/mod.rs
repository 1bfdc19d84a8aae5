//! Views: what the model sees of an output.
