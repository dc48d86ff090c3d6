// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments without their secrets. An argument can contain a password, a CHAP secret or a token,
//! and logs, reports and bug reports show arguments.
//!
//! In case of doubt a text is hidden: of an argument that ibboot does not read only the name is
//! shown, and of a network address nothing before the last `@` that may end a user.

use core::fmt;
use core::net::IpAddr;
use core::str;

use crate::cluster::is_of_cluster;
use crate::complain::escape;
use crate::parse::{FETCHED, parameter_name};
use crate::token::{equals, is_space};

/// The replacement of a hidden text.
pub const HIDDEN: &str = "****";

const HIDDEN_BYTES: &[u8] = HIDDEN.as_bytes();

/// A text in pieces; some are [`HIDDEN`], some empty.
pub type Pieces<'a, const N: usize> = [&'a [u8]; N];

/// An argument without its secrets, displayed on one line like [`crate::Escaped`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a>(
    /// The whole argument as written.
    pub &'a [u8],
);

impl<'a> Shown<'a> {
    /// The shown bytes. Parsed again, they are the same argument with another secret.
    pub fn pieces(self) -> Pieces<'a, 9> {
        let Parts {
            front,
            value,
            end,
            has_swallowed,
        } = parts(self.0);
        let is_open = has_open_quote(self.0);
        let quote = |is_one: bool| -> &[u8] { if is_one { b"\"" } else { b"" } };
        if matches!(kind(front), Kind::Unread) && key(front).contains(&b'"') {
            // The rest of a quoted value behind a forgotten quote.
            let all = quote(is_open);
            return [HIDDEN_BYTES, all, b"", b"", b"", b"", b"", b"", b""];
        }
        // A name never has these characters: they belong to a value in the place of a name.
        let [a, b, c, d] = place(front);
        let [e, f, g, h] = match kind(front) {
            _ if value.is_empty() => NOTHING,
            Kind::Plain if has_swallowed && !may_have_spaces(front, value) => first_word(value),
            Kind::Plain => whole(value),
            _ if has_swallowed => ALL_HIDDEN,
            Kind::Place => place(value),
            Kind::Discovery => discovery(value),
            Kind::Setting if value.starts_with(b"iface.") => whole(value),
            Kind::Setting | Kind::Unread => ALL_HIDDEN,
        };
        let shown = [a, b, c, d, e, f, g, h, end];
        if shown.iter().filter(|piece| has_open_quote(piece)).count() % 2 == usize::from(is_open) {
            return shown;
        }
        // Hiding one quote would change which text the other quotes enclose.
        let name = front.strip_prefix(b"\"").unwrap_or(front);
        let name = name.strip_suffix(b"\"").unwrap_or(name);
        let [a, b, c, d] = place(name);
        let quote = quote(has_open_quote(name) != is_open);
        [a, b, c, d, quote, HIDDEN_BYTES, b"", b"", b""]
    }
}

impl Shown<'_> {
    /// Whether this part of the argument is shown.
    pub(crate) fn has(self, part: &str) -> bool {
        let part = part.as_bytes();
        let has = |piece: &&[u8]| piece.windows(part.len()).any(|shown| shown == part);
        part.is_empty() || self.pieces().iter().any(has)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, &self.pieces())
    }
}

const NOTHING: Pieces<'_, 4> = [b""; 4];
const ALL_HIDDEN: Pieces<'_, 4> = [HIDDEN_BYTES, b"", b"", b""];

const fn whole(text: &[u8]) -> Pieces<'_, 4> {
    [text, b"", b"", b""]
}

fn has_open_quote(text: &[u8]) -> bool {
    text.iter().filter(|&&byte| byte == b'"').count() % 2 == 1
}

/// An argument and its quotes.
struct Parts<'a> {
    /// The argument up to the `=` and the quote behind it; the whole argument if it has no value.
    front: &'a [u8],
    value: &'a [u8],
    /// The closing quote.
    end: &'a [u8],
    /// The argument has white space: if a quote is missing before it, the text behind the white space
    /// is another argument, whether or not a later quote ends this one.
    has_swallowed: bool,
}

