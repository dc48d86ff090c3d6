// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_constant_is_read_once_until_it_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::new(dir.path());
    let write = |text: &str| fs::write(dir.path().join("vendor"), text).unwrap();
    let read = || root.constant("/vendor").map_err(|e| e.raw_os_error());
    assert_eq!(read(), Err(Some(libc::ENOENT)));
    write("0x15b3\n");
    assert_eq!(read(), Err(Some(libc::ENOENT)));
    root.forget("/vendor");
    assert_eq!(read(), Ok("0x15b3".to_owned()));
    write("0x8086\n");
    assert_eq!(read(), Ok("0x15b3".to_owned()));
}

#[test]
fn a_recorded_file_is_a_string_of_its_bytes() {
    let all = Recorded::File((0..=255).collect());
    let json = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Recorded>(&json).unwrap(), all);
    let text = Recorded::File(b"4: ACTIVE\n".to_vec());
    assert_eq!(
        serde_json::to_string(&text).unwrap(),
        r#"{"File":"4: ACTIVE\n"}"#
    );
    let error = serde_json::from_str::<Recorded>(r#"{"File":"\u0100"}"#).unwrap_err();
    assert_eq!(error.to_string(), "not a byte");
}

use std::os::unix::fs::symlink;

#[test]
fn names_sort_by_number() {
    let mut names = vec!["mlx5_10", "mlx5_9", "mlx4_0", "ibp1s0"];
    names.sort_by_key(|n| natural(n));
    assert_eq!(names, ["ibp1s0", "mlx4_0", "mlx5_9", "mlx5_10"]);
}

#[test]
fn recorded_files_can_be_saved_and_read_again() {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    fs::create_dir_all(from.path().join("sys/class/net/eth0")).unwrap();
    fs::write(from.path().join("sys/class/net/eth0/mtu"), "1500\n").unwrap();
    std::os::unix::fs::symlink(
        "../../../devices/pci/0000:00:03.0",
        from.path().join("sys/class/net/eth0/device"),
    )
    .unwrap();
    let root = Root::recording(from.path());
    assert_eq!(root.list("/sys/class/net").unwrap(), ["eth0"]);
    assert_eq!(root.text("/sys/class/net/eth0/mtu").unwrap(), "1500");
    assert_eq!(
        root.link_name("/sys/class/net/eth0/device").unwrap(),
        "0000:00:03.0"
    );
    for (path, text) in [("etc/initrd-release", "x"), ("etc/shadow", "x")] {
        fs::create_dir_all(from.path().join("etc")).unwrap();
        fs::write(from.path().join(path), text).unwrap();
    }
    fs::create_dir_all(from.path().join("sys/module/ib_core")).unwrap();
    assert!(root.has_file("/etc/initrd-release") && !root.has_file("/etc/x"));
    assert!(root.exists("/sys/module/ib_core") && !root.exists("/sys/module/x"));
    assert_eq!(root.text("/etc/shadow").unwrap(), "x");
    root.save(to.path(), |path, bytes| {
        (path != "etc/shadow").then_some(bytes.into())
    })
    .unwrap();
    let again = Root::new(to.path());
    assert_eq!(again.text("/etc/initrd-release").unwrap(), "");
    assert!(again.exists("/sys/module/ib_core"));
    let unknown = again.text("/etc/shadow").unwrap_err();
    assert_eq!(unknown.raw_os_error(), Some(libc::EISDIR));
    assert_eq!(again.text("/sys/class/net/eth0/mtu").unwrap(), "1500");
    assert_eq!(
        again.link_name("/sys/class/net/eth0/device").unwrap(),
        "0000:00:03.0"
    );
}

