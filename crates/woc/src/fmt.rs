//! `woc fmt`: finds the files, has them formatted, and replaces those that change, each in one step.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

use diagnostics::Diagnostic;
use diagnostics::render::{SourceFile, render};
use diagnostics::span::FileId;
use syntax::format::Refusal;

use crate::options::{Invocation, USAGE};
use crate::{crash, output};

/// What became of the files.
#[derive(Default)]
struct Outcome {
    /// Refused files and what is wrong with them; `FileId` indexes `sources`.
    sources: Vec<SourceFile>,
    diagnostics: Vec<Diagnostic>,
    would_change: bool,
    /// One line per file that could not be formatted or written.
    failures: Vec<String>,
    internal: Option<String>,
}

/// Formats `paths`, or lists what would change; the result is the exit status.
pub fn run(invocation: &Invocation, paths: &[PathBuf], check: bool) -> i32 {
    // Nothing is changed unless everything can be read.
    let files = match find(paths) {
        Ok(files) => files,
        Err(text) => {
            output::stderr(&format!("woc: {}\n", text.replace(char::is_control, "\u{fffd}")));
            return USAGE;
        }
    };
    let mut outcome = Outcome::default();
    for (path, bytes) in files {
        one(invocation, &path, bytes, check, &mut outcome);
    }
    for line in &outcome.failures {
        output::stderr(&format!("woc: {}\n", line.replace(char::is_control, "\u{fffd}")));
    }
    let refused = !outcome.diagnostics.is_empty();
    if refused {
        let format = invocation.format;
        output::stderr(&render(&mut outcome.diagnostics, &outcome.sources, format, output::color()));
    }
    match outcome.internal {
        Some(what) => crash::failed(&what),
        None if !outcome.failures.is_empty() => USAGE,
        None => i32::from(refused || outcome.would_change),
    }
}

type Files = Vec<(PathBuf, Vec<u8>)>;

/// Every file once, with its content.
fn find(paths: &[PathBuf]) -> Result<Files, String> {
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    for path in paths {
        for file in project::source_paths(path).map_err(text_of)? {
            let bytes = project::read_source(&file).map_err(text_of)?;
            let identity = file.canonicalize().unwrap_or_else(|_| file.clone());
            if seen.insert(identity) {
                files.push((file, bytes));
            }
        }
    }
    Ok(files)
}

fn text_of(error: project::Error) -> String {
    match error {
        project::Error::Unreadable(text) => text,
        project::Error::Manifest { .. } => "the manifest is not valid".to_owned(),
    }
}

fn one(invocation: &Invocation, path: &Path, bytes: Vec<u8>, check: bool, outcome: &mut Outcome) {
    let id = FileId(u32::try_from(outcome.sources.len()).unwrap_or(u32::MAX));
    match syntax::format(id, &bytes, &invocation.flags) {
        Ok(result) if result == bytes => {}
        Ok(_) if check => {
            outcome.would_change = true;
            output::stdout(&format!("{}\n", path.to_string_lossy().replace(char::is_control, "\u{fffd}")));
        }
        Ok(result) => {
            if let Err(e) = replace(path, &result) {
                let text = e.to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                outcome.failures.push(format!("{}: not written: {text}", path.display()));
            }
        }
        Err(Refusal::Errors(found)) => {
            outcome.sources.push(SourceFile { display: path.to_string_lossy().into_owned(), bytes });
            outcome.diagnostics.extend(found);
        }
        Err(Refusal::TooLong) => {
            outcome.failures.push(format!("{}: too large once it is indented", path.display()));
        }
        Err(Refusal::Internal(what)) => {
            outcome.internal = Some(format!("{} was left alone: {what}", path.display()));
        }
    }
}

/// Replaces the content of `path` in one step: whoever opens it sees the old or the new text. The mode stays, and the
/// owner where the system allows it; of a symbolic link the target is replaced.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = path.canonicalize()?;
    if !fs::metadata(&target)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let (Some(dir), Some(name)) = (target.parent(), target.file_name()) else {
        return Err(io::Error::other("not a regular file"));
    };
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = dir.join(temporary);
    let written = write_like(&target, &temporary, content).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_like(target: &Path, temporary: &Path, content: &[u8]) -> io::Result<()> {
    // A read-only file is not rewritten behind its owner's back.
    let _ = OpenOptions::new().write(true).open(target)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    file.write_all(content)?;
    let (old, new) = (fs::metadata(target)?, file.metadata()?);
    if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
        // Only the superuser may give a file away; anybody else becomes its owner, as with other tools.
        let _ = fchown(&file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(old.permissions())?;
    file.sync_all()
}
