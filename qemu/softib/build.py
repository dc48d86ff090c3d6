# SPDX-License-Identifier: GPL-2.0-only
"""Build the modules for a kernel, and the test image with these modules."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from bootcase import debian  # noqa: E402
from bootcase.paths import PROJECT, Failed, cached, digest, run  # noqa: E402

SOFTIB = PROJECT / "target" / "softib"
RELEASES = {kernel: debian.RELEASES[kernel] for kernel in (*debian.BASE, *debian.OTHERS)}
MODULE_SOURCES = ["*.c", "*.h", "Kbuild", "Makefile", "selftest/*.c", "selftest/Kbuild"]
# perl or python3: W=1 runs kernel-doc on every file. Ubuntu's headers depend on no compiler.
BUILDER_PACKAGES = ["make", "perl", "python3-minimal", "binutils", "gcc"]
TOOL_PACKAGES = [
    "busybox-static", "dash", "ibverbs-providers", "ibverbs-utils", "infiniband-diags", "iperf3",
    "iproute2", "iputils-ping", "kmod", "libgcc-s1", "nfs-common", "nfs-kernel-server", "open-iscsi", "opensm",
]
PROGRAMS = [
    "dash", "kmod", "ip", "rdma", "ping", "iperf3", "opensm", 
    "ibstat", "ibportstate", "perfquery", "saquery", "sminfo", "smpquery", "ibv_asyncwatch", "ibv_devices", "ibv_devinfo",
    "exportfs", "rpc.mountd", "nfsdcld", "mount.nfs4", "iscsid", "iscsiadm",
]
KMOD_NAMES = ["modprobe", "insmod", "rmmod", "lsmod", "depmod"]
# opensm opens libgcc_s by name when a thread ends
EXTRA_FILES = [
    "usr/lib/x86_64-linux-gnu/libgcc_s.so.1",
    "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
    "etc/libibverbs.d/rxe.driver", "etc/netconfig", "etc/services", "etc/protocols", "etc/passwd", "etc/group",
    "etc/nsswitch.conf", "etc/iscsi/iscsid.conf",
]
# code loads the last ones by name, so modules.dep does not have them
MODULES = [
    "ib_umad", "ib_uverbs", "ib_ipoib", "rdma_cm", "rdma_ucm", "configfs",
    "nfsd", "nfsv4", "rpcrdma",
    "nvmet_rdma", "nvme_rdma", "nvme_fabrics", "ib_isert", "ib_iser", "sd_mod", "target_core_mod", "iscsi_target_mod",
    "crc32c_generic", "crct10dif_generic", "crc64_rocksoft_generic",
]

def module_sources():
    """The sources of both modules, relative to this folder."""
    return sorted(file.relative_to(HERE) for pattern in MODULE_SOURCES for file in HERE.glob(pattern))

def modules(release):
    """A folder with softib.ko and softib_selftest.ko for the release's kernel; warnings are
    failures."""
    version = debian.kernel_version(debian.kernel(release))
    packages = [*BUILDER_PACKAGES, f"linux-headers-{version}"]
    sources = module_sources()
    key = digest(version, *(f"{name}\n{(HERE / name).read_text()}" for name in sources))

    def build(work):
        tree = debian.bootstrap(f"softib-builder-{release.kernel}", release, packages)
        inside = tree / "softib"
        shutil.rmtree(inside, ignore_errors=True)
        for name in sources:
            (inside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE / name, inside / name)
        # objtool reads its limits in /proc.
        inside_tree = ["unshare", "--mount", "sh", "-ec", 'mount -t proc proc "$0/proc"; exec chroot "$0" "$@"', tree]
        log = run([*inside_tree, "make", "-C", "/softib", f"KDIR=/usr/src/linux-headers-{version}", "W=1", "modules"])
        # The tools of a suite may have been updated after its kernel.
        updated = re.compile("(compiler|version) differs from the one used to build the kernel")
        noise = [line for line in log.splitlines() if "warning" in line.lower() and not updated.search(line)]
        if noise:
            raise Failed(f"softib on {version}: {noise[0]}")
        for name in ["softib.ko", "selftest/softib_selftest.ko"]:
            run(["chroot", tree, "strip", "--strip-debug", f"/softib/{name}"])
            shutil.copy(inside / name, work)

    return cached(f"softib-module-{release.kernel}", key, build)

def copy_into(root, tree, name):
    """Copy one file of a tree to the same path of the image, through symbolic links."""
    source = tree / name
    while source.is_symlink():
        target = os.readlink(source)
        source = tree / target.lstrip("/") if target.startswith("/") else source.parent / target
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        shutil.copy(source, place)

def libraries(tree, program):
    """Paths of the shared libraries a program of the tree is linked with, loader included."""
    done = subprocess.run(["chroot", tree, "ldd", f"/{program}"], capture_output=True, text=True)
    words = [word for line in done.stdout.splitlines() for word in line.split()]
    return [merged(word.lstrip("/")) for word in words if word.startswith("/")]

def merged(path):
    """The path below usr: Debian's root folders are links into usr."""
    return path if path.startswith(("usr/", "etc/", "var/")) else f"usr/{path}"

