// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: the result of `verify`, and its lines of text.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::SCHEMA;
use crate::error::{Error, printable};
use crate::facts::cable::Cable;
use crate::facts::{Facts, PortRef, Role, Unread, rules};
use crate::rdma::reach::Server;
use crate::rdma::types::{Guid, Identity, LinkLayer};
use crate::system::drivers;
use crate::verify::checks::Id;
use crate::wish::expectation::{LinkWish, Target};
use crate::wish::origin::Origin;

/// Result of a check, of a link or of the whole report, in ascending order of severity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Passed.
    Ok,
    /// Not evaluated: a parent failed, or another program sees to it.
    Skipped,
    /// Works, but needs attention.
    Warning,
    /// Could not be determined.
    #[default]
    Unknown,
    /// Failed.
    Critical,
}

impl Status {
    /// Exit code of `ibboot check`, as of monitoring plugins (0 ok, 1 warning, 2 critical, 3
    /// unknown).
    pub fn exit_code(self) -> u8 {
        match self {
            Status::Ok | Status::Skipped => 0,
            Status::Warning => 1,
            Status::Critical => 2,
            Status::Unknown => 3,
        }
    }

    /// Failed, or could not be determined.
    pub fn is_wrong(self) -> bool {
        matches!(self, Status::Unknown | Status::Critical)
    }

    /// The word in tables.
    pub fn word(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Skipped => "skipped",
            Status::Warning => "WARNING",
            Status::Unknown => "UNKNOWN",
            Status::Critical => "CRITICAL",
        }
    }
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Which check.
    pub check: Id,
    /// Its result.
    pub status: Status,
    /// What was found.
    pub found: Option<String>,
    /// What was expected, if the check failed.
    pub expected: Option<String>,
    /// What to do, if the check failed.
    pub hint: Option<String>,
    /// Waiting does not resolve the failure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasting: bool,
}

fn some(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl Finding {
    fn new(check: Id, status: Status) -> Finding {
        Finding {
            check,
            status,
            found: None,
            expected: None,
            hint: None,
            lasting: false,
        }
    }

    /// Marks a failure that waiting does not resolve.
    #[must_use]
    pub fn lasting(mut self) -> Finding {
        self.lasting = true;
        self
    }

    /// Marks a failure that waiting may resolve.
    #[must_use]
    pub fn passing(mut self) -> Finding {
        self.lasting = false;
        self
    }

    /// Passed.
    pub fn ok(check: Id, found: &str) -> Finding {
        Finding {
            found: some(found),
            ..Finding::new(check, Status::Ok)
        }
    }

    /// Failed, with the table's hint.
    pub fn failed(id: Id, found: &str, expected: &str) -> Finding {
        Finding {
            found: some(found),
            expected: some(expected),
            hint: some(id.row().hint),
            ..Finding::new(id, Status::Critical)
        }
    }

    /// The kernel does not report it.
    pub fn unknown(check: Id) -> Finding {
        Finding {
            found: some("not reported"),
            ..Finding::new(check, Status::Unknown)
        }
        .hint("the kernel has no such file for this device")
    }

    /// What was found is no answer.
    pub fn unanswered(id: Id, found: &str) -> Finding {
        Finding {
            found: some(found),
            ..Finding::new(id, Status::Unknown)
        }
        .hint(id.row().hint)
    }

    /// A file that the check needs could not be read.
    pub fn unread(check: Id, unread: &Unread) -> Finding {
        let hint = match unread.path.strip_prefix("/run/") {
            // A file of ibboot: the reason is enough.
            Some(_) => "",
            None => "see dmesg, and check that root can read the file",
        };
        Finding {
            found: some(&format!("{}: {}", unread.path, unread.why)),
            ..Finding::new(check, Status::Unknown)
        }
        .hint(hint)
    }

    /// Not evaluated.
    pub fn skipped(check: Id) -> Finding {
        Finding::new(check, Status::Skipped)
    }

    /// Replaces the hint.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Finding {
        self.hint = some(hint);
        self
    }

    /// Turns a failure into a warning.
    #[must_use]
    pub fn as_warning(mut self) -> Finding {
        if self.status == Status::Critical {
            self.status = Status::Warning;
        }
        self
    }

    /// A warning, failed, or could not be determined.
    pub fn needs_attention(&self) -> bool {
        self.status > Status::Skipped
    }

    /// `WHAT FAILED: FOUND, expected EXPECTED`, or `CHECK is not known` in place of the failure. What
    /// failed stands alone if it ends with what was found.
    pub fn problem(&self) -> String {
        let row = self.check.row();
        let mut line = match self.status {
            Status::Unknown => format!("{} is not known", row.name),
            _ => row.failure.to_owned(),
        };
        let is_said = |found: &str| line.ends_with(&format!(" {found}"));
        if self.found.as_deref().is_some_and(is_said) {
            return line;
        }
        if let Some(found) = &self.found {
            line.push_str(&format!(": {found}"));
        }
        if let Some(expected) = &self.expected {
            line.push_str(&format!(", expected {expected}"));
        }
        printable(&line)
    }

    /// The problem and what to do: `PROBLEM; HINT`.
    pub fn sentence(&self) -> String {
        self.with_hint(self.problem())
    }

    /// The problem with the name of the check: `PROBLEM [CHECK]`.
    pub fn titled(&self) -> String {
        format!("{} [{}]", self.problem(), self.check.row().name)
    }

    /// The sentence with the name of the check: `PROBLEM [CHECK]; HINT`.
    pub fn named(&self) -> String {
        self.with_hint(self.titled())
    }

    fn with_hint(&self, mut line: String) -> String {
        if let Some(hint) = &self.hint {
            line.push_str(&format!("; {}", printable(hint)));
        }
        line
    }
}

