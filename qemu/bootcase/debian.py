# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels and small root trees of Debian's and Ubuntu's suites, downloaded into the cache; nothing is
installed on the host."""

import re
from dataclasses import dataclass
from pathlib import Path

from .arch import AMD64, ARM64, Architecture
from .paths import QEMU_DIR, TARGET, Failed, cached, digest, locked, run


class NotHere(Failed):
    """This machine lacks something without which a release cannot be booted."""


@dataclass(frozen=True)
class Distribution:
    """Where the suites of a distribution come from. `keyring`: a file of the host; otherwise Debian's
    package ubuntu-keyring. `kernel`: the package that depends on the newest kernel, for an architecture."""

    name: str
    components: str
    kernel: str
    keyring: Path | None
    public: str


DEBIAN = Distribution(
    "debian", "main", "linux-image-{}", Path("/usr/share/keyrings/debian-archive-keyring.gpg"), "http://deb.debian.org/debian"
)
UBUNTU = Distribution("ubuntu", "main universe", "linux-image-generic", None, "http://archive.ubuntu.com/ubuntu")


@dataclass(frozen=True)
class Release:
    """A suite: the name of its kernel in cases, the builder of its initramfs, dracut's module for a
    network root where a case names none, that for a LUKS disk, packages that the suite does not have,
    those that dracut needs there in addition, its processor, and whether softib builds for its kernel."""

    kernel: str
    suite: str
    chroot_dracut: bool = True
    distribution: Distribution = DEBIAN
    network: str = "network-legacy"
    crypt: str = "crypt"
    lacks: tuple = ()
    adds: tuple = ()
    architecture: Architecture = AMD64
    has_softib: bool = True

    @property
    def name(self):
        """The suite, with its processor if that is not the host's."""
        return self.architecture.prefix + self.suite

    @property
    def newest_kernel(self):
        """The package that depends on the newest kernel."""
        return self.distribution.kernel.format(self.architecture.name)


# Later versions of dracut have no network-legacy.
RELEASES = {
    release.kernel: release
    for release in [
        # Its systemd-cryptsetup is in the package systemd.
        Release("6.1", "bookworm", chroot_dracut=False, lacks=("systemd-cryptsetup",)),
        Release("6.12", "trixie", crypt="systemd-cryptsetup"),
        Release("5.10", "bullseye"),
        Release("5.4", "focal", distribution=UBUNTU, has_softib=False),
        Release("5.15", "jammy", distribution=UBUNTU),
        Release("6.8", "noble", distribution=UBUNTU),
        Release("7.0", "resolute", distribution=UBUNTU, network="network-manager", adds=("util-linux-extra", "libseccomp2")),
        # The kernel of Debian's testing has no fixed series. Where util-linux has no switch_root, util-linux-extra has it:
        # an initramfs without systemd cannot end without that program.
        Release("testing", "forky", network="network-manager", lacks=("isc-dhcp-client",), adds=("util-linux-extra",)),
        Release("6.1-arm64", "bookworm", architecture=ARM64, has_softib=False),
    ]
}