def tools_root(root, tree):
    """Copy programs with their libraries; busybox replaces all others."""
    for folder in ["usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "proc", "sys", "dev", "run", "tmp", "var/log", "etc/opensm"]:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in ["bin", "sbin", "lib", "lib64"]:
        (root / folder).symlink_to(f"usr/{folder}")
    for name in PROGRAMS:
        [path] = [p for p in (f"usr/sbin/{name}", f"usr/bin/{name}") if os.path.lexists(tree / p)][:1]
        for file in [path, *libraries(tree, path)]:
            copy_into(root, tree, file)
    for file in EXTRA_FILES:
        copy_into(root, tree, file)
        for library in libraries(tree, file) if ".so" in file else []:
            copy_into(root, tree, library)
    for name in KMOD_NAMES:
        (root / "usr/sbin" / name).symlink_to("../bin/kmod")
    (root / "usr/bin/sh").symlink_to("dash")
    copy_into(root, tree, "usr/bin/busybox")
    applets = run(["chroot", tree, "busybox", "--list"]).split()
    for applet in applets:
        if not any(os.path.lexists(root / d / applet) for d in ("usr/bin", "usr/sbin")):
            (root / "usr/bin" / applet).symlink_to("busybox")

def modules_root(root, kernel, release):
    """Copy the modules of the kernel and of softib, with their dependencies."""
    version = debian.kernel_version(kernel)
    for file in debian.module_files(kernel, MODULES):
        (root / "usr" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kernel / file, root / "usr" / file)
    place = root / "usr/lib/modules" / version
    for name in ["modules.builtin", "modules.builtin.modinfo", "modules.order"]:
        shutil.copy(kernel / "lib/modules" / version / name, place)
    (place / "updates").mkdir()
    for file in modules(release).glob("*.ko"):
        shutil.copy(file, place / "updates")
    run(["depmod", "-b", root, version])

def image(release):
    """The initramfs of all cases for a release's kernel. Uncompressed images boot fastest under
    TCG."""
    kernel = debian.kernel(release)
    guest = [HERE / "fabric.sh", HERE / "guest", HERE / "cases"]
    key = digest(debian.kernel_version(kernel), modules(release).name, HERE / "build.py", *guest)

    def build(work):
        tree = debian.bootstrap("softib-tools", RELEASES["6.1"], TOOL_PACKAGES)
        root = work / "root"
        tools_root(root, tree)
        modules_root(root, kernel, release)
        (root / "softib").mkdir()
        shutil.copy(HERE / "fabric.sh", root / "softib")
        for script in (HERE / "guest").glob("*.sh"):
            shutil.copy(script, root / "softib")
        shutil.copytree(HERE / "cases", root / "softib/cases")
        shutil.copy(HERE / "guest/init", root / "init")
        with open(work / "initrd", "wb") as out:
            names = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
            subprocess.run(["cpio", "-0", "-o", "-H", "newc", "--quiet"], cwd=root, input=names, stdout=out, check=True)
        shutil.rmtree(root)

    return cached(f"softib-image-{release.kernel}", key, build) / "initrd"
