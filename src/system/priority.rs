// SPDX-License-Identifier: MIT OR Apache-2.0
//! The priority of a process (setpriority(2)).

#![allow(unsafe_code)]

use std::io;

use nix::errno::Errno;

/// Gives `process` the nice value 0. Lowering a priority needs no capability.
pub fn make_usual(process: u32) -> io::Result<()> {
    // SAFETY: no argument is a pointer.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, process, 0) };
    Errno::result(done)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_has_the_usual_priority_afterwards() {
        let mut child = Command::new("nice")
            .args(["-n", "7", "cat"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let process = child.id();
        let read = |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        while read("comm") != "cat\n" {
            std::thread::yield_now();
        }
        // proc_pid_stat(5): the 17th field after the name.
        let nice = || {
            read("stat")
                .rsplit(')')
                .next()
                .unwrap()
                .split(' ')
                .nth(17)
                .unwrap()
                .to_owned()
        };
        assert_ne!(nice(), "0");
        let done = make_usual(process);
        let after = nice();
        drop(child.stdin.take());
        child.wait().unwrap();
        if nix::unistd::geteuid().is_root() {
            done.unwrap();
            assert_eq!(after, "0");
        } else {
            assert_eq!(done.unwrap_err().raw_os_error(), Some(libc::EACCES));
        }
    }
}
