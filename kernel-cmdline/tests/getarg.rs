// SPDX-License-Identifier: MIT OR Apache-2.0
//! What dracut's `getarg`, `getargs` and `getargbool` answer, case by case.
//! tests/dracut.rs asks dracut itself where it is installed.

use kernel_cmdline::{Cmdline, Source};

/// `getargs` of `key` in `line`: `None` for an argument without a value. The last one is `getarg`.
fn check(line: &str, key: &str, expected: &[Option<&str>]) {
    let sources = [Source::new("line", line.as_bytes())];
    let cmdline = Cmdline::new(&sources);
    let all: Vec<_> = cmdline
        .all(key)
        .map(|token| token.value.map(String::from_utf8_lossy))
        .collect();
    let all: Vec<_> = all.iter().map(Option::as_deref).collect();
    assert_eq!(all, expected, "{key} in {line:?}");
}

#[test]
fn names_are_exact() {
    let line = "key1=0 key2=val key2=val2 key3=\" val  3 \" key-4=5 KEY1=9 key";
    check(line, "key1", &[Some("0")]);
    check(line, "key2", &[Some("val"), Some("val2")]);
    check(line, "key3", &[Some(" val  3 ")]);
    check(line, "key-4", &[Some("5")]);
    check(line, "key_4", &[]);
    check(line, "KEY1", &[Some("9")]);
    check(line, "key", &[None]);
    check(line, "ke", &[]);
    check(line, "", &[]);
}

#[test]
fn a_value_may_be_missing_or_empty() {
    check("a", "a", &[None]);
    check("a=", "a", &[Some("")]);
    check("a a=1 a", "a", &[None, Some("1"), None]);
    check("a=\"\"", "a", &[Some("")]);
    check("a==", "a", &[Some("=")]);
    check("a=b=c", "a", &[Some("b=c")]);
    check("=a", "=a", &[None]);
    check("=a=b", "=a", &[Some("b")]);
}

#[test]
fn quotes_join_and_are_taken_off_at_the_ends() {
    check("a=\"x y\" b", "a", &[Some("x y")]);
    check("\"a=x y\" b", "a", &[Some("x y")]);
    check("\"a\" b", "a", &[None]);
    check("\"a b\" c", "a b", &[None]);
    // Only where they enclose the value.
    check("a=x\" \"y b", "a", &[Some("x\" \"y")]);
    check("a=x\"y\" b", "a", &[Some("x\"y\"")]);
    check("a=\"x\"y b", "a", &[Some("x\"y")]);
    // A name is not freed of quotes inside of it.
    check("a\"b\"=1", "a\"b\"", &[Some("1")]);
    // Nothing escapes a quote, and ' is no quote.
    check("a=\"x\\\" y\" z", "a", &[Some("x\\")]);
    check("a='x y'", "a", &[Some("'x")]);
}

#[test]
fn a_quote_may_stay_open() {
    check("a=\"x y b=1", "a", &[Some("x y b=1")]);
    check("a=\"x y b=1", "b", &[]);
    check("\"a=x y b=1", "a", &[Some("x y b=1")]);
    check("a=x\" y b=1", "a", &[Some("x\" y b=1")]);
    check("a=\"", "a", &[Some("")]);
    check("a=\" ", "a", &[Some(" ")]);
    check("\"", "", &[None]);
    check("a \"", "", &[None]);
    check("\"\"", "", &[None]);
}

#[test]
fn any_white_space_separates() {
    check(
        "\t a=1\n\na=2\x0ba=3\x0ca=4\ra=5 \n",
        "a",
        &[Some("1"), Some("2"), Some("3"), Some("4"), Some("5")],
    );
    check("", "a", &[]);
    check(" \n", "a", &[]);
    // A no-break space does not, in any encoding.
    check("a=1\u{a0}a=2", "a", &[Some("1\u{a0}a=2")]);
}

#[test]
fn booleans() {
    for (line, expected) in [
        ("b=0", Some(false)),
        ("b=no", Some(false)),
        ("b=off", Some(false)),
        ("b=1", Some(true)),
        ("b=yes", Some(true)),
        ("b=on", Some(true)),
        ("b=No", Some(true)),
        ("b=false", Some(true)),
        ("b=00", Some(true)),
        ("b=", Some(true)),
        ("b", Some(true)),
        ("b=1 b=0", Some(false)),
        ("b=0 b", Some(true)),
        ("", None),
        ("bb=0 a=b", None),
    ] {
        let sources = [Source::new("line", line.as_bytes())];
        let last = Cmdline::new(&sources).all("b").last();
        assert_eq!(last.map(|token| token.is_true()), expected, "{line:?}");
    }
}