# The releases of all cases.
BASE = ("6.1", "6.12")
# The releases of the cases that say `everywhere`: softib needs Linux 5.10, and is not built for other processors.
OTHERS = tuple(kernel for kernel, release in RELEASES.items() if kernel not in BASE and release.has_softib)

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
    # dracut's ibft_to_cmdline uses its and()
    "gawk",
    "jq",
    "netbase",
    "network-manager",
    "nfs-common",
    "nvme-cli",
    "open-iscsi",
    "procps",
    "rpcbind",
]
# The packages for a live image: those of dracut's modules, and those that build the image.
LIVE_PACKAGES = BUILDER_PACKAGES + [
    "ca-certificates",
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
# The packages of all that an image can have beside ibboot.
NEIGHBOUR_PACKAGES = STORAGE_PACKAGES + LIVE_PACKAGES + ["kpartx", "multipath-tools", "nbd-client", "rdma-core"]
# In addition those of an encrypted disk; qemu-utils encrypts the image without the kernel.
ENCRYPTED_PACKAGES = NEIGHBOUR_PACKAGES + ["cryptsetup-bin", "qemu-utils", "systemd-cryptsetup"]
# In addition that of a RAID.
RAID_PACKAGES = NEIGHBOUR_PACKAGES + ["mdadm"]
SERVER_PACKAGES = ["nbd-server", "nfs-common", "nfs-kernel-server"]
# What apt says about an archive without the suite, or without the suite's packages for a processor; and the
# harness, because apt says nothing where the suite itself declares that it has none.
NO_KERNEL = "no kernel"
NOT_SERVED = re.compile(rf"does not have a Release file|/binary-\w+/Packages\S*\s+404|^{NO_KERNEL}$")
UNWANTED = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"]


def debian_mirror():
    """The address of Debian's main archive in the host's own apt configuration."""
    out = run(["apt-get", "indextargets", "--format", "$(COMPONENT) $(CODENAME) $(REPO_URI)", "Created-By: Packages"])
    for line in out.splitlines():
        component, _, rest = line.partition(" ")
        codename, _, uri = rest.partition(" ")
        if component == "main" and re.fullmatch(r"\S+://\S+", uri) and codename in ("bookworm", "trixie"):
            return uri
    raise Failed("apt: no Debian main archive among the host's sources: run apt-get update, or see /etc/apt")


def keyring(distribution):
    """The path of the keys that sign the archive. Those of Ubuntu are in a package of Debian, whose keys
    the host has."""
    if distribution.keyring:
        return distribution.keyring
    return unpacked("ubuntu-keyring", RELEASES["6.12"]) / "usr/share/keyrings/ubuntu-archive-keyring.gpg"


def unpacked(package, release):
    """A cached folder with the files of a package."""

    def build(work):
        unpack(updated(release), package, work)

    return cached(package, digest(release.suite), build)


def emulated(architecture):
    """The words in front of a command that starts programs of the processor; none for the host's."""
    if not architecture.emulator:
        return []
    programs = unpacked("qemu-user-static", RELEASES["6.1"]) / "usr/bin"
    return ["bash", QEMU_DIR / "image" / "emulated.sh", programs / architecture.emulator]


def mirror(release):
    """The address of the first archive that serves the suite: for Debian that of the host; for Ubuntu its
    neighbour on the same host, otherwise Ubuntu's own. The error is NotHere if none does."""
    home = debian_mirror()
    if release.distribution is DEBIAN:
        candidates = [home]
    else:
        candidates = [re.sub(r"debian/?$", release.distribution.name, home), release.distribution.public]
    pin = TARGET / "apt" / release.name / "mirror"
    with locked(f"apt-{release.name}"):
        if pin.exists() and pin.read_text() in candidates:
            return pin.read_text()
        why = ""
        for candidate in candidates:
            options = apt_options(release, candidate)
            try:
                # Without this option no answer is a success, with lists that are empty.
                run(["apt-get", *options, "-o", "APT::Update::Error-Mode=any", "update"])
            except Failed as error:
                why = str(error)
                continue
            if release.newest_kernel in run(["apt-cache", *options, "pkgnames", release.newest_kernel]).split():
                pin.write_text(candidate)
                return candidate
            why = NO_KERNEL
    # The other errors of apt are failures: a mirror without answer is not one without the suite.
    if NOT_SERVED.search(why):
        raise NotHere(f"the suite {release.suite} ({release.architecture.name}) is not served by {' or '.join(candidates)}")
    raise Failed(why)


def updated(release):
    """The options of apt, with the newest lists of the suite. apt refuses a second update beside the first one."""
    options = apt_options(release, mirror(release))
    with locked(f"apt-{release.name}"):
        run(["apt-get", *options, "update"])
    return options


def source(release, address):
    """The line of a suite in sources.list. A mirror may be older than a testing suite's Valid-Until."""
    words = f"signed-by={keyring(release.distribution)} check-valid-until=no"
    return f"deb [{words}] {address} {release.suite} {release.distribution.components}"


def apt_options(release, address):
    """apt with its own sources, lists and cache, and with the host's proxy and transport
    settings."""
    home = TARGET / "apt" / release.name
    for folder in ("lists/partial", "cache/archives/partial"):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "status").touch()
    (home / "sources.list").write_text(source(release, address) + "\n")
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
        "APT::Architecture": release.architecture.name,
        "APT::Architectures": release.architecture.name,
    }
    return [word for name, value in pairs.items() for word in ("-o", f"{name}={value}")]


def needs(options, package):
    """The names in Depends of a package."""
    record = run(["apt-cache", *options, "show", "--no-all-versions", package])
    found = re.search(r"^Depends: (.*)$", record, re.M)
    return re.findall(r"(?:^|[,|] )(\S+?)(?=[ ,:]|$)", found.group(1)) if found else []


