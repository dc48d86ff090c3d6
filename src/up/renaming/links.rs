// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the settings of `.link` files (systemd.link(5)).

/// Settings that are shown: others may have secrets (WakeOnLanPassword=).
const SHOWN: [&str; 5] = [
    "Name",
    "NamePolicy",
    "MACAddressPolicy",
    "MACAddress",
    "MTUBytes",
];
/// Stands for any other setting; it is none that leaves an interface as it is.
const OTHER: &str = "another setting";

/// The first setting that may change an interface that matches, or [`OTHER`]. `has_policy`: NamePolicy=
/// has effect. A file with nothing but the result, below `[Link]`, has the same result.
pub(super) fn setting(text: &str, has_policy: bool) -> Option<String> {
    let mut section = "";
    let lines = text.lines().map(str::trim);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if line.starts_with('[') {
            section = line;
            continue;
        }
        match (section, line.split_once('=')) {
            // A continued line of a match matters no more than the match.
            ("[Match]", _) => {}
            ("[Link]", Some((key, value))) => {
                if !leaves(key.trim(), value.trim(), has_policy) {
                    let is_shown = SHOWN.contains(&key.trim());
                    return Some(if is_shown { line } else { OTHER }.to_owned());
                }
            }
            _ => return Some(OTHER.to_owned()),
        }
    }
    None
}

/// What decides in a file, whether NamePolicy= has effect or not.
pub(super) fn saved(text: &str) -> String {
    let with_policy = setting(text, true);
    let without = setting(text, false).filter(|setting| Some(setting) != with_policy.as_ref());
    let settings = [with_policy, without].into_iter().flatten();
    let lines = ["[Link]".to_owned()].into_iter().chain(settings);
    lines.map(|line| line + "\n").collect()
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
        for (line, expected) in [
            ("Name=mlx4_ib3", "Name=mlx4_ib3"),
            ("Name = dmz0", "Name = dmz0"),
            ("MTUBytes=2044", "MTUBytes=2044"),
            (
                "MACAddress=02:00:00:00:00:01",
                "MACAddress=02:00:00:00:00:01",
            ),
            ("MACAddressPolicy=random", "MACAddressPolicy=random"),
            ("WakeOnLanPassword=5E:C2:E7:00:11:22", OTHER),
            ("Alias=x \\", OTHER),
            ("no setting", OTHER),
        ] {
            let text = format!("# Name=a\n; Name=b\n[Match]\nDriver=a \\\n  b\n[Link]\n{line}\n");
            assert_eq!(setting(&text, false).as_deref(), Some(expected), "{text}");
        }
        for other in [
            "Name=a",
            "[SR-IOV]\nVirtualFunction=0",
            "[X]\nNamePolicy=keep",
        ] {
            assert_eq!(setting(other, false).as_deref(), Some(OTHER), "{other}");
        }
        assert_eq!(setting("", true), None);
    }

    #[test]
    fn only_what_decides_is_saved() {
        let text = format!("{DEFAULT}WakeOnLanPassword=5E:C2:E7:00:11:22\nMTUBytes=2044\n");
        let policy = "NamePolicy=keep kernel database onboard slot path";
        assert_eq!(saved(&text), format!("[Link]\n{policy}\n{OTHER}\n"));
        assert_eq!(saved(DEFAULT), format!("[Link]\n{policy}\n"));
        assert_eq!(saved("[Link]\nName=a\n"), "[Link]\nName=a\n");
        assert_eq!(saved("[Match]\nOriginalName=S3CR3T\n"), "[Link]\n");
    }

    proptest::proptest! {
        #[test]
        fn what_is_saved_decides_the_same(
            text in "((\\[(Link|Match|SR-IOV)\\]|#|Name(Policy)?|MACAddressPolicy|Alias|Description| )(=(none|keep|path)?)?\n){0,6}",
        ) {
            let saved = saved(&text);
            for has_policy in [false, true] {
                proptest::prop_assert_eq!(setting(&saved, has_policy), setting(&text, has_policy));
            }
        }
    }
}
