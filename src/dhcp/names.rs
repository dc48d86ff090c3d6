// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: domain names (RFC 1035) and lists of them, as servers of both families send them.

/// Longest host or domain name (RFC 1035 2.3.4).
const NAME: usize = 253;
/// Longest host name of the kernel in bytes (HOST_NAME_MAX).
pub(crate) const HOST_NAME_MAX: usize = 64;
/// Domains that are accepted from a search list.
pub(super) const DOMAINS: usize = 32;

/// Labels of letters, digits, `-` and `_`, of at most 63 bytes, separated by dots; a final dot is
/// allowed (RFC 1123 2.1).
pub(super) fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= NAME && text.strip_suffix('.').unwrap_or(text).split('.').all(label)
}

/// Decodes a search list (RFC 3397) with compression pointers (RFC 1035 4.1.4). A pointer must lead
/// backwards, so decoding always ends.
pub(super) fn search_list(bytes: &[u8]) -> Option<Vec<String>> {
    let mut domains = Vec::new();
    let mut position = 0;
    while position < bytes.len() && domains.len() < DOMAINS {
        let (domain, next) = domain(bytes, position)?;
        domains.push(domain);
        position = next;
    }
    Some(domains)
}

/// The name at `start`, and the start of the next name.
fn domain(bytes: &[u8], start: usize) -> Option<(String, usize)> {
    let mut labels: Vec<&str> = Vec::new();
    let mut position = start;
    // Start of the labels that are being read: a pointer must lead before this position.
    let mut began = start;
    let mut next = None;
    loop {
        let length = *bytes.get(position)?;
        match length {
            0 => {
                let name = labels.join(".");
                let next = next.unwrap_or(position.checked_add(1)?);
                return is_name(&name).then_some((name, next));
            }
            1..=63 => {
                let from = position.checked_add(1)?;
                position = from.checked_add(usize::from(length))?;
                labels.push(std::str::from_utf8(bytes.get(from..position)?).ok()?);
                if labels.len() > NAME {
                    return None;
                }
            }
            192..=255 => {
                let behind = position.checked_add(1)?;
                let low = *bytes.get(behind)?;
                let target = usize::from(u16::from_be_bytes([length & 0x3f, low]));
                if target >= began {
                    return None;
                }
                next = next.or(behind.checked_add(1));
                (position, began) = (target, target);
            }
            _ => return None,
        }
    }
}
