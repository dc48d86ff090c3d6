# SPDX-License-Identifier: MIT OR Apache-2.0
#
# make          the static program, target/ibboot
# make boot     set up everything and boot a machine without a disk over a software InfiniBand fabric
# make test     set up everything and run the tests
# make test-all the same with the boot cases that make test leaves out for time
# make bench    the budgets of this build
# make size     what each crate costs in the program
# make install  DESTDIR=... PREFIX=/usr
# make dist     target/dist: the source, its crates, the installed files, the list of parts (SBOM)
# make aarch64  the static program for aarch64, and its tests under qemu-user
# make docs     write the reference pages and completions anew from the tables

SHELL = /bin/bash
COMMA := ,
.SHELLFLAGS = -o pipefail -c
# cargo's folder, as cargo itself takes it.
OUT = $(or $(CARGO_TARGET_DIR),target)
MACHINE := $(shell uname -m)
ifdef TARGET
PROGRAM = $(OUT)/$(TARGET)/release/ibboot
ifneq ($(filter aarch64-%,$(filter-out $(MACHINE)-%,$(TARGET))),)
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER ?= aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
endif
else
# musl where its standard library is installed (rustup target add x86_64-unknown-linux-musl): the
# program is smaller and has no code of glibc. Otherwise glibc.
SYSROOT := $(shell $(or $(RUSTC),rustc) --print sysroot 2>/dev/null)
TARGET := $(MACHINE)-unknown-linux-$(if $(wildcard $(SYSROOT)/lib/rustlib/$(MACHINE)-unknown-linux-musl/lib/libstd-*.rlib),musl,gnu)
# A link to the last build: `make install` by root, who may have no compiler, installs what was built.
PROGRAM = $(OUT)/ibboot
endif
PREFIX ?= /usr
SBINDIR ?= $(PREFIX)/sbin
# dracut and systemd look in one place, whatever PREFIX is; distributions differ in the place.
DRACUTDIR ?= /usr/lib/dracut/modules.d
UNITDIR ?= /lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/ibboot

VERSION = $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# No path of the machine that builds is in the program.
CRATES = $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src
# The path of the linker's script is relative: cargo puts its text into the names of symbols.
ifneq ($(findstring -musl,$(TARGET)),)
NO_UNWIND = -C link-arg=-Wl,-T,packaging/no-unwind.ld
# Packed relative relocations: the musl of Rust before 1.93 does not apply them, and the linkers of
# other machines do not write them.
RUST := $(shell $(or $(RUSTC),rustc) --version | sed -n 's/^rustc 1\.\([0-9]*\)\..*/\1/p')
ifneq ($(filter x86_64-%,$(TARGET)),)
RELR = $(if $(RUST),$(shell [ $(RUST) -lt 93 ] || echo -C link-arg=-Wl$(COMMA)-z$(COMMA)pack-relative-relocs))
endif
endif
STATIC = RUSTFLAGS="-C target-feature=+crt-static $(NO_UNWIND) $(RELR) --remap-path-prefix=$(CRATES)=crates --remap-path-prefix=$(CURDIR)=ibboot"

.PHONY: all build setup boot test test-all bench size docs install dist sources licences notices aarch64 clean

all: build

# cargo knows what is up to date.
build:
	$(if $(word 2,$(CURDIR)),$(error $(CURDIR): cargo takes no RUSTFLAGS with a space: build in a folder without one))
	@echo "target $(TARGET): $(if $(findstring -musl,$(TARGET)),musl,glibc; the program is smaller with musl: rustup target add $(subst -gnu,-musl,$(TARGET)))"
	$(STATIC) cargo build --locked --release --target $(TARGET)
	$(if $(filter $(OUT)/ibboot,$(PROGRAM)),ln -sfn $(TARGET)/release/ibboot $(PROGRAM))

setup:
	tests/setup

boot: setup
	$(MAKE) build
	qemu/run --show boot

test: setup
	$(MAKE) build
	tests/run

test-all:
	tests/setup --all
	$(MAKE) build
	tests/run --all

aarch64:
	tests/aarch64

# What each crate and each room costs in the program.
size:
	$(STATIC) CARGO_PROFILE_RELEASE_STRIP=none cargo build --locked --release --target $(TARGET) --target-dir target/size
	tests/size target/size/$(TARGET)/release/ibboot

bench: setup
	$(MAKE) build
	$(STATIC) cargo build --locked --release --target $(TARGET) --example dhcp-client
	tests/bench