/// A kernel module's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModuleReport {
    /// Name in the kernel's spelling.
    pub name: String,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The check.
    pub finding: Finding,
}

/// A server's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    #[serde(flatten)]
    pub server: Server,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The check.
    pub finding: Finding,
}

/// The root file system's checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootReport {
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The checks, in the table's order.
    pub findings: Vec<Finding>,
}

impl ModuleReport {
    /// `NAME: ` and what needs attention; none if nothing does.
    pub fn diagnosis(&self) -> Option<String> {
        let sentence = || format!("{}: {}", printable(&self.name), self.finding.sentence());
        self.finding.needs_attention().then(sentence)
    }
}

impl RootReport {
    /// True if a check failed.
    pub fn has_failed(&self) -> bool {
        self.status() == Status::Critical
    }

    /// True unless a check failed or is unknown; before switch_root the checks are skipped.
    pub fn is_good(&self) -> bool {
        !self.findings.iter().any(|f| f.status.is_wrong())
    }

    /// The worst of its checks.
    pub fn status(&self) -> Status {
        let statuses = self.findings.iter().map(|finding| finding.status);
        statuses.max().unwrap_or(Status::Unknown)
    }

    /// `root: ` and what is wrong or warns; none if all is well.
    pub fn diagnosis(&self) -> Option<String> {
        Some(format!("root: {}", self.trouble()?.sentence()))
    }

    /// The first check that failed or is unknown, otherwise the first one that warns.
    pub fn trouble(&self) -> Option<&Finding> {
        let mut findings = self.findings.iter();
        let warning = || self.findings.iter().find(|f| f.status == Status::Warning);
        findings.find(|f| f.status.is_wrong()).or_else(warning)
    }
}

impl ServerReport {
    /// The server answered, or need not answer: another server of the disk did, or over iWARP only
    /// the mount shows it.
    pub fn is_answered(&self) -> bool {
        matches!(self.finding.status, Status::Ok | Status::Warning)
    }

    /// `ADDRESS: ` and what is wrong or warns; none if all is well.
    pub fn diagnosis(&self) -> Option<String> {
        self.finding
            .needs_attention()
            .then(|| format!("{}: {}", self.server, self.finding.sentence()))
    }
}

/// A link's checks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The requested port, interface or bond.
    pub target: Target,
    /// The argument that requested it.
    pub requested_by: Option<Origin>,
    /// The boot depends on it.
    pub required: bool,
    /// `rd.ib.require=N` requires other ports: of another link layer, or it excludes this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub uncounted: bool,
    /// `mlx5_0/1`; none while no port matches.
    pub name: Option<String>,
    /// What identifies the port.
    pub identity: Option<Identity>,
    /// NETLINK_RDMA index of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_index: Option<u32>,
    pub port_guid: Option<Guid>,
    /// InfiniBand or Ethernet.
    pub link_layer: Option<LinkLayer>,
    /// Rate as sysfs spells it.
    pub rate: Option<String>,
    /// The kernel may report SDR in place of a speed that it does not know, and one lane of an
    /// Omni-Path link in place of three.
    #[serde(skip)]
    pub is_rate_unsure: bool,
    /// The netdev attached to the port.
    pub netdev: Option<String>,
    /// Interface index of the netdev.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netdev_index: Option<u32>,
    /// The IPoIB interface on the port, if one is expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// The name of that interface on the command line, if the interface is gone since the handover.
    #[serde(skip)]
    pub absent: Option<String>,
    /// PCI address of its HCA.
    pub bus_address: Option<String>,
    /// What the port shares with the other function of a Socket Direct card.
    #[serde(skip)]
    pub cable: Option<Cable>,
    /// Minimum rate that was requested, Mb/s.
    pub megabits: Option<u32>,
    /// Worst of the checks that were made.
    pub status: Status,
    /// The checks, in the order of the table.
    pub checks: Vec<Finding>,
}

