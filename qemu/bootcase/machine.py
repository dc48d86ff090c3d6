# SPDX-License-Identifier: MIT OR Apache-2.0
"""One QEMU process: its console as lines with times, its QMP monitor, its end."""

import json
import os
import re
import selectors
import signal
import socket
import subprocess
import time
from contextlib import suppress

from . import ibft

ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_c])")
CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
# An initramfs may fill half of the memory: with NFS, that of Ubuntu 26.04 needs more than 512 MiB.
MEMORY_MIB = 1536
PEER_MEMORY_MIB = 768

# A harness that is killed takes its guests along: nobody else ends them.
WITH_US = ("setpriv", "--pdeathsig", "KILL")

# All running guests, so that an interrupted harness can end them.
running = set()


def kill_all():
    """End all guests: each has its own process group and would survive this process."""
    for machine in list(running):
        machine.kill()


def clean(raw):
    """A console line without terminal escapes and control characters."""
    return CONTROLS.sub(b"", ESCAPES.sub(b"", raw)).decode("utf-8", "replace")


class Monitor:
    """QMP over a socket pair: sends commands and logs the answers."""

    def __init__(self, log):
        self.here, self.there = socket.socketpair()
        self.log = log
        self.send({"execute": "qmp_capabilities"})

    def send(self, command):
        """Queue one command; QEMU runs commands in order. The end of QEMU is the end of the console."""
        with suppress(ConnectionError):
            self.here.sendall(json.dumps(command).encode() + b"\n")
        self.log.write(f"> {json.dumps(command)}\n")

    def set_link(self, device, up):
        """Plug a network card's cable in or out."""
        self.send({"execute": "set_link", "arguments": {"name": device, "up": up}})

    def device_del(self, device):
        """Unplug a device as its slot's attention button does."""
        self.send({"execute": "device_del", "arguments": {"id": device}})

    def drain(self):
        """Log QEMU's output; False after QEMU has ended."""
        data = b""
        with suppress(ConnectionError):
            data = self.here.recv(65536)
        self.log.write(data.decode("utf-8", "replace"))
        return bool(data)


def given(kernel, initrd, append):
    """QEMU's arguments for a kernel that QEMU loads itself, without firmware."""
    return ["-kernel", str(kernel), "-initrd", str(initrd), "-append", append]


def argv_of(architecture, start, root, memory, counted=True):
    """The arguments of every guest: a disk whose writes are discarded, and only the requested
    hardware.

    `counted`: the guest's clock counts instructions, 4 ns each, while the guest works, and follows
    the host's clock while the guest waits. The load of the host therefore changes neither the times
    nor the limits in the guest. KVM does not support this.
    """
    argv = [architecture.qemu, "-no-user-config", "-nodefaults", "-machine", architecture.machine, "-smp", "1"]
    if os.environ.get("IBBOOT_KVM") == "1" and not architecture.emulator:
        argv += ["-accel", "kvm", "-cpu", "host"]
    else:
        argv += ["-accel", "tcg", "-cpu", architecture.cpu]
        argv += ["-icount", "shift=2,sleep=on"] if counted else []
    argv += ["-m", str(memory), "-display", "none", "-no-reboot", "-object", "rng-random,id=rng,filename=/dev/urandom"]
    argv += ["-device", "virtio-rng-pci,rng=rng"]
    argv += ["-drive", f"file={root},if=none,id=root,format=raw,snapshot=on,cache=unsafe", "-device", "virtio-blk-pci,drive=root"]
    return argv + start


def functions(count):
    """PCI functions for softib's HCAs, `hca0` at 0000:01:00.0 and so on: each behind a root port of its own, `port0` ...,
    whose native hot plug it is (q35 would have ACPI do it)."""
    argv = ["-machine", "q35", "-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off"]
    for number in range(count):
        # out of the way of the devices whose places on the root bus follow from their order
        port = f"pcie-root-port,id=port{number},chassis={number + 1},slot={number + 1},addr={16 + number:#x}"
        argv += ["-device", port, "-device", f"pci-testdev,id=hca{number},bus=port{number}"]
    return argv


def mac(number):
    """The address of a network card."""
    return f"52:54:00:1b:b0:{number:02x}"


