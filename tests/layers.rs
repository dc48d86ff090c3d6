// SPDX-License-Identifier: MIT OR Apache-2.0
//! The house rules that no lint knows: no room of `src` imports a room above it, a file that says PURE
//! is pure, ARCHITECTURE.md names the files with `unsafe`, and every public function, type and trait
//! has a docstring (`missing_docs` would demand one for each field too).

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from top to bottom; rooms in one row do not import each other.
const FLOORS: &[&[&str]] = &[
    &["main"],
    &["survey"],
    &["up", "keep"],
    &["status"],
    &["check", "turn"],
    &["ask"],
    &["changes", "generator", "handover", "preflight", "suggest"],
    &["plan", "verify"],
    &["facts", "request"],
    &["loader"],
    &["wish"],
    &["decoding"],
    &["dhcp"],
    &["rdma"],
    &["system"],
    &["inet", "hardware", "redact", "cli"],
    &["error"],
];

fn floor(room: &str) -> usize {
    let found = FLOORS.iter().position(|floor| floor.contains(&room));
    found.unwrap_or_else(|| panic!("the room {room} has no floor: add it to FLOORS"))
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The text without its unit tests, which are its last item. A line `mod tests;` names another file.
fn without_tests(text: &str) -> &str {
    let mut at = 0;
    for item in text.split_inclusive("#[cfg(test)]\n") {
        at += item.len();
        let next = text.get(at..).unwrap().lines().next().unwrap_or_default();
        let is_module = next.starts_with("mod ") || next.contains(" mod ");
        if is_module && next.ends_with('{') {
            return text.get(..at).unwrap();
        }
    }
    text
}

/// The text without comments and unit tests.
fn code(text: &str) -> String {
    let lines = without_tests(text).lines();
    let lines = lines.map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The rooms that the text names behind `crate::` or `ibboot::`, without comments and tests.
fn imports(text: &str) -> BTreeSet<String> {
    let code = code(text);
    let mut rooms = BTreeSet::new();
    for path in code
        .split("crate::")
        .skip(1)
        .chain(code.split("use ibboot::").skip(1))
    {
        let name = |text: &str| -> String {
            let is_word = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
            text.trim_start().chars().take_while(is_word).collect()
        };
        match path.strip_prefix('{') {
            // The first name of each branch of the group.
            Some(group) => {
                let group = group.split(';').next().unwrap();
                let mut depth = 0;
                for (at, c) in format!(",{group}").char_indices() {
                    depth += i32::from(c == '{') - i32::from(c == '}');
                    if c == ',' && depth == 0 {
                        rooms.insert(name(group.get(at..).unwrap()));
                    }
                }
            }
            None => {
                rooms.insert(name(path));
            }
        }
    }
    // A constant of lib.rs counts as the lowest room.
    rooms.retain(|room| room.chars().any(char::is_lowercase));
    rooms
}

#[test]
fn no_room_looks_up() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut arrows = 0;
    let mut upward = Vec::new();
    for file in &files {
        let inside = file.strip_prefix(&src).unwrap();
        let room = inside
            .components()
            .next()
            .unwrap()
            .as_os_str()
            .to_str()
            .unwrap();
        let room = room.trim_end_matches(".rs");
        if room == "lib" || file.ends_with("tests.rs") {
            continue;
        }
        for other in imports(&fs::read_to_string(file).unwrap()) {
            arrows += usize::from(other != room);
            if other != room && floor(&other) <= floor(room) {
                upward.push(format!("{}: {room} imports {other}", inside.display()));
            }
        }
    }
    assert!(
        arrows > 100,
        "only {arrows} imports found: the reader of `use` lines is broken"
    );
    assert_eq!(upward, Vec::<String>::new());
}

/// What a file that begins with PURE, or that is below `verify/`, has of files and clocks.
fn effects(name: &Path, text: &str) -> Vec<&'static str> {
    let mut lines = text.lines();
    let says_so = lines
        .nth(1)
        .is_some_and(|line| line.starts_with("//! PURE"));
    let is_pure = says_so || name.starts_with("verify");
    // `&RootWish` is no `&Root`.
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let code = code(text);
    let has = |effect: &str| {
        let found = code.split(effect).skip(1);
        let mut ends = found.map(|behind| !behind.starts_with(is_word));
        ends.any(|is_end| is_end)
    };
    let all = [
        "system::root",
        "&Root",
        "Instant::now",
        "SystemTime::now",
        "boottime_ns",
        "std::fs",
        "std::env",
        "std::process",
        "system::net::Net",
        "OpenOptions",
        "File::open",
    ];
    all.into_iter()
        .filter(|effect| is_pure && has(effect))
        .collect()
}

#[test]
fn an_effect_is_found_in_code_only() {
    let text = "// SPDX\n//! PURE: one.\nuse std::fs;\n/// Instant::now\nfn two(root: &Root) {}\n\
        #[cfg(test)]\nmod tests {\n    use crate::system::root::Root;\n}\n";
    let (pure, wish) = (Path::new("plan/one.rs"), text.replace("&Root", "&RootWish"));
    assert_eq!(effects(pure, text), ["&Root", "std::fs"]);
    assert_eq!(effects(pure, &wish), ["std::fs"]);
    let unmarked = text.replace("PURE", "Pure");
    assert_eq!(effects(pure, &unmarked), [""; 0]);
    let verify = Path::new("verify/one.rs");
    assert_eq!(effects(verify, &unmarked), ["&Root", "std::fs"]);
}

