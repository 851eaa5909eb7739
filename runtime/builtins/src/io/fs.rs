//! Files. Every operation runs on a helper thread while the fiber is parked, and a stop does not disturb it.

use super::{Ptr, path, shim, text};
use sched::fiber::Wait;
use sched::sys;
use sched::wait::blocking;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use values::ctx::{Ctx, entry};
use values::object::{Claim, Obj};

/// Largest piece a file is read in.
const PIECE: usize = 1 << 20;

/// Runs `work` on the path; `None` with a pending trap 6 for a bad path, or trap 9 with the system's text.
fn on_path<T: Send + 'static>(
    ctx: &mut Ctx,
    p: *const Obj,
    work: impl FnOnce(PathBuf) -> io::Result<T> + Send + 'static,
) -> Option<T> {
    let owned = PathBuf::from(OsStr::from_bytes(path(ctx, p)?));
    match blocking(ctx, Wait::Pool, move || work(owned))? {
        Ok(value) => Some(value),
        Err(e) => {
            match e.kind() {
                io::ErrorKind::OutOfMemory => ctx.raise(abi::trap::OOM, abi::trap::OUT_OF_MEMORY),
                _ => ctx.raise(abi::trap::IO, &e.raw_os_error().map_or_else(|| e.to_string(), sys::text)),
            }
            None
        }
    }
}

/// Reads at most `cap` bytes, growing with what is there, so that a large cap costs nothing by itself. What is read
/// counts against the program's memory.
fn fill(mut next: impl FnMut(&mut [u8], u64) -> io::Result<usize>, cap: u64) -> io::Result<(Vec<u8>, Claim)> {
    let mut out: Vec<u8> = Vec::new();
    let mut claim = Claim::default();
    let mut piece = 16 * 1024;
    while (out.len() as u64) < cap {
        let at = out.len();
        let want = usize::try_from(cap - at as u64).unwrap_or(usize::MAX).min(piece);
        if out.capacity() - at < want {
            let more = want.max(at);
            if !claim.grow(more) || out.try_reserve_exact(more).is_err() {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
        }
        out.resize(at + want, 0);
        let Some(room) = out.get_mut(at..) else { break };
        match next(room, at as u64) {
            Ok(n) => {
                out.truncate(at + n.min(want));
                if n == 0 {
                    break;
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => out.truncate(at),
            Err(e) => return Err(e),
        }
        piece = (piece * 2).min(PIECE);
    }
    Ok((out, claim))
}

extern "C" fn exists(ctx: *mut Ctx, p: *const Obj) -> i64 {
    entry(ctx, |ctx| i64::from(on_path(ctx, p, |p| Ok(p.metadata().is_ok())).unwrap_or(false)))
}

extern "C" fn list(ctx: *mut Ctx, p: *const Obj) -> *mut Obj {
    entry(ctx, |ctx| {
        let names = on_path(ctx, p, |p| {
            let mut names = Vec::new();
            for e in std::fs::read_dir(p)? {
                names.push(e?.file_name().into_vec());
            }
            names.sort_unstable();
            Ok(names)
        });
        names.map_or_else(Ptr::default, |n| Ptr(shim::list_of_texts(ctx, &n)))
    })
    .0
}

extern "C" fn stat(ctx: *mut Ctx, class: i64, p: *const Obj) -> *mut Obj {
    entry(ctx, |ctx| {
        let found = on_path(ctx, p, |p| {
            Ok(p.metadata().ok().map(|m| {
                let ms = m.mtime().wrapping_mul(1000).wrapping_add(m.mtime_nsec() / 1_000_000);
                [m.size().cast_signed(), ms, m.ino().cast_signed(), i64::from(m.is_dir())]
            }))
        });
        match found.flatten() {
            Some([size, mtime, inode, dir]) => {
                let fields = [("size", size), ("mtime", mtime), ("inode", inode), ("dir", dir)];
                Ptr(shim::object(ctx, u32::try_from(class).unwrap_or(u32::MAX), &fields))
            }
            None => Ptr::default(),
        }
    })
    .0
}

extern "C" fn read_all(ctx: *mut Ctx, p: *const Obj, cap: i64) -> *mut Obj {
    entry(ctx, |ctx| {
        let cap = u64::try_from(cap).unwrap_or(0);
        let got = on_path(ctx, p, move |p| {
            let mut file = File::open(p)?;
            fill(|room, _| file.read(room), cap)
        });
        got.map_or_else(Ptr::default, |(b, _claim)| Ptr(shim::text(ctx, &b)))
    })
    .0
}

extern "C" fn read_at(ctx: *mut Ctx, p: *const Obj, off: i64, len: i64) -> *mut Obj {
    entry(ctx, |ctx| {
        let (Ok(off), Ok(len)) = (u64::try_from(off), u64::try_from(len)) else {
            ctx.raise(abi::trap::BOUNDS, "negative offset or length");
            return Ptr::default();
        };
        // No file has bytes behind the largest offset, which the system does not take for the end of the file.
        let len = len.min(i64::MAX.unsigned_abs() - off);
        let got = on_path(ctx, p, move |p| {
            // What has no offsets, a FIFO say, is refused when it is read; its opening must not wait for a writer.
            let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(p)?;
            fill(|room, at| file.read_at(room, off.saturating_add(at)), len)
        });
        got.map_or_else(Ptr::default, |(b, _claim)| Ptr(shim::text(ctx, &b)))
    })
    .0
}

extern "C" fn append(ctx: *mut Ctx, p: *const Obj, t: *const Obj) {
    entry(ctx, |ctx| {
        let Some(bytes) = text(ctx, t) else { return };
        let bytes = bytes.to_vec();
        let _ = on_path(ctx, p, move |p| {
            let mut file = std::fs::OpenOptions::new().append(true).create(true).mode(0o644).open(p)?;
            file.write_all(&bytes)
        });
    });
}

pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![
        ("fs.exists", exists as *const u8),
        ("fs.list", list as *const u8),
        ("fs.stat", stat as *const u8),
        ("fs.read_all", read_all as *const u8),
        ("fs.read_at", read_at as *const u8),
        ("fs.append", append as *const u8),
    ]
}
