// SPDX-License-Identifier: MIT OR Apache-2.0
//! The same arguments given to dracut's own code, where dracut is installed. Where we
//! differ on purpose, the difference is written down here.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test may panic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use kernel_cmdline::{Cmdline, HwAddr, Interface, Ip, Route, Source, parse};

/// dracut's shell libraries for networks, each version once: of this machine, and of the trees that `qemu/run`
/// made. Debian has the library in dracut-network, which tests/setup does not install.
fn net_libs() -> Vec<PathBuf> {
    let inside = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
    let cache = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/qemu/cache");
    let trees = inside(cache.into()).map(|kept| kept.path().join("tree"));
    let versions: BTreeMap<_, _> = std::iter::once(PathBuf::from("/"))
        .chain(trees)
        .flat_map(|root| inside(root.join("usr/lib/dracut/modules.d")))
        .map(|module| module.path().join("net-lib.sh"))
        .filter_map(|path| Some((fs::read(&path).ok()?, path)))
        .collect();
    versions.into_values().collect()
}

fn skipped(test: &str, inputs: usize, missing: &str) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("?");
    // In one piece: other threads print too.
    let line =
        format!("skipped: {name}: {test}: {missing} is not here; {inputs} inputs not compared\n");
    eprint!("{line}");
}

/// One of dracut's libraries, an input, and the variables that dracut's function sets.
type Answer<'a> = (PathBuf, &'a String, BTreeMap<String, String>);

/// Runs `function` of each of dracut's libraries on each input.
fn shell<'a>(function: &str, variables: &[&str], inputs: &'a [String]) -> Vec<Answer<'a>> {
    let answers = |library: PathBuf| {
        let answers = shell_of(&library, function, variables, inputs);
        let pairs = inputs.iter().zip(answers);
        pairs.map(move |(input, answer)| (library.clone(), input, answer))
    };
    net_libs().into_iter().flat_map(answers).collect()
}

