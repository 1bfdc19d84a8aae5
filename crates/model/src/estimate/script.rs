//! Classifies non-ASCII characters by script, as far as vocabularies treat scripts differently.

use super::features::Feature;

/// The feature of a non-ASCII character.
pub(super) fn of(character: char) -> Feature {
    match u32::from(character) {
        0x00c0..=0x024f => Feature::Latin,
        0x0370..=0x03ff => Feature::Greek,
        0x0400..=0x052f => Feature::Cyrillic,
        0x0530..=0x058f => Feature::Armenian,
        0x0590..=0x05ff => Feature::Hebrew,
        0x0600..=0x077f => Feature::Arabic,
        // The order matters: this range contains the ones above, and takes what they leave.
        0x0080..=0x07ff => Feature::OtherTwo,
        0x0900..=0x097f => Feature::Devanagari,
        0x0980..=0x09ff => Feature::Bengali,
        0x0a00..=0x0a7f => Feature::Gurmukhi,
        0x0a80..=0x0aff => Feature::Gujarati,
        0x0b80..=0x0bff => Feature::Tamil,
        0x0c00..=0x0cff => Feature::Telugu,
        0x0d00..=0x0d7f => Feature::Malayalam,
        0x0d80..=0x0dff => Feature::Sinhala,
        0x0e00..=0x0eff => Feature::Thai,
        0x1000..=0x109f => Feature::Myanmar,
        0x10a0..=0x10ff | 0x1c90..=0x1cbf => Feature::Georgian,
        0x1780..=0x17ff => Feature::Khmer,
        0x1e00..=0x1fff => Feature::LatinMore,
        0x2000..=0x2bff | 0xfe0f => Feature::Sign,
        0x3000..=0x303f | 0xff00..=0xffef => Feature::SignHan,
        0x3040..=0x30ff => Feature::Kana,
        0x3400..=0x9fff | 0xf900..=0xfaff => Feature::Han,
        0xac00..=0xd7af | 0x1100..=0x11ff => Feature::Hangul,
        0x1f000..=0x1faff => Feature::Emoji,
        _ => Feature::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_find_their_script() {
        let cases = [
            ('é', Feature::Latin),
            ('ж', Feature::Cyrillic),
            ('λ', Feature::Greek),
            ('ש', Feature::Hebrew),
            ('ب', Feature::Arabic),
            ('«', Feature::OtherTwo),
            ('ह', Feature::Devanagari),
            ('ก', Feature::Thai),
            ('の', Feature::Kana),
            ('漢', Feature::Han),
            ('한', Feature::Hangul),
            ('→', Feature::Sign),
            ('。', Feature::SignHan),
            ('😀', Feature::Emoji),
            ('𐍈', Feature::Other),
        ];
        for (character, script) in cases {
            assert_eq!(of(character), script, "{character}");
        }
    }
}
