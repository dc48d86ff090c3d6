// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::pace;

#[test]
fn workers_that_end_late_leave_no_zombies() {
    let start = || Worker::start_program(Path::new("/bin/cat"), &[]).unwrap();
    // Of many some have not ended when they are dropped.
    let all: Vec<Worker> = (0..50).map(|_| start()).collect();
    let processes = all.iter().map(|one| format!("/proc/{}", one.id()));
    let processes: Vec<String> = processes.collect();
    drop(all);
    let mut limit = pace::Limit::seconds(20);
    for process in processes {
        while Path::new(&process).exists() {
            assert!(!limit.is_over(), "{process} is a zombie");
            drop(start());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
