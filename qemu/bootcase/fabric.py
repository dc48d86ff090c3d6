# SPDX-License-Identifier: MIT OR Apache-2.0
"""The InfiniBand fabric of a case: softib, the far end's programs and scripts, as an archive behind
the initramfs.

The initramfs itself stays as dracut built it. The archive includes the loader and the libraries of
the programs, so that the same programs run in the initramfs of every release and, copied to /run, in
every root.
"""

import subprocess
from pathlib import Path

from . import debian, images
from .paths import GUEST, QEMU_DIR, Failed, cached, digest, run

SOFTIB = QEMU_DIR / "softib"
SCRIPTS = GUEST / "98ibboot-fabric"
PLACE = "ibboot-fabric"
PROGRAMS = ["usr/sbin/opensm", "usr/bin/ping", "usr/sbin/dnsmasq", "usr/sbin/dhcpd"]
# opensm opens libgcc_s by name when a thread ends.
MORE_LIBRARIES = ["/lib/x86_64-linux-gnu/libgcc_s.so.1"]
SERVER = f"{PLACE}/server"
# For each protocol of a root file system whose server is not all the kernel's.
SERVER_PROGRAMS = {"nfs": ["usr/sbin/exportfs", "usr/sbin/rpc.mountd", "usr/sbin/nfsdcld"], "nbd": ["usr/bin/nbd-server"]}
SERVER_FILES = ["etc/netconfig", "etc/services", "etc/protocols", "etc/passwd", "etc/group", "etc/nsswitch.conf"]
# The root image has these programs, too.
UDEV_RULES = "usr/lib/udev/rules.d/79-softib-names.rules"
LOADER = "ld-linux-x86-64.so.2"


def libraries(tree, programs=tuple(PROGRAMS), more=tuple(MORE_LIBRARIES)):
    """{file name: path in the tree} of the libraries of the programs, including the loader."""
    found = list(more)
    for program in programs:
        out = run(["chroot", tree, "ldd", f"/{program}"])
        found += [word for line in out.splitlines() for word in line.split() if word.startswith("/")]
    return {Path(path).name: path for path in found}


def real(tree, path):
    """The file of a path in a tree; links are resolved inside the tree."""
    found = subprocess.run(["chroot", tree, "readlink", "-f", path], capture_output=True, text=True, check=True).stdout
    return tree / found.strip().lstrip("/")


def server(storage):
    """The bytes of an archive with a server of the disk in its own root directory, so that it survives
    the initramfs; empty if the protocol needs no program."""
    programs = SERVER_PROGRAMS.get(storage)
    if not programs:
        return b""
    tree = debian.tree(debian.RELEASES["6.1"], "server")

    def build(work):
        files = {f"{SERVER}/{name}": tree / name for name in programs}
        files |= {f"{SERVER}/{name}": real(tree, f"/{name}") for name in SERVER_FILES}
        for name, path in libraries(tree, programs).items():
            files[f"{SERVER}/lib/{name}"] = real(tree, path)
        files[f"{SERVER}/bin/@ld"] = files[f"{SERVER}/lib/{LOADER}"]
        (work / "cpio").write_bytes(images.newc({name: path.read_bytes() for name, path in files.items()}))

    return (cached(f"fabric-server-{storage}", digest(tree.parent.name, Path(__file__)), build) / "cpio").read_bytes()


def module(release):
    """softib.ko for the release's kernel."""
    argv = [str(SOFTIB / "run"), "--modules", "--kernel", release.kernel]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failed("softib: not built: run qemu/softib/run --modules")
    return Path(done.stdout.strip().splitlines()[-1]) / "softib.ko"


def archive(release):
    """The bytes of the archive."""
    tree = debian.tree(debian.RELEASES["6.1"], "fabric")
    softib = module(release)
    kernel = debian.kernel(release)

    def build(work):
        files = {f"{PLACE}/libexec/{Path(name).name}": tree / name for name in PROGRAMS}
        files[f"{PLACE}/bin/busybox"] = tree / "usr/bin/busybox"
        files[f"{PLACE}/softib.ko"] = softib
        # For a far end with additional networks.
        files |= {f"{PLACE}/{path.name}": kernel / path for path in debian.module_files(kernel, ["veth"])}
        files[f"{PLACE}/fabric.sh"] = SOFTIB / "fabric.sh"
        for script in SCRIPTS.iterdir():
            files[f"{PLACE}/{script.name}"] = script
        for name, path in libraries(tree).items():
            files[f"{PLACE}/lib/{name}"] = real(tree, path)
        files[f"{PLACE}/bin/@ld"] = files[f"{PLACE}/lib/{LOADER}"]
        files["usr/sbin/opensm"] = SCRIPTS / "opensm"
        files[UDEV_RULES] = SCRIPTS / Path(UDEV_RULES).name
        (work / "cpio").write_bytes(images.newc({name: path.read_bytes() for name, path in files.items()}))

    key = digest(tree.parent.name, kernel.name, softib, SOFTIB / "fabric.sh", SCRIPTS, Path(__file__))
    return (cached(f"fabric-{release.kernel}", key, build) / "cpio").read_bytes()
