// SPDX-License-Identifier: MIT OR Apache-2.0
//! The images in which dracut includes ibboot: real images, built by the installed dracut and by
//! the other releases in the trees of `qemu/run`, without a warning. Stand-ins for kdump's modules
//! decide like the originals. Needs root; a test reports an image that cannot be built as skipped.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod skip;

use std::path::{Path, PathBuf};
use std::process::Command;

/// `sh -c MAKE sh PROJECT WORK TREE`, in a mount namespace: in the directory WORK dracut of TREE
/// finds its own modules for the simplest image, ibboot's module, and those of kdump and ifcfg. Then MADE
/// runs in WORK.
const MAKE: &str = r#"
project=$1 work=$2 tree=$3
mkdir "$work/dracut" "$work/confdir" "$work/tmp"
cp -a "$tree/usr/lib/dracut/." "$work/dracut/"
cd "$work/dracut/modules.d"
for module in *; do
    case ${module#[0-9][0-9]} in
        base | bash | dash | sh | initqueue | shell-interpreter | udev-rules) ;;
        *) rm -r "$module" ;;
    esac
done
cp -a "$project/dracut-module/50ibboot" .
mkdir 45ifcfg 99kdumpbase 99kdump
printf 'check() { return 255; }\n' > 45ifcfg/module-setup.sh
printf 'check() { [[ $IN_KDUMP ]] || return 1; }\n' > 99kdumpbase/module-setup.sh
printf 'check() { [[ " $add_dracutmodules " == *" kdump "* ]] || return 1; }\n' > 99kdump/module-setup.sh
cd /
if [ "$tree" = / ]; then
    exec bash -ec "$4" bash "$work"
fi
mount --bind "$work" "$tree/mnt"
mount -t proc proc "$tree/proc"
mount -t sysfs sysfs "$tree/sys"
mount --rbind /dev "$tree/dev"
exec chroot "$tree" bash -ec "$4" bash /mnt
"#;

/// In WORK: builds an image for each line of `$work/images` and prints the modules under test in
/// it, and their hook beside ifcfg; on standard error what dracut warns of. The kernel has no modules: none of the drivers that
/// ibboot's module requests may be missed.
const MADE: &str = r#"
work=$1 kernel=$1/lib/modules/0.0.0
export dracutbasedir=$work/dracut
printf '#!/bin/sh\n' > "$work/ibboot"
chmod +x "$work/ibboot"
mkdir -p "$kernel"
touch "$kernel"/modules.{order,builtin,builtin.modinfo,dep}
while read -r in_kdump site arguments; do
    printf 'ibboot_binary="%s"\nadd_dracutmodules+=" %s "\n' "$work/ibboot" "${site#-}" > "$work/conf"
    # Without drivers: instmods without a name would read the lines of the other images.
    [ "$in_kdump" = - ] || { export IN_KDUMP=$in_kdump && echo 'ibboot_drivers=""' >> "$work/conf"; }
    # shellcheck disable=SC2086
    dracut --stdlog 3 --force --no-hostonly --kmoddir "$kernel" --no-early-microcode --no-compress --conf "$work/conf" \
        --confdir "$work/confdir" --tmpdir "$work/tmp" $arguments "$work/image" 0.0.0 > "$work/log" 2>&1 || echo "dracut: $?" >> "$work/log"
    # What these tests bring about: a mount that is none, a kernel elsewhere, a tree without switch_root. And
    # the table of hardlink(1).
    grep -Ev '^(Mode|Files|Linked|Compared|Saved|Duration): |vda9 is not a mount point|^realpath: /lib/modules/0\.0\.0|switch_root' "$work/log" >&2 || true
    unset IN_KDUMP
    echo $(lsinitrd --mod "$work/image" | grep -xE 'ibboot|ifcfg|kdump|kdumpbase') \
        $(lsinitrd "$work/image" | grep -o '[a-z-]*/[0-9]*-ifcfg.sh')
done < "$work/images"
"#;

/// IN_KDUMP and the site's `add_dracutmodules` (`-`: none), dracut's arguments, and the expected
/// modules.
const IMAGES: &[(&str, &str)] = &[
    ("- -", "ibboot"),
    ("- - --add ibboot", "ibboot"),
    ("- - --add ifcfg", "ifcfg ibboot pre-pivot/84-ifcfg.sh"),
    ("1 -", "kdumpbase"),
    // dracut asks the modules a second time if the image must mount something.
    ("1 - --mount /dev/vda9 --add kdumpbase", "kdumpbase"),
    ("- - --add kdump --mount /dev/vda9", "kdump"),
    ("1 - --add ibboot", "ibboot kdumpbase"),
    ("1 ibboot --mount /dev/vda9", "ibboot kdumpbase"),
    ("- kdump --force-add ibboot", "ibboot kdump"),
];

/// The suites of the boot cases whose own dracut builds their images, from the table of `qemu/run`.
const SUITES: &str = "
import sys
sys.path.insert(0, 'qemu')
from bootcase.arch import AMD64
from bootcase.debian import RELEASES
for release in RELEASES.values():
    if release.chroot_dracut and release.architecture == AMD64:
        print(release.suite)
";

fn suites() -> Vec<String> {
    let mut python = Command::new("python3");
    python.args(["-B", "-c", SUITES]);
    let run = python.current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let run = run.unwrap();
    assert!(run.status.success(), "{run:?}");
    let names = String::from_utf8(run.stdout).unwrap();
    names.lines().map(str::to_owned).collect()
}

