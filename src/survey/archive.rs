// SPDX-License-Identifier: MIT OR Apache-2.0
//! One tar archive: the recorded tree without secrets, and text files in its directory `report`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::tree;
use crate::error::{Error, Result, printable};
use crate::system::root::Root;

/// The directory of the archive that `--root` takes.
const TOP: &str = "ibboot-report";
/// The directory below it with everything that is not a file of the machine.
const TEXTS: &str = "report";

/// A new archive, which only its owner can read. Nothing remains of an archive that is not finished.
#[derive(Debug)]
pub struct Archive {
    output: PathBuf,
    file: File,
    folder: PathBuf,
    texts: Vec<(String, String)>,
    is_finished: bool,
}

impl Archive {
    /// Creates the file; a file that exists is an error.
    pub fn create(output: &Path) -> Result<Archive> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(output)
            .map_err(|e| Error::io(output.display(), "cannot be created", &e))?;
        let template = std::env::temp_dir().join("ibboot-report.XXXXXX");
        let folder = nix::unistd::mkdtemp(&template).map_err(|errno| {
            drop(fs::remove_file(output));
            Error::new(template.display().to_string(), "cannot be created").found(errno.desc())
        })?;
        Ok(Archive {
            output: output.to_owned(),
            file,
            folder,
            texts: Vec::new(),
            is_finished: false,
        })
    }

    /// Adds a text file; each line becomes printable.
    pub fn add(&mut self, name: &str, text: &str) {
        let lines = text.split('\n').map(printable);
        let text = lines.collect::<Vec<_>>().join("\n");
        self.texts.push((name.to_owned(), text));
    }

    /// Writes the recorded tree to a directory of its own until the archive is finished; returns
    /// the directory.
    pub fn save(&self, root: &Root) -> Result<PathBuf> {
        let top = self.folder.join(TOP);
        tree::save(root, &top)?;
        Ok(top)
    }

    /// Writes the archive.
    pub fn finish(mut self) -> Result<()> {
        let failed = |e: io::Error| Error::io(self.output.display(), "cannot be written", &e);
        let top = self.folder.join(TOP);
        let texts = top.join(TEXTS);
        fs::create_dir_all(&texts).map_err(failed)?;
        for (name, text) in &self.texts {
            fs::write(texts.join(name), text).map_err(failed)?;
        }
        let mut tar = tar::Builder::new(&self.file);
        tar.follow_symlinks(false);
        tar.mode(tar::HeaderMode::Deterministic);
        tar.append_dir_all(TOP, &top).map_err(failed)?;
        tar.finish().map_err(failed)?;
        drop(tar);
        self.file.sync_all().map_err(failed)?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.folder) {
            log::warn!("{}: cannot be removed: {e}", self.folder.display());
        }
        if !self.is_finished
            && let Err(e) = fs::remove_file(&self.output)
        {
            log::warn!("{}: cannot be removed: {e}", self.output.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::facts::Facts;
    use crate::wish::expectation::Depth;

    #[test]
    fn an_extracted_archive_is_the_machine() {
        let sys = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sys/soft-roce");
        let root = Root::recording(sys);
        let facts = Facts::gather(&root, None, &[], Depth::All);
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("x.tar");
        let mut archive = Archive::create(&output).unwrap();
        archive.add("claims", "one\n\u{1b}two\n");
        let temporary = archive.folder.clone();
        archive.save(&root).unwrap();
        archive.finish().unwrap();
        assert!(!temporary.exists());
        let mode = fs::metadata(&output).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);

        let file = File::open(&output).unwrap();
        tar::Archive::new(file).unpack(folder.path()).unwrap();
        let top = folder.path().join(TOP);
        let claims = fs::read_to_string(top.join("report/claims")).unwrap();
        assert_eq!(claims, "one\n\\x1btwo\n");
        assert_eq!(Facts::gather(&Root::new(top), None, &[], Depth::All), facts);
    }

    #[test]
    fn an_existing_file_is_kept_and_an_unfinished_archive_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("x.tar");
        fs::write(&output, "precious").unwrap();
        let error = Archive::create(&output).unwrap_err().to_string();
        let expected = format!("{}: cannot be created: File exists", output.display());
        assert_eq!(error, expected);
        assert_eq!(fs::read_to_string(&output).unwrap(), "precious");
        fs::remove_file(&output).unwrap();
        let archive = Archive::create(&output).unwrap();
        let temporary = archive.folder.clone();
        assert!(output.exists());
        drop(archive);
        assert!(!output.exists() && !temporary.exists());
    }
}
