//! Finding and reading source files.

use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::{Error, ProjectFile, unreadable};

/// Directories that never hold sources; entries with a leading dot are skipped as well.
const SKIPPED: [&str; 3] = ["target", "data", "node_modules"];
/// Largest source file in bytes. Spans are 32-bit, and a device such as `/dev/zero` has no end.
const SIZE_MAX: u64 = 256 << 20;

/// All `.wo` files under `root`, read, in the order of `paths`.
pub fn files(root: &Path, package: Option<&str>, skip: &[PathBuf]) -> Result<Vec<ProjectFile>, Error> {
    let found = paths(root, skip)?;
    found
        .into_iter()
        .map(|relative| {
            let path = root.join(&relative);
            let dir = relative.parent().into_iter().flat_map(Path::components);
            let module = dir.map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
            let bytes = read(&path)?;
            let display = path.to_string_lossy().into_owned();
            Ok(ProjectFile { display, package: package.map(str::to_owned), module, bytes })
        })
        .collect()
}

/// Relative paths of all `.wo` files under `root`, in byte-wise order. `skip` holds canonical directories that belong
/// to somebody else (dependencies inside the root). Symbolic links to directories are not followed, which also keeps
/// cycles out.
pub fn paths(root: &Path, skip: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(relative) = pending.pop() {
        let dir = join(root, &relative);
        let entries = std::fs::read_dir(&dir).map_err(|e| unreadable(&dir, &e))?;
        for entry in entries {
            let entry = entry.map_err(|e| unreadable(&dir, &e))?;
            let name = entry.file_name();
            if name.as_bytes().starts_with(b".") {
                continue;
            }
            let kind = entry.file_type().map_err(|e| unreadable(&entry.path(), &e))?;
            let below = relative.join(&name);
            if kind.is_dir() {
                let skipped = SKIPPED.iter().any(|s| name.as_bytes() == s.as_bytes());
                let foreign = !skip.is_empty() && entry.path().canonicalize().is_ok_and(|p| skip.contains(&p));
                if !skipped && !foreign {
                    pending.push(below);
                }
            } else if name.as_bytes().ends_with(b".wo") && entry.path().metadata().is_ok_and(|m| m.is_file()) {
                found.push(below);
            }
        }
    }
    found.sort_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    Ok(found)
}

/// The whole file, at most `SIZE_MAX` bytes.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let file = std::fs::File::open(path).map_err(|e| unreadable(path, &e))?;
    let mut bytes = Vec::new();
    let _ = file.take(SIZE_MAX + 1).read_to_end(&mut bytes).map_err(|e| unreadable(path, &e))?;
    if u64::try_from(bytes.len()).is_ok_and(|n| n > SIZE_MAX) {
        return Err(Error::Unreadable(format!("{}: larger than {} MiB", path.display(), SIZE_MAX >> 20)));
    }
    Ok(bytes)
}

/// `Path::join` with an empty path would add a trailing slash.
fn join(root: &Path, relative: &Path) -> PathBuf {
    if relative.as_os_str().is_empty() { root.to_path_buf() } else { root.join(relative) }
}
