//! The command line, discovery, manifests and formats, tested through the executable (language specification 4, 12.1
//! and 14).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod build;
mod db;
mod documents;
mod fmt;
mod formats;
mod git;
mod json;
mod large;
mod leaving;
mod manifests;
mod migrating;
mod mistakes;
mod observing;
mod ownership;
mod reports;
mod sources;
mod starting;
mod tables;
mod tests;
mod usage;

use std::path::PathBuf;
use std::time::Duration;

use corpus::{Finished, command, finish};
use tempfile::TempDir;

/// A directory with files, removed at the end of the test.
struct Tree {
    dir: TempDir,
}

impl Tree {
    fn new(files: &[(&str, &[u8])]) -> Tree {
        let dir = tempfile::tempdir().expect("temporary directory");
        let tree = Tree { dir };
        for (path, bytes) in files {
            tree.write(path, bytes);
        }
        tree
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        std::fs::write(path, bytes).expect("file");
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Runs `woc` in the directory.
    fn woc(&self, args: &[&str]) -> Finished {
        self.woc_env(args, &[])
    }

    fn woc_env(&self, args: &[&str], env: &[(&str, &str)]) -> Finished {
        let mut command = command(self.dir.path()).unwrap_or_else(|e| panic!("{e}"));
        let _ = command.args(args).envs(env.iter().copied());
        let out = finish(&mut command, Duration::from_secs(60)).expect("woc runs");
        assert!(!out.timed_out, "woc {args:?} did not end");
        out
    }
}

/// Runs `woc` in an empty directory.
fn woc(args: &[&str]) -> Finished {
    Tree::new(&[]).woc(args)
}

#[track_caller]
fn assert_status(out: &Finished, status: i32) {
    assert_eq!(out.status, Some(status), "stdout: {}\nstderr: {}", out.stdout_text(), out.stderr_text());
}

/// A usage error: status 2, nothing on stdout, one line `woc: …` and the usage on stderr.
#[track_caller]
fn assert_usage(out: &Finished) {
    assert_status(out, 2);
    assert!(out.stdout.is_empty());
    let stderr = out.stderr_text();
    let mut lines = stderr.lines();
    assert!(lines.next().unwrap_or_default().starts_with("woc: "), "{stderr}");
    assert!(lines.next().unwrap_or_default().starts_with("usage: "), "{stderr}");
}

/// Status 2 and exactly one line `woc: …` on stderr.
#[track_caller]
fn assert_one_line(out: &Finished, part: &str) {
    assert_status(out, 2);
    let stderr = out.stderr_text();
    assert!(stderr.starts_with("woc: ") && stderr.lines().count() == 1 && stderr.contains(part), "{stderr}");
}