fn parts(raw: &[u8]) -> Parts<'_> {
    let space = raw.iter().position(|&byte| is_space(byte));
    let quote = usize::from(raw.starts_with(b"\""));
    let body = raw.get(quote..).unwrap_or_default();
    let equals = equals(body).map(|at| at.saturating_add(quote));
    let in_name = space.filter(|&space| equals.is_none_or(|equals| space < equals));
    let after = |at: usize| at.saturating_add(1);
    let behind = match (in_name, equals) {
        (Some(space), _) => after(space),
        (None, Some(equals)) if raw.get(after(equals)) == Some(&b'"') => after(after(equals)),
        (None, Some(equals)) => after(equals),
        (None, None) => raw.len(),
    };
    let (front, rest) = raw.split_at_checked(behind).unwrap_or((raw, b""));
    let (value, end) = match rest.strip_suffix(b"\"") {
        Some(value) => (value, b"\"".as_slice()),
        None => (rest, b"".as_slice()),
    };
    Parts {
        front,
        value,
        end,
        has_swallowed: space.is_some(),
    }
}

/// The name in the front of an argument.
fn key(front: &[u8]) -> &[u8] {
    let inner = front.strip_prefix(b"\"");
    let inner = inner.map(|inner| inner.strip_suffix(b"\"").unwrap_or(inner));
    let mut parts = inner.unwrap_or(front).split(|&byte| byte == b'=');
    parts.next().unwrap_or_default()
}

/// Whether a value of several words is the vendor class alone, and no other argument.
fn may_have_spaces(front: &[u8], value: &[u8]) -> bool {
    let is_of_another = |byte: &u8| matches!(byte, b'=' | b'"');
    key(front) == b"rd.net.dhcp.vendor-class" && !value.iter().any(is_of_another)
}

/// The kind of an argument's value.
enum Kind {
    /// A value that ibboot reads and that cannot contain a secret.
    Plain,
    /// A network address.
    Place,
    /// `rd.nvmf.discover=`.
    Discovery,
    /// `rd.iscsi.param=`: `node.session.auth.password=` is an example.
    Setting,
    /// An unknown value.
    Unread,
}

fn kind(front: &[u8]) -> Kind {
    match key(front) {
        b"root" | b"netroot" | b"nfsroot" => Kind::Place,
        b"rd.nvmf.discover" => Kind::Discovery,
        b"rd.iscsi.param" => Kind::Setting,
        // modprobe(8), the kernel, udev or dracut, and ibboot, read these arguments.
        b"modprobe.blacklist"
        | b"module_blacklist"
        | b"net.ifnames"
        | b"rd.hostonly"
        | b"rd.shell"
        | b"rd.emergency" => Kind::Plain,
        key if FETCHED.contains(&key) => Kind::Place,
        key if parameter_name(key).is_some() || is_of_cluster(key) => Kind::Plain,
        _ => Kind::Unread,
    }
}

fn first_word(value: &[u8]) -> Pieces<'_, 4> {
    let end = value.iter().position(|&byte| is_space(byte));
    let (word, _) = value
        .split_at_checked(end.map_or(value.len(), |end| end.saturating_add(1)))
        .unwrap_or((value, b""));
    [word, HIDDEN_BYTES, b"", b""]
}

/// `TRANSPORT,ADDRESS,HOST-ADDRESS,SERVICE`; a field behind these may be a key (DHHC-1:...), and so may
/// a SERVICE that is not a number.
fn discovery(value: &[u8]) -> Pieces<'_, 4> {
    let mut fields = value.split(|&byte| byte == b',');
    let service = fields.nth(3).unwrap_or_default();
    let known = if service.iter().all(u8::is_ascii_digit) {
        3
    } else {
        2
    };
    let commas = value.iter().enumerate().filter(|(_, byte)| **byte == b',');
    let end = commas.map(|(at, _)| at.saturating_add(1)).nth(known);
    match end.and_then(|end| value.split_at_checked(end)) {
        Some((fields, [_, ..])) => [fields, HIDDEN_BYTES, b"", b""],
        _ => whole(value),
    }
}

