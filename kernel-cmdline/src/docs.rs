// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference page and the manual page, written from [`crate::GROUPS`].

use core::fmt;
use core::fmt::Write;

use crate::table::{GROUPS, Origin, Parameter};

/// The paragraphs in front of the table, on both pages.
const INTRODUCTION: &[&str] = &[
    "The kernel arguments that ibboot reads in the initramfs. Existing arguments keep their meaning; the arguments \
     that begin with rd.ib. are ibboot's own.",
    "In an initramfs they are read from /etc/cmdline.d/*.conf, /etc/cmdline, /proc/cmdline and \
     /run/initramfs/cmdline.d/*.conf, in this order; elsewhere from /proc/cmdline only, but ibboot plan \
     always reads all of them. A newline is a space, and # begins no comment. Names are compared exactly: - and _ \
     differ, except in the names of modules.",
    "Arguments are separated by spaces. A double quote begins or ends a part in which spaces do not separate; there \
     are no escapes. Quotes around a whole argument or a whole value are removed.",
    "If an argument that may be given only once is repeated, the last one applies. A switch is off with 0, no or off, \
     and on with 1, yes, on, y, true or without a value. Any other value counts as 1, and ibboot warns of that value.",
    "ibboot shows **** in place of possible secrets: a value, or the part of one, that ibboot does not read, and the \
     user, the password and the text after a ? or # of an address (nfs:SERVER:/PATH has none of these). After white \
     space in a value, except that of rd.net.dhcp.vendor-class=, the text is hidden too: a quote may be missing.",
    "ibboot reports an unknown or invalid argument with its position (source and byte column). Such an argument has no \
     effect, and it alone never stops the boot:",
];

/// An example of a complaint.
const COMPLAINT: &str =
    "/proc/cmdline:57: rd.ib.mod=****: unknown argument; did you mean rd.ib.mode?";

/// A section of terms with their meanings.
#[derive(Debug)]
pub struct Section {
    /// The word that stands for the section in a command.
    pub name: &'static str,
    /// The heading of the section on a page.
    pub title: &'static str,
    /// What the terms have in common.
    pub introduction: &'static str,
    /// Each term with its meaning.
    pub terms: &'static [(&'static str, &'static str)],
}

/// The sections behind the table, on both pages.
pub const SECTIONS: &[Section] = &[
    Section {
        name: "selectors",
        title: "Selectors",
        introduction: "SELECTOR selects ports. An argument with a value after the selector is split from the right, so \
                       the selector may contain colons.",
        terms: &[
            ("mlx5_0", "every port of this RDMA device"),
            (
                "mlx5_0:1",
                "port 1 of this RDMA device; mlx5_0/1 means the same, and is the only spelling in ip=, bond= and rd.route=, whose fields have colons between them",
            ),
            (
                "guid=0x0002c903000a1b2c",
                "the port with this port GUID, in any spelling of a hardware address; guid= may be omitted before 0x and before an address with separators",
            ),
            (
                "pci=0000:81:00.0",
                "every port of the device at this PCI address; domain 0 and pci= may be omitted",
            ),
            (
                "ib0",
                "the port below this network interface, RoCE bond or VLAN; if an RDMA device has the same name, arguments for interfaces mean the interface, rd.ib.require= and rd.ib.rate= mean the device",
            ),
        ],
    },
    Section {
        name: "addresses",
        title: "Hardware addresses",
        introduction: "Two hexadecimal digits for each byte, upper or lower case, with colons or with dashes between \
                       them. Only the last 8 bytes of an InfiniBand address, the port GUID, are the same at every boot; \
                       ibboot compares only these.",
        terms: &[
            (
                "b8:ce:f6:31:33:3e",
                "6 bytes: Ethernet, or a GUID without the two bytes in its middle",
            ),
            (
                "01-b8-ce-f6-31-33-3e",
                "6 bytes after the hardware type of Ethernet",
            ),
            (
                "20-b8-ce-f6-31-33-3e",
                "6 bytes after the hardware type of InfiniBand",
            ),
            ("b8:ce:f6:03:00:31:33:3e", "8 bytes: a GUID"),
            ("b8ce:f603:0031:333e", "a GUID as sysfs writes it"),
            ("0xb8cef6030031333e", "a GUID as a number"),
            (
                "20:b8:ce:f6:03:00:31:33:3e",
                "a GUID after the hardware type of InfiniBand, as EFI writes it",
            ),
            (
                "80:00:02:08:fe:80:00:00:00:00:00:00:b8:ce:f6:03:00:31:33:3e",
                "20 bytes: an IPoIB address as ip link shows it",
            ),
        ],
    },
];

