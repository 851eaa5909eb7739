//! `wo.lock`: which commit each git dependency is at. One comment line, then `name sha` lines in byte-wise order.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use crate::system_text;

pub const LOCK: &str = "wo.lock";

const HEADING: &str = "# Commits of the git dependencies in wo.toml; `woc --update-deps DIR` renews them.\n";
const SIZE_MAX: u64 = 1 << 20;

pub type Pins = BTreeMap<String, String>;

/// What `wo.lock` in `root` pins; nothing if there is none. The error is one line.
pub fn read(root: &Path) -> Result<Pins, String> {
    let path = root.join(LOCK);
    match std::fs::metadata(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Pins::new()),
        Err(e) => return Err(format!("{LOCK}: {}", system_text(&e))),
        Ok(meta) if !meta.is_file() || meta.len() > SIZE_MAX => return Err(format!("{LOCK} is no lock file")),
        Ok(_) => {}
    }
    let bytes = std::fs::read(&path).map_err(|e| format!("{LOCK}: {}", system_text(&e)))?;
    parse(&String::from_utf8_lossy(&bytes))
}

fn parse(text: &str) -> Result<Pins, String> {
    let mut pins = Pins::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let entry = line.split_once(' ').filter(|(name, sha)| !name.is_empty() && is_commit(sha));
        let Some((name, sha)) = entry else {
            return Err(format!("{LOCK} line {} is not `name sha`", index + 1));
        };
        if pins.insert(name.to_owned(), sha.to_owned()).is_some() {
            return Err(format!("{LOCK} line {} repeats `{name}`", index + 1));
        }
    }
    Ok(pins)
}

/// Replaces `wo.lock` at once: a reader sees the old or the new file.
pub fn write(root: &Path, pins: &Pins) -> Result<(), String> {
    let mut text = HEADING.to_owned();
    for (name, sha) in pins {
        text.push_str(&format!("{name} {sha}\n"));
    }
    let temporary = root.join(format!(".{LOCK}.{}", std::process::id()));
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, root.join(LOCK)));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        format!("cannot write {LOCK}: {}", system_text(&e))
    })
}

/// A full commit id: 40 or 64 lower-case hexadecimal digits.
pub fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;

    #[test]
    fn lines_are_read_strictly() {
        let sha = "0123456789abcdef0123456789abcdef01234567";
        let pins = parse(&format!("# c\r\n\nb {sha}\r\na {sha}\n")).unwrap();
        assert_eq!(pins.keys().collect::<Vec<_>>(), ["a", "b"]);
        for bad in ["a", "a ", &format!(" {sha}"), "a 0123", &format!("a {sha} x"), &format!("a {sha}\na {sha}")] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_empty());
        let sha = "f".repeat(40);
        let pins: Pins = [("z".to_owned(), sha.clone()), ("a".to_owned(), sha.clone())].into();
        write(dir.path(), &pins).unwrap();
        assert_eq!(read(dir.path()).unwrap(), pins);
        let text = std::fs::read_to_string(dir.path().join(LOCK)).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with('#'));
        assert_eq!(lines[1..], [format!("a {sha}"), format!("z {sha}")]);
    }
}
