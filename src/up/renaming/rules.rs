// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what udev rules assign to an interface that ibboot also relies on: its name, MTU and IPoIB
//! mode (udev(7); src/udev/udev-rules.c of systemd, parse_line).

/// The name that net_setup_link chose by the `.link` files.
const OF_LINKS: [&str; 2] = ["$env{ID_NET_NAME}", "%E{ID_NET_NAME}"];

/// One key of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Pair<'a> {
    key: &'a str,
    /// In braces behind the key; empty if there is none.
    attribute: &'a str,
    operator: &'a str,
    /// Without quotes; escapes are kept.
    value: &'a str,
    /// The whole pair.
    text: &'a str,
}

/// A rule without any of these words assigns nothing of this, and need not be understood.
const WORDS: [&str; 3] = ["NAME", "ATTR{mtu}", "ATTR{mode}"];

/// The first assignment of one of these to an interface, without the other keys of its rule, which may
/// have secrets (RUN, PROGRAM). Of a rule that cannot be parsed a line with the word. A file with
/// nothing but the result has the same result.
pub(super) fn setting(text: &str) -> Option<String> {
    lines(text).find_map(|line| {
        let word = WORDS.iter().find(|word| line.contains(**word))?;
        let Some(pairs) = pairs(&line) else {
            return Some(format!("{word} in a rule that cannot be parsed"));
        };
        let is_elsewhere = pairs.iter().any(Pair::is_of_another_subsystem);
        let mut settings = pairs.iter().filter(|pair| pair.may_set());
        let setting = settings.next().filter(|_| !is_elsewhere)?;
        Some(setting.text.to_owned())
    })
}

/// The rules, continued lines joined.
fn lines(text: &str) -> impl Iterator<Item = String> {
    let mut lines = text
        .lines()
        .map(str::trim_start)
        .filter(|line| !line.starts_with('#'));
    std::iter::from_fn(move || {
        let mut whole = lines.next()?.to_owned();
        while whole.ends_with('\\') {
            whole.pop();
            whole.push_str(lines.next().unwrap_or_default());
        }
        Some(whole)
    })
}

/// None if the line is no rule.
fn pairs(line: &str) -> Option<Vec<Pair<'_>>> {
    let mut pairs = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
        if rest.is_empty() {
            return Some(pairs);
        }
        let (pair, tail) = pair(rest)?;
        pairs.push(pair);
        rest = tail;
    }
}

fn pair(text: &str) -> Option<(Pair<'_>, &str)> {
    let is_end = |c: char| c.is_ascii_whitespace() || "={+-!:".contains(c);
    let (key, mut rest) = text.split_at_checked(text.find(is_end)?)?;
    let mut attribute = "";
    if let Some(inside) = rest.strip_prefix('{') {
        (attribute, rest) = inside.split_once('}')?;
    }
    rest = rest.trim_start();
    let length = if rest.starts_with('=') && !rest.starts_with("==") {
        1
    } else {
        2
    };
    let (operator, rest) = rest.split_at_checked(length)?;
    if !["==", "!=", "+=", "-=", ":=", "="].contains(&operator) {
        return None;
    }
    let (prefix, rest) = rest.trim_start().split_once('"')?;
    // In e"..." a backslash escapes any character, otherwise only a quote.
    let escapes_all = match prefix {
        "" | "i" => false,
        "e" | "ei" | "ie" => true,
        _ => return None,
    };
    let mut is_escaped = false;
    let end = rest.find(|c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !(escapes_all && is_escaped);
        is_end
    })?;
    let (value, tail) = rest.split_at_checked(end)?;
    let tail = tail.strip_prefix('"')?;
    let pair = Pair {
        key,
        attribute,
        operator,
        value,
        text: text.strip_suffix(tail)?,
    };
    Some((pair, tail))
}