/// Whole command lines with their purposes.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "rd.driver.post=mlx5_ib,ib_ipoib,ib_umad,rdma_ucm rd.neednet=1 rd.timeout=0 rd.retry=160",
        "Load the drivers of a ConnectX card, and wait up to 160 seconds until any InfiniBand port is verified.",
    ),
    (
        "rd.driver.post=mlx5_ib,ib_ipoib rd.ib.require=ib:all,-pci=0000:dc:00.0 rd.ib.rate=400",
        "Every InfiniBand card on the bus must be verified, except the spare in one slot. A card that the driver could \
         not start is reported, not left out.",
    ),
    (
        "rd.ib.link=rxe0:rxe:eth0 rd.ib.require=rxe0:1 rd.ib.timeout=60 rd.ib.onfail=continue",
        "Soft-RoCE on eth0; after a minute the boot continues even without it.",
    ),
    (
        "rd.driver.post=mlx5_ib rd.ib.require=mlx5_0:1,mlx5_1:1 rd.ib.rate=100",
        "Both cards must be verified, each with at least 100 Gb/s.",
    ),
    (
        "root=nfs4:10.0.0.1:/srv/root:rdma,port=20049 ip=ib0:dhcp bootdev=ib0 rd.driver.post=mlx5_ib,ib_ipoib,rpcrdma",
        "A root file system over NFS/RDMA.",
    ),
];

/// Writes the reference page (kernel-cmdline/REFERENCE.md).
pub fn write_reference(out: &mut impl Write) -> fmt::Result {
    out.write_str("# Kernel arguments of ibboot\n\n")?;
    out.write_str("<!-- Written from kernel-cmdline/src/table; `BLESS=1 cargo test -p kernel-cmdline` renews it. -->\n")?;
    for paragraph in INTRODUCTION {
        write!(out, "\n{paragraph}\n")?;
    }
    write!(out, "\n```\n{COMPLAINT}\n```\n")?;
    for group in GROUPS {
        write!(out, "\n## {}\n\n{}\n", group.title, group.introduction)?;
        for parameter in group.parameters {
            reference_entry(out, parameter)?;
        }
    }
    for section in SECTIONS {
        write!(
            out,
            "\n## {}\n\n{}\n\n| written | means |\n|---|---|\n",
            section.title, section.introduction
        )?;
        for (term, meaning) in section.terms {
            writeln!(out, "| `{term}` | {meaning} |")?;
        }
    }
    out.write_str("\n## Examples\n")?;
    for (line, meaning) in EXAMPLES {
        write!(out, "\n{meaning}\n\n```\n{line}\n```\n")?;
    }
    Ok(())
}

fn reference_entry(out: &mut impl Write, parameter: &Parameter) -> fmt::Result {
    write!(out, "\n### `{}`\n\n", parameter.name)?;
    for form in parameter.grammar.split(" | ") {
        writeln!(out, "    {form}")?;
    }
    for paragraph in parameter.help.split("\n\n") {
        write!(out, "\n{paragraph}\n")?;
    }
    write!(
        out,
        "\nDefault: {}. Example: `{}`.",
        parameter.default, parameter.example
    )?;
    if parameter.origin != Origin::Ibboot {
        write!(out, " See also {}.", parameter.origin.document())?;
    }
    if let Some(note) = parameter.effect.note() {
        write!(out, "\n\n*{note}*")?;
    }
    out.write_str("\n")
}

