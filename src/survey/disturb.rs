// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--disturb`: takes the interfaces of one unused port down and up, with `--rebind` also unbinds and
//! binds its driver, and records what the kernel reports meanwhile.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::claim::Claim;
use super::in_use::{self, Touched};
use super::record::{QUIET, Recorder};
use super::{trace, tree};
use crate::error::{Error, Kind, Result, errno_text, printable};
use crate::facts::{Facts, Netdev, PortRef};
use crate::rdma::netlink::{Device, Rdma};
use crate::rdma::types::PortState;
use crate::system::root::Root;

/// How long a port may take to have its state again after its driver was bound.
const BIND_LIMIT: Duration = Duration::from_secs(180);
/// Interval at which the uverbs file of a device that comes back is tried.
const RETRY: Duration = Duration::from_millis(20);

/// What the user requests.
#[derive(Debug, Clone)]
pub struct Disturbance {
    /// `mlx5_0/1`, as rdma(8) names ports.
    pub port: String,
    /// Also unbind and bind the driver.
    pub rebind: bool,
}

/// What was recorded.
#[derive(Debug, Default)]
pub struct Record {
    /// All events and actions, one a line: CLOCK_BOOTTIME in nanoseconds, source, event.
    pub events: String,
    /// The script for softib's knob `events`, if the port reported events.
    pub script: Option<String>,
    /// Claims about the disturbance.
    pub claims: Vec<Claim>,
}

/// The port that the user names, with the index of its device in NETLINK_RDMA; an error if the port is in use.
pub fn unused<'f>(
    request: &Disturbance,
    root: &Root,
    rdma: Option<&'f Rdma>,
    facts: &'f Facts,
) -> Result<(PortRef<'f>, &'f Rdma, u32)> {
    let known: Vec<String> = facts.ports().map(|port| port.name()).collect();
    let port = facts
        .ports()
        .find(|port| port.name() == request.port)
        .ok_or_else(|| {
            let error = Error::new("--disturb", "no such port").found(request.port.clone());
            match known.as_slice() {
                [] => error.hint("this machine has no RDMA port"),
                known => error.expected(known.join(" or ")),
            }
            .kind(Kind::Usage)
        })?;
    let refuse = |why: String| Err(Error::new(port.name(), "is not disturbed").found(why));
    if let Some(unread) = facts.unread.first() {
        return refuse(format!(
            "{}: {}, so its use is unknown",
            unread.path, unread.why
        ));
    }
    let Some((rdma, index)) = rdma.zip(port.device.ifindex) else {
        return refuse("NETLINK_RDMA does not know the device".to_owned());
    };
    let holders = match rdma.holders(index) {
        Ok(holders) => holders,
        Err(e) => return refuse(format!("queue pairs and cm_ids cannot be listed: {e}")),
    };
    let netdevs = interfaces(request, port, facts);
    let touched = Touched {
        port: (!request.rebind).then_some(port.port.port),
        driver: port.device.driver.as_deref(),
        uppers: uppers(root, &netdevs)?,
        netdevs,
        holders,
    };
    let uses = touched.uses();
    if uses.is_empty() {
        Ok((port, rdma, index))
    } else {
        refuse(format!("the port is in use: {}", uses.join(", ")))
    }
}

/// The interfaces that the disturbance takes down: those of the port and, without its driver, all of
/// the function.
fn interfaces<'f>(request: &Disturbance, port: PortRef<'f>, facts: &'f Facts) -> Vec<&'f Netdev> {
    if !request.rebind {
        return in_use::of_port(port, facts);
    }
    let address = port.device.card();
    let of_function = |n: &&Netdev| address.is_some() && n.bus_address.as_deref() == address;
    let ports = facts
        .ports()
        .filter(|other| other.device.ifname == port.device.ifname);
    let mut netdevs: Vec<&Netdev> = facts.netdevs.iter().filter(of_function).collect();
    netdevs.extend(ports.flat_map(|other| in_use::of_port(other, facts)));
    netdevs.sort_by_key(|netdev| &netdev.ifname);
    netdevs.dedup_by_key(|netdev| &netdev.ifname);
    netdevs
}

/// The names and indices of the interfaces that are up.
fn up<'f>(netdevs: &[&'f Netdev]) -> Vec<(&'f str, u32)> {
    let up = netdevs.iter().filter(|netdev| netdev.up);
    up.filter_map(|netdev| Some((netdev.ifname.as_str(), netdev.ifindex?)))
        .collect()
}