def newest_kernel(release):
    """The packages of the suite's newest kernel, that of the image first: Ubuntu has the modules in
    packages of their own."""
    options = updated(release)
    first = needs(options, release.newest_kernel)
    images = [name for name in first if re.match(r"linux-image-\d", name)]
    if not images:
        raise Failed(f"apt: {release.newest_kernel} of {release.suite} names no kernel")
    version = images[0].removeprefix("linux-image-")
    packages = images[:1]
    waiting = [*first, *needs(options, images[0])]
    while waiting:
        name = waiting.pop(0)
        if re.fullmatch(rf"linux-(base|binary|modules|modules-extra)-{re.escape(version)}", name) and name not in packages:
            packages.append(name)
            waiting += needs(options, name)
    return packages


def unpack(options, package, folder):
    """Download a package and unpack it into a folder."""
    run(["apt-get", *options, "download", package], cwd=folder)
    [deb] = folder.glob("*.deb")
    run(["dpkg-deb", "-x", deb, folder])
    deb.unlink()


def kernel(release):
    """The folder of an unpacked kernel: boot/vmlinuz-VERSION and lib/modules/VERSION, with
    modules.dep."""
    pin = TARGET / f"kernel-{release.kernel}.package"
    with locked(f"kernel-{release.kernel}.package"):
        if not pin.exists():
            pin.parent.mkdir(parents=True, exist_ok=True)
            pin.write_text(" ".join(newest_kernel(release)))
        packages = pin.read_text().split()

    def build(work):
        # Another folder of the suite may have been removed with the lists.
        options = updated(release)
        for package in packages:
            unpack(options, package, work)
        if (work / "usr/lib/modules").is_dir() and not (work / "lib").exists():
            (work / "lib").symlink_to("usr/lib")
        version = packages[0].removeprefix("linux-image-")
        run(["depmod", "-b", work, version])
        # In Debian testing the kernel is beside its modules; its installation copies it to /boot.
        if not (work / "boot").exists():
            (work / "boot").mkdir()
            (work / f"boot/vmlinuz-{version}").symlink_to(f"../lib/modules/{version}/vmlinuz")

    return cached(f"kernel-{release.kernel}", digest(*packages), build)


def kernel_version(folder):
    """The version of an unpacked kernel, from the name of its modules folder."""
    [modules] = (folder / "lib" / "modules").iterdir()
    return modules.name


def tree(release, purpose):
    """A Debian root tree: `root` to boot into, `builder` with the release's own dracut, `network`
    for both where another program manages networks, `storage` with what dracut takes of a network
    root's protocols, `live` of a live image's, `neighbours` of every module beside ibboot, `encrypted`
    of an encrypted disk, `raid` of a RAID, `fabric` and `server` to take programs from."""
    packages = {
        "root": ROOT_PACKAGES,
        "builder": BUILDER_PACKAGES,
        "network": NETWORK_PACKAGES,
        "storage": STORAGE_PACKAGES,
        "live": LIVE_PACKAGES,
        "neighbours": NEIGHBOUR_PACKAGES,
        "encrypted": ENCRYPTED_PACKAGES,
        "raid": RAID_PACKAGES,
        "fabric": FABRIC_PACKAGES,
        "server": SERVER_PACKAGES,
    }[purpose]

    adds = release.adds if "dracut-core" in packages else ()
    here = [name for name in dict.fromkeys([*packages, *adds]) if name not in release.lacks]
    return bootstrap(f"{release.architecture.prefix}{purpose}-tree-{release.suite}", release, here)


def bootstrap(name, release, packages):
    """A cached root tree of the suite with these packages."""

    argv = ["mmdebstrap", f"--architectures={release.architecture.name}", "--skip=check/qemu"]
    argv += ["--variant=minbase", f"--include={','.join(packages)}", "--mode=root", "--quiet"]
    argv += [f"--dpkgopt=path-exclude={pattern}" for pattern in UNWANTED]
    argv += ["--aptopt=Apt::Install-Recommends \"false\""]
    # /bin, /lib, /sbin are links into /usr, as the installers of these suites make them, too.
    merge = "/usr/share/mmdebstrap/hooks/merged-usr/setup00.sh"
    argv += [f'--setup-hook={merge} "$1"'] if release.suite in ("focal", "bullseye") else []
    # dash of focal links a page into this folder, which no package has where pages are left out.
    argv += ['--setup-hook=mkdir -p "$1/usr/share/man/man1"'] if release.suite == "focal" else []
    argv += [release.suite]

    def build(work):
        words = [*emulated(release.architecture), *argv, work / "tree", source(release, mirror(release))]
        run(words, log=TARGET / f"mmdebstrap-{name}.log")

    # Without the address of the mirror: another one has the same packages.
    return cached(name, digest(*argv, release.distribution.components), build) / "tree"


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


