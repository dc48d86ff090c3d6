// SPDX-License-Identifier: MIT OR Apache-2.0
//! "Did you mean": the most similar name.

/// Maximum length of a compared name, in bytes. A longer name is not a typing error.
const LONGEST: usize = 32;

/// The candidate most similar to `text`, if one is similar enough.
///
/// The edit distance (insert, delete, replace, swap of neighbours; case is ignored) must be at
/// most 3 and at most a third of the candidate's length: a word of two letters matches only
/// itself. Of equally similar candidates the first one is returned.
pub fn nearest<'c>(text: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let mut best: Option<(usize, &'c str)> = None;
    for candidate in candidates {
        let Some(distance) = distance(text.as_bytes(), candidate.as_bytes()) else {
            continue;
        };
        let allowed = (candidate.len() / 3).min(3);
        if distance <= allowed
            && distance < candidate.len()
            && best.is_none_or(|(least, _)| distance < least)
        {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Edit distance with swaps of neighbours (optimal string alignment).
fn distance(left: &[u8], right: &[u8]) -> Option<usize> {
    if left.len() > LONGEST || right.len() > LONGEST {
        return None;
    }
    // Rows of the table for the two last bytes of `left` and for this one.
    let mut before = [0_usize; LONGEST + 1];
    let mut above = [0_usize; LONGEST + 1];
    let mut row = [0_usize; LONGEST + 1];
    for (at, cell) in above.iter_mut().enumerate() {
        *cell = at;
    }
    for (i, a) in left.iter().enumerate() {
        *row.first_mut()? = i.saturating_add(1);
        for (j, b) in right.iter().enumerate() {
            let here = j.saturating_add(1);
            let differ = usize::from(!a.eq_ignore_ascii_case(b));
            let replace = above.get(j)?.saturating_add(differ);
            let delete = above.get(here)?.saturating_add(1);
            let insert = row.get(j)?.saturating_add(1);
            let mut least = replace.min(delete).min(insert);
            if let (Some(i1), Some(j1)) = (i.checked_sub(1), j.checked_sub(1))
                && left.get(i1)?.eq_ignore_ascii_case(b)
                && right.get(j1)?.eq_ignore_ascii_case(a)
            {
                least = least.min(before.get(j1)?.saturating_add(1));
            }
            *row.get_mut(here)? = least;
        }
        before = above;
        above = row;
    }
    above.get(right.len()).copied()
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances() {
        for (left, right, want) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("mode", "mode", 0),
            ("mod", "mode", 1),
            ("moed", "mode", 1),
            ("MODE", "mode", 0),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(
                distance(left.as_bytes(), right.as_bytes()),
                Some(want),
                "{left} {right}"
            );
        }
        assert_eq!(distance(&[b'a'; 33], b"a"), None);
    }

    #[test]
    fn near_enough_is_meant_and_far_is_not() {
        let words = ["auto", "connected", "datagram"];
        assert_eq!(nearest("conected", words.into_iter()), Some("connected"));
        assert_eq!(nearest("atuo", words.into_iter()), Some("auto"));
        assert_eq!(nearest("ud", words.into_iter()), None);
        assert_eq!(nearest("", words.into_iter()), None);
        assert_eq!(nearest("v3", ["v1", "v2"].into_iter()), None);
        assert_eq!(nearest("V2", ["v1", "v2"].into_iter()), Some("v2"));
    }
}
