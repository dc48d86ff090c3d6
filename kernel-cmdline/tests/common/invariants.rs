// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every command line whatever its bytes are. The property tests and the
//! fuzz target check the same.

use kernel_cmdline::{Arguments, COMPLAINTS, Ip, Route, Selector, Source, Spanned, parse};

const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

/// Panics with what was violated.
pub fn check(sources: &[Source<'_>]) {
    for source in sources {
        check_tokens(source);
    }
    let arguments = parse(sources);
    assert_eq!(arguments, parse(sources), "the same input, another answer");
    check_complaints(sources, &arguments);
    check_places(sources, &arguments);
    check_round_trips(&arguments);
}

/// Tokens lie in order, cover everything but white space, and are found at their column.
fn check_tokens(source: &Source<'_>) {
    let mut end = 0;
    for token in source.tokens() {
        assert_eq!(token.source, source.name);
        assert!(
            !token.raw.is_empty() && token.column > end,
            "token before the last one's end"
        );
        let start = token.column - 1;
        assert!(
            source.bytes[end..start].iter().all(|&byte| is_space(byte)),
            "bytes lost before {start}"
        );
        end = start + token.raw.len();
        assert_eq!(
            &source.bytes[start..end],
            token.raw,
            "not found at its column"
        );
        let quotes = token.raw.iter().filter(|&&byte| byte == b'"').count();
        assert_eq!(token.unclosed_quote, quotes % 2 == 1);
        assert!(
            !token.key.contains(&b' ') || quotes > 0,
            "a space outside of quotes"
        );
        let text = token.text().to_string();
        assert!(
            !text.chars().any(char::is_control),
            "control characters displayed"
        );
        let parts = token.key.len() + token.value.map_or(0, |value| value.len() + 1);
        assert!(
            parts <= token.raw.len() && parts + 4 >= token.raw.len(),
            "more taken off than quotes"
        );
    }
    assert!(
        source.bytes[end..].iter().all(|&byte| is_space(byte)),
        "bytes lost at the end"
    );
}

fn check_complaints(sources: &[Source<'_>], arguments: &Arguments<'_>) {
    assert!(arguments.complaints_lost == 0 || arguments.complaints.len() == COMPLAINTS);
    for complaint in &arguments.complaints {
        let line = complaint.to_string();
        assert!(
            !line.chars().any(char::is_control),
            "not one line: {line:?}"
        );
        assert!(line.len() < 3000, "too long: {line}");
        found(
            sources,
            complaint.source,
            complaint.column,
            complaint.argument,
        );
    }
}

fn found(sources: &[Source<'_>], name: &str, column: usize, raw: &[u8]) {
    let at =
        |source: &Source<'_>| source.bytes.get(column - 1..column - 1 + raw.len()) == Some(raw);
    assert!(
        sources
            .iter()
            .any(|source| source.name == name && at(source)),
        "not found at {name}:{column}"
    );
}

fn spans<'s, 'a: 's, T: 's>(
    sources: &[Source<'_>],
    list: impl IntoIterator<Item = &'s Spanned<'a, T>>,
) {
    for spanned in list {
        found(sources, spanned.source, spanned.column, spanned.raw);
    }
}

/// Every value says truly where it was written.
fn check_places(sources: &[Source<'_>], arguments: &Arguments<'_>) {
    let Arguments {
        drivers,
        net,
        root,
        ib,
        ..
    } = arguments;
    for list in [&drivers.pre, &drivers.post, &drivers.blacklist] {
        spans(sources, list);
    }
    spans(sources, &net.ip);
    spans(sources, &net.ifname);
    spans(sources, &net.bonds);
    spans(sources, &net.nameservers);
    spans(sources, &net.routes);
    spans(sources, &net.bootdev);
    spans(sources, &net.bootif);
    spans(sources, &net.dhcp.client_ids);
    spans(sources, &arguments.pkeys);
    spans(sources, &root.root);
    spans(sources, &root.nfsroot);
    spans(sources, &root.netroot);
    spans(sources, &root.iscsi_transport);
    spans(sources, &root.no_nvmf);
    spans(sources, &root.nvmf_discover);
    spans(sources, &ib.modes);
    spans(sources, &ib.client_ids);
    spans(sources, &ib.mtus);
    spans(sources, &ib.links);
    spans(sources, &ib.roce);
    spans(sources, &ib.port_types);
    spans(sources, &ib.rates);
    spans(sources, &ib.probes);
    spans(sources, &ib.require);
    spans(sources, &arguments.requested_by());
    spans(sources, &arguments.waits_for_network());
}

/// What was understood is understood the same when it is written again.
fn check_round_trips(arguments: &Arguments<'_>) {
    for ip in &arguments.net.ip {
        let text = ip.value.to_string();
        let again = Ip::parse(&text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
        assert_eq!(
            Ip {
                is_cluster: ip.value.is_cluster,
                ..again
            },
            ip.value,
            "{text}"
        );
    }
    for route in &arguments.net.routes {
        let text = route.value.to_string();
        assert_eq!(Route::parse(&text), Ok(route.value), "{text}");
    }
    for rate in &arguments.ib.rates {
        if let Some(selector) = rate.value.selector {
            let text = selector.to_string();
            assert_eq!(
                Selector::parse(&text).map(|again| again.to_string()),
                Some(text)
            );
        }
    }
}
