// SPDX-License-Identifier: MIT OR Apache-2.0
//! PURE: reduces the request in a kernel that saves a crash dump. Such a kernel has about 256 MB of
//! memory, and no failure of the fabric may prevent the dump.

use kernel_cmdline::{Arguments, OnFail};
use serde::Serialize;

use super::{NotOurs, OnFailure, Request};
use crate::system::drivers;
use crate::wish::origin::requested;

/// The memory of the crashed kernel, if the running kernel was started to save it
/// (`vmcore_init`, fs/proc/vmcore.c).
pub const VMCORE: &str = "/proc/vmcore";

/// Which part of its command line such a kernel carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dump {
    /// Nothing.
    Undisturbed,
    /// The links, as `rd.ib.kdump=1` requests.
    OverLinks,
}

/// Removes from `request`, made from `arguments`, what such a kernel does not do.
pub(super) fn narrow(request: &mut Request, arguments: &Arguments<'_>) {
    const ON_FAILURE: NotOurs =
        NotOurs::Unused("this kernel saves a crash dump: kdump continues after a failure");
    const SERVER: NotOurs =
        NotOurs::Unused("this kernel saves a crash dump: no server is queried over RDMA");
    const ROOT: NotOurs = NotOurs::Unused(
        "this kernel saves a crash dump: no module is loaded for the root file system, and the root file system is not checked",
    );
    const MODULES: NotOurs = NotOurs::Unused(
        "this kernel saves a crash dump: ib_umad, ib_uverbs and rdma_ucm are not loaded, because no link needs them",
    );
    if request.requested_by.is_none() {
        return;
    }
    request.onfail = OnFailure::Continue;
    if !arguments.ib.kdump.is_some_and(|on| on.value) {
        request.requested_by = None;
        request.dump = Some(Dump::Undisturbed);
        return;
    }
    request.dump = Some(Dump::OverLinks);
    let mut left = Vec::new();
    let onfail = arguments.ib.onfail;
    let others = onfail.filter(|onfail| onfail.value != OnFail::Continue);
    left.extend(others.map(|onfail| requested(&onfail, ON_FAILURE)));
    left.extend(request.servers.drain(..).map(|server| server.with(SERVER)));
    left.extend(request.root.take().map(|root| root.with(ROOT)));
    request.portals.clear();
    request.root_of_lease = None;
    let (of_programs, modules): (Vec<_>, Vec<_>) = std::mem::take(&mut request.modules)
        .into_iter()
        .partition(|module| drivers::is_for_programs(&module.value));
    request.modules = modules;
    left.extend(of_programs.into_iter().map(|module| module.with(MODULES)));
    // One list may name several modules.
    left.dedup();
    request.left.extend(left);
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_cmdline::{Source, parse};

    fn narrowed(line: &str) -> Request {
        let sources = [Source::new("/proc/cmdline", line.as_bytes())];
        let arguments = parse(&sources);
        let mut request = Request::new(&arguments);
        narrow(&mut request, &arguments);
        request
    }

    #[test]
    fn without_the_argument_nothing_is_asked_for() {
        for line in [
            "rd.ib=1",
            "ip=ib0:dhcp rd.ib.onfail=reboot",
            "ip=ib0:dhcp rd.ib.kdump=0",
            "ip=ib0:dhcp rd.ib.kdump=1 rd.ib.kdump=0",
        ] {
            let request = narrowed(line);
            assert_eq!(request.requested_by, None, "{line}");
            assert_eq!(request.dump, Some(Dump::Undisturbed), "{line}");
        }
        for line in ["quiet", "rd.ib.kdump=1", "rd.ib=0 rd.ib.kdump=1"] {
            let request = narrowed(line);
            assert_eq!((request.requested_by, request.dump), (None, None), "{line}");
        }
    }

    #[test]
    fn with_it_no_failure_stops_the_dump() {
        for onfail in ["", "continue", "shell", "reboot"] {
            let line = format!("ip=ib0:dhcp rd.ib.kdump=1 rd.ib.onfail={onfail}");
            let request = narrowed(&line);
            assert_eq!(request.onfail, OnFailure::Continue, "{line}");
            assert_eq!(request.dump, Some(Dump::OverLinks), "{line}");
            let expected = usize::from(["shell", "reboot"].contains(&onfail));
            assert_eq!(request.left.len(), expected, "{line}");
        }
    }
}
