// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of a uevent, without a socket.
//!
//! `ACTION@DEVPATH`, then `KEY=VALUE` strings, each ended by a NUL (lib/kobject_uevent.c).

/// A uevent. It is only a hint: read the device again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uevent {
    /// ACTION: `add`, `remove` or another word (`enum kobject_action`).
    pub action: String,
    /// SUBSYSTEM: `infiniband`, `infiniband_verbs`, `infiniband_mad`, `net`, `pci`.
    pub subsystem: String,
    /// DEVPATH, below /sys: `/devices/virtual/infiniband/rxe0`.
    pub devpath: String,
    /// SYNTH_UUID: a program asked for this event by a write to the file `uevent` of the device
    /// (Documentation/ABI/testing/sysfs-uevent, Linux 4.13), as udev does once for all devices. The
    /// device did not change.
    pub is_synthetic: bool,
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
        action: action.to_owned(),
        subsystem: String::new(),
        devpath: devpath.to_owned(),
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
            "SYNTH_UUID" => event.is_synthetic = true,
            _ => {}
        }
    }
    (whole == (true, true, true) && devpath.starts_with('/')).then_some(event)
}
