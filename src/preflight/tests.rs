// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images that are whole, that lack something, and that are damaged.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::cpio::tests::{DIRECTORY, FILE, SYMLINK, archive};
use super::*;

const LINE: &str = "ip=ib0:dhcp rd.driver.post=hfi1";
const MODULES: &str = "usr/lib/modules/6.1.0-50-amd64";
const DEP: &[u8] = b"kernel/drivers/infiniband/ulp/ipoib/ib_ipoib.ko: kernel/drivers/infiniband/core/ib_core.ko\n\
    kernel/drivers/infiniband/core/ib_core.ko:\n\
    kernel/drivers/infiniband/hw/hfi1/hfi1.ko.xz: kernel/drivers/infiniband/core/ib_core.ko kernel/drivers/i2c/i2c-algo-bit.ko\n";
const HFI1: &[u8] =
    b"\x7fELF\0license=GPL\0firmware=hfi1_sbus.fw\0firmware=hfi1_pcie.fw\0alias=x\0";

const UNITS: &str = "usr/lib/systemd/system";
const GENERATOR: &str = "usr/lib/systemd/system-generators/ibboot-generator";

/// The paths of the hooks, scripts, units and drop-ins that module-setup.sh installs.
fn installed(has_systemd: bool) -> Vec<String> {
    const UNIT: &str = "$systemdsystemunitdir/";
    let text = include_str!("../../dracut-module/50ibboot/module-setup.sh").replace("\\\n", " ");
    let (mut function, mut is_other) = (String::new(), false);
    // The first part of install_hooks is for a dracut before 060.
    let mut is_later = false;
    let mut units = Vec::new();
    let mut paths = Vec::new();
    for line in text.lines() {
        let name = |word: &&str| {
            word.trim_matches('"')
                .strip_prefix("$moddir/")
                .map(str::to_owned)
        };
        let is_installed = match function.as_str() {
            "install()" => !is_other,
            "install_hooks()" => has_systemd && is_later,
            _ => false,
        };
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [name, "{"] => (function, is_later) = (name.to_owned(), false),
            ["return"] => is_later = true,
            ["if", "dracut_module_included", "dracut-systemd;", "then"] => is_other = !has_systemd,
            ["else"] => is_other = has_systemd,
            ["fi"] => is_other = false,
            ["for", "unit", "in", ref names @ .., "do"] => {
                let names = names.iter().map(|name| name.trim_end_matches(';'));
                units = names.map(str::to_owned).collect();
            }
            _ if !is_installed => {}
            ["inst_hook", stage, place, file] => {
                let file = name(&file).unwrap();
                paths.push(format!("usr/lib/dracut/hooks/{stage}/{place}-{file}"));
            }
            ["inst_simple", _, path] if path.starts_with("/usr/lib/ibboot/") => {
                paths.push(path.trim_start_matches('/').to_owned());
            }
            ["inst_simple", _, path] => {
                if let Some(name) = path.trim_matches('"').strip_prefix(UNIT) {
                    let names = match name {
                        "$unit" => units.clone(),
                        _ => vec![name.to_owned()],
                    };
                    let units = names.iter().map(|name| format!("{UNITS}/{name}"));
                    paths.extend(units);
                }
            }
            _ => {}
        }
    }
    paths
}

fn hooks(has_systemd: bool) -> Vec<(String, u32, Vec<u8>)> {
    let file = |path: &str| (path.to_owned(), FILE, b"#!/bin/sh\n".to_vec());
    let mut files = vec![
        ("lib".to_owned(), SYMLINK, b"usr/lib".to_vec()),
        ("sbin".to_owned(), SYMLINK, b"usr/sbin".to_vec()),
        ("etc/cmdline.d".to_owned(), DIRECTORY, Vec::new()),
        file("usr/sbin/ibboot"),
        file("usr/sbin/modprobe"),
    ];
    files.extend(installed(has_systemd).iter().map(|path| file(path)));
    if has_systemd {
        let program = b"/usr/sbin/ibboot".to_vec();
        files.push((GENERATOR.to_owned(), SYMLINK, program));
        files.push(file(&format!("{UNITS}/dracut-initqueue.service")));
    }
    files
}