/// The newest tree of a suite, which `qemu/run` makes for the first boot of the suite.
fn tree(suite: &str) -> Option<PathBuf> {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/qemu/cache");
    let kept = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let trees = kept.filter_map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_whole = !name.ends_with(".work");
        let is_of_suite = name.starts_with(&format!("builder-tree-{suite}-"));
        (is_whole && is_of_suite).then(|| entry.path())
    });
    let newest = trees.max_by_key(|tree| tree.metadata().and_then(|tree| tree.modified()).ok());
    let tree = newest?.join("tree");
    tree.join("usr/bin/dracut").exists().then_some(tree)
}

/// The dracut trees: this machine's, and those of the boot cases.
fn trees() -> Vec<PathBuf> {
    let mut trees = vec![PathBuf::from("/")];
    trees.retain(|tree| tree.join("usr/bin/dracut").exists());
    if trees.is_empty() {
        eprintln!("skipped in part: images: no dracut is installed");
    }
    for suite in suites() {
        match tree(&suite) {
            Some(tree) => trees.push(tree),
            None => eprintln!(
                "skipped in part: images: the dracut of {suite} comes with its boot cases"
            ),
        }
    }
    trees
}

#[test]
fn ibboot_is_in_every_image_except_those_for_kdump_without_a_warning() {
    if skip::without_root("images") {
        return;
    }
    let lines: Vec<String> = IMAGES
        .iter()
        .map(|(request, _)| format!("{request}\n"))
        .collect();
    let expected: Vec<&str> = IMAGES.iter().map(|(_, modules)| *modules).collect();
    for tree in trees() {
        let work = tempfile::tempdir().unwrap();
        std::fs::write(work.path().join("images"), lines.concat()).unwrap();
        let run = Command::new("unshare")
            .args([
                "--mount",
                "--propagation",
                "private",
                "sh",
                "-ec",
                MAKE,
                "sh",
            ])
            .arg(env!("CARGO_MANIFEST_DIR"))
            .args([work.path(), &tree])
            .arg(MADE)
            .output()
            .unwrap();
        let tree = tree.display();
        assert_eq!(String::from_utf8(run.stderr).unwrap(), "", "{tree}");
        let printed = String::from_utf8(run.stdout).unwrap();
        assert_eq!(printed.lines().collect::<Vec<_>>(), expected, "{tree}");
    }
}

/// In WORK: the files of modprobe.d that the module copies from the tree `root` into `image`.
const SETTINGS: &str = r#"
set -o pipefail # as dracut does
dracutsysrootdir=$1/root initdir=$1/image
. dracut-module/50ibboot/module-setup.sh
inst_dir() { mkdir -p "$initdir$1"; }
inst_multiple() {
    local one
    for one; do
        if [[ $one != /* ]]; then
            # A program, or -o for files that may be missing.
            [[ $one == -o ]] || { mkdir -p "$initdir/bin" && : > "$initdir/bin/$one"; }
        elif [[ -e $dracutsysrootdir$one ]]; then
            mkdir -p "$initdir${one%/*}" && cp -P "$dracutsysrootdir$one" "$initdir$one"
        fi
    done
}
install_site_settings
cd "$initdir"
find . -type f -printf '%P\n' -o -type l -printf '%P -> %l\n' | LC_ALL=C sort
"#;

#[test]
fn the_files_of_modprobe_d_that_count_for_rdma_modules_are_copied() {
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("root");
    for (path, text) in [
        ("etc/modprobe.d/site.conf", "options mlx5-core probe_vf=0\n"),
        ("etc/modprobe.d/sound.conf", "options snd-hda-intel x=1\n"),
        (
            "etc/modprobe.d/storage.conf",
            "options nvme-rdma register_always=N\n",
        ),
        // The install line of mlx4_core calls the script, in SLES below /usr/lib.
        ("etc/rdma/mlx4.conf", "0000:81:00.0 ib eth\n"),
        ("usr/lib/mlx4-setup.sh", "#!/bin/bash\n"),
        // A file of the site replaces that of a package, also without a word about RDMA.
        ("etc/modprobe.d/libmlx4.conf", ""),
        (
            "usr/lib/modprobe.d/libmlx4.conf",
            "install mlx4_core /bin/false\n",
        ),
        (
            "usr/lib/modprobe.d/20-rdma.conf",
            "blacklist ib_ipoib\n# off\n",
        ),
        // SLES: whether modprobe loads modules without support, of MLNX_OFED for example.
        (
            "etc/modprobe.d/10-unsupported-modules.conf",
            "allow_unsupported_modules 1\n",
        ),
        (
            "lib/modprobe.d/10-unsupported-modules.conf",
            "# why\nallow_unsupported_modules 0\n",
        ),
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let long = format!("options ib_core x=1\n{}", "# more\n".repeat(40_000));
    std::fs::write(root.join("etc/modprobe.d/long.conf"), long).unwrap();
    std::os::unix::fs::symlink("/dev/null", root.join("etc/modprobe.d/20-rdma.conf")).unwrap();
    let run = Command::new("bash")
        .args(["-ec", SETTINGS, "bash"])
        .arg(work.path())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(run.stderr).unwrap(), "");
    assert_eq!(
        String::from_utf8(run.stdout).unwrap(),
        "bin/bash\n\
         bin/cat\n\
         etc/modprobe.d/10-unsupported-modules.conf\n\
         etc/modprobe.d/20-rdma.conf -> /dev/null\n\
         etc/modprobe.d/libmlx4.conf\n\
         etc/modprobe.d/long.conf\n\
         etc/modprobe.d/site.conf\n\
         etc/modprobe.d/storage.conf\n\
         etc/rdma/mlx4.conf\n\
         lib/modprobe.d/10-unsupported-modules.conf\n\
         usr/lib/mlx4-setup.sh\n\
         usr/lib/modprobe.d/20-rdma.conf\n\
         usr/lib/modprobe.d/libmlx4.conf\n"
    );
}