impl Pair<'_> {
    /// Whether the pair may give an interface a name, an MTU or a mode of its own.
    fn may_set(&self) -> bool {
        if matches!(self.operator, "==" | "!=") {
            return false;
        }
        match (self.key, self.attribute) {
            // No interface has a name with a slash: a device file of an old rule.
            ("NAME", _) => {
                let start = self.value.split(['$', '%']).next().unwrap_or_default();
                !OF_LINKS.contains(&self.value) && !start.contains('/')
            }
            ("ENV", "ID_NET_NAME") => true,
            ("ATTR", "mtu" | "mode") => true,
            _ => false,
        }
    }

    /// Whether the pair keeps its rule from all interfaces.
    fn is_of_another_subsystem(&self) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|');
        self.key == "SUBSYSTEM"
            && self.operator == "=="
            && !self.value.is_empty()
            && self.value.chars().all(is_plain)
            && self.value.split('|').all(|name| name != "net")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH_NAME: &str = "NAME in a rule that cannot be parsed";

    #[test]
    fn a_rule_that_names_or_sets_an_interface_is_found() {
        for (rule, expected) in [
            (
                r#"ACTION=="add", SUBSYSTEM=="net", ATTR{type}=="32", ATTR{address}=="?*00:02:c9:03:00:31:78:f2", NAME="mlx4_ib3""#,
                r#"NAME="mlx4_ib3""#,
            ),
            (r#"SUBSYSTEM=="net" NAME:="ib%n""#, r#"NAME:="ib%n""#),
            (r#"SUBSYSTEM=="n?t", NAME = "a""#, r#"NAME = "a""#),
            (r#"SUBSYSTEM=="block|net", NAME="a""#, r#"NAME="a""#),
            (r#"SUBSYSTEM!="block", NAME="a""#, r#"NAME="a""#),
            (
                r#"PROGRAM="/sbin/biosdevname -i %k", NAME="%c", OPTIONS+="string_escape=replace""#,
                r#"NAME="%c""#,
            ),
            (
                r#"PROGRAM="echo \"a b\"", NAME="$result""#,
                r#"NAME="$result""#,
            ),
            (
                r#"KERNEL=="ib*",NAME="$env{ID_NET_NAME_SLOT}""#,
                r#"NAME="$env{ID_NET_NAME_SLOT}""#,
            ),
            (
                r#"KERNEL=="ib*", NAME="$attr{device/name}""#,
                r#"NAME="$attr{device/name}""#,
            ),
            (
                r#"KERNEL=="ib*", ENV{ID_NET_NAME}="a", RUN+="b""#,
                r#"ENV{ID_NET_NAME}="a""#,
            ),
            (r#"KERNEL=="ib*", NAME=e"\x61""#, r#"NAME=e"\x61""#),
            (r#"RUN+="a\\", KERNEL==", NAME="a""#, r#"NAME="a""#),
            (r#"RUN+=e"a\\", NAME="a""#, r#"NAME="a""#),
            (r#"KERNEL=="ib*", NAME="""#, r#"NAME="""#),
            (
                r#"ACTION=="add", SUBSYSTEM=="net", KERNEL=="ib*", ATTR{mtu}="2044""#,
                r#"ATTR{mtu}="2044""#,
            ),
            (
                r#"KERNEL=="ib*", ATTR{mode} = "connected""#,
                r#"ATTR{mode} = "connected""#,
            ),
        ] {
            let found = setting(&format!("# NAME=\n\n{rule}\n"));
            assert_eq!(found.as_deref(), Some(expected), "{rule}");
            assert_eq!(setting(expected).as_deref(), Some(expected));
        }
        assert_eq!(
            setting("SUBSYSTEM==\"net\", \\\n# a comment between the lines\n  NAME=\"a\"\n")
                .as_deref(),
            Some("NAME=\"a\"")
        );
    }

    #[test]
    fn a_rule_that_sets_nothing_of_this_is_no_reason() {
        for rule in [
            r#"NAME=="", ENV{ID_NET_NAME}!="", NAME="$env{ID_NET_NAME}""#,
            r#"#SUBSYSTEM=="net", NAME="a""#,
            r#"SUBSYSTEM=="block|infiniband_mad", NAME="a""#,
            r#"KERNEL=="device-mapper", NAME="mapper/control""#,
            r#"KERNEL=="umad*", NAME="infiniband/%k""#,
            r#"SUBSYSTEM=="net", ATTR{mtu}=="2044", ATTR{power/control}="auto", ATTRS{mode}=="datagram", RUN+="b""#,
            r#"SUBSYSTEM=="block", ATTR{mode}="a""#,
            r#"ENV{ID_NET_NAME_MAC}="a", ENV{DM_NAME}="b", SYMLINK+="$env{DM_NAME}""#,
            r#"PROGRAM="/bin/sh -c 'NAME=a; echo $NAME'", RESULT=="a", RUN+="b""#,
            "",
        ] {
            assert_eq!(setting(rule), None, "{rule}");
        }
    }

    #[test]
    fn a_rule_that_cannot_be_parsed_is_a_reason() {
        for rule in [
            "NAME",
            "NAME=a",
            r#"NAME="a"#,
            r#"NAME~"a""#,
            r#"ENV{ID_NET_NAME="a""#,
            r#"KERNEL=="ib0", NAME="a\""#,
            "é{NAME",
            WITH_NAME,
        ] {
            assert_eq!(setting(rule).as_deref(), Some(WITH_NAME), "{rule}");
        }
        let of_mtu = "ATTR{mtu} in a rule that cannot be parsed";
        for rule in [r#"RUN+="a, ATTR{mtu}="2044""#, of_mtu] {
            assert_eq!(setting(rule).as_deref(), Some(of_mtu), "{rule}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_setting_has_itself_as_setting(
            text in "((NAME|ATTR\\{mtu\\}|ENV\\{ID_NET_NAME\\}|RUN|SUBSYSTEM)[+:=!]?=?e?\"?[a-z\\\\# ]{0,3}\"?[,\n ]?){0,5}",
        ) {
            let found = setting(&text);
            let again = found.as_deref().and_then(setting);
            proptest::prop_assert_eq!(again, found);
        }
    }
}
