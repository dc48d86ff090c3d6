// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of all arguments: the source of the reference page, of the manual page and of
//! "did you mean".

mod ib;
mod net;

/// The owner of an argument, who defines its name and meaning.
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
    /// The documentation of the owner.
    pub const fn document(self) -> &'static str {
        match self {
            Self::Dracut => "dracut.cmdline(7)",
            Self::NetworkManager => "nm-initrd-generator(8)",
            Self::BootLoader => "the boot loader's documentation",
            Self::Ibboot => "this page",
        }
    }
}

/// How this version handles an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// ibboot carries the argument out.
    CarriedOut,
    /// ibboot carries the argument out for InfiniBand interfaces, dracut's network module for all
    /// others.
    InfiniBand,
    /// ibboot checks the argument; dracut's network module carries it out.
    LeftToDracut,
    /// ibboot checks the argument; dracut's network module applies it to the interfaces that it sets
    /// up, and no program to InfiniBand interfaces.
    Ethernet,
}

impl Effect {
    /// The note in the documentation, if there is one.
    pub const fn note(self) -> Option<&'static str> {
        match self {
            Self::CarriedOut => None,
            Self::InfiniBand => Some(
                "ibboot applies this argument to InfiniBand interfaces, dracut's network module to all others.",
            ),
            Self::LeftToDracut => {
                Some("ibboot checks this argument; dracut's network module carries it out.")
            }
            Self::Ethernet => Some(
                "dracut's network module applies this argument to the interfaces that it sets up. No program applies it \
                 to InfiniBand interfaces.",
            ),
        }
    }
}

/// One kernel argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Name, up to the `=`.
    pub name: &'static str,
    /// Name and value as a pattern: `[ ]` is optional, `|` separates alternatives, words in
    /// capitals are placeholders.
    pub grammar: &'static str,
    pub default: &'static str,
    /// The description; an empty line separates paragraphs.
    pub help: &'static str,
    /// A valid example.
    pub example: &'static str,
    /// The owner.
    pub origin: Origin,
    /// How this version handles the argument.
    pub effect: Effect,
}

/// A heading and the parameters below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// The introduction to the parameters.
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
    reason = "evaluated at compile time: an index out of range does not compile"
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

/// Every argument of all [`GROUPS`].
pub const PARAMETERS: &[Parameter] = &ALL;