docs:
	BLESS=1 cargo test --locked -p kernel-cmdline --test docs
	BLESS=1 cargo test --locked --test pages

install:
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(SBINDIR)/ibboot
	install -d $(DESTDIR)$(DRACUTDIR)/50ibboot
	install -m 755 dracut-module/50ibboot/*.sh $(DESTDIR)$(DRACUTDIR)/50ibboot/
	install -m 644 $(filter-out %.sh,$(wildcard dracut-module/50ibboot/*)) $(DESTDIR)$(DRACUTDIR)/50ibboot/
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) dracut-module/*.service dracut-module/*.timer
	sed -i 's|/usr/sbin/ibboot|$(SBINDIR)/ibboot|' $(DESTDIR)$(UNITDIR)/ibboot-check.service $(DESTDIR)$(UNITDIR)/ibboot-lease.service
	sed -i 's|:-/usr/sbin/ibboot|:-$(SBINDIR)/ibboot|' $(DESTDIR)$(DRACUTDIR)/50ibboot/module-setup.sh
	install -D -m 644 dracut-module/ibboot.sysusers $(DESTDIR)$(SYSUSERSDIR)/ibboot.conf
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man5 man/*.5
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man7 man/*.7
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man8 man/*.8
	install -D -m 644 completions/ibboot.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/ibboot
	install -D -m 644 completions/_ibboot $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_ibboot
	install -D -m 644 completions/ibboot.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/ibboot.fish
	install -D -m 644 -t $(DESTDIR)$(DOCDIR) README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE LICENSE-MIT LICENSE-APACHE
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/kernel-cmdline kernel-cmdline/REFERENCE.md
	cd kernel-cmdline && find examples -type f -exec install -D -m 644 {} $(abspath $(or $(DESTDIR),/))$(DOCDIR)/kernel-cmdline/{} \;
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/docs docs/*.md
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/docs/guides docs/guides/*.md
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/docs/img docs/img/*.svg
	for kind in $(notdir $(wildcard monitoring/*)); do \
	    install -D -m 644 -t $(DESTDIR)$(DOCDIR)/monitoring/$$kind monitoring/$$kind/* || exit; done

# The same commit gives the same bytes: names sorted, no owners, the time of the commit.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))
TAR = tar --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --mtime=@$(EPOCH)
BINARY = ibboot-$(VERSION)-$(TARGET)
DIST = target/dist

dist: build sources
	[ "$$(git status --porcelain --untracked-files=no)" = "" ] || echo "dist: the source archive is the last commit, without your changes" >&2
	# /lib may be a link to /usr/lib: the archive must not replace the link.
	$(MAKE) install DESTDIR=$(DIST)/$(BINARY) UNITDIR=/usr/lib/systemd/system
	$(MAKE) --silent --no-print-directory notices > $(DIST)/$(BINARY)$(DOCDIR)/LICENSE.dependencies
	$(TAR) -C $(DIST) -cf - $(BINARY) | gzip -9n > $(DIST)/$(BINARY).tar.gz
	rm -r $(DIST)/$(BINARY)
	SOURCE_DATE_EPOCH=$(EPOCH) packaging/sbom --target $(TARGET) --program $(PROGRAM) > $(DIST)/$(BINARY).cdx.json
	cd $(DIST) && sha256sum *.tar.gz *.json > SHA256SUMS && cat SHA256SUMS

# The crates in the program: licence, name, version.
licences:
	@cargo tree --locked --target $(TARGET) --edges no-build,no-dev,no-proc-macro --prefix none --format '{l}: {p}' \
		| sed -n 's/ (.*//; s: */ *: OR :g; /: ibboot v\|: kernel-cmdline v/!p' | sort -u

# The same with the texts of the licences.
notices:
	@$(MAKE) --silent --no-print-directory licences | packaging/notices

# What packaging/rpm/ibboot.spec builds from: the source, and its crates for a build without network.
sources:
	rm -rf $(DIST)
	mkdir -p $(DIST)
	git archive --prefix=ibboot-$(VERSION)/ HEAD | gzip -9n > $(DIST)/ibboot-$(VERSION).tar.gz
	cargo vendor --locked --quiet --versioned-dirs $(DIST)/vendor > /dev/null
	$(TAR) -C $(DIST) -cf - vendor | gzip -9n > $(DIST)/ibboot-$(VERSION)-vendor.tar.gz
	rm -r $(DIST)/vendor

clean:
	rm -rf target