impl LinkReport {
    /// The report of one wish and the port found for it.
    pub fn new(wish: &LinkWish, port: Option<PortRef<'_>>, checks: Vec<Finding>) -> LinkReport {
        LinkReport {
            target: wish.target.clone(),
            requested_by: wish.requested_by.clone(),
            required: wish.required,
            uncounted: wish.uncounted,
            name: port.map(|p| p.name()),
            identity: port
                .and_then(|port| port.identity())
                .or_else(|| wish.identity.clone()),
            device_index: port.and_then(|p| p.device.ifindex),
            netdev_index: port.and_then(|p| p.port.netdev_index),
            port_guid: port.and_then(|p| p.port.port_guid),
            link_layer: port.and_then(|p| p.port.link_layer),
            rate: port.and_then(|p| p.port.rate.as_ref().map(|r| r.text.clone())),
            is_rate_unsure: port.is_some_and(|p| {
                let rate = p.port.rate.as_ref();
                rate.is_some_and(|rate| {
                    rules::may_be_faster(p, rate) || rules::with_three_lanes(p, rate).is_some()
                })
            }),
            netdev: port.and_then(|p| p.port.netdev.clone()),
            interface: None,
            absent: None,
            bus_address: port.and_then(|p| p.device.bus_address.clone()),
            cable: None,
            megabits: wish.megabits,
            status: checks
                .iter()
                .map(|f| f.status)
                .filter(|status| *status != Status::Skipped)
                .max()
                .unwrap_or(Status::Unknown),
            checks,
        }
    }

    /// The name in messages: the interface and its port, the port, or the selector while no port
    /// matches.
    pub fn object(&self) -> String {
        match (self.interface.as_ref().or(self.absent.as_ref()), &self.name) {
            (Some(interface), Some(port)) => format!("{interface} ({port})"),
            (_, Some(port)) => port.clone(),
            _ => self.target.to_string(),
        }
    }

    /// The link is usable: every check passed or only warns.
    pub fn is_good(&self) -> bool {
        matches!(self.status, Status::Ok | Status::Warning)
    }

    /// The link is usable, as far as this network namespace shows its port.
    pub fn is_verified(&self) -> bool {
        self.is_good() && !self.is_elsewhere()
    }

    /// The RDMA device is in another network namespace, and no argument names its port.
    pub fn is_elsewhere(&self) -> bool {
        let is_warning = |f: &Finding| f.check == Id::DevicePresent && f.status == Status::Warning;
        self.checks.iter().any(is_warning)
    }

    /// No check of the link failed.
    pub fn may_be_good(&self) -> bool {
        self.status != Status::Critical
    }

    /// The first check that failed or is unknown, otherwise the first that warns: what `up` waits
    /// for, and the diagnosis at the end.
    pub fn trouble(&self) -> Option<&Finding> {
        let failed = |f: &&Finding| f.status.is_wrong();
        let warns = |f: &&Finding| f.status == Status::Warning;
        let first = self.checks.iter().find(failed);
        first.or_else(|| self.checks.iter().find(warns))
    }

    /// `OBJECT: ` and the sentence of [`LinkReport::trouble`].
    pub fn diagnosis(&self) -> Option<String> {
        let trouble = self.trouble()?;
        Some(format!(
            "{}: {}",
            printable(&self.object()),
            trouble.sentence()
        ))
    }

    /// Description of a good link: `InfiniBand, 200 Gb/sec (4X HDR), GUID 0x..., ib0`.
    pub fn description(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.link_layer.map(|l| l.to_string()));
        parts.extend(self.rate.clone());
        parts.extend(self.port_guid.map(|guid| format!("port GUID {guid}")));
        parts.extend(self.netdev.clone());
        parts.extend(self.bus_address.clone());
        // A bond has no port: its interfaces describe it.
        let found = |id: Id| {
            let is_it = |f: &&Finding| f.check == id && f.status == Status::Ok;
            self.checks.iter().find(is_it)?.found.clone()
        };
        parts.extend(found(Id::BondSlaves).map(|slaves| format!("bond of {slaves}")));
        parts.extend(found(Id::BondCarrier).map(|by| format!("carried {by}")));
        printable(&parts.join(", "))
    }
}

