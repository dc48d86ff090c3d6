// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the facts do not have: PCI functions and their drivers, versions, and the kernel's lines about
//! RDMA devices.

use std::fmt::Write as _;

use super::claim::Claim;
use crate::error::errno_text;
use crate::facts::Facts;
use crate::plan::Inventory;
use crate::system::clock::seconds;
use crate::system::kmsg;
use crate::system::root::Root;

/// PCI classes of InfiniBand controllers and of Fabric controllers (PCI Code and ID Assignment
/// Specification): network 02, InfiniBand 07; serial bus 0c, InfiniBand 06.
const CLASSES: [&str; 2] = ["0x0207", "0x0c06"];

/// A function of the PCI bus that is an HCA by its class or by an alias of an HCA driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// `0000:81:00.0`.
    pub address: String,
    /// `class` of sysfs: `0x020700`.
    pub class: String,
    /// `vendor:device`, four hexadecimal digits each.
    pub id: String,
    /// The bound driver.
    pub driver: Option<String>,
}

/// The HCAs on the PCI bus.
pub fn functions(root: &Root) -> Result<Vec<Function>, String> {
    let inventory = Inventory::read(root).map_err(|e| e.to_string())?;
    let mut found = Vec::new();
    for function in inventory.pci {
        let base = format!("/sys/bus/pci/devices/{}", function.address);
        let text = |file: &str| {
            let text = root.text(&format!("{base}/{file}"));
            text.map_err(|e| format!("{base}/{file}: {}", errno_text(&e)))
        };
        let class = text("class")?;
        let is_hca = CLASSES.iter().any(|prefix| class.starts_with(prefix))
            || !inventory
                .modules
                .for_modalias(&function.modalias)
                .is_empty();
        if is_hca {
            let hex = |text: String| text.trim_start_matches("0x").to_owned();
            let id = format!("{}:{}", hex(text("vendor")?), hex(text("device")?));
            found.push(Function {
                address: function.address,
                class,
                id,
                driver: function.driver,
            });
        }
    }
    Ok(found)
}

/// PURE: each HCA on the bus has a driver and an RDMA device.
pub fn census(functions: &[Function], facts: &Facts) -> Vec<Claim> {
    let claim = |function: &Function| {
        let mut devices = facts.devices.iter();
        let is_its = |address: Option<&str>| address == Some(function.address.as_str());
        let device = devices.find(|device| is_its(device.bus_address.as_deref()));
        let driver = function.driver.as_deref();
        let what = format!(
            "{} class {}: driver {}, RDMA device {}",
            function.id,
            function.class,
            driver.unwrap_or("none"),
            device.map_or("none", |device| device.ifname.as_str()),
        );
        let result = match (driver, device) {
            (None, _) => Err("no driver is bound"),
            (Some(_), None) => Err("the driver has registered no RDMA device"),
            (Some(_), Some(_)) => Ok(()),
        };
        Claim::new(function.address.clone(), what, result)
    };
    functions.iter().map(claim).collect()
}

/// Versions of this program, the kernel, the distribution and the loaded RDMA modules, one a line.
pub fn versions(root: &Root, facts: &Facts) -> String {
    let read = |path: &str| {
        let text = root.text(path);
        text.unwrap_or_else(|e| errno_text(&e))
    };
    let os_release = read("/etc/os-release");
    let name = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let mut out = format!(
        "ibboot {}\n{}\n{}\ntainted {}\n",
        env!("CARGO_PKG_VERSION"),
        read("/proc/version"),
        name.unwrap_or("unknown distribution").trim_matches('"'),
        read("/proc/sys/kernel/tainted"),
    );
    let drivers = facts.devices.iter().filter_map(|d| d.driver.as_ref());
    let modules: std::collections::BTreeSet<&String> =
        facts.modules.keys().chain(drivers).collect();
    for module in modules {
        let value = |file: &str| {
            let text = root.text(&format!("/sys/module/{module}/{file}"));
            text.unwrap_or_else(|_| "none".to_owned())
        };
        let (version, source) = (value("version"), value("srcversion"));
        _ = writeln!(out, "{module} version {version} srcversion {source}");
    }
    out
}

