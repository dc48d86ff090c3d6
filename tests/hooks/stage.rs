// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scene for dracut's hooks: a shell in a mount namespace with its own /proc, /dev and /run.

use std::path::Path;
use std::process::Command;

use crate::skip;

/// The functions that dracut offers its hooks, and replacements of the kernel's files. The real
/// /proc is hidden, above all its sysrq-trigger; /tmp is that of the scene, and the real /tmp is at
/// /mnt.
const STAGE: &str = r#"
mount --rbind /tmp /mnt
moved() { case $1 in /tmp/*) echo "/mnt/${1#/tmp/}" ;; *) echo "$1" ;; esac; }
set -- "$(moved "$1")" "$(moved "$2")" "$(moved "$3")"
hooks=$1/dracut-module/50ibboot
hookdir=$3/hooks
mkdir -p "$hookdir/initqueue/finished" "$3/tmp" "$3/proc" "$3/dev" "$3/sbin" "$3/lib"
mount --bind "$3/tmp" /tmp
lib=$3/lib
ln -s "$2" "$3/sbin/ibboot"
for hook in "$hooks"/*.sh; do
    sed "s|/usr/lib/ibboot|$lib|g; s|/usr/sbin/ibboot|$3/sbin/ibboot|g; s|/sbin/netroot |$3/sbin/netroot |g; s|/lib/dracut/hooks|$hookdir|g" "$hook" > "$lib/${hook##*/}"
done
PATH=$PATH:$3/sbin
mount -t tmpfs run /run
mount -t tmpfs etc /etc
: > /etc/initrd-release
: > "$3/dev/null"
mount --bind /dev/null "$3/dev/null"
mount --rbind "$3/dev" /dev
mount -t tmpfs proc /proc
[ ! -e /proc/self ]
: > /proc/sysrq-trigger
: > /dev/kmsg
uptime() { echo "$1 1.00" > /proc/uptime; }
cmdline() { echo "$*" > /proc/cmdline; }
getcmdline() { cat /etc/cmdline.d/*.conf /proc/cmdline 2> /dev/null; }
getarg() {
    case $1 in
        *=?*) [ "$(getarg "${1%%=*}=")" = "${1#*=}" ] ;;
        *=) tr ' ' '\n' < /proc/cmdline | sed -n "s/^$1//p" | tail -n 1 ;;
        *) tr ' ' '\n' < /proc/cmdline | grep -E "^$1(=|\$)" ;;
    esac
}
getargbool() {
    case " $(cat /proc/cmdline) " in
        *" $2=0 "*) return 1 ;;
        *" $2 "* | *" $2="*) ;;
        *) [ "$1" = 1 ] ;;
    esac
}
emergency_shell() { echo "emergency_shell $*"; }
warn() { echo "warn $*"; }
sleep() { :; }
result() { echo "result: $(tr '\n' '|' < /run/ibboot/result)"; }
source_hook() { if [ "$1" = initqueue/online ]; then echo "online $2${job:+, job $job}"; else . "$lib/$1.sh"; fi; }
# A turn of dracut's queue, and the end of what it started.
turn() { job=$hookdir/initqueue/50-ibboot.sh; source_hook job; unset job; wait; (source_hook finished) && echo finished || :; }
cmdline 'root=/dev/vda'
uptime 5.25
set +e
"#;

/// Interfaces that are up, and a `/sbin/netroot` that prints its arguments.
pub const ONLINE: &str = r#"
mkdir /run/ibboot; echo verified > /run/ibboot/result; : > /run/ibboot/settled
NEWROOT=$3/sysroot; mkdir "$NEWROOT"
cat > "$3/sbin/netroot" <<'END'
echo "netroot $*"
END
chmod +x "$3/sbin/netroot"
"#;

/// The shells that an initramfs may have.
pub const SHELLS: &[&[&str]] = &[&["bash"], &["dash"], &["busybox", "ash"], &["mksh"]];

/// The output of `script`; none if the namespace cannot be created.
pub fn play(test: &str, script: &str) -> Option<String> {
    play_in(&["sh"], test, script)
}

/// The output of `script` in `shell`; none if the namespace cannot be created.
pub fn play_in(shell: &[&str], test: &str, script: &str) -> Option<String> {
    if skip::without_root(test) {
        return None;
    }
    let scene = tempfile::tempdir().unwrap();
    let run = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .args(shell)
        .arg("-ec")
        .arg(format!("{STAGE}\n{script}"))
        .arg("sh")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")))
        .arg(env!("CARGO_BIN_EXE_ibboot"))
        .arg(scene.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(run.stderr).unwrap(), "", "{test}");
    Some(String::from_utf8(run.stdout).unwrap())
}

/// Asserts the output of `script`.
pub fn plays(test: &str, script: &str, expected: &str) {
    if let Some(output) = play(test, script) {
        assert_eq!(output, expected);
    }
}
