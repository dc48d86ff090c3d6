// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: text of `/sys/class/infiniband` to values; the caller reads the files.
//!
//! Formats: drivers/infiniband/core/sysfs.c of Linux 6.1 and 6.12, and of older kernels where they
//! differ. Every parser takes the file's text with or without a line end and refuses unknown text,
//! with the text in the error: a value that was not understood must not become a guess.

use std::fmt;
use std::net::Ipv6Addr;

use super::types::{Guid, LinkLayer, NodeType, PhysState, PortState, Rate};

/// sysfs shows at most one page; a message shows at most this many characters of it.
const SHOWN_CHARS: usize = 64;

/// Text that is not in the format the kernel documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Name of the quantity: `port state`, `GUID`.
    pub what: &'static str,
    /// The whole text that was read.
    pub raw: String,
}

impl ParseError {
    /// An error about the text `raw` of the quantity `what`.
    pub fn new(what: &'static str, raw: &str) -> Self {
        Self {
            what,
            raw: raw.to_owned(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.raw.chars().take(SHOWN_CHARS).collect();
        let cut = if shown.len() < self.raw.len() {
            "..."
        } else {
            ""
        };
        write!(f, "cannot read {} from {shown:?}{cut}", self.what)
    }
}

impl std::error::Error for ParseError {}

type Result<T> = std::result::Result<T, ParseError>;

/// `ports/N/state`: `4: ACTIVE`. The number decides.
pub fn port_state(raw: &str) -> Result<PortState> {
    numbered("port state", raw)
}

/// `ports/N/phys_state`: `5: LinkUp`. The number decides.
pub fn phys_state(raw: &str) -> Result<PhysState> {
    numbered("physical port state", raw)
}

/// `node_type`: `1: CA`. The number decides.
pub fn node_type(raw: &str) -> Result<NodeType> {
    numbered("node type", raw)
}

/// `ports/N/link_layer`: `InfiniBand`, `Ethernet` or `Unknown`.
pub fn link_layer(raw: &str) -> Result<LinkLayer> {
    raw.trim()
        .parse()
        .map_err(|_: ParseError| ParseError::new("link layer", raw))
}

/// `ports/N/rate`: `200 Gb/sec (4X HDR)`, `2.5 Gb/sec (1X SDR)`; `10 Gb/sec (4X)` on kernels that
/// did not print SDR.
pub fn rate(raw: &str) -> Result<Rate> {
    let text = raw.trim();
    rate_parts(text).ok_or_else(|| ParseError::new("rate", raw))
}

/// `ports/N/rate`, none for `0 GB/sec`: so MLNX_OFED writes that a port has neither speed nor width.
pub fn rate_if_any(raw: &str) -> Result<Option<Rate>> {
    match raw.trim() {
        "0 GB/sec" => Ok(None),
        _ => rate(raw).map(Some),
    }
}

fn rate_parts(text: &str) -> Option<Rate> {
    let (amount, rest) = text.split_once(" Gb/sec (")?;
    let (whole, half) = match amount.strip_suffix(".5") {
        Some(whole) => (whole, 0.5),
        None => (amount, 0.0),
    };
    let lanes = rest.strip_suffix(')')?;
    let (width, speed) = match lanes.split_once("X ") {
        Some((width, speed)) => (width, speed),
        None => (lanes.strip_suffix('X')?, "SDR"),
    };
    let known = !speed.is_empty() && speed.bytes().all(|b| b.is_ascii_alphanumeric());
    known.then_some(())?;
    Some(Rate {
        text: text.to_owned(),
        gbps: f64::from(decimal::<u32>(whole)?) + half,
        width: decimal(width)?,
        speed: speed.to_owned(),
    })
}

/// `ports/N/lid`, `ports/N/sm_lid`: `0x1`. 16 bits on InfiniBand, up to 32 on Omni-Path; 0 means
/// that no LID was assigned, 0xffff is the permissive LID of an unconfigured port.
pub fn lid(raw: &str) -> Result<u32> {
    hexadecimal("LID", raw)
}

/// `ports/N/cap_mask`: `0x2651e848`, bits of PortInfo.CapabilityMask.
pub fn cap_mask(raw: &str) -> Result<u32> {
    hexadecimal("capability mask", raw)
}

/// `ports/N/pkeys/I`: `0x8001`. 0 is an empty slot; bit 15 is full membership.
pub fn pkey(raw: &str) -> Result<u16> {
    hexadecimal("P_Key", raw)
}

/// `ports/N/sm_sl`, `ports/N/lid_mask_count`, `dev_port`, `abi_version`: a decimal number.
pub fn number(what: &'static str, raw: &str) -> Result<u32> {
    decimal(raw.trim()).ok_or_else(|| ParseError::new(what, raw))
}

/// `node_guid`, `sys_image_guid`: `5054:00ff:fe00:0001`; also `0x505400fffe000001`, the `Display`
/// text of [`Guid`].
pub fn guid(raw: &str) -> Result<Guid> {
    Guid::parse_written(raw.trim()).ok_or_else(|| ParseError::new("GUID", raw))
}

/// `ports/N/gids/I`: eight groups, never shortened. All zero (`::`) is an empty slot.
///
/// The high half is the subnet prefix, the low half the port GUID.
pub fn gid(raw: &str) -> Result<Ipv6Addr> {
    let text = raw.trim();
    // Every text of this length has eight whole groups, or an IPv4 address at its end.
    let is_whole = text.len() == 39 && !text.contains('.');
    is_whole
        .then(|| text.parse().ok())
        .flatten()
        .ok_or_else(|| ParseError::new("GID", raw))
}

/// The port GUID of a GID: its low half.
pub fn gid_port_guid(gid: Ipv6Addr) -> Guid {
    let [.., a, b, c, d, e, f, g, h] = gid.octets();
    Guid(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// `fw_ver`, `hca_type`, `board_id`, `hw_rev`, `node_desc`, `ibdev`: free text. Empty text
/// (`fw_ver` of rxe and siw) is `None`. Control characters, which a firmware string may hold,
/// become `?`, so that the text is safe to print.
pub fn text(raw: &str) -> Option<String> {
    let trimmed = raw.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!trimmed.is_empty()).then(|| {
        trimmed
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .collect()
    })
}

/// `N: name`.
fn numbered<T: From<u8>>(what: &'static str, raw: &str) -> Result<T> {
    raw.trim()
        .split_once(": ")
        .filter(|(_, name)| !name.is_empty())
        .and_then(|(number, _)| decimal::<u8>(number))
        .map(T::from)
        .ok_or_else(|| ParseError::new(what, raw))
}

/// Digits only: `FromStr` of the integers also accepts a `+`.
fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

fn hexadecimal<T: TryFrom<u64>>(what: &'static str, raw: &str) -> Result<T> {
    raw.trim()
        .strip_prefix("0x")
        .and_then(hex_digits)
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| ParseError::new(what, raw))
}

fn hex_digits(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused<T: fmt::Debug + PartialEq>(what: &'static str, raw: &str) -> Result<T> {
        Err(ParseError::new(what, raw))
    }

    #[test]
    fn port_states() {
        let table = [
            ("0: NOP\n", PortState::Nop),
            ("1: DOWN\n", PortState::Down),
            ("2: INIT\n", PortState::Init),
            ("3: ARMED", PortState::Armed),
            ("4: ACTIVE\n", PortState::Active),
            ("5: ACTIVE_DEFER\n", PortState::ActiveDefer),
            ("6: UNKNOWN\n", PortState::Unknown(6)),
        ];
        for (raw, expected) in table {
            assert_eq!(port_state(raw), Ok(expected), "{raw:?}");
        }
        for raw in [
            "",
            "4",
            "4:",
            "4: ",
            "ACTIVE",
            "-1: DOWN",
            "+4: ACTIVE",
            "256: NOP",
            ": NOP",
        ] {
            assert_eq!(port_state(raw), refused("port state", raw), "{raw:?}");
        }
    }

    #[test]
    fn phys_states_and_node_types() {
        assert_eq!(phys_state("5: LinkUp\n"), Ok(PhysState::LinkUp));
        assert_eq!(phys_state("7: Phy Test\n"), Ok(PhysState::PhyTest));
        assert_eq!(phys_state("9: <unknown>\n"), Ok(PhysState::Unknown(9)));
        assert_eq!(
            phys_state("LinkUp"),
            refused("physical port state", "LinkUp")
        );
        assert_eq!(node_type("1: CA\n"), Ok(NodeType::Ca));
        assert_eq!(node_type("6: usNIC UDP\n"), Ok(NodeType::UsnicUdp));
        assert_eq!(node_type("CA"), refused("node type", "CA"));
    }

    #[test]
    fn rates() {
        let table = [
            ("2.5 Gb/sec (1X SDR)\n", 2.5, 1, "SDR"),
            ("10 Gb/sec (4X)\n", 10.0, 4, "SDR"),
            ("10 Gb/sec (4X SDR)\n", 10.0, 4, "SDR"),
            ("40 Gb/sec (4X FDR10)\n", 40.0, 4, "FDR10"),
            ("56 Gb/sec (4X FDR)\n", 56.0, 4, "FDR"),
            ("100 Gb/sec (2X HDR)\n", 100.0, 2, "HDR"),
            ("200 Gb/sec (4X HDR)\n", 200.0, 4, "HDR"),
            ("800 Gb/sec (4X XDR)", 800.0, 4, "XDR"),
            ("2400 Gb/sec (12X XDR)", 2400.0, 12, "XDR"),
        ];
        for (raw, gbps, width, speed) in table {
            let expected = Rate {
                text: raw.trim().to_owned(),
                gbps,
                width,
                speed: speed.to_owned(),
            };
            assert_eq!(rate(raw), Ok(expected), "{raw:?}");
        }
        for raw in [
            "",
            "200",
            "200 Gb/sec",
            "200 Gb/sec ()",
            "200 Gb/sec (X HDR)",
            "200 Gb/sec (4 HDR)",
            "200 Gb/sec (4X )",
            "200 Gb/sec (4X HDR",
            "200.7 Gb/sec (4X HDR)",
            ".5 Gb/sec (1X SDR)",
            "-1 Gb/sec (1X SDR)",
            "200 Gb/sec (256X HDR)",
            "4294967296 Gb/sec (4X HDR)",
        ] {
            assert_eq!(rate(raw), refused("rate", raw), "{raw:?}");
        }
    }

    #[test]
    fn only_one_text_says_that_there_is_no_rate() {
        assert_eq!(rate_if_any("0 GB/sec\n"), Ok(None));
        assert_eq!(
            rate_if_any("40 Gb/sec (4X QDR)\n"),
            rate("40 Gb/sec (4X QDR)").map(Some)
        );
        for raw in ["0 Gb/sec", "0 GB/sec (4X)", "1 GB/sec", ""] {
            assert_eq!(rate_if_any(raw), refused("rate", raw), "{raw:?}");
        }
    }

    #[test]
    fn hexadecimal_numbers() {
        assert_eq!(lid("0x1\n"), Ok(1));
        assert_eq!(lid("0xffff\n"), Ok(0xffff));
        assert_eq!(lid("0x2c000\n"), Ok(0x2c000));
        assert_eq!(pkey("0x8001\n"), Ok(0x8001));
        assert_eq!(pkey("0x0000\n"), Ok(0));
        assert_eq!(cap_mask("0x2651e848\n"), Ok(0x2651_e848));
        for raw in ["", "0x", "1", "0x10000", "0x-1", "0x+1", "0xg", "0X1"] {
            assert_eq!(pkey(raw), refused("P_Key", raw), "{raw:?}");
        }
        assert_eq!(lid("0x100000000"), refused("LID", "0x100000000"));
    }

    #[test]
    fn decimal_numbers() {
        assert_eq!(number("SM SL", "7\n"), Ok(7));
        assert_eq!(number("SM SL", "+7"), refused("SM SL", "+7"));
        assert_eq!(number("SM SL", ""), refused("SM SL", ""));
    }

    #[test]
    fn guids_and_gids() {
        let expected = Guid(0x5054_00ff_fe00_0001);
        assert_eq!(guid("5054:00ff:fe00:0001\n"), Ok(expected));
        assert_eq!(guid("0x505400fffe000001"), Ok(expected));
        for raw in [
            "",
            "5054:00ff:fe00",
            "5054:00ff:fe00:0001:0000",
            "5054:ff:fe00:0001",
            "5054::fe00:0001",
            "0x1",
            "0x505400fffe00000g",
            "505400fffe000001",
        ] {
            assert_eq!(guid(raw), refused("GUID", raw), "{raw:?}");
        }
        let link_local = gid("fe80:0000:0000:0000:5054:00ff:fe00:0001\n");
        assert_eq!(
            link_local,
            Ok(Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe00, 1))
        );
        assert_eq!(link_local.map(gid_port_guid), Ok(expected));
        assert_eq!(
            gid("0000:0000:0000:0000:0000:0000:0000:0000\n"),
            Ok(Ipv6Addr::UNSPECIFIED)
        );
        for raw in [
            "",
            "fe80::1",
            "fe80:0000:0000:0000:0000:0000:10.20.3.4",
            "fe80:0000:0000:0000:5054:00ff:fe00:000g",
            "fe80:0000:0000:0000:5054:00ff:fe00:0001:0000",
        ] {
            assert_eq!(gid(raw), refused("GID", raw), "{raw:?}");
        }
    }

    #[test]
    fn free_text() {
        assert_eq!(text("20.31.1014\n"), Some("20.31.1014".to_owned()));
        assert_eq!(text("\n"), None);
        assert_eq!(text("\0\0"), None);
        assert_eq!(text("a\x1b[2Jb"), Some("a?[2Jb".to_owned()));
    }

    #[test]
    fn an_error_keeps_all_and_shows_little() {
        let long = "x".repeat(4096);
        let error = ParseError::new("rate", &long);
        assert_eq!(error.raw.len(), 4096);
        assert_eq!(
            error.to_string(),
            format!("cannot read rate from \"{}\"...", "x".repeat(64))
        );
        assert_eq!(
            ParseError::new("LID", "\x1b[2J\n").to_string(),
            r#"cannot read LID from "\u{1b}[2J\n""#
        );
    }

    proptest! {
        /// Every parser accepts any text or returns an error that holds the whole text.
        #[test]
        fn any_text_is_answered(raw in "\\PC*|[0-9a-fx:. X()GSbec/]{0,40}") {
            let errors = [
                port_state(&raw).err(),
                phys_state(&raw).err(),
                node_type(&raw).err(),
                link_layer(&raw).err(),
                rate(&raw).err(),
                lid(&raw).err(),
                pkey(&raw).err(),
                guid(&raw).err(),
                gid(&raw).err(),
            ];
            for error in errors.into_iter().flatten() {
                prop_assert_eq!(&error.raw, &raw);
            }
        }

        #[test]
        fn guid_text_round_trips(value: u64) {
            prop_assert_eq!(guid(&Guid(value).to_string()), Ok(Guid(value)));
        }
    }
}
