// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a uevent, without a socket.
//!
//! `ACTION@DEVPATH`, then `KEY=VALUE` strings, each ended by a NUL (lib/kobject_uevent.c).

use std::fmt;

/// What happened to the device (`enum kobject_action`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The device was added; its sysfs files exist.
    Add,
    /// The device was removed.
    Remove,
    /// An attribute of the device changed.
    Change,
    /// The device was renamed or moved to another parent.
    Move,
    /// A driver was bound to the device.
    Bind,
    /// A driver was unbound from the device.
    Unbind,
    /// The device was set online.
    Online,
    /// The device was set offline.
    Offline,
    /// An action of a newer kernel.
    Other(String),
}

impl From<&str> for Action {
    fn from(text: &str) -> Self {
        match text {
            "add" => Self::Add,
            "remove" => Self::Remove,
            "change" => Self::Change,
            "move" => Self::Move,
            "bind" => Self::Bind,
            "unbind" => Self::Unbind,
            "online" => Self::Online,
            "offline" => Self::Offline,
            _ => Self::Other(text.to_owned()),
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Change => "change",
            Self::Move => "move",
            Self::Bind => "bind",
            Self::Unbind => "unbind",
            Self::Online => "online",
            Self::Offline => "offline",
            Self::Other(text) => text,
        })
    }
}

/// A uevent. It is only a hint: read the device again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uevent {
    /// ACTION.
    pub action: Action,
    /// SUBSYSTEM: `infiniband`, `infiniband_verbs`, `infiniband_mad`, `net`, `pci`.
    pub subsystem: String,
    /// DEVPATH, below /sys: `/devices/virtual/infiniband/rxe0`.
    pub devpath: String,
    /// DEVPATH_OLD, with [`Action::Move`].
    pub devpath_old: Option<String>,
    /// INTERFACE: name of a network device.
    pub interface: Option<String>,
    /// DEVNAME: path of the device node below /dev.
    pub devname: Option<String>,
    /// DRIVER: name of the bound driver.
    pub driver: Option<String>,
    /// SYNTH_UUID: a program asked for this event by a write to the file `uevent` of the device
    /// (Documentation/ABI/testing/sysfs-uevent, Linux 4.13), as udev does once for all devices. The
    /// device did not change.
    pub is_synthetic: bool,
}

impl Uevent {
    /// Name of the device: the last part of its path.
    pub fn name(&self) -> &str {
        self.devpath.rsplit('/').next().unwrap_or_default()
    }
}

/// Read a message; `None` if the message is not a uevent of the kernel, has no ACTION, DEVPATH or
/// SUBSYSTEM, or contradicts itself.
pub fn parse(message: &[u8]) -> Option<Uevent> {
    // Complete strings only: a string without its NUL was truncated.
    let end = message.iter().rposition(|&byte| byte == 0)?;
    let mut strings = message
        .get(..end)?
        .split(|&byte| byte == 0)
        .map(std::str::from_utf8);
    let (action, devpath) = strings.next()?.ok()?.split_once('@')?;
    let mut event = Uevent {
        action: Action::from(action),
        subsystem: String::new(),
        devpath: devpath.to_owned(),
        devpath_old: None,
        interface: None,
        devname: None,
        driver: None,
        is_synthetic: false,
    };
    let mut whole = (false, false, false);
    for string in strings {
        // Keys of other subsystems may have any content.
        let Some((key, value)) = string.ok().and_then(|text| text.split_once('=')) else {
            continue;
        };
        match key {
            "ACTION" => whole.0 = value == action,
            "DEVPATH" => whole.1 = value == devpath,
            "SUBSYSTEM" => {
                whole.2 = !value.is_empty();
                value.clone_into(&mut event.subsystem);
            }
            "DEVPATH_OLD" => event.devpath_old = Some(value.to_owned()),
            "INTERFACE" => event.interface = Some(value.to_owned()),
            "DEVNAME" => event.devname = Some(value.to_owned()),
            "DRIVER" => event.driver = Some(value.to_owned()),
            "SYNTH_UUID" => event.is_synthetic = true,
            _ => {}
        }
    }
    (whole == (true, true, true) && devpath.starts_with('/')).then_some(event)
}