/// A network address, as in `root=` and in a DHCP server's root path, without the user and
/// password of `iscsi:USER:PASSWORD@SERVER...` or `http://USER:PASSWORD@SERVER/...`, and without
/// the query or fragment of a URL (behind `?` or `#`). NFS has neither, and a local file has
/// neither.
pub fn place(text: &[u8]) -> Pieces<'_, 4> {
    let is_url = |rest: &[u8]| rest.starts_with(b"//");
    let is_file = text.starts_with(b"/") && !is_url(text);
    let nfs = text
        .strip_prefix(b"nfs:")
        .or_else(|| text.strip_prefix(b"nfs4:"));
    if is_file || nfs.is_some_and(|rest| !is_url(rest)) {
        return whole(text);
    }
    let begin = user_begins(text);
    let at = match text.starts_with(b"iscsi:") {
        true => {
            let target = text.get(begin..).unwrap_or_default();
            user_ends(target).map(|at| at.saturating_add(begin))
        }
        false => last_at(text),
    };
    let (before, user, rest) = match at {
        Some(at) => {
            let (before, rest) = text.split_at_checked(at).unwrap_or((b"", b""));
            let scheme = before.get(..begin).unwrap_or_default();
            let user = before.get(scheme.len()..).unwrap_or_default();
            // dracut takes what is behind the first @ for the server.
            let is_split = text.starts_with(b"iscsi:") && user.contains(&b'@');
            let shown = if is_split {
                TWICE
            } else {
                hidden(!user.is_empty())
            };
            (scheme, shown, rest)
        }
        None => (b"".as_slice(), b"".as_slice(), text),
    };
    let query = rest.iter().position(|byte| matches!(byte, b'?' | b'#'));
    match query.and_then(|at| rest.split_at_checked(at.saturating_add(1))) {
        Some((rest, query)) => [before, user, rest, hidden(!query.is_empty())],
        None => [before, user, rest, b""],
    }
}

/// A hidden user and a hidden rest of the password.
const TWICE: &[u8] = b"****@****";

fn last_at(text: &[u8]) -> Option<usize> {
    text.iter().rposition(|&byte| byte == b'@')
}

/// Where the user of an iSCSI target ends: at the last `@`. The name of the target may have an `@` too: if it
/// follows an address and the beginning of such a name, the user ends before the address, or there is none.
fn user_ends(target: &[u8]) -> Option<usize> {
    let colons = target.iter().enumerate().rev();
    let mut colons = colons.filter(|(_, byte)| **byte == b':');
    let fourth = colons.nth(3).map(|(at, _)| at);
    let before = fourth.and_then(|end| target.get(..end));
    let of_name = last_at(target)?;
    let is_of_name = |begin: usize| target.get(begin..of_name).is_some_and(is_target);
    let is_end = |at: &usize| *at == of_name || is_of_name(at.saturating_add(1));
    before
        .and_then(last_at)
        .filter(is_end)
        .or_else(|| (!is_of_name(0)).then_some(of_name))
}

/// Whether the text is `ADDRESS:...:iqn.NAME`: no user is in front of the address.
fn is_target(text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else {
        return false;
    };
    let bracketed = text
        .strip_prefix('[')
        .and_then(|text| text.split_once("]:"));
    let Some((address, rest)) = bracketed.or_else(|| text.split_once(':')) else {
        return false;
    };
    let is_name = |kind: &&str| rest.contains(*kind);
    address.parse::<IpAddr>().is_ok() && [":iqn.", ":eui.", ":naa."].iter().any(is_name)
}

/// Length of the prefix in front of a user: `iscsi:`, `http://`, `live:http://`.
fn user_begins(text: &[u8]) -> usize {
    let mut begin = scheme(text);
    if matches!(text.get(..begin), Some(b"live:" | b"livenet:")) {
        begin = begin.saturating_add(scheme(text.get(begin..).unwrap_or_default()));
    }
    let rest = text.get(begin..).unwrap_or_default();
    begin.saturating_add(if rest.starts_with(b"//") { 2 } else { 0 })
}

/// Length of `SCHEME:` (RFC 3986 3.1); 0 if there is none.
fn scheme(text: &[u8]) -> usize {
    let is_of_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    match text.iter().position(|byte| !is_of_scheme(byte)) {
        Some(end) if text.get(end) == Some(&b':') => end.saturating_add(1),
        _ => 0,
    }
}

