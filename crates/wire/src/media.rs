//! Converts images between dialects.
//!
//! Media is kept as the client wrote it. If a message is written in another dialect than it was
//! read in, images are converted; other media stays unchanged.

use trimtab_model::RawJson;

use crate::json::{JsonFields, ObjectWriter};

/// An image, independent of its dialect.
enum ImageSource {
    Url(String),
    Data { media_type: String, data: String },
}

impl ImageSource {
    fn read(raw: &RawJson) -> Option<(String, Self)> {
        let fields: JsonFields = serde_json::from_str(raw.as_str()).ok()?;
        let type_name = fields.text("type")?.into_owned();
        let image = match type_name.as_str() {
            "image" => Self::from_source(&fields.fields("source")?)?,
            "image_url" => Self::from_url(&fields.fields("image_url")?.text("url")?),
            "input_image" => Self::from_url(&fields.text("image_url")?),
            _ => return None,
        };
        Some((type_name, image))
    }

    fn from_source(source: &JsonFields<'_>) -> Option<Self> {
        if source.text("type")? == "url" {
            return Some(Self::Url(source.text("url")?.into_owned()));
        }
        Some(Self::Data {
            media_type: source.text("media_type")?.into_owned(),
            data: source.text("data")?.into_owned(),
        })
    }

    fn from_url(url: &str) -> Self {
        let inline = url
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(";base64,"));
        match inline {
            Some((media_type, data)) => Self::Data {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            },
            None => Self::Url(url.to_owned()),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::Data { media_type, data } => format!("data:{media_type};base64,{data}"),
        }
    }

    fn source(&self) -> String {
        match self {
            Self::Url(url) => ObjectWriter::new()
                .text("type", "url")
                .text("url", url)
                .end(),
            Self::Data { media_type, data } => ObjectWriter::new()
                .text("type", "base64")
                .text("media_type", media_type)
                .text("data", data)
                .end(),
        }
    }
}

/// The media part for a Chat Completions message.
pub(crate) fn to_chat(raw: &RawJson) -> String {
    respell(raw, "image_url", |image| {
        ObjectWriter::new()
            .text("type", "image_url")
            .raw(
                "image_url",
                &ObjectWriter::new().text("url", &image.url()).end(),
            )
            .end()
    })
}

/// The media part for a Messages request.
pub(crate) fn to_messages(raw: &RawJson) -> String {
    respell(raw, "image", |image| {
        ObjectWriter::new()
            .text("type", "image")
            .raw("source", &image.source())
            .end()
    })
}

/// The media part for Responses input.
pub(crate) fn to_responses(raw: &RawJson) -> String {
    respell(raw, "input_image", |image| {
        ObjectWriter::new()
            .text("type", "input_image")
            .text("image_url", &image.url())
            .end()
    })
}

fn respell(raw: &RawJson, native: &str, write: impl FnOnce(&ImageSource) -> String) -> String {
    match ImageSource::read(raw) {
        // An image in the dialect's own form keeps its bytes.
        Some((type_name, image)) if type_name != native => write(&image),
        _ => raw.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_survives_the_way_through_all_dialects() {
        let messages =
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#;
        let chat = to_chat(&RawJson::parse(messages).unwrap());
        assert_eq!(
            chat,
            r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}"#
        );
        let responses = to_responses(&RawJson::parse(&chat).unwrap());
        assert_eq!(
            responses,
            r#"{"type":"input_image","image_url":"data:image/png;base64,AAAA"}"#
        );
        assert_eq!(to_messages(&RawJson::parse(&responses).unwrap()), messages);
    }

    #[test]
    fn part_that_is_not_an_image_is_unchanged() {
        let file = RawJson::parse(r#"{"type":"file","file":{"file_id":"f"}}"#).unwrap();
        assert_eq!(to_messages(&file), file.as_str());
    }
}
