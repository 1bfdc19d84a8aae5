//! Reading and searching stored outputs.

use serde_json::Value;

pub(super) fn run(op: &str, _input: &Value) -> Option<Value> {
    let _ = op;
    None
}