fn shell_of(
    library: &Path,
    function: &str,
    variables: &[&str],
    inputs: &[String],
) -> Vec<BTreeMap<String, String>> {
    const SEPARATOR: char = '\u{1f}';
    let show: String = variables
        .iter()
        .map(|name| format!("printf '%s\\037' \"${name}\"\n"))
        .collect();
    let script = format!(
        "strglob() {{ case \"$1\" in $2) return 0;; esac; return 1; }}\n\
         str_starts() {{ [ \"${{1#\"$2\"}}\" != \"$1\" ]; }}\n\
         getarg() {{ return 1; }}\ngetargbool() {{ return 1; }}\nwarn() {{ :; }}\ninfo() {{ :; }}\n\
         die() {{ printf 'died\\037\\n'; exit 0; }}\n\
         . {library}\n\
         while IFS= read -r line; do\n(unset {names}\n\
         {function} \"$line\"\nprintf '%s\\037' \"$?\"\n{show}printf '\\n')\ndone\n",
        library = library.display(),
        names = variables.join(" "),
    );
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text: String = inputs.iter().map(|input| format!("{input}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<_> = text
        .lines()
        .map(|line| {
            let mut values = line.split(SEPARATOR);
            let status = (
                "status".to_string(),
                values.next().unwrap_or_default().to_string(),
            );
            let pairs = variables
                .iter()
                .zip(values)
                .map(|(name, value)| ((*name).to_string(), value.to_string()));
            std::iter::once(status).chain(pairs).collect()
        })
        .collect();
    assert_eq!(
        answers.len(),
        inputs.len(),
        "{function} of {} did not answer each input",
        library.display()
    );
    answers
}

/// Every combination of one word from each list.
fn product(lists: &[&[&str]]) -> Vec<String> {
    lists.iter().fold(vec![String::new()], |lines, list| {
        lines
            .iter()
            .flat_map(|line| list.iter().map(move |word| format!("{line}{word}")))
            .collect()
    })
}

fn ip_inputs() -> Vec<String> {
    let methods = ["dhcp", "on", "any", "dhcp6", "auto6", "either6"];
    let tails = [
        "",
        ":",
        ":9000",
        ":9000:",
        ":9000:52:54:00:12:34:56",
        ":9000:52-54-00-12-34-56",
        "::52:54:00:12:34:56",
        "::52-54-00-12-34-56",
    ];
    let names = [
        "",
        ":10.0.0.2",
        ":10.0.0.2:10.0.0.3",
        ":[2001:db8::2]",
        ":[2001:db8::2]:[2001:db8::3]",
    ];
    let interfaces = ["", "ib0", "ib0.8004", "52-54-00-12-34-56"];
    let mut inputs = product(&[&[
        "",
        "dhcp",
        "on",
        "any",
        "dhcp6",
        "auto6",
        "either6",
        "single-dhcp",
        "link6",
        "none",
    ]]);
    inputs.remove(0);
    inputs.extend(product(&[&interfaces, &[":"], &methods, &tails]));
    let full = ["none:", "off:", "dhcp:", "dhcp6:", "auto6:", "ibft:"]
        .map(|method| method.trim_end_matches(':'));
    for (own, gateways, masks) in [
        (
            ["10.0.0.5:", "10.0.0.5:10.0.0.9"],
            ["", "10.0.0.1"],
            ["24", "255.255.255.0"],
        ),
        (
            ["[2001:db8::5]:", "[2001:db8::5]:[2001:db8::9]"],
            ["", "[2001:db8::1]"],
            ["64", "128"],
        ),
    ] {
        for tails in [tails.as_slice(), names.as_slice()] {
            inputs.extend(product(&[
                &own,
                &[":"],
                &gateways,
                &[":"],
                &masks,
                &[":"],
                &["", "node5"],
                &[":"],
                &interfaces,
                &[":"],
                &full,
                tails,
            ]));
        }
    }
    inputs.extend(product(&[
        &[":::::ib0:", "::10.0.0.1::node5:ib0:"],
        &["dhcp", "auto6", "dhcp6"],
        &tails,
    ]));
    inputs
}

fn show<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// The same address, written in one way.
fn address(text: &str) -> String {
    text.parse::<IpAddr>()
        .map_or(text.to_string(), |address| address.to_string())
}

fn mac(text: &str) -> String {
    HwAddr::parse(text).map_or(text.to_string(), |address| address.to_string())
}

/// A netmask as the length of a prefix.
fn mask(text: &str) -> String {
    let ones = |mask: std::net::Ipv4Addr| mask.to_bits().leading_ones().to_string();
    text.parse().map_or(text.to_string(), ones)
}

#[test]
fn ip_means_the_same_to_dracut() {
    let inputs = ip_inputs();
    let variables = [
        "ip", "srv", "gw", "mask", "hostname", "dev", "autoconf", "macaddr", "mtu", "dns1", "dns2",
    ];
    let answers = shell("ip_to_var", &variables, &inputs);
    if answers.is_empty() {
        return skipped("ip=", inputs.len(), "dracut's net-lib.sh");
    }
    for (library, input, dracut) in &answers {
        let library = library.display();
        let ours = Ip::parse(input).unwrap_or_else(|problem| panic!("ip={input}: {problem}"));
        let methods: Vec<_> = ours.methods.iter().map(|method| method.as_str()).collect();
        let read = [
            show(ours.client.map(|client| client.address)),
            show(ours.peer.map(|peer| peer.address)),
            show(ours.gateway),
            show(ours.client.and_then(|client| client.prefix)),
            show(ours.hostname),
            match ours.interface {
                Some(Interface::Address(address)) => address.to_string(),
                name => show(name),
            },
            methods.join(","),
            show(ours.macaddr),
            show(ours.mtu),
            show(ours.dns1),
            show(ours.dns2),
        ];
        let theirs = [
            address(&dracut["ip"]),
            address(&dracut["srv"]),
            address(&dracut["gw"]),
            mask(&dracut["mask"]),
            dracut["hostname"].clone(),
            mac(&dracut["dev"]),
            dracut["autoconf"].clone(),
            mac(&dracut["macaddr"]),
            dracut["mtu"].clone(),
            address(&dracut["dns1"]),
            address(&dracut["dns2"]),
        ];
        assert_eq!(read, theirs, "ip={input}, {library}");
    }
    eprintln!(
        "ip=: {} answers to {} inputs are dracut's",
        answers.len(),
        inputs.len()
    );
}

/// Forms that dracut.cmdline(7) or other readers have and dracut's own reader takes for an
/// address: we read them as they are meant. Should dracut learn one, this test says so.
#[test]
fn what_dracut_itself_misreads_is_known() {
    let inputs = ["ib0:link6", "ib0:dhcp,dhcp6", "ib0:single-dhcp", "ib0:none"].map(str::to_string);
    let answers = shell("ip_to_var", &["ip", "dev"], &inputs);
    if answers.is_empty() {
        return skipped(
            "ip= that dracut misreads",
            inputs.len(),
            "dracut's net-lib.sh",
        );
    }
    for (library, input, dracut) in &answers {
        let library = library.display();
        assert_eq!(
            Ip::parse(input).unwrap().interface,
            Some(Interface::Name("ib0"))
        );
        assert_eq!(
            (dracut["ip"].as_str(), dracut["dev"].as_str()),
            ("ib0", ""),
            "{library} reads ip={input} now"
        );
    }
}

#[test]
fn routes_mean_the_same_to_dracut() {
    let mut inputs = product(&[
        &["10.1.0.0/16", "10.1.0.7", "10.1.0.0/255.255.0.0"],
        &[":10.0.0.254"],
        &["", ":ib0"],
    ]);
    inputs.extend(product(&[
        &["[2001:db8:3::/48]"],
        &[":[2001:db8::9]"],
        &["", ":ib0"],
    ]));
    inputs.extend(product(&[
        &["10.1.0.0/16", "[2001:db8:3::/48]"],
        &["::ib0"],
    ]));
    let answers = shell(
        "route_to_var",
        &["route_mask", "route_gw", "route_dev"],
        &inputs,
    );
    if answers.is_empty() {
        return skipped("rd.route=", inputs.len(), "dracut's net-lib.sh");
    }
    for (library, input, dracut) in &answers {
        let library = library.display();
        let ours = Route::parse(input).unwrap();
        let (network, prefix) = dracut["route_mask"]
            .split_once('/')
            .unwrap_or((&dracut["route_mask"], "32"));
        assert_eq!(dracut["status"], "0", "{input}, {library}");
        assert_eq!(
            [
                ours.network.to_string(),
                ours.prefix.to_string(),
                show(ours.gateway),
                show(ours.interface)
            ],
            [
                address(network),
                mask(prefix),
                address(&dracut["route_gw"]),
                dracut["route_dev"].clone()
            ],
            "rd.route={input}, {library}"
        );
    }
    eprintln!(
        "rd.route=: {} answers to {} inputs are dracut's",
        answers.len(),
        inputs.len()
    );
}

#[test]
fn ifname_means_the_same_to_dracut() {
    let twenty = "80:00:02:08:FE:80:00:00:00:00:00:00:b8:ce:f6:03:00:31:33:3e";
    let mut inputs = product(&[
        &["boot0:", "ib0:"],
        &["52:54:00:12:34:56", "52:54:00:AB:CD:EF", twenty],
    ]);
    let wrong = [
        "boot0:52:54:00:12:34",
        "boot0:52:54:00:12:34:56:78",
        "boot0",
    ];
    inputs.extend(wrong.map(str::to_string));
    let short = "boot0:00:02:c9:03:00:0a:1b:2c";
    inputs.push(short.to_owned());
    let answers = shell("parse_ifname_opts", &["ifname_if", "ifname_mac"], &inputs);
    if answers.is_empty() {
        return skipped("ifname=", inputs.len(), "dracut's net-lib.sh");
    }
    for (library, input, dracut) in &answers {
        let library = library.display();
        let line = format!("ifname={input}");
        let sources = [Source::new("line", line.as_bytes())];
        let arguments = parse(&sources);
        let ours = arguments
            .net
            .ifname
            .first()
            .map(|ifname| (ifname.value.name, ifname.value.address.to_string()));
        if **input == short {
            // ibboot understands a GUID here, and `ibboot plan` warns.
            assert_eq!(
                (ours.is_some(), dracut["status"].as_str()),
                (true, "died"),
                "{library}"
            );
        } else if wrong.contains(&input.as_str()) {
            assert_eq!(
                (ours, dracut["status"].as_str()),
                (None, "died"),
                "{line}, {library}"
            );
        } else {
            assert_eq!(
                ours,
                Some((dracut["ifname_if"].as_str(), dracut["ifname_mac"].clone())),
                "{line}, {library}"
            );
        }
    }
    eprintln!(
        "ifname=: {} answers to {} inputs are dracut's",
        answers.len(),
        inputs.len()
    );
}

/// dracut's `getarg` and `getargs`, which are one small program.
#[test]
fn tokens_are_the_same_to_dracut() {
    let lines = getarg_lines();
    let program = PathBuf::from("/usr/lib/dracut/dracut-util");
    if !program.exists() {
        return skipped("getarg", lines.len(), "dracut-util");
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("getarg");
    fs::create_dir_all(&folder).unwrap();
    for name in ["dracut-getarg", "dracut-getargs"] {
        let link = folder.join(name);
        fs::remove_file(&link).ok();
        symlink(&program, &link).unwrap();
    }
    let ask = |name: &str, line: &str, key: &str| {
        let output = Command::new(folder.join(name))
            .arg(key)
            .env("CMDLINE", line)
            .output()
            .unwrap();
        (output.status.code(), output.stdout)
    };
    let mut asked = 0;
    for line in &lines {
        let sources = [Source::new("line", line.as_bytes())];
        let cmdline = Cmdline::new(&sources);
        for key in ["a", "rd.b", "c"] {
            let last = cmdline.all(key).last();
            let (status, stdout) = ask("dracut-getarg", line, &format!("{key}="));
            assert_eq!(
                status,
                Some(i32::from(last.is_none())),
                "getarg {key}= in {line:?}"
            );
            let value = last.and_then(|token| token.value).unwrap_or_default();
            assert_eq!(
                stdout.trim_ascii_end(),
                value.trim_ascii_end(),
                "getarg {key}= in {line:?}"
            );

            // dracut prints the name of one that has no value.
            let all = cmdline
                .all(key)
                .map(|token| token.value.unwrap_or(token.key));
            let all: Vec<u8> = all
                .flat_map(|value| value.iter().chain(b"\n").copied())
                .collect();
            let (_, stdout) = ask("dracut-getargs", line, &format!("{key}="));
            assert_eq!(
                String::from_utf8(stdout),
                String::from_utf8(all),
                "getargs {key}= in {line:?}"
            );
            asked += 2;
        }
    }
    eprintln!(
        "getarg, getargs: {asked} answers in {} lines are dracut's",
        lines.len()
    );
}

fn getarg_lines() -> Vec<String> {
    // Quotes at every place of an argument, and what stands around it. A quote alone at
    // the end is left out: it makes some versions of dracut-util crash.
    let values = [
        "", "=", "=1", "=\"x y\"", "=\"x", "=x\"", "=x\" \"y", "==", "=x=y", "=\"\"", "=\"x\"y",
        "=x\"y\"",
    ];
    let mut lines = product(&[
        &["", " ", "c "],
        &["", "\""],
        &["a", "rd.b"],
        &values,
        &["", " c=3", "\" c=3", "  a=4 "],
    ]);
    lines.extend(
        [
            "a=1 a=2 a",
            "a a=",
            "=a=1 a",
            "a-b=1 a_b=2",
            "rd-b=1 rd_b=2 rd.b=3",
            "A=1",
            "a\t=1\tc",
        ]
        .map(str::to_string),
    );
    lines.retain(|line| !line.trim_end().ends_with(" \"") && line.trim() != "\"");
    lines
}
