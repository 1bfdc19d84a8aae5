//! Converts bytes to text for the model.

/// How many bytes are checked to distinguish text from binary data.
const LOOKED_AT: usize = 8192;

/// The text of `bytes`. Invalid bytes are replaced, with a note.
pub(super) fn readable(bytes: Vec<u8>) -> String {
    let head = bytes.get(..LOOKED_AT).unwrap_or(&bytes);
    let is_binary = has_nul(head);
    match String::from_utf8(bytes) {
        Ok(text) if !is_binary => text,
        Ok(text) => noted(text.len(), &text),
        Err(error) => {
            let bytes = error.into_bytes();
            noted(bytes.len(), &String::from_utf8_lossy(&bytes))
        }
    }
}

/// True if the start of some data shows that it is binary.
pub(super) fn has_nul(head: &[u8]) -> bool {
    head.contains(&0)
}

fn noted(size: usize, text: &str) -> String {
    let shown: String = text
        .chars()
        .map(|c| {
            let kept = !c.is_control() || matches!(c, '\n' | '\r' | '\t');
            if kept { c } else { char::REPLACEMENT_CHARACTER }
        })
        .collect();
    format!("[{size} bytes, not all of them text; what is none is shown as \u{fffd}]\n{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_bytes_are_replaced_with_a_note() {
        assert_eq!(readable(b"plain \xc3\xa9\n".to_vec()), "plain \u{e9}\n");
        let shown = readable(b"\x7fELF\x00\x01\xff\nx".to_vec());
        assert!(
            shown.starts_with("[9 bytes, not all of them text"),
            "{shown}"
        );
        assert!(shown.ends_with("\nx") && !shown.contains('\0'));
    }
}