def card(number, backend, address):
    """A network card and the other end of its cable."""
    return ["-netdev", f"{backend},id=user{number}", "-device", f"virtio-net-pci,id=net{number},netdev=user{number},mac={address},romfile="]


class Peer:
    """A second machine, at the other end of the first one's net0. It gets no input and sends no
    files."""

    def __init__(self, architecture, folder, kernel, initrd, root, append):
        # A stream of frames: QEMU's cable between two guests.
        self.plug, here = socket.socketpair()
        argv = argv_of(architecture, given(kernel, initrd, append), root, PEER_MEMORY_MIB)
        argv += ["-serial", f"file:{folder / 'peer.log'}", *card(0, f"socket,fd={here.fileno()}", "52:54:00:1b:b1:00")]
        (folder / "peer.argv").write_text("\n".join(argv) + "\n")
        self.process = subprocess.Popen(
            [*WITH_US, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=open(folder / "peer.err", "wb"),
            pass_fds=[here.fileno()],
            start_new_session=True,
            env=dict(os.environ, TMPDIR=str(folder)),
        )
        running.add(self)
        here.close()

    def kill(self):
        """End QEMU and its children."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.plug.close()
        running.discard(self)


class Machine:
    """A running guest. Iterate over `lines(...)` until it ends or the time is over."""

    def __init__(self, architecture, folder, start, root, nics, plug=None, netboot=None, counted=True, hcas=0, table=False):
        self.folder = folder
        self.qmp_log = open(folder / "qmp.log", "w")
        self.monitor = Monitor(self.qmp_log)
        fd = self.monitor.there.fileno()
        argv = argv_of(architecture, start, root, MEMORY_MIB, counted)
        argv += ["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"]
        argv += ["-chardev", f"file,id=files,path={folder / 'files.tar'}", *architecture.files]
        argv += ["-chardev", f"socket,id=qmp,fd={fd}", "-mon", "chardev=qmp,mode=control"]
        argv += functions(hcas) if hcas else []
        if table:
            (folder / "ibft").write_bytes(ibft.content(mac(0)))
            argv += ["-acpitable", f"sig=iBFT,rev=1,data={folder / 'ibft'}"]
        for number in range(nics):
            address = mac(number)
            if netboot and number == 0:
                argv += netboot.card(address)
                continue
            backend = f"socket,fd={plug.fileno()}" if plug and number == 0 else "user,restrict=on,ipv6=off"
            argv += card(number, backend, address)
        if netboot:
            argv = netboot.around(argv)
        (folder / "qemu.argv").write_text("\n".join(argv) + "\n")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*WITH_US, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(folder / "qemu.err", "wb"),
            pass_fds=[fd, *([plug.fileno()] if plug else [])],
            start_new_session=True,
            env=dict(os.environ, TMPDIR=str(folder)),
        )
        running.add(self)
        self.monitor.there.close()

    def seconds(self):
        """Host seconds since QEMU was started."""
        return time.monotonic() - self.began

    def type(self, text):
        """Type on the guest's console."""
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def lines(self, limit, tick):
        """Yield (seconds, line, ended) until the guest ends, or kill the guest at the limit
        (TimeoutError).

        `tick()` is called a few times a second. The text of an incomplete last line is yielded, too,
        so that a prompt is visible; the longer line is yielded again later.
        """
        rest = b""
        with selectors.DefaultSelector() as ready, open(self.folder / "console.log", "wb") as log:
            ready.register(self.process.stdout, selectors.EVENT_READ, "console")
            ready.register(self.monitor.here, selectors.EVENT_READ, "qmp")
            while True:
                if limit.is_over():
                    self.kill()
                    raise TimeoutError
                tick()
                for key, _ in ready.select(timeout=0.1):
                    if key.data == "qmp":
                        if not self.monitor.drain():
                            ready.unregister(self.monitor.here)
                        continue
                    data = os.read(self.process.stdout.fileno(), 65536)
                    if not data:
                        self.process.wait()
                        return
                    log.write(data)
                    log.flush()
                    *whole, rest = (rest + data).split(b"\n")
                    for raw in whole:
                        yield self.seconds(), clean(raw), True
                    if rest:
                        yield self.seconds(), clean(rest), False

    def kill(self):
        """End the process group of QEMU, which contains nothing else."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        running.discard(self)
        self.qmp_log.flush()
