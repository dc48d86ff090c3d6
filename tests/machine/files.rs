// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of the handover: replaced whole, and never through a link, a fifo or the directory of
//! another user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use ibboot::handover::RESULT;
use ibboot::system::directory::Directory;

use super::on_own_run;

#[test]
fn files_are_replaced_whole_and_readable() {
    on_own_run("handover", || {
        let directory = Directory::open().unwrap();
        directory.write(RESULT, b"verified\n").unwrap();
        directory.write(RESULT, b"failed shell\nwhy\n").unwrap();
        assert_eq!(
            fs::read_to_string("/run/ibboot/result").unwrap(),
            "failed shell\nwhy\n"
        );
        assert_eq!(
            fs::metadata("/run/ibboot/result")
                .unwrap()
                .permissions()
                .mode()
                & 0o7777,
            0o644
        );
        assert_eq!(
            fs::metadata("/run/ibboot").unwrap().permissions().mode() & 0o7777,
            0o755
        );
        assert_eq!(fs::read_dir("/run/ibboot").unwrap().count(), 1);
        directory.remove(RESULT).unwrap();
        directory.remove(RESULT).unwrap();
        assert_eq!(fs::read_dir("/run/ibboot").unwrap().count(), 0);
    });
}

#[test]
fn a_planted_file_is_replaced_or_refused() {
    on_own_run("planted files", || {
        fs::write("/run/victim", "untouched").unwrap();
        let directory = Directory::open().unwrap();
        // The write replaces the name, never the target of a link; a fifo does not block.
        symlink("/run/victim", "/run/ibboot/result").unwrap();
        directory.write(RESULT, b"verified\n").unwrap();
        assert_eq!(fs::read_to_string("/run/victim").unwrap(), "untouched");
        assert!(
            fs::symlink_metadata("/run/ibboot/result")
                .unwrap()
                .is_file()
        );
        nix::unistd::mkfifo("/run/ibboot/state.json", nix::sys::stat::Mode::S_IRWXU).unwrap();
        directory.write("state.json", b"{}\n").unwrap();
        assert_eq!(
            fs::read_to_string("/run/ibboot/state.json").unwrap(),
            "{}\n"
        );
        // Our temporary name, left by a killed process or forged as a link.
        let temporary = format!("/run/ibboot/.result.{}", std::process::id());
        symlink("/run/victim", &temporary).unwrap();
        directory.write(RESULT, b"verified\n").unwrap();
        assert_eq!(fs::read_to_string("/run/victim").unwrap(), "untouched");
        assert!(!fs::exists(&temporary).unwrap());
        // A directory in the place of a file is an error with its name and leaves no file behind.
        fs::create_dir("/run/ibboot/expected.json").unwrap();
        assert_eq!(
            directory
                .write("expected.json", b"{}")
                .unwrap_err()
                .to_string(),
            "/run/ibboot/expected.json: cannot be written: Is a directory"
        );
        assert!(!fs::exists(format!("/run/ibboot/.expected.json.{}", std::process::id())).unwrap());
    });
}

#[test]
fn the_file_of_a_killed_process_is_removed_by_the_next_write() {
    on_own_run("leftover", || {
        let directory = Directory::open().unwrap();
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let names = [
            // The writer has ended, lives, is no process, or wrote another file.
            format!(".state.json.{}", ended.id()),
            ".state.json.1".to_owned(),
            ".state.json.new".to_owned(),
            format!(".result.{}", ended.id()),
        ];
        for name in &names {
            fs::write(format!("/run/ibboot/{name}"), "half").unwrap();
        }
        directory.write("state.json", b"{}\n").unwrap();
        let mut left: Vec<_> = fs::read_dir("/run/ibboot").unwrap().flatten().collect();
        left.sort_by_key(fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(left, [&names[3], &names[1], &names[2], "state.json"]);
    });
}

#[test]
fn files_of_other_programs_are_written_with_their_mode_and_removed_by_their_text() {
    on_own_run("files of others", || {
        let directory = Directory::below_run("some/where").unwrap();
        directory.write_as("secret", b"yes\n", 0o600).unwrap();
        directory.write("open", b"no\n").unwrap();
        let mode = |name: &str| fs::metadata(name).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("/run/some"), 0o755);
        assert_eq!(mode("/run/some/where/secret"), 0o600);
        fs::write("/run/victim", "yes\n").unwrap();
        symlink("/run/victim", "/run/some/where/link").unwrap();
        directory.remove_if(|text| text == "yes\n").unwrap();
        let mut left: Vec<_> = fs::read_dir("/run/some/where").unwrap().flatten().collect();
        left.sort_by_key(fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(left, ["link", "open"]);
        symlink("/run/some", "/run/planted").unwrap();
        assert_eq!(
            Directory::below_run("planted/where")
                .unwrap_err()
                .to_string(),
            "/run/planted: cannot be opened: Not a directory"
        );
    });
}

#[test]
fn a_directory_that_others_can_write_is_refused() {
    on_own_run("unsafe directory", || {
        fs::create_dir("/run/ibboot").unwrap();
        fs::set_permissions("/run/ibboot", fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(
            Directory::open().unwrap_err().to_string(),
            "/run/ibboot: is not safe to write to: owner 0, mode 777, expected a directory of this user that no other user can write to"
        );
        fs::remove_dir("/run/ibboot").unwrap();
        fs::create_dir("/run/elsewhere").unwrap();
        symlink("/run/elsewhere", "/run/ibboot").unwrap();
        assert_eq!(
            Directory::open().unwrap_err().to_string(),
            "/run/ibboot: cannot be opened: Not a directory"
        );
        assert_eq!(fs::read_dir("/run/elsewhere").unwrap().count(), 0);
        fs::remove_file("/run/ibboot").unwrap();
        fs::create_dir("/run/ibboot").unwrap();
        nix::unistd::chown("/run/ibboot", Some(65534.into()), None).unwrap();
        assert_eq!(fs::metadata("/run/ibboot").unwrap().uid(), 65534);
        assert_eq!(
            Directory::open().unwrap_err().to_string(),
            "/run/ibboot: is not safe to write to: owner 65534, mode 755, expected a directory of this user that no other user can write to"
        );
    });
}

#[test]
fn a_file_of_another_user_is_not_trusted() {
    on_own_run("foreign file", || {
        let directory = Directory::open().unwrap();
        directory.write("expected.json", b"{}").unwrap();
        nix::unistd::chown("/run/ibboot/expected.json", Some(65534.into()), None).unwrap();
        let root = ibboot::system::root::Root::new("/");
        assert_eq!(
            ibboot::handover::read_expected(&root)
                .unwrap_err()
                .to_string(),
            "/run/ibboot/expected.json: is not trusted: owner 65534, mode 100644, expected a regular file of root"
        );
        fs::remove_file("/run/ibboot/expected.json").unwrap();
        nix::unistd::mkfifo("/run/ibboot/expected.json", nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert_eq!(
            ibboot::handover::read_expected(&root)
                .unwrap_err()
                .to_string(),
            "/run/ibboot/expected.json: is not trusted: owner 0, mode 10400, expected a regular file of root"
        );
    });
}