#[test]
fn what_could_not_be_read_is_there_in_the_copy_and_in_its_copy() {
    let from = tempfile::tempdir().unwrap();
    let path = "/sys/bus/pci/devices/0000:01:00.0/modalias";
    // A directory cannot be read as a file.
    fs::create_dir_all(from.path().join(place(path))).unwrap();
    fs::write(from.path().join("sys/file"), "").unwrap();
    let machine = Root::recording(from.path());
    let errno = |error: io::Error| error.raw_os_error();
    assert_eq!(machine.read(path).map_err(errno), Err(Some(libc::EISDIR)));
    let below_a_file = machine.is_there("/sys/file/x").map_err(errno);
    assert_eq!(below_a_file, Err(Some(libc::ENOTDIR)));
    let copies = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut root = machine;
    for copy in &copies {
        root.save(copy.path(), |_, bytes| Some(bytes.into()))
            .unwrap();
        root = Root::recording(copy.path());
        for lost in [path, "/sys/file/x"] {
            assert!(
                root.is_there(lost).unwrap() && root.has_file(lost),
                "{lost}"
            );
        }
        assert!(
            !root
                .is_there("/sys/bus/pci/devices/0000:01:00.0/x")
                .unwrap()
        );
    }
}

#[test]
fn a_link_on_a_recorded_path_has_a_target_in_the_copy() {
    let from = tempfile::tempdir().unwrap();
    let to = tempfile::tempdir().unwrap();
    let device = from.path().join("sys/devices/0000:81:00.0");
    fs::create_dir_all(&device).unwrap();
    symlink("../../bus/pci/drivers/mlx5_core", device.join("driver")).unwrap();
    let class = from.path().join("sys/class/infiniband/mlx5_0");
    fs::create_dir_all(&class).unwrap();
    symlink("../../../devices/0000:81:00.0", class.join("device")).unwrap();
    let root = Root::recording(from.path());
    let base = "/sys/class/infiniband/mlx5_0/device";
    for root in [&root, &{
        root.link_name(base).unwrap();
        root.link_name(&format!("{base}/driver")).unwrap();
        root.save(to.path(), |_, bytes| Some(bytes.into())).unwrap();
        Root::new(to.path())
    }] {
        assert_eq!(root.link_name(base).unwrap(), "0000:81:00.0");
        assert_eq!(
            root.link_name(&format!("{base}/driver")).unwrap(),
            "mlx5_core"
        );
    }
}

/// A reader that returns one part per read, with an interruption between the parts.
struct Records {
    parts: Vec<&'static str>,
    interrupted: bool,
}

impl Read for Records {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        match self.parts.pop() {
            Some(part) => part.as_bytes().read(buffer),
            None => Ok(0),
        }
    }
}

#[test]
fn a_short_read_or_a_signal_is_not_the_end() {
    let records = Records {
        parts: vec!["third\n", "second\n", "first\n"],
        interrupted: false,
    };
    assert_eq!(to_the_end(records).unwrap(), b"first\nsecond\nthird\n");
    let (reader, mut writer) = io::pipe().unwrap();
    let written = std::thread::spawn(move || {
        for _ in 0..100 {
            writer.write_all(&[b'x'; 3968]).unwrap();
        }
    });
    assert_eq!(to_the_end(reader).unwrap().len(), 396_800);
    written.join().unwrap();
}

