// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of the program.

use std::process::Command;

/// Copies the program. Another process does it: a child that another test forks at the same time
/// would inherit the open copy, and the kernel starts no file that is open for writing (ETXTBSY).
pub fn copy(to: &str) {
    let program = env!("CARGO_BIN_EXE_ibboot");
    let done = Command::new("cp").args([program, to]).status();
    assert!(
        done.is_ok_and(|status| status.success()),
        "cp {program} {to}"
    );
}
