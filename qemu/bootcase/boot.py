# SPDX-License-Identifier: MIT OR Apache-2.0
"""Boot one case and keep its files."""

import io
import json
import re
import shutil
import tarfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from . import debian, fabric, images, netboot
from .machine import Machine, Peer, clean, given
from .pace import Limit
from .paths import GUEST, TARGET, remove

# quiet: the console lines that a case expects must appear on the console of a production node too.
# The other arguments save work under emulation that no case tests.
APPEND = "rw panic=-1 quiet"
APPEND += " mitigations=off audit=0 apparmor=0 selinux=0 nokaslr fsck.mode=skip transparent_hugepage=never"
# The emulator translates a program again for each address that it runs at: no random addresses.
APPEND += " norandmaps"
# A guest that waits for a busy host has not locked up; the time limit ends a guest that has.
APPEND += " watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120"
# The first BPF program on a cgroup (IPAddressDeny=, DevicePolicy=) patches code of the kernel, and
# the emulator may still execute the old code: the guest hangs for a minute or two. Cgroups version
# 1 have no such programs; later releases do not support version 1.
NO_BPF = {"6.1": " systemd.unified_cgroup_hierarchy=0"}
ROOT = "root=/dev/vda"
LINK = "usr/lib/systemd/network/99-default.link"
NAMES = {"kernel": " net.ifnames=0", "predictable": ""}
KEPT = {
    "run/state.json": "state.json",
    "run/expected.json": "expected.json",
    "run/check.json": "report.json",
    "out/timeline.json": "timeline.json",
}
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257
# The rest of a long message of ibboot.
REST = re.compile(r"ibboot: {5}(\S.*)$")
KMSG = re.compile(r"^\[\s*(\d+\.\d+)\]\s?(.*)$")


@dataclass
class Boot:
    """The files and lines of a boot, for the judge and for a case's verify.py."""

    folder: Path
    seconds: float
    timed_out: bool
    # What the console lacked for an action, or the time.
    missed: tuple = ()

    @cached_property
    def console(self):
        """The console's lines, without terminal escapes."""
        path = self.folder / "console.log"
        lines = [clean(raw) for raw in path.read_bytes().split(b"\n")] if path.exists() else []
        return [text for _, text in joined((None, line) for line in lines)]

    @cached_property
    def peer(self):
        """The console's lines of the second machine, if there is one."""
        path = self.folder / "peer.log"
        return [clean(raw) for raw in path.read_bytes().split(b"\n")] if path.exists() else []

    @cached_property
    def kmsg(self):
        """The kernel's log: (seconds since kernel start, text)."""
        found = (KMSG.match(line) for line in (self.text("out/kmsg.txt") or "").splitlines())
        return joined((float(match.group(1)), match.group(2)) for match in found if match)

    @cached_property
    def shutdown(self):
        """QEMU's reason for the end of the guest: guest-reset, guest-shutdown, guest-panic;
        otherwise an empty string."""
        found = re.findall(r'"event": "SHUTDOWN".*?"reason": "([\w-]+)"', (self.folder / "qmp.log").read_text())
        return found[-1] if found else ""

    def text(self, name):
        """A file that the guest sent (`run/...` is /run/ibboot, `out/...` the guest's other files),
        or None."""
        path = self.folder / "files" / name
        return path.read_text(errors="replace") if path.is_file() else None

    def json(self, name):
        """A JSON file that the guest sent, parsed; None if absent or not JSON."""
        text = self.text(name)
        try:
            return json.loads(text) if text is not None else None
        except json.JSONDecodeError:
            return None

    def first(self, pattern):
        """The kernel log's first (seconds, text) that matches, or None."""
        return next(((when, text) for when, text in self.kmsg if re.search(pattern, text)), None)


def joined(lines):
    """(time, text) of each line; a long message of ibboot, which is divided into several lines, is
    one line here."""
    found = []
    last = None
    for when, text in lines:
        rest = REST.search(text)
        if rest and last is not None:
            found[last] = (found[last][0], f"{found[last][1]} {rest.group(1)}")
            continue
        if "ibboot: " in text:
            last = len(found)
        found.append((when, text))
    return found


def unpack(folder):
    """Unpack the tar streams of the guest in order: a later file replaces an earlier one, a cut end
    is harmless."""
    files = folder / "files"
    files.mkdir()
    stream = folder / "files.tar"
    if not stream.exists():
        return
    # OVMF uses every serial port as a console: its output comes first.
    data = stream.read_bytes()
    data = data[max(data.find(TAR_MAGIC) - TAR_MAGIC_AT, 0) :]
    try:
        with tarfile.open(fileobj=io.BytesIO(data), ignore_zeros=True) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                place = {"ibboot-test/out": "out", "ibboot": "run"}
                for prefix, new in place.items():
                    if member.isfile() and name.startswith(prefix + "/"):
                        path = (files / new / name.removeprefix(prefix + "/")).resolve()
                        if files.resolve() in path.parents:
                            path.parent.mkdir(parents=True, exist_ok=True)
                            path.write_bytes(archive.extractfile(member).read())
    except (tarfile.TarError, EOFError) as error:
        (folder / "files.error").write_text(f"{error}\n")
    for source, name in KEPT.items():
        if (files / source).exists():
            shutil.copyfile(files / source, folder / name)


