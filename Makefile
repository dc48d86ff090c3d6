# SPDX-License-Identifier: MIT OR Apache-2.0
#
# make          the static program, target/TARGET/release/ibboot
# make boot     set up everything and boot a machine without a disk over a software InfiniBand fabric
# make test     set up everything and run the tests
# make test-all the same with the boot cases that make test leaves out for time
# make bench    the budgets of this build
# make install  DESTDIR=... PREFIX=/usr
# make dist     target/dist: the source, and the installed files with the static program, as tar files
# make docs     write the reference pages anew from the parameter table

SHELL = /bin/bash
TARGET ?= $(shell uname -m)-unknown-linux-gnu
PREFIX ?= /usr
# Distributions differ in where dracut and systemd look; both of these follow PREFIX.
SBINDIR ?= $(PREFIX)/sbin
DRACUTDIR ?= $(PREFIX)/lib/dracut/modules.d
UNITDIR ?= /lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/ibboot

VERSION = $(shell sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
PROGRAM = target/$(TARGET)/release/ibboot
# No path of the machine that builds is in the program.
CRATES = $(or $(CARGO_HOME),$(HOME)/.cargo)/registry/src
STATIC = RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$(CRATES)=crates --remap-path-prefix=$(CURDIR)=ibboot"

.PHONY: all build setup boot test test-all bench docs install dist clean

all: build

# cargo knows what is up to date.
build:
	$(STATIC) cargo build --locked --release --target $(TARGET)

setup:
	tests/setup

boot: setup
	$(MAKE) build
	qemu/run --show boot

test: setup
	$(MAKE) build
	tests/run

test-all: setup
	$(MAKE) build
	tests/run --all

bench: setup
	$(MAKE) build
	$(STATIC) cargo build --locked --release --target $(TARGET) --example dhcp-client
	tests/bench

docs:
	BLESS=1 cargo test --locked -p kernel-cmdline --test docs

install:
	install -D -m 755 $(PROGRAM) $(DESTDIR)$(SBINDIR)/ibboot
	install -d $(DESTDIR)$(DRACUTDIR)/50ibboot
	install -m 755 dracut-module/50ibboot/*.sh $(DESTDIR)$(DRACUTDIR)/50ibboot/
	install -m 644 $(filter-out %.sh,$(wildcard dracut-module/50ibboot/*)) $(DESTDIR)$(DRACUTDIR)/50ibboot/
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) dracut-module/*.service dracut-module/*.timer
	install -D -m 644 dracut-module/ibboot.sysusers $(DESTDIR)$(SYSUSERSDIR)/ibboot.conf
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man5 man/*.5
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man7 man/*.7
	install -D -m 644 -t $(DESTDIR)$(MANDIR)/man8 man/*.8
	install -D -m 644 -t $(DESTDIR)$(DOCDIR) README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE kernel-cmdline/REFERENCE.md
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/docs docs/*.md
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/docs/guides docs/guides/*.md
	for kind in $(notdir $(wildcard monitoring/*)); do \
	    install -D -m 644 -t $(DESTDIR)$(DOCDIR)/monitoring/$$kind monitoring/$$kind/* || exit; done

# The same commit gives the same bytes: names sorted, no owners, the time of the commit.
TAR = tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@$(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct))
BINARY = ibboot-$(VERSION)-$(TARGET)

dist: build
	rm -rf target/dist
	$(MAKE) install DESTDIR=target/dist/$(BINARY)
	$(TAR) -C target/dist -cf - $(BINARY) | gzip -9n > target/dist/$(BINARY).tar.gz
	rm -r target/dist/$(BINARY)
	git archive --prefix=ibboot-$(VERSION)/ HEAD | gzip -9n > target/dist/ibboot-$(VERSION).tar.gz
	cd target/dist && sha256sum *.tar.gz > SHA256SUMS && cat SHA256SUMS

clean:
	rm -rf target
