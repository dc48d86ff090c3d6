// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes all power from the current process: no file but the standard ones (close_range(2)), no
//! capability (capabilities(7)), no access to files (landlock(7)), little memory (getrlimit(2)), and
//! of the system calls only those that a program needs to receive, compute and send (seccomp(2)).

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope,
};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// The allowed system calls, besides [`MEMORY`]; any other returns EPERM.
const CALLS: [libc::c_long; 18] = [
    // The socket of the worker.
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_close,
    // Memory of the allocator.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // The runtime: locks, keys of hash tables, signals, the end.
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_gettid,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// System calls that are allowed without PROT_EXEC, their third argument.
const MEMORY: [libc::c_long; 2] = [libc::SYS_mmap, libc::SYS_mprotect];

/// _LINUX_CAPABILITY_VERSION_3 (include/uapi/linux/capability.h).
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`.
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// Closes all files but the three standard ones: whoever started the program may have left some
/// open. Only for a process that has opened none itself. ENOSYS: the kernel is older than 5.9.
pub fn close_inherited() -> io::Result<()> {
    let (first, last, flags) = (3, libc::c_uint::MAX, 0);
    // SAFETY: no argument is a pointer. The caller owns no descriptor that this closes.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    Errno::result(done)?;
    Ok(())
}

/// Limits the private memory of the process that can be written (RLIMIT_DATA), in bytes. A lower limit
/// stays: only a process with CAP_SYS_RESOURCE can raise it.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_DATA)?;
    let bytes = bytes.min(most);
    Ok(setrlimit(Resource::RLIMIT_DATA, bytes, bytes)?)
}

/// Confines the calling thread and what it starts, for ever. Returns what the kernel does not
/// have or a filter forbids: `landlock`, `seccomp`. An error means that the thread still has capabilities.
pub fn confine() -> io::Result<Vec<String>> {
    drop_capabilities()?;
    let mut lacks = Vec::new();
    if !matches!(close_files(), Ok(true)) {
        lacks.push("landlock".to_owned());
    }
    // The filter forbids the calls of the lines above.
    let filter = filter().and_then(|filter| seccompiler::apply_filter(&filter));
    if filter.is_err() {
        lacks.push("seccomp".to_owned());
    }
    Ok(lacks)
}

/// Makes the permitted, effective and inheritable sets empty, and with them the ambient set.
fn drop_capabilities() -> io::Result<()> {
    let header = Header {
        version: CAPABILITY_VERSION,
        pid: 0,
    };
    let none = [[0_u32; 3]; 2];
    // SAFETY: the kernel reads the header and the two data structures of version 3, and keeps no
    // pointer. It writes into the header only if it does not know the version, and then an integer.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const none) };
    Errno::result(done)?;
    Ok(())
}

/// Forbids all access to files, and to TCP ports, sockets and signals as far as the kernel can.
/// False: the kernel has no landlock (before 5.13), or was started without it.
fn close_files() -> Result<bool, RulesetError> {
    let abi = ABI::V6;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn filter() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        CALLS.iter().map(|call| (*call, Vec::new())).collect();
    let executable = libc::PROT_EXEC.unsigned_abs().into();
    let is_data = SeccompCondition::new(
        2,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(executable),
        0,
    )?;
    let is_data = SeccompRule::new(vec![is_data])?;
    rules.extend(MEMORY.map(|call| (call, vec![is_data.clone()])));
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?;
    Ok(filter.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    use std::fs::File;

    /// The errors of the calls in a thread that does `before`. A filter and a domain are those of
    /// one thread.
    fn errors(before: impl FnOnce() + Send + 'static) -> [Option<i32>; 4] {
        let calls = move || {
            before();
            let code = |error: io::Error| error.raw_os_error().unwrap_or(0);
            let exec = libc::PROT_READ | libc::PROT_EXEC;
            let map = |protection| {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let size = 4096;
                // SAFETY: a new anonymous mapping, which nothing uses.
                let at =
                    unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
                (at == libc::MAP_FAILED).then(|| code(io::Error::last_os_error()))
            };
            [
                File::open("/proc/self/status").err().map(code),
                socket(
                    AddressFamily::Inet,
                    SockType::Datagram,
                    SockFlag::empty(),
                    None,
                )
                .err()
                .map(|errno| errno as i32),
                map(exec),
                map(libc::PROT_READ),
            ]
        };
        std::thread::spawn(calls).join().unwrap()
    }

    #[test]
    fn a_confined_thread_opens_maps_and_executes_nothing() {
        assert_eq!(errors(|| {}), [None; 4]);
        let refused = Some(libc::EPERM);
        let confined = errors(|| {
            let lacks = confine().unwrap();
            assert!(!lacks.contains(&"seccomp".to_owned()), "{lacks:?}");
        });
        assert_eq!(confined, [refused, refused, refused, None]);
    }

    #[test]
    fn landlock_alone_closes_all_files() {
        let is_there = std::thread::spawn(|| close_files().unwrap())
            .join()
            .unwrap();
        if is_there {
            let closed = errors(|| {
                close_files().unwrap();
            });
            assert_eq!(closed, [Some(libc::EACCES), None, None, None]);
        }
    }

    #[test]
    fn twenty_calls_are_allowed() {
        assert_eq!(CALLS.len() + MEMORY.len(), 20);
        assert!(filter().is_ok());
    }
}