/// The interfaces over these, from the links `upper_NAME` in sysfs.
fn uppers(root: &Root, netdevs: &[&Netdev]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for netdev in netdevs {
        let path = format!("/sys/class/net/{}", netdev.ifname);
        let names = root.list(&path);
        let names = names.map_err(|e| Error::io(&path, "cannot be read", &e))?;
        let names = names.iter().filter_map(|name| name.strip_prefix("upper_"));
        found.extend(names.map(str::to_owned));
    }
    Ok(found)
}

/// Disturbs the port of [`unused`] and restores the interfaces.
pub async fn disturb(
    request: &Disturbance,
    root: &Root,
    rdma: Option<&Rdma>,
    facts: &Facts,
) -> Result<Record> {
    let (port, rdma, index) = unused(request, root, rdma, facts)?;
    let mut recorder = Recorder::open(port.port.port)?;
    let mut record = Record::default();
    let opened = recorder.open_port(rdma, index);
    let what = "the uverbs file is opened";
    record.claims.push(Claim::new(port.name(), what, opened));
    let of_port = up(&in_use::of_port(port, facts));
    record
        .claims
        .extend(down_and_up(&mut recorder, port.name(), &of_port).await);
    if request.rebind {
        let all = up(&interfaces(request, port, facts));
        let claims = rebind(&mut recorder, root, rdma, port, &all).await;
        record.claims.extend(claims);
    }
    let kernel = facts.kernel.as_deref().unwrap_or("unknown");
    let title = format!("ibboot hardware-report, {}, kernel {kernel}", port.name());
    record.script = trace::script(&printable(&title), &recorder.of_port);
    let kinds: Vec<String> = recorder
        .of_port
        .iter()
        .map(|(_, kind)| kind.to_string())
        .collect();
    let what = "events of the port";
    record.claims.push(match kinds.is_empty() {
        true => Claim::skip(port.name(), what, "none was reported"),
        false => Claim::new(
            port.name(),
            format!("{what}: {}", kinds.join(" ")),
            Ok::<_, &str>(()),
        ),
    });
    record.events = recorder.lines;
    Ok(record)
}

/// Sets the interfaces down, and up in the reverse order.
async fn down_and_up(
    recorder: &mut Recorder,
    port: String,
    interfaces: &[(&str, u32)],
) -> Vec<Claim> {
    let mut claims = Vec::new();
    if interfaces.is_empty() {
        let why = "the port has no interface that is up";
        claims.push(Claim::skip(port, "interface down and up", why));
    }
    for (name, index) in interfaces.iter().rev() {
        recorder.note("action", &format!("{name} is set down"));
        let result = recorder.net.set_down(*index).await;
        claims.push(Claim::new(*name, "is set down", result));
        recorder.until_quiet().await;
    }
    for (name, index) in interfaces {
        recorder.note("action", &format!("{name} is set up"));
        let result = recorder.net.set_up(*index).await;
        claims.push(Claim::new(*name, "is set up", result));
        recorder.until_quiet().await;
    }
    claims
}

/// Unbinds the driver from the function of the port and binds it again.
async fn rebind(
    recorder: &mut Recorder,
    root: &Root,
    rdma: &Rdma,
    port: PortRef<'_>,
    up: &[(&str, u32)],
) -> Vec<Claim> {
    let name = port.name();
    let device = format!("/sys/class/infiniband/{}/device", port.device.ifname);
    let bus = root.link_name(&format!("{device}/subsystem"));
    let driver = root.link_name(&format!("{device}/driver"));
    let (Ok(bus), Ok(driver), Some(address)) = (bus, driver, port.device.card()) else {
        let why = "the device has no bus driver";
        return vec![Claim::skip(name, "driver unbound and bound", why)];
    };
    let directory = format!("/sys/bus/{bus}/drivers/{driver}");
    let mut claims = Vec::new();
    let unbound = switch(recorder, (root, rdma), &directory, "unbind", address).await;
    claims.push(Claim::new(
        name.clone(),
        format!("unbind of {address}"),
        unbound,
    ));
    recorder.until_quiet().await;
    recorder.port = None;
    let bound = switch(recorder, (root, rdma), &directory, "bind", address).await;
    let is_bound = bound.is_ok();
    claims.push(Claim::new(name, format!("bind of {address}"), bound));
    if !is_bound {
        return claims;
    }
    claims.push(come_back(recorder, root, rdma, port, address).await);
    let opened = match (&recorder.port, index_at(root, rdma, address)) {
        (Some(_), _) => Ok(()),
        (None, Some(index)) => recorder.open_port(rdma, index),
        (None, None) => Err("there is no RDMA device".to_owned()),
    };
    let what = "the uverbs file is opened again";
    claims.push(Claim::new(port.name(), what, opened));
    for (name, _) in up {
        // The interface is a new one, with another index.
        let index = tree::facts(root)
            .netdev(name)
            .and_then(|netdev| netdev.ifindex);
        let result = match index {
            Some(index) => recorder.net.set_up(index).await,
            None => Err("there is no interface of this name".to_owned()),
        };
        claims.push(Claim::new(*name, "is up again", result));
    }
    recorder.until_quiet().await;
    claims
}

