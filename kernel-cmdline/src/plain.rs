// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which characters may reach a terminal or a log.

use core::ops::RangeInclusive;

/// Characters without a visible form: they hide, reorder or break text, or have no common meaning.
/// Unicode 16.0, DerivedGeneralCategory.txt (Cf, Zl, Zp, Co, noncharacters) and
/// DerivedCoreProperties.txt (Default_Ignorable_Code_Point). `char::is_control` has the controls
/// (Cc).
const UNSEEN: &[RangeInclusive<char>] = &[
    '\u{00ad}'..='\u{00ad}',    // soft hyphen
    '\u{034f}'..='\u{034f}',    // combining grapheme joiner
    '\u{0600}'..='\u{0605}',    // Arabic signs that span numbers
    '\u{061c}'..='\u{061c}',    // Arabic letter mark
    '\u{06dd}'..='\u{06dd}',    // Arabic end of ayah
    '\u{070f}'..='\u{070f}',    // Syriac abbreviation mark
    '\u{0890}'..='\u{0891}',    // Arabic pound and piastre marks above
    '\u{08e2}'..='\u{08e2}',    // Arabic disputed end of ayah
    '\u{115f}'..='\u{1160}',    // Hangul fillers
    '\u{17b4}'..='\u{17b5}',    // Khmer inherent vowels
    '\u{180b}'..='\u{180f}',    // Mongolian variation selectors and vowel separator
    '\u{200b}'..='\u{200f}',    // zero-width space, joiners, left-to-right and right-to-left mark
    '\u{2028}'..='\u{202e}', // line and paragraph separator, bidirectional embeddings and overrides
    '\u{2060}'..='\u{206f}', // word joiner, invisible operators, bidirectional isolates
    '\u{3164}'..='\u{3164}', // Hangul filler
    '\u{e000}'..='\u{f8ff}', // private use
    '\u{fdd0}'..='\u{fdef}', // noncharacters
    '\u{fe00}'..='\u{fe0f}', // variation selectors
    '\u{feff}'..='\u{feff}', // byte order mark
    '\u{ffa0}'..='\u{ffa0}', // halfwidth Hangul filler
    '\u{fff0}'..='\u{fffb}', // unassigned, interlinear annotation
    '\u{110bd}'..='\u{110bd}', // Kaithi number sign
    '\u{110cd}'..='\u{110cd}', // Kaithi number sign above
    '\u{13430}'..='\u{1343f}', // Egyptian hieroglyph format controls
    '\u{1bca0}'..='\u{1bca3}', // shorthand format controls
    '\u{1d173}'..='\u{1d17a}', // musical format controls
    '\u{e0000}'..='\u{e0fff}', // tags, variation selectors
    '\u{f0000}'..='\u{10ffff}', // private use
];

/// Whether a character may reach a terminal or a log: it is visible in its place and does not
/// change the text around it.
pub fn is_plain(character: char) -> bool {
    // The last two of each plane are noncharacters.
    let is_none = u32::from(character) & 0xfffe == 0xfffe;
    let is_unseen = |range: &RangeInclusive<char>| range.contains(&character);
    character.is_ascii_graphic()
        || character == ' '
        || !(character.is_control() || is_none || UNSEEN.iter().any(is_unseen))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;
    use proptest::string::string_regex;

    use super::*;

    #[test]
    fn what_is_read_is_plain() {
        for character in "aZ09 !\"'\\~äß€ \u{0301}ไทย漢字한😀\u{1fffd}".chars() {
            assert!(is_plain(character), "{:04x}", u32::from(character));
        }
    }

    /// std knows Unicode's categories too, and escapes all of these.
    #[test]
    fn what_is_not_plain_std_escapes_or_draws_nothing_for() {
        // Default_Ignorable_Code_Point that are letters or marks.
        const MARKS: &str = "\u{034f}\u{115f}\u{1160}\u{17b4}\u{17b5}\u{180b}\u{180c}\u{180d}\u{180f}\u{3164}\u{ffa0}";
        for character in '\0'..=char::MAX {
            let is_escaped = character.escape_debug().count() > 1;
            let is_selector = ('\u{fe00}'..='\u{fe0f}').contains(&character);
            assert!(
                is_plain(character) || is_escaped || is_selector || MARKS.contains(character),
                "{:04x}",
                u32::from(character)
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn no_control_format_separator_or_private_character_is_plain(
            text in string_regex("\\p{Cc}|\\p{Cf}|\\p{Zl}|\\p{Zp}|\\p{Co}").unwrap()
        ) {
            prop_assert!(!text.chars().any(is_plain), "{}", text.escape_unicode());
        }
    }
}