/// Writes the manual page (man/ibboot.cmdline.7), in roff with the man macros.
pub fn write_manual(out: &mut impl Write) -> fmt::Result {
    out.write_str(".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n")?;
    out.write_str(".\\\" Written from kernel-cmdline/src/table; `BLESS=1 cargo test -p kernel-cmdline` renews it.\n")?;
    out.write_str(".TH IBBOOT.CMDLINE 7 \"2026-11-22\" \"ibboot\" \"Kernel arguments\"\n")?;
    out.write_str(
        ".SH NAME\nibboot.cmdline \\- kernel arguments for InfiniBand and RoCE in early boot\n",
    )?;
    out.write_str(".SH DESCRIPTION\n")?;
    for (at, paragraph) in INTRODUCTION.iter().enumerate() {
        if at > 0 {
            out.write_str(".PP\n")?;
        }
        roff_line(out, "", paragraph)?;
    }
    example(out, COMPLAINT)?;
    for group in GROUPS {
        heading(out, group.title)?;
        roff_line(out, "", group.introduction)?;
        for parameter in group.parameters {
            manual_entry(out, parameter)?;
        }
    }
    for section in SECTIONS {
        heading(out, section.title)?;
        roff_line(out, "", section.introduction)?;
        for (term, meaning) in section.terms {
            out.write_str(".TP\n")?;
            roff_line(out, ".B ", term)?;
            roff_line(out, "", meaning)?;
        }
    }
    heading(out, "Examples")?;
    for (at, (line, meaning)) in EXAMPLES.iter().enumerate() {
        if at > 0 {
            out.write_str(".PP\n")?;
        }
        roff_line(out, "", meaning)?;
        example(out, line)?;
    }
    heading(out, "See also")?;
    out.write_str(".BR ibboot (8),\n.BR dracut.cmdline (7),\n.BR nm\\-initrd\\-generator (8),\n.BR modprobe.d (5)\n")
}

fn manual_entry(out: &mut impl Write, parameter: &Parameter) -> fmt::Result {
    for (at, form) in parameter.grammar.split(" | ").enumerate() {
        out.write_str(if at == 0 { ".TP\n" } else { ".TQ\n" })?;
        roff_line(out, ".B ", form)?;
    }
    for (at, paragraph) in parameter.help.split("\n\n").enumerate() {
        if at > 0 {
            out.write_str(".IP\n")?;
        }
        roff_line(out, "", paragraph)?;
    }
    out.write_str(".IP\n")?;
    write!(Roff(out), "Default: {}.", parameter.default)?;
    out.write_str("\n.br\nExample:\n.B ")?;
    // A terminal of 80 columns has 66 for an example. A longer one may be broken after each colon.
    let point = if parameter.example.len() > 66 {
        "\\:"
    } else {
        ""
    };
    for piece in parameter.example.split_inclusive(':') {
        Roff(out).write_str(piece)?;
        out.write_str(point)?;
    }
    out.write_str("\n")?;
    if parameter.origin != Origin::Ibboot {
        out.write_str(".br\n")?;
        write!(Roff(out), "See also {}.", parameter.origin.document())?;
        out.write_str("\n")?;
    }
    match parameter.effect.note() {
        Some(note) => {
            out.write_str(".IP\n")?;
            roff_line(out, ".I ", note)
        }
        None => Ok(()),
    }
}

fn heading(out: &mut impl Write, title: &str) -> fmt::Result {
    out.write_str(".SH ")?;
    for character in title.chars() {
        out.write_char(character.to_ascii_uppercase())?;
    }
    out.write_str("\n")
}

fn example(out: &mut impl Write, line: &str) -> fmt::Result {
    out.write_str(".PP\n.nf\n.RS\n")?;
    roff_line(out, "", line)?;
    out.write_str(".RE\n.fi\n")
}

fn roff_line(out: &mut impl Write, request: &str, text: &str) -> fmt::Result {
    out.write_str(request)?;
    // roff reads a dot or an apostrophe at the start of a line as a request.
    if request.is_empty() && text.starts_with(['.', '\'']) {
        out.write_str("\\&")?;
    }
    Roff(out).write_str(text)?;
    out.write_str("\n")
}

/// Escapes text for roff.
struct Roff<'w, W: Write>(&'w mut W);

impl<W: Write> Write for Roff<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '\\' => self.0.write_str("\\e")?,
                '-' => self.0.write_str("\\-")?,
                '\'' => self.0.write_str("\\(aq")?,
                '"' => self.0.write_str("\\(dq")?,
                '`' => self.0.write_str("\\(ga")?,
                '^' => self.0.write_str("\\(ha")?,
                '~' => self.0.write_str("\\(ti")?,
                other => self.0.write_char(other)?,
            }
        }
        Ok(())
    }
}
