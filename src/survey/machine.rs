// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an archive has beside the facts: the census of HCAs as claims, versions, and the kernel's
//! lines about RDMA devices.

use std::fmt::Write as _;

use super::claim::Claim;
use crate::error::errno_text;
use crate::facts::{Facts, Function};
use crate::system::clock::seconds;
use crate::system::kmsg;
use crate::system::root::Root;

/// PURE: each HCA on the bus that must have an RDMA device has one.
pub fn census(facts: &Facts) -> Vec<Claim> {
    let claim = |function: &Function| {
        let devices = match function.devices.is_empty() {
            true => "none".to_owned(),
            false => function.devices.join(" "),
        };
        let what = format!(
            "{} class {}: driver {}, RDMA device {devices}",
            function.id,
            function.class,
            function.driver.as_deref().unwrap_or("none"),
        );
        let result = match function.is_missing() {
            true => Err(function.sentence()),
            false => Ok(()),
        };
        Claim::new(function.address.clone(), what, result)
    };
    facts.functions.iter().map(claim).collect()
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
pub fn kernel_lines(facts: &Facts) -> String {
    match kmsg::all_kernel_records() {
        Ok(records) => {
            let names = names(facts);
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
fn names(facts: &Facts) -> Vec<String> {
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
    names.extend(
        facts
            .functions
            .iter()
            .map(|function| function.address.clone()),
    );
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
    use crate::facts::functions::Module;
    use crate::system::modules::InitState;

    #[test]
    fn the_census_names_what_is_dead() {
        let function = |address: &str, driver: Option<&str>, device: Option<&str>| Function {
            address: address.into(),
            class: "0207".into(),
            id: "15b3:101b".into(),
            driver: driver.map(str::to_owned),
            modules: ["mlx5_core", "mlx5_ib"]
                .map(|name| Module {
                    name: name.to_owned(),
                    state: Some(InitState::Live),
                })
                .into(),
            devices: device.into_iter().map(str::to_owned).collect(),
            expected: true,
            ..Function::default()
        };
        let facts = Facts {
            functions: vec![
                function("0000:81:00.0", Some("mlx5_core"), Some("mlx5_0")),
                function("0000:82:00.0", Some("mlx5_core"), None),
                function("0000:83:00.0", None, None),
                Function {
                    expected: false,
                    ..function("0000:84:00.0", Some("vfio-pci"), None)
                },
            ],
            ..Facts::default()
        };
        let lines: Vec<String> = census(&facts).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "0000:81:00.0 15b3:101b class 0207: driver mlx5_core, RDMA device mlx5_0: PASS",
                "0000:82:00.0 15b3:101b class 0207: driver mlx5_core, RDMA device none: \
                 FAIL: mlx5_core is bound, but mlx5_ib created no RDMA device",
                "0000:83:00.0 15b3:101b class 0207: driver none, RDMA device none: \
                 FAIL: mlx5_core is loaded but not bound to this card",
                "0000:84:00.0 15b3:101b class 0207: driver vfio-pci, RDMA device none: PASS",
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
