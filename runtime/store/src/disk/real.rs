//! The files of a store in a directory of the operating system.

use super::{Disk, Fault, File};
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;

/// The file whose lock is the directory's.
pub(crate) const LOCK: &str = "lock";

/// A directory that no other process has open.
///
/// Its lock lasts as long as this value or one of its files; the system gives it back when the process ends by any
/// cause, and programs that the process starts do not have it. Links in the path are followed once, at opening, so that
/// the files stay with the lock if a link is changed.
#[derive(Debug)]
pub struct Directory {
    opened: Arc<Opened>,
}

#[derive(Debug)]
struct Opened {
    /// The path as it was given: what messages show.
    shown: PathBuf,
    /// The same without links.
    path: PathBuf,
    handle: fs::File,
    /// None if nothing may be written and there is no such file.
    lock: Option<fs::File>,
    writable: bool,
}

/// Why a directory was not opened. Its text begins with the path as it was given.
#[derive(Debug)]
pub enum OpenError {
    /// There is none, and `parent` is no directory to create it in.
    NoParent { path: PathBuf, parent: PathBuf },
    /// There is none, and it was to be read only.
    Missing { path: PathBuf },
    /// It is a file or the like.
    NotADirectory { path: PathBuf },
    /// Another process has it open: `owner`, if that is known.
    InUse { path: PathBuf, owner: Option<u32> },
    /// The system refused an operation.
    Failed { path: PathBuf, fault: Fault },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NoParent { path, parent } => {
                write!(f, "{}: its parent {} is not an existing directory", path.display(), parent.display())
            }
            OpenError::Missing { path } => write!(f, "{}: there is no such directory", path.display()),
            OpenError::NotADirectory { path } => write!(f, "{}: not a directory", path.display()),
            OpenError::InUse { path, owner: Some(pid) } => {
                write!(f, "{}: in use by process {pid}; a store is open in one process at a time", path.display())
            }
            OpenError::InUse { path, owner: None } => {
                write!(f, "{}: in use by another process; a store is open in one process at a time", path.display())
            }
            OpenError::Failed { path, fault } => write!(f, "{}: {fault}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}

impl Directory {
    /// Opens a directory to read and write in it; creates it if only its last component is missing.
    ///
    /// # Errors
    /// `NoParent`, `NotADirectory` and `InUse` before anything is changed; else `Failed`.
    pub fn open(shown: &Path) -> Result<Directory, OpenError> {
        let made = make(shown)?;
        let (path, handle) = find(shown)?;
        let lock_path = path.join(LOCK);
        if let (false, Some(parent)) = (lock_path.exists(), path.parent()) {
            // The store is new: the directory's own name has to outlive a loss of power as well.
            match fs::File::open(parent).and_then(|parent| parent.sync_all()) {
                // Someone else made it, in a place where this process may not look: it is theirs to keep.
                Err(e) if !made && e.kind() == ErrorKind::PermissionDenied => {}
                synced => synced.map_err(failed(shown, "sync", parent))?,
            }
        }
        let lock = open_file(options(true).create(true), &lock_path);
        let lock = lock.map_err(failed(shown, "opening", &shown.join(LOCK)))?;
        take(shown, &lock)?;
        Ok(Directory::new(Opened { shown: shown.to_owned(), path, handle, lock: Some(lock), writable: true }))
    }

    /// Opens a directory to read in it; what would write to it fails.
    ///
    /// # Errors
    /// `Missing`, `NotADirectory`, `InUse`; else `Failed`.
    pub fn open_read_only(shown: &Path) -> Result<Directory, OpenError> {
        if !found(shown)? {
            return Err(OpenError::Missing { path: shown.to_owned() });
        }
        let (path, handle) = find(shown)?;
        let lock_path = path.join(LOCK);
        let lock = match open_file(&options(false), &lock_path) {
            Ok(lock) => Some(lock),
            // A copy of a store: nobody has it open.
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(failed(shown, "opening", &shown.join(LOCK))(e)),
        };
        if let Some(lock) = &lock {
            take(shown, lock)?;
        }
        Ok(Directory::new(Opened { shown: shown.to_owned(), path, handle, lock, writable: false }))
    }

    fn new(opened: Opened) -> Directory {
        Directory { opened: Arc::new(opened) }
    }

    /// Writes the id of this process to the lock file, for what others are told. To be called once the store has been
    /// accepted: a refused one is left as it was, byte for byte.
    ///
    /// # Errors
    /// The write failed, or the directory is open for reading only.
    pub fn write_owner(&self) -> Result<(), Fault> {
        let write = |lock: &fs::File| {
            lock.set_len(0)?;
            lock.write_all_at(format!("{}\n", process::id()).as_bytes(), 0)
        };
        let written = self.opened.check_writable().and_then(|()| self.opened.lock.as_ref().map_or(Ok(()), write));
        written.map_err(|e| self.opened.fault("write", LOCK, e))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.opened.path.join(name)
    }

    fn fault(&self, operation: &'static str, name: &str) -> impl FnOnce(io::Error) -> Fault {
        move |error| self.opened.fault(operation, name, error)
    }

    fn file(&self, name: &str, handle: fs::File) -> Arc<dyn File> {
        Arc::new(OpenFile { directory: self.opened.clone(), name: name.to_owned(), handle })
    }
}

impl Opened {
    fn fault(&self, operation: &'static str, name: &str, error: io::Error) -> Fault {
        let path = if name.is_empty() { self.shown.clone() } else { self.shown.join(name) };
        Fault { operation, path: path.display().to_string(), error }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(ErrorKind::ReadOnlyFilesystem.into()) }
    }
}

impl Disk for Directory {
    fn list(&self) -> Result<Vec<String>, Fault> {
        let list = || {
            let mut names = Vec::new();
            for entry in fs::read_dir(&self.opened.path)? {
                // A name that is no text is foreign.
                names.extend(entry?.file_name().into_string());
            }
            Ok(names)
        };
        list().map_err(self.fault("listing", ""))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>, Fault> {
        let open = open_file(&options(self.opened.writable), &self.at(name));
        Ok(self.file(name, open.map_err(self.fault("opening", name))?))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>, Fault> {
        let create = |()| open_file(options(true).create(true).truncate(true), &self.at(name));
        let handle = self.opened.check_writable().and_then(create).map_err(self.fault("creation", name))?;
        Ok(self.file(name, handle))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        let rename = |()| fs::rename(self.at(from), self.at(to));
        self.opened.check_writable().and_then(rename).map_err(self.fault("renaming", from))
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        let remove = |()| fs::remove_file(self.at(name));
        self.opened.check_writable().and_then(remove).map_err(self.fault("removal", name))
    }

    fn sync_dir(&self) -> Result<(), Fault> {
        self.opened.handle.sync_all().map_err(self.fault("sync", ""))
    }
}

/// A file in the directory, which keeps the lock.
struct OpenFile {
    directory: Arc<Opened>,
    name: String,
    handle: fs::File,
}

impl OpenFile {
    fn fault(&self, operation: &'static str) -> impl FnOnce(io::Error) -> Fault {
        move |error| self.directory.fault(operation, &self.name, error)
    }
}

impl File for OpenFile {
    fn size(&self) -> Result<u64, Fault> {
        self.handle.metadata().map(|found| found.len()).map_err(self.fault("size"))
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.handle.read_at(rest, at + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(self.fault("read")(e)),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.handle.write_all_at(bytes, at).map_err(self.fault("write"))
    }

    fn set_len(&self, len: u64) -> Result<(), Fault> {
        self.handle.set_len(len).map_err(self.fault("resizing"))
    }

    fn sync(&self) -> Result<(), Fault> {
        self.handle.sync_data().map_err(self.fault("sync"))
    }
}

/// How files are opened. The standard library adds close-on-exec.
fn options(write: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    let _ = options.read(true).write(write).mode(0o600);
    options
}

/// Opens a file: not a device or a pipe, which could block for ever, and not a link, behind which may be a file of another
/// store, whose lock this process does not have.
fn open_file(options: &OpenOptions, path: &Path) -> io::Result<fs::File> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            Err(io::Error::new(ErrorKind::InvalidInput, "not a regular file"))
        }
        _ => options.open(path),
    }
}

fn failed(shown: &Path, operation: &'static str, of: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let of = of.display().to_string();
    move |error| OpenError::Failed { path: shown.to_owned(), fault: Fault { operation, path: of, error } }
}

/// Creates the directory unless there is one; whether it did.
fn make(path: &Path) -> Result<bool, OpenError> {
    if found(path)? {
        return Ok(false);
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::metadata(parent) {
        Ok(parent) if parent.is_dir() => {}
        Err(e) if !absent(&e) => return Err(failed(path, "opening", parent)(e)),
        _ => return Err(OpenError::NoParent { path: path.to_owned(), parent: parent.to_owned() }),
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(true),
        // Another process was faster; or a link that leads nowhere has the name.
        Err(e) if e.kind() == ErrorKind::AlreadyExists => match found(path)? {
            true => Ok(false),
            false => Err(OpenError::NotADirectory { path: path.to_owned() }),
        },
        Err(e) => Err(failed(path, "creation", path)(e)),
    }
}

/// Whether there is a directory: an error if there is something else.
fn found(path: &Path) -> Result<bool, OpenError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(OpenError::NotADirectory { path: path.to_owned() }),
        Err(e) if absent(&e) => Ok(false),
        Err(e) => Err(failed(path, "opening", path)(e)),
    }
}

/// Whether nothing has the path: a component is missing, or is a file.
fn absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The path of an existing directory without links, and a handle to sync it.
fn find(shown: &Path) -> Result<(PathBuf, fs::File), OpenError> {
    // Where there is nothing, the system says so below.
    let _ = found(shown)?;
    let path = fs::canonicalize(shown).map_err(failed(shown, "opening", shown))?;
    let handle = fs::File::open(&path).map_err(failed(shown, "opening", shown))?;
    Ok((path, handle))
}

fn take(shown: &Path, lock: &fs::File) -> Result<(), OpenError> {
    match lock.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: shown.to_owned(), owner: owner(lock) }),
        Err(TryLockError::Error(e)) => Err(failed(shown, "locking", &shown.join(LOCK))(e)),
    }
}

/// The process that the lock file names. The number of one that was killed stays there and counts for nothing.
fn owner(lock: &fs::File) -> Option<u32> {
    let mut text = [0; 16];
    let len = lock.read_at(&mut text, 0).ok()?;
    let pid: u32 = std::str::from_utf8(text.get(..len)?).ok()?.trim_end().parse().ok()?;
    Path::new("/proc").join(pid.to_string()).exists().then_some(pid)
}