fn hidden(is_it: bool) -> &'static [u8] {
    if is_it { HIDDEN_BYTES } else { b"" }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::string::{String, ToString};
    use std::vec::Vec;

    use super::*;
    use crate::{PARAMETERS, Source};
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> String {
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[test]
    fn a_place_is_shown_without_its_user_and_its_query() {
        for (text, expected) in [
            (
                "iscsi:user:SECRET@10.0.0.2::::iqn.a:b",
                "iscsi:****@10.0.0.2::::iqn.a:b",
            ),
            // Colons are missing, or belong to a password.
            (
                "iscsi:user:S@C:RET@10.0.0.2:::iqn.a",
                "iscsi:****@****@10.0.0.2:::iqn.a",
            ),
            (
                "iscsi:user:SEC@RET:in:SEC@RET@10.0.0.2:3260:iqn.a:b",
                "iscsi:****@****@10.0.0.2:3260:iqn.a:b",
            ),
            ("iscsi://user:SECRET@10.0.0.2", "iscsi://****@10.0.0.2"),
            ("iscsi://user:SECRET@", "iscsi://****@"),
            (
                "iscsi:u:SECRET:in:SECRET@10.0.0.2:::iser::1:iqn.a",
                "iscsi:****@10.0.0.2:::iser::1:iqn.a",
            ),
            ("iscsi:@10.0.0.2::::iqn.a:b", "iscsi:@10.0.0.2::::iqn.a:b"),
            ("iscsi:10.0.0.2::::iqn.a:b", "iscsi:10.0.0.2::::iqn.a:b"),
            // A password with an @.
            (
                "iscsi:u:SEC@RET@10.0.0.2::::iqn.a",
                "iscsi:****@****@10.0.0.2::::iqn.a",
            ),
            // The name of a target with an @.
            (
                "iscsi:u:SECRET@10.0.0.2::::iqn.a:b@c",
                "iscsi:****@10.0.0.2::::iqn.a:b@c",
            ),
            (
                "iscsi:@10.0.0.2::::iqn.a:b@c",
                "iscsi:@10.0.0.2::::iqn.a:b@c",
            ),
            ("iscsi:10.0.0.2::::iqn.a:b@c", "iscsi:10.0.0.2::::iqn.a:b@c"),
            (
                "iscsi:[fd00::2]:6:3260:::iqn.a@b@c",
                "iscsi:[fd00::2]:6:3260:::iqn.a@b@c",
            ),
            ("iscsi:iqn.a:SECRET@10.0.0.2", "iscsi:****@10.0.0.2"),
            (
                "iscsi:10.0.0.9:SECRET@10.0.0.2:::iqn.a",
                "iscsi:****@10.0.0.2:::iqn.a",
            ),
            ("http://u:SEC/R?E#T@10.0.0.2/x", "http://****@10.0.0.2/x"),
            ("http://u:SECRET@10.0.0.2:80/x", "http://****@10.0.0.2:80/x"),
            (
                "live:https://SECRET@[fd00::2]/x?token=SECRET",
                "live:https://****@[fd00::2]/x?****",
            ),
            ("https://10.0.0.2/x#SECRET", "https://10.0.0.2/x#****"),
            ("https://10.0.0.2/x?", "https://10.0.0.2/x?"),
            (
                "cifs://u:SECRET@10.0.0.2/share",
                "cifs://****@10.0.0.2/share",
            ),
            ("//u:SECRET@10.0.0.2/share", "//****@10.0.0.2/share"),
            ("u:SECRET@http://10.0.0.2/", "u:****@http://10.0.0.2/"),
            ("SECRET@10.0.0.2", "****@10.0.0.2"),
            ("iscis:u:SECRET@10.0.0.2", "iscis:****@10.0.0.2"),
            (
                "nfs:10.0.0.2:/exports/@home?",
                "nfs:10.0.0.2:/exports/@home?",
            ),
            (
                "nfs4:10.0.0.2:/:rdma,port=20049",
                "nfs4:10.0.0.2:/:rdma,port=20049",
            ),
            ("nfs://u:SECRET@10.0.0.2/x", "nfs://****@10.0.0.2/x"),
            (
                "/dev/disk/by-path/ip-10.0.0.2-iscsi-a@b",
                "/dev/disk/by-path/ip-10.0.0.2-iscsi-a@b",
            ),
            ("10.0.0.2:/srv/root", "10.0.0.2:/srv/root"),
            ("UUID=6f0a-11", "UUID=6f0a-11"),
            ("dhcp", "dhcp"),
            ("", ""),
        ] {
            assert_eq!(read(&place(text.as_bytes())), expected, "{text}");
        }
    }

    #[test]
    fn an_argument_is_shown_without_its_secrets() {
        for (raw, expected) in [
            ("netroot=iscsi:u:SECRET@h::::t", "netroot=iscsi:****@h::::t"),
            ("\"root=live:http://u:SECRET@h/ x\"", "\"root=****\""),
            (
                "root=\"live:http://h/?t=SECRET\"",
                "root=\"live:http://h/?****\"",
            ),
            ("inst.ks=https://SECRET@h/ks", "inst.ks=https://****@h/ks"),
            (
                "rd.iscsi.param=node.session.auth.password=SECRET",
                "rd.iscsi.param=****",
            ),
            (
                "rd.iscsi.param=iface.transport_name=iser",
                "rd.iscsi.param=iface.transport_name=iser",
            ),
            ("rd.iscsi.password=SECRET", "rd.iscsi.password=****"),
            (
                "rd.nvmf.discover=rdma,10.0.0.2,,4420",
                "rd.nvmf.discover=rdma,10.0.0.2,,4420",
            ),
            (
                "rd.nvmf.discover=tcp,10.0.0.2,,4420,DHHC-1:00:SECRET:",
                "rd.nvmf.discover=tcp,10.0.0.2,,4420,****",
            ),
            (
                "rd.nvmf.discover=rdma,10.0.0.2,4420,DHHC-1:00:SECRET:",
                "rd.nvmf.discover=rdma,10.0.0.2,4420,****",
            ),
            (
                "rd.nvmf.discover=rdma,10.0.0.2,4420,SECRET,SECRET",
                "rd.nvmf.discover=rdma,10.0.0.2,4420,****",
            ),
            (
                "rd.nvmf.discover=rdma,10.0.0.2,,",
                "rd.nvmf.discover=rdma,10.0.0.2,,",
            ),
            ("rd.ib.token=SECRET", "rd.ib.token=****"),
            ("rd.ib.token=\"SECRET SECRET\"", "rd.ib.token=\"****\""),
            ("rd.ib.iscsi:u:SECRET@h", "rd.ib.iscsi:****@h"),
            ("rd.ib.iscsi:u:SECRET@h=1", "rd.ib.iscsi:****@h=****"),
            ("rd.ib.mode=connected", "rd.ib.mode=connected"),
            (
                "ip=10.0.0.5::10.0.0.1:24::ib0:none",
                "ip=10.0.0.5::10.0.0.1:24::ib0:none",
            ),
            ("netmask=255.255.255.0", "netmask=255.255.255.0"),
            ("bootif=20-00", "bootif=20-00"),
            ("quiet", "quiet"),
            ("rd.ib.token=", "rd.ib.token="),
            // An open quote that includes the text behind it.
            (
                "rd.ib.mode=\"connected rd.iscsi.password=SECRET",
                "rd.ib.mode=\"connected ****",
            ),
            ("rd.ib.mode=\"connected", "rd.ib.mode=\"connected"),
            ("root=\"live:http://u:SEC RET@h", "root=\"****"),
            ("other=\"SECRET rd.ib.mode=connected", "other=\"****"),
            ("words\" rd.iscsi.password=SECRET", "****\""),
            ("words\" SECRET", "****\""),
            ("SECRET\"", "****\""),
            ("SECRET\"x\"=1", "****"),
            ("\"quiet\"", "\"quiet\""),
            // A later quote closes a forgotten one.
            (
                "rd.ib.timeout=\"60 rd.iscsi.password=SECRET dyndbg=\"file",
                "rd.ib.timeout=****",
            ),
            (
                "ip=ib0:dhcp\" netroot=iscsi:u:SECRET@h dyndbg=\"file",
                "ip=****",
            ),
            (
                "rd.ib.timeout=\"60 rd.iscsi.password=\"SECRET",
                "rd.ib.timeout=****",
            ),
            ("rd.ib.timeout=\"60 SECRET\"", "rd.ib.timeout=\"60 ****\""),
            (
                "rd.net.dhcp.vendor-class=\"a class\"",
                "rd.net.dhcp.vendor-class=\"a class\"",
            ),
            (
                "rd.net.dhcp.vendor-class=\"a rd.iscsi.password=SECRET\"",
                "rd.net.dhcp.vendor-class=\"a ****\"",
            ),
        ] {
            assert_eq!(read(&Shown(raw.as_bytes()).pieces()), expected, "{raw}");
            assert_eq!(Shown(raw.as_bytes()).to_string(), expected, "{raw}");
        }
    }

    /// A new argument must state here whether its value may be shown.
    #[test]
    fn the_values_that_are_not_shown_whole_are_known() {
        let secret = b"a,b,c,d,u:p@h?q";
        let is_hidden = |name: &&str| {
            let raw = [name.as_bytes(), b"=", secret].concat();
            read(&Shown(&raw).pieces()).contains(HIDDEN)
        };
        let names = PARAMETERS.iter().map(|parameter| parameter.name);
        let hidden: Vec<&str> = names.filter(is_hidden).collect();
        assert_eq!(
            hidden,
            [
                "root",
                "netroot",
                "nfsroot",
                "rd.iscsi.param",
                "rd.nvmf.discover"
            ]
        );
    }

    /// Texts of the characters of these arguments.
    const TEXT: &str =
        "[a-c:@/?#,=\" .\\[\\]]{0,12}|nfs:[a@:/?]{0,6}|live:http://[a:@/?#]{0,8}|\\PC{0,12}";

    proptest! {
        #[test]
        fn what_is_shown_of_a_place_stays_the_same(text in TEXT) {
            let shown = read(&place(text.as_bytes()));
            prop_assert_eq!(read(&place(shown.as_bytes())), shown);
        }

        #[test]
        fn no_secret_before_an_at_sign_is_shown(before in "[a-z:/?#@\"]{0,6}", host in "[a-z:/.]{0,8}") {
            let is_nfs = |text: &str| text.starts_with("nfs") || text.starts_with('/');
            prop_assume!(!is_nfs(&before));
            let text = std::format!("iscsi:u:{before}SECRET@{host}");
            prop_assert!(!read(&place(text.as_bytes())).contains("SECRET"), "{}", text);
            let text = std::format!("{before}SECRET@{host}");
            let shown = read(&place(text.as_bytes()));
            // A word before a colon may be the protocol; SECRET is behind every colon here.
            prop_assert!(!shown.contains("SECRET"), "{} as {}", text, shown);
        }

        /// A quote too many or one forgotten.
        #[test]
        fn a_single_quote_in_any_place_shows_no_secret(at in 0_usize..80, shift in 0_usize..4) {
            let line = "rd.ib=1 ip=ib0:dhcp rd.iscsi.password=SECRET rd.ib.timeout=60 netroot=iscsi:u:SECRET@h::::t \
                        rd.ib.mode=connected rd.ib.token=\"SECRET SECRET\" dyndbg=\"file x +p\" rd.ib.x=SECRET";
            let mut line = String::from(line);
            let start = (at * 4 + shift) % line.len();
            line.insert(start, '"');
            for token in Source::new("", line.as_bytes()).tokens() {
                let shown = token.text().to_string();
                prop_assert!(!shown.contains("SECRET"), "{}: {}", line, shown);
            }
        }

        #[test]
        fn what_is_shown_is_read_as_one_argument_of_the_same_name(raw in TEXT, name in "root|rd\\.ib\\.mode|rd\\.ib\\.x|quiet") {
            let line = std::format!("{name}={raw}");
            let source = Source::new("", line.as_bytes());
            let Some(token) = source.tokens().next() else { return Ok(()); };
            let shown = token.text().pieces().concat();
            let again = Source::new("", &shown);
            let tokens: Vec<_> = again.tokens().collect();
            prop_assert_eq!(tokens.len(), 1, "{:?}", String::from_utf8_lossy(&shown));
            prop_assert_eq!(tokens[0].key, token.key);
            prop_assert_eq!(tokens[0].unclosed_quote, token.unclosed_quote);
            prop_assert_eq!(tokens[0].text().pieces().concat(), shown);
        }
    }
}
