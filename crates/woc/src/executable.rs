//! `woc build`: a copy of the running executable with a compiled program behind it, and finding that program at
//! start-up.
//!
//! Layout: the executable, `HEAD`, the code of `pipeline::build`, its length (`u64`), its CRC-32 (`u32`), `TAIL`. The
//! tail says that there is a program; the head, which lies where the plain executable ends, says that there was one when
//! a file was cut.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use codec::crc32;
use project::{Kind, Project};

const HEAD: &[u8; 16] = b"\0writeonce prog\n";
const TAIL: &[u8; 16] = b"\nwriteonce end.\0";
/// Length, checksum and `TAIL`.
const TRAILER: u64 = 8 + 4 + 16;

/// Writes the program, compiled to `code`, to `out`, by default `target/NAME` in the project. The error is a line for
/// the user.
pub fn write(project: &Project, code: &[u8], out: Option<&Path>) -> Result<(), String> {
    let out = match out {
        Some(out) => out.to_path_buf(),
        None => default_output(project)?,
    };
    let told = |e: io::Error| format!("{}: {}", out.display(), project::system_text(&e));
    match std::fs::metadata(&out) {
        Ok(meta) if meta.is_dir() => return Err(format!("{} is a directory", out.display())),
        // A device would be replaced by a file.
        Ok(meta) if !meta.is_file() => return Err(format!("{} is not a regular file", out.display())),
        Ok(_) if is_input(project, &out) => return Err(format!("{} is a file of the program", out.display())),
        Ok(_) => {}
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(told(e)),
    }
    if out.file_name().is_none() || out.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(format!("{} is no name for a file", out.display()));
    }
    // Not made of the name, which may be as long as names can be.
    let temporary = out.with_file_name(format!(".woc-{}", std::process::id()));
    let written = assemble(&temporary, code).and_then(|()| std::fs::rename(&temporary, &out));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        told(e)
    })
}

/// Whether `out` is a source file or the manifest or lock beside them: it would be lost.
fn is_input(project: &Project, out: &Path) -> bool {
    let Ok(out) = std::fs::canonicalize(out) else { return false };
    let named = ["wo.toml", "wo.lock"].map(|name| project.root.join(name));
    project
        .files
        .iter()
        .map(|f| PathBuf::from(&f.display))
        .chain(named)
        .any(|f| std::fs::canonicalize(f).is_ok_and(|f| f == out))
}

fn default_output(project: &Project) -> Result<PathBuf, String> {
    let base = match project.kind {
        Kind::File => project.root.parent().unwrap_or(Path::new("")),
        _ => &project.root,
    };
    let dir = base.join("target");
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {}", dir.display(), project::system_text(&e)))?;
    Ok(dir.join(&project.name))
}

fn assemble(at: &Path, body: &[u8]) -> io::Result<()> {
    let mut own = open_own()?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o755).open(at)?;
    let _ = io::copy(&mut own, &mut file)?;
    file.write_all(HEAD)?;
    file.write_all(body)?;
    file.write_all(&(body.len() as u64).to_le_bytes())?;
    file.write_all(&crc32::update(0, body).to_le_bytes())?;
    file.write_all(TAIL)?;
    // The mode of `open` is subject to the user's mask.
    file.set_permissions(Permissions::from_mode(0o755))
}

fn open_own() -> io::Result<File> {
    File::open("/proc/self/exe").or_else(|e| {
        // Without /proc the name it was started by may do.
        if e.kind() != io::ErrorKind::NotFound {
            return Err(e);
        }
        let name = std::env::args_os().next().unwrap_or_default();
        if name.as_encoded_bytes().contains(&b'/') {
            return File::open(name);
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).find_map(|dir| File::open(dir.join(&name)).ok());
        found.ok_or(e)
    })
}

/// The code behind the running executable; none if it is the plain `woc`. The error says what is wrong with it.
pub fn attached() -> Result<Option<Vec<u8>>, String> {
    // Not knowing is an error: a program that took itself for `woc` would rewrite files on `fmt`.
    find(open_own().map_err(|e| format!("cannot read this executable: {}", project::system_text(&e)))?)
}

/// What a damaged executable says.
pub fn damaged(what: &str) -> String {
    format!("this executable is damaged: {what}; build it again")
}

fn find(mut file: File) -> Result<Option<Vec<u8>>, String> {
    let unreadable = |e: io::Error| format!("cannot read this executable: {}", project::system_text(&e));
    let damaged = |what: &str| Err(damaged(what));
    let len = file.metadata().map_err(unreadable)?.len();
    let Some(trailer_at) = len.checked_sub(TRAILER) else { return Ok(None) };
    let (mut size, mut sum, mut tail) = ([0; 8], [0; 4], [0; 16]);
    let _ = file.seek(SeekFrom::Start(trailer_at)).map_err(unreadable)?;
    for part in [&mut size[..], &mut sum[..], &mut tail[..]] {
        file.read_exact(part).map_err(unreadable)?;
    }
    if tail != *TAIL {
        let cut = plain_end(&file).is_some_and(|end| is_head(&file, end));
        return if cut { damaged("its end is missing") } else { Ok(None) };
    }
    let size = u64::from_le_bytes(size);
    let Some(head_at) = trailer_at.checked_sub(size).and_then(|at| at.checked_sub(HEAD.len() as u64)) else {
        return damaged("it is shorter than the program in it");
    };
    if !is_head(&file, head_at) {
        return damaged("the program in it does not begin where it should");
    }
    let mut body = vec![0; usize::try_from(size).unwrap_or(0)];
    file.read_exact_at(&mut body, head_at + HEAD.len() as u64).map_err(unreadable)?;
    if crc32::update(0, &body) != u32::from_le_bytes(sum) {
        return damaged("the checksum of the program in it differs");
    }
    Ok(Some(body))
}

fn is_head(file: &File, at: u64) -> bool {
    let mut head = [0; 16];
    file.read_exact_at(&mut head, at).is_ok() && head == *HEAD
}

/// Where the executable itself ends: behind the section headers, which linkers write last.
fn plain_end(file: &File) -> Option<u64> {
    let mut header = [0; 64];
    file.read_exact_at(&mut header, 0).ok()?;
    let number = |at: usize| Some(u16::from_le_bytes(*header.get(at..)?.first_chunk()?));
    let offset = u64::from_le_bytes(*header.get(40..)?.first_chunk()?);
    let (size, count) = (number(58)?, number(60)?);
    header.starts_with(b"\x7fELF\x02\x01").then(|| offset.checked_add(u64::from(size) * u64::from(count)))?
}