/// The kernel's own lines about RDMA devices, with the seconds since kernel start.
pub fn kernel_lines(facts: &Facts, functions: &[Function]) -> String {
    match kmsg::all_kernel_records() {
        Ok(records) => {
            let names = names(facts, functions);
            let lines = records.iter().filter(|(_, line)| is_about(line, &names));
            lines
                .map(|(micros, line)| {
                    format!("[{}] {line}\n", seconds(micros.saturating_mul(1000)))
                })
                .collect()
        }
        Err(e) => format!("/dev/kmsg: {}\n", errno_text(&e)),
    }
}

/// Names of modules, drivers, devices and interfaces with which the kernel begins its lines.
fn names(facts: &Facts, functions: &[Function]) -> Vec<String> {
    let mut names = vec!["infiniband".to_owned(), "softib".to_owned()];
    names.extend(kernel_cmdline::RDMA_MODULES.iter().map(ToString::to_string));
    for device in &facts.devices {
        names.push(device.ifname.clone());
        names.extend(device.bus_address.clone());
        names.extend(device.driver.clone());
        names.extend(device.ports.iter().filter_map(|port| port.netdev.clone()));
    }
    let ipoib = facts.netdevs.iter().filter(|n| n.ipoib.is_some());
    names.extend(ipoib.map(|netdev| netdev.ifname.clone()));
    names.extend(functions.iter().map(|function| function.address.clone()));
    names
}

/// PURE: whether the kernel begins the line with one of the names. The kernel also logs its command
/// line and the environment of init, which may contain secrets: such a line begins with other words,
/// or its first word contains an equals sign.
fn is_about(line: &str, names: &[String]) -> bool {
    let mut words = line.split_ascii_whitespace().take(2);
    words.any(|word| names.iter().any(|name| name == word.trim_end_matches(':')))
        && !line.to_ascii_lowercase().contains("command line")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Device;

    #[test]
    fn the_census_names_what_is_dead() {
        let function = |address: &str, driver: Option<&str>| Function {
            address: address.into(),
            class: "0x020700".into(),
            id: "15b3:101b".into(),
            driver: driver.map(str::to_owned),
        };
        let functions = [
            function("0000:81:00.0", Some("mlx5_core")),
            function("0000:82:00.0", Some("mlx5_core")),
            function("0000:83:00.0", None),
        ];
        let facts = Facts {
            devices: vec![Device {
                ifname: "mlx5_0".into(),
                bus_address: Some("0000:81:00.0".into()),
                ..Device::default()
            }],
            ..Facts::default()
        };
        let lines: Vec<String> = census(&functions, &facts)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            lines,
            [
                "0000:81:00.0 15b3:101b class 0x020700: driver mlx5_core, RDMA device mlx5_0: PASS",
                "0000:82:00.0 15b3:101b class 0x020700: driver mlx5_core, RDMA device none: \
                 FAIL: the driver has registered no RDMA device",
                "0000:83:00.0 15b3:101b class 0x020700: driver none, RDMA device none: \
                 FAIL: no driver is bound",
            ]
        );
    }

    #[test]
    fn no_command_line_is_a_line_about_a_device() {
        let names = ["mlx5_core", "0000:81:00.0", "ib0"].map(str::to_owned);
        for line in [
            "mlx5_core 0000:81:00.0: firmware version: 20.31.1014",
            "pci 0000:81:00.0: BAR 7: no space for [mem size 0x02000000 64bit pref]",
            "ib0: enabling connected mode will cause multicast packet drops",
        ] {
            assert!(is_about(line, &names), "{line}");
        }
        for line in [
            "Kernel command line: rd.driver.post=mlx5_core rd.iscsi.password=SECRET",
            "Command line: mlx5_core rd.iscsi.password=SECRET",
            "ib0 command line: SECRET",
            "rd.driver.post=mlx5_core",
            "mlx5_core=SECRET",
            "usb 1-1: new device",
            "",
        ] {
            assert!(!is_about(line, &names), "{line}");
        }
    }
}