/// What a program makes of the bytes; none if it is not installed.
fn through(program: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new(program[0])
        .args(&program[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().unwrap();
    let bytes = bytes.to_vec();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut input, &bytes));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    Some(output.stdout)
}

/// An image without systemd that has everything that [`LINE`] needs.
fn whole() -> Vec<(String, u32, Vec<u8>)> {
    image(false)
}

fn image(has_systemd: bool) -> Vec<(String, u32, Vec<u8>)> {
    let module = through(&["xz", "-c"], HFI1).unwrap();
    let path = |file: &str| format!("{MODULES}/{file}");
    let mut files = hooks(has_systemd);
    files.extend([
        (path("modules.dep"), FILE, DEP.to_vec()),
        (
            path("kernel/drivers/infiniband/ulp/ipoib/ib_ipoib.ko"),
            FILE,
            b"ELF".to_vec(),
        ),
        (
            path("kernel/drivers/infiniband/core/ib_core.ko"),
            FILE,
            b"ELF".to_vec(),
        ),
        (
            path("kernel/drivers/i2c/i2c-algo-bit.ko"),
            FILE,
            b"ELF".to_vec(),
        ),
        (
            path("kernel/drivers/infiniband/hw/hfi1/hfi1.ko.xz"),
            FILE,
            module,
        ),
        (
            "usr/lib/firmware/hfi1_sbus.fw".to_owned(),
            FILE,
            b"x".to_vec(),
        ),
        (
            "usr/lib/firmware/hfi1_pcie.fw.xz".to_owned(),
            FILE,
            b"x".to_vec(),
        ),
    ]);
    files
}

fn packed(files: &[(String, u32, Vec<u8>)]) -> Vec<u8> {
    let files: Vec<(&str, u32, &[u8])> = files
        .iter()
        .map(|(name, mode, content)| (name.as_str(), *mode, content.as_slice()))
        .collect();
    archive(&files)
}

/// A machine without RDMA, and an image beside it.
fn look_with(bytes: &[u8], line: Option<&str>) -> Result<Preflight> {
    look_on(&[], bytes, line)
}

