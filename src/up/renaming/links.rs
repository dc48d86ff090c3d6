// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the settings of `.link` files (systemd.link(5)).

/// The first setting that may change an interface that matches. `has_policy`: NamePolicy= has
/// effect.
pub(super) fn setting(text: &str, has_policy: bool) -> Option<String> {
    let mut section = "";
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        let leaves = match (section, line.split_once('=')) {
            // A continued line of a match matters no more than the match.
            ("[Match]", _) => true,
            ("[Link]", Some((key, value))) => leaves(key.trim(), value.trim(), has_policy),
            _ => false,
        };
        if !leaves {
            return Some(line.to_owned());
        }
    }
    None
}

/// Whether a setting of the section \[Link\] leaves an interface as it is.
fn leaves(key: &str, value: &str, has_policy: bool) -> bool {
    match key {
        // "kernel" and "keep" are reasons to leave the name.
        "NamePolicy" => {
            !has_policy
                || value
                    .split_whitespace()
                    .all(|policy| matches!(policy, "kernel" | "keep"))
        }
        // "persistent" is for an interface whose address the kernel made up.
        "MACAddressPolicy" => matches!(value, "persistent" | "none" | ""),
        "AlternativeNamesPolicy" | "Description" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: &str = "[Match]\nOriginalName=*\n\n[Link]\n\
        NamePolicy=keep kernel database onboard slot path\n\
        AlternativeNamesPolicy=database onboard slot path\nMACAddressPolicy=persistent\n";

    #[test]
    fn the_policy_of_names_counts_where_it_has_effect() {
        assert_eq!(setting(DEFAULT, false), None);
        let policy = "NamePolicy=keep kernel database onboard slot path";
        assert_eq!(setting(DEFAULT, true).as_deref(), Some(policy));
        assert_eq!(setting("[Link]\nNamePolicy = keep kernel\n", true), None);
        assert_eq!(setting("[Link]\nNamePolicy=\n", true), None);
    }

    #[test]
    fn all_other_settings_are_reasons() {
        for line in [
            "Name=mlx4_ib3",
            "Name = dmz0",
            "MTUBytes=2044",
            "MACAddress=02:00:00:00:00:01",
            "MACAddressPolicy=random",
            "Alias=x \\",
            "no setting",
        ] {
            let text = format!("# Name=a\n; Name=b\n[Match]\nDriver=a \\\n  b\n[Link]\n{line}\n");
            assert_eq!(setting(&text, false).as_deref(), Some(line), "{text}");
        }
        assert_eq!(
            setting("Name=a", false).as_deref(),
            Some("Name=a"),
            "no section"
        );
        let other = "[SR-IOV]\nVirtualFunction=0";
        assert_eq!(setting(other, false).as_deref(), Some("VirtualFunction=0"));
        assert_eq!(setting("", true), None);
    }
}
