//! Reads fields from the query of a path, for our own endpoints.

/// The value of a field in the query of `path`, decoded; none if it is not there.
pub(crate) fn field(path: &str, name: &str) -> Option<String> {
    let (_, query) = path.split_once('?')?;
    let mut fields = query.split('&').filter_map(|field| field.split_once('='));
    let (_, value) = fields.find(|(field, _)| *field == name)?;
    Some(decoded(value))
}

/// Decodes `+` and `%` in a query value.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits: Vec<u8> = rest.by_ref().take(2).collect();
                let digits = String::from_utf8_lossy(&digits).into_owned();
                // A malformed escape is shown as a question mark: the value is only searched for or
                // looked up.
                bytes.push(u8::from_str_radix(&digits, 16).unwrap_or(b'?'));
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_from_paths() {
        let path = "/v1/retrieve/x?a=b&query=two+words%21";
        assert_eq!(field(path, "query").unwrap(), "two words!");
        assert_eq!(field("/v1/retrieve/x", "query"), None);
    }
}