/// A machine with these files, and an image beside it.
fn look_on(machine: &[(&str, &str)], bytes: &[u8], line: Option<&str>) -> Result<Preflight> {
    let folder = tempfile::tempdir().unwrap();
    let path: PathBuf = folder.path().join("initramfs.img");
    fs::write(&path, bytes).unwrap();
    let tree = folder.path().join("tree");
    let usual = [
        ("proc/sys/kernel/osrelease", "6.1.0-50-amd64\n"),
        ("proc/cmdline", "quiet\n"),
    ];
    for (path, text) in usual.iter().chain(machine) {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    with_image(&Root::new(tree), &path, line)
}

fn look(bytes: &[u8]) -> Result<Preflight> {
    look_with(bytes, Some(LINE))
}

/// What is missing and noted in the image, and refused.
fn lacks(files: &[(String, u32, Vec<u8>)]) -> Vec<String> {
    let found = look(&packed(files)).unwrap();
    let image = found.image.unwrap();
    let refusals = found.plan.refusals.iter();
    let refusals = refusals.map(|refusal| format!("refused {}", refusal.object));
    let missing = image.missing.iter().cloned();
    missing.chain(image.notes.clone()).chain(refusals).collect()
}

#[test]
fn a_whole_image_lacks_nothing_however_it_is_packed() {
    let bytes = packed(&whole());
    let early = archive(&[("kernel/x86/microcode/GenuineIntel.bin", FILE, b"x")]);
    let mut padded = early.clone();
    padded.resize(padded.len().next_multiple_of(512), 0);
    let mut images = vec![
        bytes.clone(),
        [early.clone(), bytes.clone()].concat(),
        [padded.clone(), bytes.clone(), vec![0; 700]].concat(),
    ];
    for program in [
        &["gzip", "-c"][..],
        &["xz", "-c"],
        &["xz", "-c", "--check=crc32"],
        &["xz", "-c", "--format=lzma"],
        &["zstd", "-cq"],
        &["lz4", "-cq"],
        &["lz4", "-clq"],
        // Ends with zeros of its own.
        &["lz4", "-cq", "--no-frame-crc"],
        &["bzip2", "-c"],
    ] {
        for inside in [0, 700] {
            let plain = [&bytes[..], &vec![0; inside]].concat();
            let Some(compressed) = through(program, &plain) else {
                continue;
            };
            for zeros in [0, 1, 4, 700] {
                images.push([&padded[..], &compressed, &vec![0; zeros]].concat());
            }
        }
    }
    assert!(images.len() >= 12);
    for image in images {
        let found = look(&image).unwrap();
        assert!(found.is_possible(), "{found:?}");
        let image = found.image.unwrap();
        assert_eq!(image.kernel.as_deref(), Some("6.1.0-50-amd64"));
        assert_eq!((image.missing, image.notes), (vec![], vec![]));
        let steps = found.plan.steps.len();
        assert_eq!(steps, 2);
    }
}

#[test]
fn an_archive_behind_a_compressed_one_counts() {
    let (behind, first): (Vec<_>, Vec<_>) = whole()
        .into_iter()
        .partition(|(path, ..)| path == "usr/sbin/modprobe");
    let (first, behind) = (packed(&first), packed(&behind));
    for program in [
        &["gzip", "-c"][..],
        &["bzip2", "-c"],
        &["xz", "-c"],
        &["zstd", "-cq"],
        &["lz4", "-clq"],
    ] {
        let Some(mut image) = through(program, &first) else {
            continue;
        };
        let lacks = |image: &[u8]| look(image).unwrap().image.unwrap().missing;
        assert_eq!(lacks(&image).len(), 1, "{program:?}");
        // The kernel reads an archive at a multiple of 4.
        image.resize(image.len().next_multiple_of(4) + 8, 0);
        image.extend(&behind);
        assert_eq!(lacks(&image), [""; 0], "{program:?}");
        image.resize(image.len() + 512, 0);
        assert_eq!(lacks(&image), [""; 0], "{program:?}");
    }
}

#[test]
fn a_compressed_archive_behind_one_of_another_kind_counts_as_for_the_kernel() {
    let (behind, first): (Vec<_>, Vec<_>) = whole()
        .into_iter()
        .partition(|(path, ..)| path == "usr/sbin/modprobe");
    let microcode = (
        "kernel/x86/microcode/GenuineIntel.bin".to_owned(),
        FILE,
        vec![1; 2048],
    );
    let (early, first, behind) = (packed(&[microcode]), packed(&first), packed(&behind));
    let pack = |name: &str, bytes: &[u8]| {
        // The kernel knows only the old format of lz4.
        let options = if name == "lz4" { "-clq" } else { "-cq" };
        through(&[name, options], bytes)
    };
    let mut count = 0;
    for (one, other) in [
        ("gzip", "xz"),
        ("gzip", "zstd"),
        ("xz", "gzip"),
        ("xz", "zstd"),
        ("zstd", "gzip"),
        ("zstd", "bzip2"),
        ("bzip2", "gzip"),
        ("bzip2", "xz"),
        ("xz", "lz4"),
    ] {
        let pieces = (pack(one, &first), pack(other, &behind));
        let (Some(one_packed), Some(other_packed)) = pieces else {
            continue;
        };
        let image = [&early[..], &one_packed, &other_packed].concat();
        let missing = look(&image).map(|found| found.image.unwrap().missing);
        assert_eq!(missing.unwrap(), [""; 0], "{one} {other}");
        count += 1;
    }
    assert!(count > 0);
}

/// Files that cannot be compressed.
fn incompressible(number: u32) -> Vec<(String, u32, Vec<u8>)> {
    let mut state = 1u32;
    let mut byte = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    let file = |at| {
        let name = format!("{MODULES}/kernel/crypto/{at}.ko.xz");
        let content = (0..30_000 + at).map(|_| byte());
        (
            name,
            FILE,
            [b"\xfd7zXZ\0".to_vec(), content.collect()].concat(),
        )
    };
    (0..number).map(file).collect()
}

#[test]
fn what_a_compressor_stores_as_it_is_is_no_archive_of_its_own() {
    let (behind, first): (Vec<_>, Vec<_>) = whole()
        .into_iter()
        .partition(|(path, ..)| path == "usr/sbin/modprobe");
    let first = packed(&[first, incompressible(12)].concat());
    let behind = packed(&[behind, incompressible(3)].concat());
    let lacks = |image: &[u8]| look(image).unwrap().image.unwrap().missing;
    let mut stored = 0;
    for program in [
        &["zstd", "-cq"][..],
        &["xz", "-c", "--check=crc32"],
        &["lz4", "-clq"],
        &["gzip", "-c"],
        &["bzip2", "-c"],
    ] {
        let Some(image) = through(program, &first) else {
            continue;
        };
        stored += image.windows(6).filter(|bytes| bytes == b"070701").count();
        for zeros in [1, 4, 700] {
            let padded = [&image[..], &vec![0; zeros]].concat();
            assert_eq!(lacks(&padded).len(), 1, "{program:?} {zeros}");
            let compressed = through(program, &behind).unwrap();
            let packed = [&padded[..], &compressed, &vec![0; zeros]].concat();
            assert_eq!(lacks(&packed), [""; 0], "{program:?} {zeros}");
            let mut plain = padded;
            plain.resize(plain.len().next_multiple_of(4), 0);
            plain.extend(&behind);
            assert_eq!(lacks(&plain), [""; 0], "{program:?} {zeros}");
        }
    }
    assert!(stored > 20, "{stored}");
}

#[test]
fn the_many_headers_behind_a_damaged_archive_do_not_delay_its_error() {
    let bytes = packed(&whole());
    let zstd = through(&["zstd", "-cq"], &bytes).unwrap();
    let mut image = zstd[..zstd.len() / 2].to_vec();
    image.resize(image.len().next_multiple_of(4), 0);
    let header = &bytes[..cpio::HEADER];
    image.extend([header, b"\0\0"].concat().repeat(100_000));
    let why = look(&image).unwrap_err().to_string();
    assert!(why.contains("stdin"), "{why}");
}

#[test]
fn the_image_needs_dracuts_module_for_the_root_file_system() {
    let files = |programs: &[&str]| {
        let programs = programs.iter().map(|path| (*path, FILE, &b""[..]));
        let link = [("sbin", SYMLINK, &b"usr/sbin"[..])];
        let bytes = archive(&link.into_iter().chain(programs).collect::<Vec<_>>());
        let mut files = cpio::Files::default();
        files.add(bytes.as_slice(), &|_| false).unwrap();
        files
    };
    for (root, program, module) in [
        ("root=nfs4:10.0.0.1:/r", "usr/sbin/nfsroot", "nfs"),
        (
            "root=live:http://10.0.0.1/r.img",
            "usr/sbin/livenetroot",
            "livenet",
        ),
        (
            "netroot=iscsi:10.0.0.1::::iqn.2026-01.test:r",
            "usr/sbin/iscsiroot",
            "iscsi",
        ),
        (
            "rd.nvmf.discover=rdma,10.0.0.1,,4420",
            "usr/sbin/nvmf-autoconnect.sh",
            "nvmf",
        ),
        (
            "root=wwinit:initramfs",
            "var/lib/dracut/hooks/cmdline/30-parse-wwinit.sh",
            "wwinit",
        ),
    ] {
        let request = Request::from_text(&format!("{root} ip=ib0:dhcp"));
        let others = [
            "usr/sbin/nfsroot",
            "usr/sbin/livenetroot",
            "usr/sbin/iscsiroot",
            "usr/sbin/nvmf-autoconnect.sh",
        ];
        let others: Vec<&str> = others
            .into_iter()
            .filter(|other| *other != program)
            .collect();
        let lack = format!(
            "dracut's module {module}, which mounts {root}, is not in the image: add it (dracut --add {module})"
        );
        assert_eq!(
            image::missing_root(&files(&others), &request),
            Some(lack),
            "{root}"
        );
        assert_eq!(
            image::missing_root(&files(&[program]), &request),
            None,
            "{root}"
        );
    }
    let request = Request::from_text("root=live:nfs:10.0.0.1:/r.img ip=ib0:dhcp");
    let (livenet, nfs) = ("usr/sbin/livenetroot", "usr/sbin/nfsroot");
    for (programs, module) in [
        (&[nfs][..], Some("livenet")),
        (&[livenet], Some("nfs")),
        (&[livenet, nfs], None),
    ] {
        let lack = module.map(|module| {
            format!("dracut's module {module}, which mounts root=live:nfs:10.0.0.1:/r.img, is not in the image: add it (dracut --add {module})")
        });
        assert_eq!(image::missing_root(&files(programs), &request), lack);
    }
    let request = Request::from_text("root=dhcp ip=ib0:dhcp");
    let lack = "root=dhcp: no module of dracut that mounts a root file system of a server is in the image: add it (dracut --add nfs, or iscsi)";
    assert_eq!(
        image::missing_root(&files(&["usr/sbin/nvmf-autoconnect.sh"]), &request).as_deref(),
        Some(lack)
    );
    assert_eq!(
        image::missing_root(&files(&["usr/sbin/iscsiroot"]), &request),
        None
    );
    let request = Request::from_text("root=/dev/vda ip=ib0:dhcp");
    assert_eq!(image::missing_root(&files(&[]), &request), None);
}

#[test]
fn what_an_image_lacks_is_named_with_the_option_that_adds_it() {
    let without = |name: &str| -> Vec<(String, u32, Vec<u8>)> {
        let files = whole();
        let rest: Vec<_> = files
            .iter()
            .filter(|(file, _, _)| !file.ends_with(name))
            .cloned()
            .collect();
        assert!(rest.len() < files.len(), "{name}");
        rest
    };
    for (name, expected) in [
        (
            "sbin/ibboot",
            &[
                "/usr/sbin/ibboot is not in the image: build the image with dracut --force --add ibboot",
            ][..],
        ),
        (
            "sbin/modprobe",
            &["modprobe is not in the image: build the image with dracut --force --add ibboot"],
        ),
        (
            "i2c-algo-bit.ko",
            &[
                "/lib/modules/6.1.0-50-amd64/kernel/drivers/i2c/i2c-algo-bit.ko, which hfi1 needs, is not in the image: \
               build the image with dracut --force --add-drivers i2c_algo_bit",
            ],
        ),
        (
            "hfi1_pcie.fw.xz",
            &[
                "hfi1 names firmware that is not in the image: hfi1_pcie.fw; if the card needs it, add it (dracut \
               --install /lib/firmware/hfi1_pcie.fw)",
            ],
        ),
        (
            "modules.dep",
            &[
                "no kernel modules are in the image: build it for the kernel that boots (dracut --kver)",
                "refused hfi1",
                "refused ib_ipoib",
                "refused ib0",
            ],
        ),
    ] {
        assert_eq!(lacks(&without(name)), expected, "{name}");
    }
    let bare: Vec<_> = whole()
        .into_iter()
        .filter(|(file, _, _)| !file.contains("firmware/"))
        .collect();
    assert_eq!(
        lacks(&bare),
        [
            "no firmware of hfi1 is in the image (hfi1_sbus.fw, hfi1_pcie.fw): add it (dracut --install \
          /lib/firmware/hfi1_sbus.fw)"
        ]
    );
    for inner in [
        "squashfs-root.img",
        "squash-root.img",
        "erofs-root.img",
        "squash/root.img",
    ] {
        let mut squashed = vec![(inner.to_owned(), FILE, b"hsqs".to_vec())];
        squashed.extend(
            whole()
                .into_iter()
                .filter(|(file, _, _)| !file.contains("ibboot")),
        );
        let squashed = lacks(&squashed);
        let line = format!(
            "the image has its files in {inner} (dracut --squash), which cannot be looked into: see lsinitrd"
        );
        assert_eq!(squashed, [line]);
    }
}

#[test]
fn only_the_7220_needs_the_firmware_of_ib_qib() {
    let mut image = Image::default();
    let names = ["qlogic/sd7220.fw".to_owned()];
    image.add_firmware(&cpio::Files::default(), "6.1", "ib_qib", &names);
    assert_eq!(image.missing, [""; 0]);
    assert_eq!(
        image.notes,
        [
            "ib_qib names firmware that is not in the image: qlogic/sd7220.fw; if the card needs it, add it (dracut \
             --install /lib/firmware/qlogic/sd7220.fw)"
        ]
    );
}

#[test]
fn every_file_that_the_module_installs_is_looked_for() {
    const ADD: &str = "is not in the image: build the image with dracut --force --add ibboot";
    for has_systemd in [false, true] {
        let whole = image(has_systemd);
        assert_eq!(lacks(&whole), [""; 0]);
        let mut parts = installed(has_systemd);
        assert!(parts.len() > 10, "{parts:?}");
        parts.extend(has_systemd.then(|| GENERATOR.to_owned()));
        for part in parts {
            let mut files = whole.clone();
            files.retain(|(file, _, _)| *file != part);
            let hook = part.strip_prefix("usr/lib/dracut/hooks/");
            let unit = part.strip_prefix(&format!("{UNITS}/"));
            let named = match (hook, unit) {
                (Some(hook), _) => format!("the hook {hook}"),
                (_, Some(unit)) => format!("the unit {unit}"),
                _ => format!("/{part}"),
            };
            assert_eq!(lacks(&files), [format!("{named} {ADD}")]);
        }
    }
}

#[test]
fn an_image_of_a_dracut_before_060_has_scripts_in_place_of_two_hooks() {
    let mut files = image(true);
    files.retain(|(file, _, _)| {
        !file.contains("/hooks/cmdline/") && !file.contains("/hooks/cleanup/")
    });
    let unit = format!("{UNITS}/dracut-cmdline.service.d/50-ibboot.conf");
    files.push((unit, FILE, b"[Service]".to_vec()));
    let scripts = ["cleanup", "link", "zz-ibboot-complete"];
    let scripts = scripts.map(|name| format!("usr/lib/ibboot/{name}.sh"));
    let lacking = scripts.each_ref().map(|script| {
        format!("/{script} is not in the image: build the image with dracut --force --add ibboot")
    });
    assert_eq!(lacks(&files), lacking);
    files.extend(scripts.map(|script| (script, FILE, b"#!/bin/sh\n".to_vec())));
    assert_eq!(lacks(&files), [""; 0]);
}

#[test]
fn the_command_line_in_an_image_precedes_that_of_the_machine() {
    let mut files = whole();
    let conf = |name: &str, text: &str| (format!("etc/{name}"), FILE, text.as_bytes().to_vec());
    files.push(conf("cmdline.d/50-ib.conf", "ip=ib0:dhcp rd.ib.timeout=9"));
    files.push(conf("cmdline", "rd.ib.timeout=10"));
    let timeout = |line| {
        let found = look_with(&packed(&files), line).unwrap();
        (
            found.plan.requested_by.unwrap().source,
            found.plan.timeout.as_secs(),
        )
    };
    let source = "/etc/cmdline.d/50-ib.conf".to_owned();
    assert_eq!(timeout(None), (source.clone(), 10));
    assert_eq!(timeout(Some("rd.ib.timeout=11")), (source, 11));
    // dracut removes those of the image.
    let line = "rd.hostonly=0 ip=ib0:dhcp";
    assert_eq!(timeout(Some(line)), ("--cmdline".to_owned(), 180));
}

#[test]
fn modprobe_d_of_the_image_counts_and_not_that_of_the_machine() {
    const CARD: (&str, &str) = (
        "sys/bus/pci/devices/0000:81:00.0/modalias",
        "pci:v00008086d000024F0sv00008086sd00002628bc02sc08i00\n",
    );
    const BLACKLIST: &str = "blacklist hfi1\n";
    let file = |path: &str, text: &str| (path.to_owned(), FILE, text.as_bytes().to_vec());
    let alias = file(
        &format!("{MODULES}/modules.alias"),
        "alias pci:v00008086d000024F0sv*sd*bc*sc*i* hfi1\n",
    );
    let left = |of_machine: &[(&str, &str)], of_image: &[(String, u32, Vec<u8>)]| {
        let files = [&whole(), &[alias.clone()][..], of_image].concat();
        let found = look_on(of_machine, &packed(&files), Some("ip=ib0:dhcp")).unwrap();
        found.plan.left
    };
    let own = file("usr/lib/modprobe.d/site.conf", BLACKLIST);
    let replaced = (
        "etc/modprobe.d/site.conf".to_owned(),
        SYMLINK,
        b"/dev/null".to_vec(),
    );
    let machine = [CARD, ("etc/modprobe.d/site.conf", BLACKLIST)];
    assert_eq!(left(&machine, &[]), [""; 0]);
    assert_eq!(
        left(&[CARD], std::slice::from_ref(&own)),
        [
            "/usr/lib/modprobe.d/site.conf: module hfi1 is not loaded for the HCAs that need it; to load the module \
             anyway, name it in rd.driver.post="
        ]
    );
    assert_eq!(left(&[CARD], &[own, replaced]), [""; 0]);
}

#[test]
fn the_last_line_tells_what_was_checked() {
    let last = |line: &str| {
        let text = look_with(&packed(&whole()), Some(line))
            .unwrap()
            .image_text();
        text.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(
        last(LINE),
        "the image has ibboot, and the modules of this plan"
    );
    assert_eq!(
        last("quiet"),
        "the image has ibboot; no module was checked: the command line requests nothing"
    );
    assert_eq!(
        last("ip=ib0:dhcp"),
        "the image has ibboot and the modules of this plan; the driver of the node's card was not checked"
    );
    assert_eq!(
        last("ip=ib0:dhcp rd.driver.post=mlx5_ib"),
        "the image has ibboot; the boot cannot do what is refused or wrong above"
    );
}

#[test]
fn a_damaged_image_is_one_clear_line() {
    let bytes = packed(&whole());
    let gzip = through(&["gzip", "-c"], &bytes).unwrap();
    let why = |bytes: &[u8]| {
        let error = look(bytes).unwrap_err();
        assert_eq!(error.kind.exit_code(), 1);
        let line = error.to_string();
        assert_eq!(line.lines().count(), 1);
        line.split_once("can be read: ").unwrap().1.to_owned()
    };
    assert_eq!(why(b""), "the file is empty");
    assert_eq!(why(&bytes[..bytes.len() / 2]), "the file is truncated");
    assert_eq!(
        why(&gzip[..gzip.len() / 2]),
        "gzip: stdin: unexpected end of file"
    );
    assert!(why(b"hello, world").starts_with("neither a cpio archive nor compressed"));
    assert!(why(b"MZ\x90\0").starts_with("a unified kernel image: extract its initramfs"));
    assert_eq!(
        why(&[&bytes[..], b"garbage"].concat()),
        "an unknown format follows an archive"
    );
    let zstd = through(&["zstd", "-cq"], &bytes).unwrap();
    let padded = [&zstd[..zstd.len() / 2], &[0; 700]].concat();
    assert!(why(&padded).contains("stdin"));
    // The damaged archive is not passed over for the sound one behind it.
    let mut before = zstd[..zstd.len() / 2].to_vec();
    before.resize(before.len().next_multiple_of(4), 0);
    before.extend(&bytes);
    assert!(why(&before).contains("stdin"));
    let inner = through(&["gzip", "-c"], b"not an archive, but longer than the header of one, so that it is read as one header and refused").unwrap();
    assert_eq!(why(&inner), "the file is truncated");
    let mut wrong = bytes;
    wrong[54] = b'x';
    assert_eq!(why(&wrong), "a cpio header is damaged");
}

#[test]
fn a_placeholder_in_an_image_is_refused() {
    let mut files = whole();
    let file = format!("{MODULES}/updates/rpcrdma.ko");
    files.push((file, FILE, b"ELF".to_vec()));
    for (path, _, content) in &mut files {
        if path.ends_with("modules.dep") {
            content.extend(b"updates/rpcrdma.ko:\n");
        }
    }
    let line = format!("{LINE} root=nfs:10.0.0.2:/srv/root,rdma");
    let found = look_with(&packed(&files), Some(&line)).unwrap();
    let refusals = found.plan.refusals.iter();
    assert_eq!(
        refusals
            .map(|one| format!("{}: {}", one.object, one.reason))
            .collect::<Vec<_>>(),
        [
            "rpcrdma: /lib/modules/6.1.0-50-amd64/updates/rpcrdma.ko is a placeholder of MLNX_OFED or DOCA: it does not \
             use ib_core; install mlnx-nfsrdma, then build the image again"
        ]
    );
}
