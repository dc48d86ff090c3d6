# SPDX-License-Identifier: MIT OR Apache-2.0
"""Debian's kernels and small root trees, downloaded into the cache; nothing is installed on the
host."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from .paths import TARGET, Failed, cached, digest, locked, run


@dataclass(frozen=True)
class Release:
    """One Debian release: the series of its kernel and the builder of its initramfs."""

    kernel: str
    suite: str
    chroot_dracut: bool


RELEASES = {
    "6.1": Release("6.1", "bookworm", chroot_dracut=False),
    "6.12": Release("6.12", "trixie", chroot_dracut=True),
}

ROOT_PACKAGES = [
    "systemd-sysv",
    "udev",
    "kmod",
    "iproute2",
    "ibverbs-utils",
    "ibverbs-providers",
    "infiniband-diags",
    "rdmacm-utils",
]
BUILDER_PACKAGES = ROOT_PACKAGES + ["dracut-core", "cpio", "zstd", "e2fsprogs"]
# In addition to systemd-networkd, which is part of systemd.
NETWORK_PACKAGES = BUILDER_PACKAGES + ["dracut-network", "network-manager", "dbus", "procps", "iputils-arping", "isc-dhcp-client"]
FABRIC_PACKAGES = ["opensm", "iputils-ping", "busybox-static", "libgcc-s1", "dnsmasq-base", "isc-dhcp-server"]
# The packages from which dracut's modules for network roots and for network managers copy programs.
STORAGE_PACKAGES = BUILDER_PACKAGES + [
    "dbus",
    "dracut-network",
    "iputils-arping",
    "isc-dhcp-client",
    "jq",
    "mawk",
    "network-manager",
    "nfs-common",
    "nvme-cli",
    "open-iscsi",
    "procps",
    "rpcbind",
]
# The packages for a live image: those of dracut's modules, and those that build the image.
LIVE_PACKAGES = BUILDER_PACKAGES + [
    "curl",
    "dmsetup",
    "dracut-live",
    "dracut-network",
    "iputils-arping",
    "isc-dhcp-client",
    "mawk",
    "procps",
    "squashfs-tools",
]
SERVER_PACKAGES = ["nfs-common", "nfs-kernel-server"]
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
UNWANTED = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"]


def mirror():
    """The address of Debian's main archive in the host's own apt configuration."""
    out = run(["apt-get", "indextargets", "--format", "$(COMPONENT) $(CODENAME) $(REPO_URI)", "Created-By: Packages"])
    for line in out.splitlines():
        component, _, rest = line.partition(" ")
        codename, _, uri = rest.partition(" ")
        if component == "main" and re.fullmatch(r"\S+://\S+", uri) and codename in ("bookworm", "trixie"):
            return uri
    raise Failed("apt: no Debian main archive among the host's sources: run apt-get update, or see /etc/apt")


def apt_options(suite):
    """apt with its own sources, lists and cache, and with the host's proxy and transport
    settings."""
    home = TARGET / "apt" / suite
    for folder in ("lists/partial", "cache/archives/partial"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "status").touch()
    (home / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror()} {suite} main\n")
    pairs = {
        "Dir::Etc::SourceList": home / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": home,
        "Dir::State::lists": home / "lists",
        "Dir::State::status": home / "status",
        "Dir::Cache": home / "cache",
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in pairs.items() for word in ("-o", f"{name}={value}")]


def newest_kernel(suite):
    """The package that the suite's linux-image-amd64 depends on."""
    options = apt_options(suite)
    run(["apt-get", *options, "update"])
    record = run(["apt-cache", *options, "show", "linux-image-amd64"])
    found = re.search(r"^Depends:.*?(linux-image-[0-9][^ ,]*)", record, re.M)
    if not found:
        raise Failed(f"apt: linux-image-amd64 of {suite} names no kernel")
    return found.group(1)


def kernel(release):
    """The folder of an unpacked kernel: boot/vmlinuz-VERSION and lib/modules/VERSION, with
    modules.dep."""
    pin = TARGET / f"kernel-{release.kernel}.package"
    with locked(f"kernel-{release.kernel}.package"):
        if not pin.exists():
            pin.parent.mkdir(parents=True, exist_ok=True)
            pin.write_text(newest_kernel(release.suite))
        package = pin.read_text()

    def build(work):
        options = apt_options(release.suite)
        run(["apt-get", *options, "download", package], cwd=work)
        [deb] = work.glob("*.deb")
        run(["dpkg-deb", "-x", deb, work])
        deb.unlink()
        version = package.removeprefix("linux-image-")
        if (work / "usr/lib/modules").is_dir() and not (work / "lib").exists():
            (work / "lib").symlink_to("usr/lib")
        run(["depmod", "-b", work, version])

    return cached(f"kernel-{release.kernel}", digest(package), build)


def kernel_version(folder):
    """The version of an unpacked kernel, from the name of its modules folder."""
    [modules] = (folder / "lib" / "modules").iterdir()
    return modules.name


def tree(release, purpose):
    """A Debian root tree: `root` to boot into, `builder` with the release's own dracut, `network`
    for both where another program manages networks, `storage` with what dracut takes of a network
    root's protocols, `live` of a live image's, `fabric` and `server` to take programs from."""
    packages = {
        "root": ROOT_PACKAGES,
        "builder": BUILDER_PACKAGES,
        "network": NETWORK_PACKAGES,
        "storage": STORAGE_PACKAGES,
        "live": LIVE_PACKAGES,
        "fabric": FABRIC_PACKAGES,
        "server": SERVER_PACKAGES,
    }[purpose]

    def build(work):
        argv = ["mmdebstrap", "--variant=minbase", f"--include={','.join(packages)}", "--mode=root", "--quiet"]
        argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in UNWANTED]
        argv += ["--aptopt=Apt::Install-Recommends \"false\""]
        argv += [release.suite, work / "tree", f"deb [signed-by={KEYRING}] {mirror()} {release.suite} main"]
        run(argv, log=TARGET / f"mmdebstrap-{release.suite}-{purpose}.log", env=dict(os.environ, LC_ALL="C"))

    return cached(f"{purpose}-tree-{release.suite}", digest(*packages), build) / "tree"


def module_files(folder, names):
    """Paths below an unpacked kernel of modules and their dependencies in modules.dep."""
    modules = folder / "lib" / "modules" / kernel_version(folder)
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        needs[re.sub(r"\.ko(\.\w+)?$", "", Path(path).name).replace("-", "_")] = [path, *rest.split()]
    wanted = sorted({path for name in names for path in needs.get(name, [])})
    return [(modules / path).relative_to(folder) for path in wanted]


def installed_dracut():
    """The version of the host's dracut, part of the key of an image."""
    return run(["dpkg-query", "-W", "-f", "${Version}", "dracut-core"])


