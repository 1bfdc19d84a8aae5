//! The tokens of images, by the rules that the providers publish.
//!
//! Only the size of an image and the level of detail count. Both stand in the part, if the image is
//! in the request; of an image behind a URL the size is not known.

use std::borrow::Cow;

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Media, MediaKind};

/// The assumed tokens where the size is not known: those of an image of a megapixel.
const UNKNOWN: u32 = 1200;
/// The tokens of an image in low detail.
const LOW_DETAIL: u32 = 85;
/// The encoded bytes in which the size is searched. It stands at the beginning, behind a preview at
/// the most.
const SEARCHED: usize = 128 << 10;
/// Messages: the side of a patch and the longest side of an image in pixels.
const MESSAGES: Patches = Patches {
    side: 28,
    longest: 2_576,
    most: 4_784,
};
/// Chat Completions and Responses.
const CHAT: Patches = Patches {
    side: 32,
    longest: 2_048,
    most: 1_536,
};

/// A rule that counts a token for each patch of an image, which is scaled down first.
struct Patches {
    /// The side of a patch in pixels.
    side: u64,
    /// The longest side of an image in pixels.
    longest: u64,
    /// The maximum number of patches.
    most: u32,
}

/// The fields of an image part, in all dialects.
#[derive(Deserialize)]
struct ImageFields<'a> {
    /// Messages.
    #[serde(borrow)]
    source: Option<ImageSource<'a>>,
    /// A URL in Responses, an object with a URL in Chat Completions.
    #[serde(borrow)]
    image_url: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ImageSource<'a> {
    #[serde(borrow)]
    data: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ImageUrl<'a> {
    #[serde(borrow)]
    url: Cow<'a, str>,
    #[serde(borrow)]
    detail: Option<Cow<'a, str>>,
}

/// The estimated tokens of an image, a document or a sound.
pub(super) fn media_tokens(media: &Media) -> u32 {
    let image = (media.kind == MediaKind::Image).then(|| image_tokens(media.raw.as_str()));
    image.flatten().unwrap_or(UNKNOWN)
}

fn image_tokens(raw: &str) -> Option<u32> {
    let image: ImageFields<'_> = serde_json::from_str(raw).ok()?;
    if let Some(source) = image.source {
        return Some(MESSAGES.tokens(size_of(&source.data?)?));
    }
    let image_url = image.image_url?.get();
    let (url, detail) = match serde_json::from_str::<ImageUrl<'_>>(image_url) {
        Ok(image) => (image.url, image.detail),
        Err(_) => (serde_json::from_str(image_url).ok()?, image.detail),
    };
    if detail.as_deref() == Some("low") {
        return Some(LOW_DETAIL);
    }
    let (_, data) = url.split_once(";base64,")?;
    Some(CHAT.tokens(size_of(data)?))
}

/// Width and height in pixels of an encoded image.
fn size_of(data: &str) -> Option<(usize, usize)> {
    // Whole groups of four characters.
    let end = data.len().min(SEARCHED) / 4 * 4;
    let start = BASE64.decode(data.as_bytes().get(..end)?).ok()?;
    let size = imagesize::blob_size(&start).ok()?;
    Some((size.width, size.height))
}

impl Patches {
    fn tokens(&self, (width, height): (usize, usize)) -> u32 {
        let pixels = |side: usize| u64::try_from(side).unwrap_or(u64::MAX).max(1);
        let (width, height) = (pixels(width), pixels(height));
        let longer = width.max(height);
        let patches = |side: u64| {
            let scaled = side.saturating_mul(self.longest.min(longer)) / longer;
            scaled.div_ceil(self.side).max(1)
        };
        let patches = patches(width).saturating_mul(patches(height));
        // Larger images are scaled down until so many patches cover them.
        u32::try_from(patches).map_or(self.most, |patches| patches.min(self.most))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::RawJson;

    fn tokens(part: &Value) -> u32 {
        media_tokens(&Media {
            kind: MediaKind::Image,
            raw: RawJson::of(part),
        })
    }

    /// The beginning of a PNG of this size.
    fn png(width: u32, height: u32) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0]);
        BASE64.encode(&bytes)
    }

    fn in_messages(data: &str) -> Value {
        json!({"type": "image", "source":
            {"type": "base64", "media_type": "image/png", "data": data}})
    }

    #[test]
    fn tokens_of_an_image_follow_from_its_size() {
        for ((width, height), messages, chat) in [
            ((1, 1), 1, 1),
            ((200, 200), 64, 49),
            ((1_000, 1_000), 1_296, 1_024),
            ((8_000, 100), 92 * 2, 64),
            ((9_000, 9_000), 4_784, 1_536),
        ] {
            let data = png(width, height);
            let url = format!("data:image/png;base64,{data}");
            assert_eq!(tokens(&in_messages(&data)), messages, "{width} x {height}");
            let parts = [
                json!({"type": "image_url", "image_url": {"url": url}}),
                json!({"type": "input_image", "image_url": url, "detail": "high"}),
            ];
            for part in parts {
                assert_eq!(tokens(&part), chat, "{width} x {height}: {part}");
            }
        }
    }

    #[test]
    fn low_detail_has_a_fixed_price() {
        let url = "https://images.example/a.png";
        for part in [
            json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}}),
            json!({"type": "input_image", "image_url": url, "detail": "low"}),
        ] {
            assert_eq!(tokens(&part), LOW_DETAIL, "{part}");
        }
    }

    #[test]
    fn unknown_sizes_are_guessed() {
        for part in [
            json!({"type": "image", "source": {"type": "url", "url": "https://images.example/a"}}),
            json!({"type": "image_url", "image_url": {"url": "https://images.example/a"}}),
            json!({"type": "input_image", "file_id": "file-1"}),
            in_messages("no base64 at all"),
            in_messages(&BASE64.encode(b"no image at all")),
            json!(17),
        ] {
            assert_eq!(tokens(&part), UNKNOWN, "{part}");
        }
    }
}