/// Ports of one device that carry no link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherPorts {
    /// Name of the device.
    pub ifname: String,
    /// What the ports are.
    pub role: Role,
    /// The device that an SMI device belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Port numbers, ascending.
    pub ports: Vec<u32>,
}

impl OtherPorts {
    /// The ports of a snapshot that carry no link, by device and role.
    pub fn of(facts: &Facts) -> Vec<OtherPorts> {
        let mut others: Vec<OtherPorts> = Vec::new();
        for found in facts.all_ports().filter(|found| !found.port.role.is_link()) {
            let (ifname, role) = (&found.device.ifname, found.port.role);
            let known = others
                .iter_mut()
                .find(|o| o.ifname == *ifname && o.role == role);
            match known {
                Some(known) => known.ports.push(found.port.port),
                None => others.push(OtherPorts {
                    ifname: ifname.clone(),
                    role,
                    parent: found
                        .device
                        .sub_device
                        .as_ref()
                        .and_then(|sub| sub.parent.clone()),
                    ports: vec![found.port.port],
                }),
            }
        }
        others
    }

    /// `mlx5_0/2-4,7`.
    pub fn name(&self) -> String {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for port in &self.ports {
            match runs.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(*port) => *last = *port,
                _ => runs.push((*port, *port)),
            }
        }
        let run = |(first, last): &(u32, u32)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        };
        let runs: Vec<String> = runs.iter().map(run).collect();
        format!("{}/{}", self.ifname, runs.join(","))
    }

    /// What the ports are, in words.
    pub fn words(&self) -> String {
        let of = self.parent.as_ref().map(|parent| format!(" of {parent}"));
        format!("{}{}", self.role.words(), of.unwrap_or_default())
    }
}

/// What `ibboot check --format json` prints if the report cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoReport {
    /// Version of the shape.
    pub schema: u32,
    /// Unknown.
    pub status: Status,
    /// False.
    pub satisfied: bool,
    /// Why.
    pub error: String,
}

impl NoReport {
    /// The report cannot be made because of this error.
    pub fn new(error: &Error) -> NoReport {
        NoReport {
            schema: SCHEMA,
            status: Status::Unknown,
            satisfied: false,
            error: error.to_string(),
        }
    }
}

/// The whole report, as `ibboot check --format json` prints it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of the shape.
    pub schema: u32,
    /// The kernel's boot id.
    pub boot_id: Option<String>,
    /// Time of the snapshot, ns since kernel start.
    pub taken_ns: u64,
    /// Ok: everything is as expected. Warning: everything required is as expected, something else
    /// is not. Critical: something required failed. Unknown: nothing to compare with, or something
    /// could not be read and nothing required is known to have failed.
    pub status: Status,
    /// Everything required is verified.
    pub satisfied: bool,
    /// How many links are required.
    pub require: String,
    /// Set if too few ports are verified, although every link found may be good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<String>,
    pub modules: Vec<ModuleReport>,
    pub links: Vec<LinkReport>,
    /// Ports that carry no link: listed and never judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherPorts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerReport>,
    /// The root file system, if a link must carry it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<RootReport>,
    /// Invalid arguments, one line each: what they request was not checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<String>,
}

impl Report {
    /// The number of verified links.
    pub fn verified(&self) -> usize {
        self.links.iter().filter(|link| link.is_verified()).count()
    }

    /// One line for each object that is not as expected, modules first, and the number of ports.
    pub fn troubles(&self) -> Vec<String> {
        let modules = self.modules.iter().filter_map(ModuleReport::diagnosis);
        modules
            .chain(self.links.iter().filter_map(LinkReport::diagnosis))
            .chain(self.servers.iter().filter_map(ServerReport::diagnosis))
            .chain(self.root.iter().filter_map(RootReport::diagnosis))
            .chain(self.invalid_arguments())
            .chain(self.too_few())
            .collect()
    }

    /// One line for each invalid argument.
    pub fn invalid_arguments(&self) -> impl Iterator<Item = String> {
        let lines = self.complaints.iter();
        lines.map(|complaint| format!("invalid argument: {}", printable(complaint)))
    }

