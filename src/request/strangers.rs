// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: words of the command line that are no argument of the table, and that look like a mistake in one.
//! Another program may read such a word: nothing is requested by it, and it is not invalid.

use kernel_cmdline::{
    Arguments, Interface, PARAMETERS, Selector, Source, Token, is_rdma_module, nearest,
    parameter_name,
};

/// One line for each such word of `sources`, which were parsed to `arguments`.
pub(super) fn strangers(sources: &[Source<'_>], arguments: &Arguments<'_>) -> Vec<String> {
    let of = |source| of_source(source, arguments);
    sources.iter().flat_map(of).collect()
}

fn of_source(source: &Source<'_>, arguments: &Arguments<'_>) -> Vec<String> {
    let is_invalid = |token: &Token<'_>| {
        let mut complaints = arguments.complaints.iter();
        complaints.any(|one| (one.source, one.column) == (token.source, token.column))
    };
    let tokens: Vec<Token<'_>> = source.tokens().collect();
    let mut lines = Vec::new();
    if let Some(mark) = tokens.iter().find(|token| token.raw.starts_with(b"#")) {
        lines.push(format!(
            "{}:{}: # begins no comment: every word of the file is an argument",
            mark.source, mark.column
        ));
    }
    for (at, token) in tokens.iter().enumerate() {
        if is_quoted(token) {
            lines.push(format!(
                "{}: a ' is part of the argument; leave it out or write a \"",
                token.text()
            ));
            continue;
        }
        if parameter_name(token.key).is_some() || is_invalid(token) {
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        if let Some(list) = before.filter(|before| is_list(before) && is_element(token)) {
            lines.push(format!(
                "{}: not an argument of ibboot; if it belongs to {}, write a comma in place of the space",
                token.text(),
                list.text()
            ));
        } else if let Some(name) = meant(token) {
            lines.push(format!(
                "{}: not an argument of ibboot; did you mean {name}?",
                token.text()
            ));
        }
    }
    lines
}

/// An argument of the table in single quotes, or its value.
fn is_quoted(token: &Token<'_>) -> bool {
    const QUOTE: &[u8] = b"'";
    let key = token.key.strip_prefix(QUOTE).unwrap_or(token.key);
    let value = token.value.unwrap_or_default();
    parameter_name(key).is_some() && (token.raw.starts_with(QUOTE) || value.starts_with(QUOTE))
}

/// An argument whose value may be a list.
fn is_list(token: &Token<'_>) -> bool {
    let name = parameter_name(token.key);
    let mut parameters = PARAMETERS.iter();
    parameters.any(|one| Some(one.name) == name && one.grammar.contains(','))
}

/// What lists have: a port, an interface, an address or a module.
fn is_element(token: &Token<'_>) -> bool {
    let text = std::str::from_utf8(token.raw).unwrap_or_default();
    match Selector::parse(text.strip_prefix('-').unwrap_or(text)) {
        Some(Selector::Name(name)) => {
            let is_numbered = name.ends_with(|end: char| end.is_ascii_digit());
            is_rdma_module(name) || (is_numbered && Interface::Name(name).is_infiniband())
        }
        Some(_) => true,
        None => false,
    }
}

/// The argument that was meant by one that is not in the table.
fn meant(token: &Token<'_>) -> Option<&'static str> {
    const OURS: &str = "rd.ib.";
    let key = std::str::from_utf8(token.key).ok()?;
    let names = || PARAMETERS.iter().map(|parameter| parameter.name);
    let ours = names().filter(|name| name.starts_with(OURS));
    names()
        .find(|name| name.eq_ignore_ascii_case(key))
        .or_else(|| nearest(key, ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_cmdline::parse;

    fn lines(text: &str) -> Vec<String> {
        let sources = [Source::new("/etc/cmdline.d/ib.conf", text.as_bytes())];
        strangers(&sources, &parse(&sources))
    }

    #[test]
    fn a_misspelt_name_is_explained() {
        for (written, name) in [
            ("rd.ibmode=connected", "rd.ib.mode"),
            ("rd_ib_mode=connected", "rd.ib.mode"),
            ("ib.require=all", "rd.ib.require"),
            ("IP=ib0:dhcp", "ip"),
        ] {
            let found = lines(&format!("quiet {written}")).join("\n");
            let end = format!("not an argument of ibboot; did you mean {name}?");
            assert!(found.ends_with(&end), "{written}: {found}");
        }
    }

    #[test]
    fn an_element_behind_a_space_is_explained() {
        for written in [
            "rd.ib.require=mlx5_0:1 mlx5_1:1",
            "rd.ib.require=all, -pci=0000:dc:00.0",
            "rd.ib.require=guid=0xb8599f0300fc1a2c guid=0xb8599f0300fc1a2d",
            "rd.driver.post=mlx5_ib ib_ipoib",
            "bond=bond0:ib0 ib1",
        ] {
            let found = lines(written).join("\n");
            assert!(found.contains("write a comma"), "{written}: {found}");
        }
    }

    #[test]
    fn single_quotes_are_explained() {
        for written in ["'ip=ib0:dhcp'", "rd.ib.require='mlx5_0'", "bootdev='ib0'"] {
            let found = lines(written).join("\n");
            assert!(found.contains("a ' is part"), "{written}: {found}");
        }
        assert_eq!(lines("x='y' ip=ib0:dhcp"), Vec::<String>::new());
    }

    #[test]
    fn a_comment_is_explained_once() {
        let line =
            "/etc/cmdline.d/ib.conf:1: # begins no comment: every word of the file is an argument";
        assert_eq!(lines("# rack 3\n# ip=ib0:dhcp\n"), [line]);
    }

    #[test]
    fn arguments_of_others_and_invalid_ones_are_no_mistakes() {
        let line = "BOOT_IMAGE=/vmlinuz ro quiet single 3 rd.md=0 rd.lvm=0 rd.live.ram=1 rd.luks=0 rd.nvmf.hostnqn=x \
            rd.driver.post=mlx5_ib quiet ip=ib0:dhcp ib1 rd.dm=0 rd.znet=qeth rd.shell rd.break inst.ks=http://a/b rd.ib.mod=x";
        assert_eq!(lines(line), Vec::<String>::new());
    }
}
