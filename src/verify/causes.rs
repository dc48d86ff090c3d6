// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: what explains a verdict that is not ok: one line, and the causes in order.

use std::cmp::Reverse;

use super::finding::{Finding, Status};
use super::report::{LinkReport, ModuleReport, Report, RootReport, ServerReport};
use crate::error::printable;
use crate::system::drivers;

/// The causes that are no check.
const TOO_FEW: &str = "too few verified ports";
const INVALID: &str = "an invalid argument";

impl Report {
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
    fn is_explained_by_link(&self) -> bool {
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

    /// What causes the verdict, the worst first, of equals the required objects before the others:
    /// `CHECK of OBJECT`, the number of ports if no link explains the verdict, invalid arguments.
    pub(super) fn causes(&self) -> Vec<String> {
        let of = |finding: &Finding, object: &str| {
            let cause = format!("{} of {}", finding.check.row().name, printable(object));
            (finding.status, cause)
        };
        let link = |link: &LinkReport| {
            let (_, cause) = of(link.trouble()?, &link.object());
            Some((link.status, cause))
        };
        let (required, optional): (Vec<&LinkReport>, Vec<&LinkReport>) = self
            .links
            .iter()
            .partition(|link| link.required && !link.is_good());
        let modules = self.modules.iter().filter(|m| m.finding.needs_attention());
        let servers = self.servers.iter().filter(|s| s.finding.needs_attention());
        let root = self.root.iter().flat_map(|root| &root.findings);
        let causes = required.into_iter().filter_map(link);
        let causes = causes.chain(servers.map(|s| of(&s.finding, &s.server.to_string())));
        let causes = causes.chain(root.filter(|f| f.needs_attention()).map(|f| of(f, "root")));
        let causes = causes.chain(optional.into_iter().filter_map(link));
        let shortfall = self.shortfall.iter();
        let shortfall = shortfall.filter(|_| !self.is_explained_by_link());
        let causes = causes.chain(shortfall.map(|_| (self.status, TOO_FEW.to_owned())));
        let causes = causes.chain(modules.map(|m| of(&m.finding, &m.name)));
        let complaints = self.complaints.iter();
        let mut causes: Vec<(Status, String)> = causes
            .chain(complaints.map(|_| (Status::Unknown, INVALID.to_owned())))
            .collect();
        // The verdict does not depend on what is worse than itself: that is at most a warning.
        let weight = |status: Status| match status > self.status {
            true => Status::Warning,
            false => status,
        };
        causes.sort_by_key(|(status, _)| Reverse((weight(*status), *status)));
        causes.into_iter().map(|(_, cause)| cause).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::plan::tests::planned;
    use crate::verify::checks::Id;
    use crate::verify::verify;
    use crate::wish::expectation::LinkWish;

    fn failed(id: Id) -> Finding {
        Finding::failed(id, "found", "expected")
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