def payload(case, release):
    """The case's scripts as a second archive behind the initramfs, the script that saves the dump
    of a crash, and the udev rules of interface names."""
    files = {}
    if case.crash:
        files["ibboot-test/crash/crash.sh"] = (GUEST / "crash.sh").read_bytes()
        files["ibboot-test/crash/vmlinuz"] = images.kernel_image(release).read_bytes()
        files["ibboot-test/crash/initramfs.img"] = images.initramfs(release, case.dump_flavour(), case.site()).read_bytes()
    if case.names == "predictable":
        # Debian's dracut omits this file; without it udev of the initramfs assigns no names.
        files[LINK] = (debian.tree(release, "root") / LINK).read_bytes()
    for name in ("initramfs.sh", "root.sh"):
        if path := case.script(name):
            files[f"ibboot-test/{name}"] = path.read_bytes()
    if case.fabric is not None:
        on_pci = f"pci=1 hcas={case.pci} " if case.pci else ""
        files["ibboot-fabric/parameters"] = f"{on_pci}{case.fabric}\n".encode()
        if case.far_here:
            files["ibboot-fabric/here"] = b""
        if path := case.script("far.sh"):
            files["ibboot-fabric/far.sh"] = path.read_bytes()
    return images.newc(files) if files else b""


class Script:
    """The case's actions: each runs once, at its time."""

    def __init__(self, machine, actions):
        self.machine = machine
        self.waiting = list(actions)
        self.due = []

    def saw(self, line, ended):
        """Start the clock of each action that matches a console line. A complete line is matched
        with its newline."""
        line += "\n" if ended else ""
        for action in [action for action in self.waiting if action.when.search(line)]:
            self.waiting.remove(action)
            self.due.append((self.machine.seconds() + action.after, action))

    def tick(self):
        """Run the actions that are due."""
        for entry in [entry for entry in self.due if entry[0] <= self.machine.seconds()]:
            self.due.remove(entry)
            action = entry[1]
            if action.cable_in:
                self.machine.monitor.set_link(action.cable_in, True)
            if action.cable_out:
                self.machine.monitor.set_link(action.cable_out, False)
            if action.device_del:
                self.machine.monitor.device_del(action.device_del)
            if action.type is not None:
                self.machine.type(action.type)

    def missed(self):
        """The actions that did not run, one line each."""
        silent = [f"no console line matches {action.when.pattern!r}" for action in self.waiting]
        late = [f"the boot ended before it was due: {action.when.pattern!r}" for _, action in self.due]
        return (*silent, *late)


def arguments(release):
    """The arguments of every kernel of the release."""
    return f"console={release.architecture.console} {APPEND}{release.architecture.words}"


def append(case, release):
    """The arguments of the kernel, with the disk as root if the case has no root."""
    has_root = any(word.startswith("root=") for word in case.cmdline.split())
    words = arguments(release) + NAMES[case.names] + NO_BPF.get(release.kernel, "")
    return words if has_root else f"{words} {ROOT}"


def peer(case, release, folder, initramfs, root):
    """The second machine of a case with a peer.sh, and the file that it boots from; None without a
    peer.sh. The machine has the programs of the fabric's far end, and no InfiniBand."""
    script = case.script("peer.sh")
    if script is None:
        return None
    initrd = folder / "peer.img"
    shutil.copyfile(initramfs, initrd)
    with open(initrd, "ab") as out:
        out.write(fabric.archive(release) + fabric.server(case.storage) + images.newc({f"{fabric.PLACE}/far.sh": script.read_bytes()}))
    return Peer(release.architecture, folder, images.kernel_image(release), initrd, root, f"{arguments(release)} rdinit=/{fabric.PLACE}/peer.sh")


def boot(case, release, label, watch=None, more=b""):
    """Boot a case to its end or its time limit; `watch(seconds, line)` gets the console lines
    live. `more` is an archive behind the initramfs."""
    images.require(release.architecture)
    kernel = images.kernel_image(release)
    initramfs = images.initramfs(release, case.flavour(), case.site())
    root = images.disk(release, case)
    folder = TARGET / label
    remove(folder)
    folder.mkdir(parents=True)
    initrd = initramfs
    extra = fabric.archive(release) if case.fabric is not None else b""
    extra += fabric.server(case.storage) if case.fabric is not None else b""
    if (extra := extra + payload(case, release) + more) or case.firmware:
        initrd = folder / "initrd.img"
        shutil.copyfile(initramfs, initrd)
        with open(initrd, "ab") as out:
            out.write(extra)

    words = f"{append(case, release)} {case.cmdline}"
    served = netboot.prepare(folder, case.firmware, kernel, initrd, words) if case.firmware else None
    start = served.machine() if served else given(kernel, initrd, words)
    limit = Limit(case.time_limit, label)
    timed_out = False
    machine = None
    other = peer(case, release, folder, initramfs, root)
    try:
        machine = Machine(release.architecture, folder, start, root, case.nics, other and other.plug, served, case.counted, case.pci, case.ibft)
        script = Script(machine, case.actions)
        for device in case.cables_out:
            machine.monitor.set_link(device, False)
        for seconds, line, ended in machine.lines(limit, script.tick):
            script.saw(line, ended)
            if watch and ended:
                watch(seconds, line)
    except TimeoutError:
        timed_out = True
    finally:
        for one in (machine, other):
            if one:
                one.kill()
    seconds = machine.seconds()
    for image in ("initrd.img", "peer.img"):
        (folder / image).unlink(missing_ok=True)
    remove(folder / "netboot" / "served")
    unpack(folder)
    return Boot(folder, seconds, timed_out, script.missed())