#[test]
fn a_file_that_says_pure_is_pure() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let found = files.iter().flat_map(|file| {
        let name = file.strip_prefix(&src).unwrap();
        let found = effects(name, &fs::read_to_string(file).unwrap()).into_iter();
        found.map(move |effect| format!("{}: {effect}", name.display()))
    });
    assert_eq!(found.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn the_table_of_the_architecture_has_the_order_of_the_floors() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(home.join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| row.split(" | ").next().unwrap());
    let names = cells.flat_map(|cell| cell.split("`, `"));
    let rooms = names.map(|name| name.trim_end_matches(['`', '/']).trim_end_matches(".rs"));
    let all = FLOORS.concat();
    let table: Vec<&str> = rooms.filter(|room| all.contains(room)).collect();
    assert_eq!(table.len(), all.len() - 1, "all but cli: {table:?}");
    assert!(table.is_sorted_by_key(|room| floor(room)), "{table:?}");
}

/// The paths between backticks; `a/{b,c}.rs` stands for two.
fn paths(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let files = quoted.filter(|path| path.ends_with(".rs"));
    let every = files.flat_map(|path| match path.split_once('{') {
        None => vec![path.to_owned()],
        Some((before, rest)) => {
            let (names, after) = rest.split_once('}').unwrap();
            let names = names.split(',');
            names.map(|name| format!("{before}{name}{after}")).collect()
        }
    });
    every.collect()
}

#[test]
fn the_files_with_unsafe_are_those_of_the_architecture() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(home.join("ARCHITECTURE.md")).unwrap();
    let (_, rule) = page.split_once("* `unsafe` is allowed in ").unwrap();
    let (named, _) = rule.split_once(" only,").unwrap();
    let src = home.join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files.retain(|file| {
        let code = code(&fs::read_to_string(file).unwrap());
        code.replace("deny(unsafe_code)", "")
            .contains("unsafe_code")
    });
    let found = files.iter().map(|file| file.strip_prefix(&src).unwrap());
    let found: BTreeSet<String> = found.map(|file| file.display().to_string()).collect();
    assert_eq!(found, paths(named));
}

/// The public items of the text, and the methods of its traits, that have no docstring.
fn undocumented(text: &str) -> Vec<String> {
    let lines: Vec<&str> = without_tests(text).lines().collect();
    let ends_item = |line: &&&str| line.is_empty() || line.ends_with(['}', ';', '{']);
    let mut missing = Vec::new();
    let mut is_in_trait = false;
    for (at, line) in lines.iter().enumerate() {
        let public = line.trim_start().strip_prefix("pub ");
        let method = line.strip_prefix("    ").filter(|_| is_in_trait);
        let words = public.or(method).unwrap_or_default().split(' ');
        let mut words = words.skip_while(|word| matches!(*word, "const" | "async" | "unsafe"));
        let item = words.next().unwrap_or_default();
        let needs_one = matches!(item, "fn" | "struct" | "enum" | "union" | "trait" | "type");
        let above = lines.iter().take(at).rev();
        // `#[$meta]`: the macro's caller writes the docstring.
        let is_doc = |line: &&str| {
            ["/// ", "$(#[$"]
                .iter()
                .any(|doc| line.trim_start().starts_with(doc))
        };
        let mut above = above.take_while(|line| !ends_item(line));
        if needs_one && !above.any(is_doc) {
            missing.push(line.trim().to_owned());
        }
        is_in_trait = (is_in_trait || line.starts_with("pub trait ")) && !line.starts_with('}');
    }
    missing
}

#[test]
fn an_item_without_a_docstring_is_found() {
    let text = "/// One.\n#[derive(Debug)]\npub struct One {\n    pub field: u8,\n}\n\n#[inline]\n\
        pub const fn two() {}\n\n/// Three.\npub trait Three {\n    type Four;\n    /// Five.\n    \
        fn five(&self);\n    async fn six(&self);\n}\n\nimpl One {\n    pub fn seven() {}\n    \
        fn eight() {}\n}\n#[cfg(test)]\nmod tests {\n    pub fn nine() {}\n}\n";
    let expected = [
        "pub const fn two() {}",
        "type Four;",
        "async fn six(&self);",
        "pub fn seven() {}",
    ];
    assert_eq!(undocumented(text), expected);
}

#[test]
fn only_unit_tests_are_left_out() {
    let text = "use crate::one;\n\n#[cfg(test)]\nmod tests;\n\nuse crate::two;\n#[cfg(test)]\nuse crate::three;\n\
        #[cfg(test)]\npub(super) mod tests {\n    use crate::four;\n}\n";
    let expected = ["one", "two", "three"].map(str::to_owned);
    assert_eq!(imports(text), BTreeSet::from(expected));
}

#[test]
fn public_items_are_documented() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&home.join("src"), &mut files);
    sources(&home.join("kernel-cmdline/src"), &mut files);
    let mut missing = Vec::new();
    for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap();
        let mut found = undocumented(&text);
        if !text.contains("\n//! ") {
            found.push("the file".to_owned());
        }
        let name = file.strip_prefix(home).unwrap().display();
        missing.extend(found.iter().map(|item| format!("{name}: {item}")));
    }
    assert_eq!(missing, Vec::<String>::new());
}