#[test]
fn a_read_for_the_end_is_left_out_only_where_the_end_is_known() {
    let read = |size, parts: &[&'static str]| {
        let mut records = Records {
            parts: parts.iter().rev().copied().collect(),
            interrupted: false,
        };
        let bytes = content(&mut records, size).unwrap();
        (String::from_utf8(bytes).unwrap(), records.parts.len())
    };
    // An attribute, and a file of known size: nothing is read after the first part.
    assert_eq!(read(None, &["Infini", "Band\n"]), ("Infini".to_owned(), 1));
    assert_eq!(
        read(Some(6), &["Infini", "Band\n"]),
        ("Infini".to_owned(), 1)
    );
    // A file of procfs, one that has grown, and one that has shrunk.
    for size in [0, 4, 4096] {
        let found = read(Some(size), &["Infini", "Band\n"]);
        assert_eq!(found, ("InfiniBand\n".to_owned(), 0), "{size}");
    }
    assert_eq!(read(Some(0), &[]), (String::new(), 0));
    for length in [PAGE - 1, PAGE, PAGE + 1, 100_000] {
        let bytes = vec![0xff; length];
        for size in [None, Some(length as u64), Some(0)] {
            assert_eq!(content(bytes.as_slice(), size).unwrap(), bytes, "{length}");
        }
    }
    let large = || io::repeat(b'x').take(FILE_MAX + 1);
    for size in [None, Some(FILE_MAX + 1), Some(0)] {
        let error = content(large(), size).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
    assert!(content(large().take(FILE_MAX), None).is_ok());
}

#[test]
fn an_attribute_of_the_kernel_is_read_as_a_whole() {
    let root = Root::new("/");
    let uevents = "/sys/kernel/uevent_seqnum";
    assert!(root.text(uevents).unwrap().parse::<u64>().is_ok());
    // A binary attribute.
    if let Ok(notes) = fs::read("/sys/kernel/notes") {
        assert_eq!(root.read("/sys/kernel/notes").unwrap(), notes);
    }
    let errno = |path: &str| root.read(path).unwrap_err().raw_os_error();
    assert_eq!(errno("/sys/kernel"), Some(libc::EISDIR));
    assert_eq!(errno("/sys/nothing"), Some(libc::ENOENT));
    assert_eq!(errno("/proc/nothing"), Some(libc::ENOENT));
}

#[test]
fn a_word_is_searched_once_and_nothing_else_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("vpd");
    let root = Root::recording(dir.path());
    let has = |limit| root.has_word("/vpd", "SW_MNG", limit).map_err(|e| e.kind());
    assert_eq!(has(64), Err(io::ErrorKind::NotFound));
    fs::write(&file, b"SN\x0842\xff SW_MNG").unwrap();
    assert_eq!(has(64), Ok(true));
    fs::write(&file, "other").unwrap();
    assert_eq!(has(64), Ok(true), "read once");
    let copy = dir.path().join("copy");
    root.save(&copy, |_, bytes| Some(bytes.into())).unwrap();
    assert_eq!(fs::read(copy.join("vpd")).unwrap(), b"SW_MNG");
    root.forget_words("/vpd");
    assert_eq!(has(64), Ok(false));
    fs::write(&file, "12345 SW_MNG").unwrap();
    let root = Root::new(dir.path());
    let has = |limit| root.has_word("/vpd", "SW_MNG", limit).unwrap();
    assert!(!has(8), "beyond the limit");
    assert!(has(64) && root.has_word("/vpd", "12345", 64).unwrap());
    let root = Root::new(dir.path().join("copy"));
    fs::remove_file(copy.join("vpd")).unwrap();
    fs::create_dir(copy.join("vpd")).unwrap();
    let found = root
        .has_word("/vpd", "SW_MNG", 8)
        .map_err(|e| e.raw_os_error());
    assert_eq!(found, Err(Some(libc::EISDIR)));
}

#[test]
fn a_large_or_special_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let root = Root::new(dir.path());
    fs::File::create(path("full"))
        .unwrap()
        .set_len(FILE_MAX)
        .unwrap();
    assert_eq!(root.read("/full").unwrap().len() as u64, FILE_MAX);
    fs::File::create(path("large"))
        .unwrap()
        .set_len(FILE_MAX + 1)
        .unwrap();
    nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    symlink("/dev/zero", path("zero")).unwrap();
    fs::create_dir(path("dir")).unwrap();
    for (name, why) in [
        ("/large", "file too large"),
        ("/fifo", "not a regular file"),
        ("/zero", "not a regular file"),
        ("/dir", "Is a directory"),
    ] {
        let error = root.read(name).unwrap_err();
        assert_eq!(crate::error::errno_text(&error), why, "{name}");
    }
}

#[test]
fn a_missing_file_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let error = Root::new(dir.path()).text("/sys/nothing").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
}