    /// The line about the number of ports, if too few are verified.
    pub fn too_few(&self) -> Option<String> {
        self.shortfall.as_deref().map(printable)
    }

    /// A link has the status of the verdict: it explains more than the number of ports.
    pub fn is_explained_by_link(&self) -> bool {
        self.links.iter().any(|link| link.status == self.status)
    }

    /// The one line that explains a report that is not satisfied: the worst trouble of a required
    /// link, otherwise of any link; the first of equals. If no link explains the verdict, the number
    /// of ports precedes them. A link that only warns is verified, so a failed server or root file
    /// system precedes it. If the link has no port, a module that is not loaded, and that links need,
    /// explains more.
    pub fn reason(&self) -> Option<String> {
        let troubled = self.links.iter().filter(|link| link.trouble().is_some());
        let link = troubled.min_by_key(|link| Reverse((link.required, link.status)));
        let module = || self.modules.iter().find_map(ModuleReport::diagnosis);
        let driver = || {
            let is_needed = |module: &&ModuleReport| !drivers::is_for_programs(&module.name);
            let mut needed = self.modules.iter().filter(is_needed);
            needed.find_map(ModuleReport::diagnosis)
        };
        let others = |is_meant: fn(Status) -> bool| {
            let mut servers = self.servers.iter();
            let server = servers.find(|server| is_meant(server.finding.status));
            let root = self.root.as_ref().filter(|root| is_meant(root.status()));
            let server = server.and_then(ServerReport::diagnosis);
            server.or_else(|| root.and_then(RootReport::diagnosis))
        };
        let wrong = || self.too_few().or_else(|| others(Status::is_wrong));
        let warning = || others(|status| status == Status::Warning);
        match link {
            Some(_) if self.shortfall.is_some() && !self.is_explained_by_link() => self.too_few(),
            Some(link) if link.name.is_none() => driver().or_else(|| link.diagnosis()),
            Some(link) if link.is_good() => wrong().or_else(|| link.diagnosis()),
            Some(link) => link.diagnosis(),
            None => wrong()
                .or_else(module)
                .or_else(|| self.invalid_arguments().next())
                .or_else(warning),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::planned;
    use crate::verify::verify;

    fn failed(id: Id) -> Finding {
        Finding::failed(id, "found", "expected")
    }

    #[test]
    fn a_warning_is_made_of_failures_only_and_no_check_is_no_pass() {
        let unknown = Finding::unknown(Id::HcaPcie).as_warning();
        assert_eq!(unknown.status, Status::Unknown);
        assert_eq!(failed(Id::HcaPcie).as_warning().status, Status::Warning);
        let status = |checks| LinkReport::new(&LinkWish::default(), None, checks).status;
        assert_eq!(status(Vec::new()), Status::Unknown);
        let skipped = || Finding::skipped(Id::PortLid);
        assert_eq!(status(vec![skipped()]), Status::Unknown);
        let passed = Finding::ok(Id::PortState, "ACTIVE");
        assert_eq!(status(vec![passed, skipped()]), Status::Ok);
    }

    #[test]
    fn the_reason_is_about_what_the_boot_depends_on() {
        let cmdline = "rd.ib.require=mlx5_0 rd.ib.probe=10.0.0.2";
        let mut report = verify(&planned(cmdline).expectation, &Facts::default());
        let module = |name: &str| ModuleReport {
            name: name.to_owned(),
            requested_by: None,
            finding: failed(Id::ModuleLive),
        };
        let link = report.links.remove(0);
        let named = |name: &str, required, finding| LinkReport {
            required,
            name: Some(name.to_owned()),
            ..LinkReport::new(&LinkWish::default(), None, vec![finding])
        };
        // No port needs the module of programs.
        report.links = vec![link.clone()];
        report.modules = vec![module("rdma_ucm")];
        assert_eq!(report.reason(), link.diagnosis());
        report.modules.push(module("mlx5_ib"));
        assert_eq!(report.reason(), report.modules[1].diagnosis());
        report.links = vec![
            named("mlx5_0/1", false, failed(Id::PortState)),
            named("mlx5_1/1", true, Finding::unknown(Id::PortState)),
            named("mlx5_2/1", true, failed(Id::PortState)),
            named("mlx5_3/1", true, failed(Id::PortState)),
        ];
        assert_eq!(report.reason(), report.links[2].diagnosis());
        report.links.truncate(2);
        assert_eq!(report.reason(), report.links[1].diagnosis());
    }
}