/// Writes the address to `unbind` or `bind` of a driver, and records meanwhile.
async fn switch(
    recorder: &mut Recorder,
    (root, rdma): (&Root, &Rdma),
    directory: &str,
    action: &str,
    address: &str,
) -> std::result::Result<(), String> {
    recorder.note("action", &format!("{action} {address}"));
    let path = format!("{directory}/{action}");
    let (file, bytes) = (path.clone(), address.to_owned());
    // The kernel may wait for the end of a probe, or until uverbs files are closed.
    let mut write = tokio::task::spawn_blocking(move || Root::new("/").set(&file, &bytes));
    let begin = Instant::now();
    loop {
        tokio::select! {
            result = &mut write => {
                let result = result.map_err(|e| e.to_string())?;
                return result.map_err(|e| format!("{path}: {}", errno_text(&e)));
            }
            _ = timeout_at(Instant::now() + RETRY, recorder.next()) => {}
        }
        if action == "bind" && recorder.port.is_none() {
            watch_again(recorder, root, rdma, address);
        } else if action == "unbind" && begin.elapsed() > QUIET {
            // A driver without disassociate_ucontext waits for this file.
            recorder.port = None;
        }
    }
}

/// The index of the RDMA device on a bus address.
fn index_at(root: &Root, rdma: &Rdma, address: &str) -> Option<u32> {
    let is_it = |device: &Device| {
        let link = format!("/sys/class/infiniband/{}/device", device.name);
        root.link_name(&link).is_ok_and(|name| name == address)
    };
    rdma.devices()
        .ok()?
        .iter()
        .find(|device| is_it(device))
        .map(|device| device.index)
}

fn watch_again(recorder: &mut Recorder, root: &Root, rdma: &Rdma, address: &str) {
    if let Some(index) = index_at(root, rdma, address)
        && recorder.open_port(rdma, index).is_ok()
    {
        recorder.note("action", "the events of the device are read again");
    }
}

/// Records until the port has its previous state again.
async fn come_back(
    recorder: &mut Recorder,
    root: &Root,
    rdma: &Rdma,
    port: PortRef<'_>,
    address: &str,
) -> Claim {
    let before = port.port.state;
    let begin = Instant::now();
    let shown = |state: Option<PortState>| state.map_or("unknown".to_owned(), |s| s.to_string());
    let mut state = None;
    while begin.elapsed() < BIND_LIMIT {
        if recorder.port.is_none() {
            watch_again(recorder, root, rdma, address);
        }
        let index = index_at(root, rdma, address);
        let found = index.and_then(|index| rdma.port(index, port.port.port).ok());
        state = found.map(|found| found.state);
        if state.is_some() && state == before {
            break;
        }
        drop(timeout_at(Instant::now() + RETRY * 5, recorder.next()).await);
    }
    let took = begin.elapsed().as_secs_f64();
    let what = format!("is {} again after {took:.1} s", shown(before));
    recorder.until_quiet().await;
    let is_same = state.is_some() && state == before;
    Claim::new(port.name(), what, is_same.then_some(()).ok_or(shown(state)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;

    #[test]
    fn what_goes_with_the_driver_is_set_up_again() {
        let netdev = |name: &str, index, address: &str, up| Netdev {
            ifname: name.to_owned(),
            ifindex: Some(index),
            bus_address: Some(address.to_owned()),
            up,
            ..Netdev::default()
        };
        let port = |port, netdev: &str| facts::Port {
            port,
            netdev: Some(netdev.to_owned()),
            ..facts::Port::default()
        };
        let facts = Facts {
            devices: vec![facts::Device {
                ifname: "mlx4_0".to_owned(),
                bus_address: Some("0000:81:00.0".to_owned()),
                ports: vec![port(1, "eth1"), port(2, "eth2")],
                ..facts::Device::default()
            }],
            netdevs: vec![
                netdev("eth0", 2, "0000:01:00.0", true),
                netdev("eth1", 3, "0000:81:00.0", true),
                netdev("eth2", 4, "0000:81:00.0", true),
                netdev("eth3", 5, "0000:81:00.0", false),
            ],
            ..Facts::default()
        };
        let found = |rebind| {
            let request = Disturbance {
                port: "mlx4_0/1".to_owned(),
                rebind,
            };
            up(&interfaces(&request, facts.ports().next().unwrap(), &facts))
        };
        assert_eq!(found(false), [("eth1", 3)]);
        assert_eq!(found(true), [("eth1", 3), ("eth2", 4)]);
    }
}
