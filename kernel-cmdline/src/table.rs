// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of everything that is read: the source of the reference page, of the manual
//! page and of "did you mean".

mod ib;
mod net;

/// Who gave an argument its name and meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// dracut.cmdline(7).
    Dracut,
    /// nm-initrd-generator(8).
    NetworkManager,
    /// A boot loader's or firmware's convention.
    BootLoader,
    /// ibboot itself.
    Ibboot,
}

impl Origin {
    /// Where the argument is documented by those who own it.
    pub const fn document(self) -> &'static str {
        match self {
            Self::Dracut => "dracut.cmdline(7)",
            Self::NetworkManager => "nm-initrd-generator(8)",
            Self::BootLoader => "the boot loader's documentation",
            Self::Ibboot => "this page",
        }
    }
}

/// What this version does about an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is read, checked and acted upon.
    CarriedOut,
    /// It is acted upon for InfiniBand interfaces; dracut's network module does the rest.
    InfiniBand,
    /// It is acted upon where ibboot asks a DHCP server; dracut's network module does it elsewhere.
    Dhcp,
    /// It is read and checked; dracut's network module acts upon it.
    LeftToDracut,
}

impl Effect {
    /// What the documentation says about it, if there is anything to say.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::CarriedOut => None,
            Self::InfiniBand => Some(
                "Carried out by ibboot for InfiniBand interfaces; all of Ethernet is left to dracut's network module.",
            ),
            Self::Dhcp => Some(
                "ibboot does it for InfiniBand interfaces, dracut's network module for all other.",
            ),
            Self::LeftToDracut => {
                Some("Read and checked; carried out by dracut's network module, not by ibboot.")
            }
        }
    }
}

/// One kernel argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Name, up to the `=`.
    pub name: &'static str,
    /// Name and value as a pattern: `[ ]` may be left out, `|` separates alternatives,
    /// words in capitals are to be replaced.
    pub grammar: &'static str,
    /// What counts when it is not given.
    pub default: &'static str,
    /// What it does; paragraphs are separated by an empty line.
    pub help: &'static str,
    /// One that works.
    pub example: &'static str,
    /// Who gave it its meaning.
    pub origin: Origin,
    /// What this version does about it.
    pub effect: Effect,
}

/// A heading and the parameters below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// What the parameters have in common.
    pub introduction: &'static str,
    /// The parameters, in the order of the documentation.
    pub parameters: &'static [Parameter],
}

/// Every argument, in the order of the documentation.
pub const GROUPS: &[Group] = &[
    ib::GROUP,
    ib::DRIVERS,
    ib::WAITING,
    net::ADDRESSES,
    net::SETTINGS,
    net::ROOT,
];

const COUNT: usize = {
    let mut count = 0;
    let mut groups = GROUPS;
    while let [group, rest @ ..] = groups {
        count += group.parameters.len();
        groups = rest;
    }
    count
};

#[expect(
    clippy::indexing_slicing,
    reason = "run by the compiler: an index out of range does not compile"
)]
const ALL: [Parameter; COUNT] = {
    let mut all = [ib::GROUP.parameters[0]; COUNT];
    let mut at = 0;
    let mut groups = GROUPS;
    while let [group, rest @ ..] = groups {
        let mut parameters = group.parameters;
        while let [parameter, others @ ..] = parameters {
            all[at] = *parameter;
            at += 1;
            parameters = others;
        }
        groups = rest;
    }
    all
};

/// Every argument of every one of the [`GROUPS`].
pub const PARAMETERS: &[Parameter] = &ALL;
