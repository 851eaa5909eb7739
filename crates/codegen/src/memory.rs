//! Memory that code is put into and then run in, which is never writable and executable at the same time, and never
//! given back; and the pages that the compiler's own memory comes in.

use std::io::Error;

/// Fresh memory, zero, writable until it is protected.
pub(crate) struct Mapping {
    start: *mut u8,
    len: usize,
}

impl Mapping {
    pub(crate) fn new(len: usize) -> Result<Mapping, String> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place that the system chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(format!("memory for code: {}", Error::last_os_error()));
        }
        Ok(Mapping { start: start.cast(), len })
    }

    /// The address of the byte at `offset`.
    pub(crate) fn at(&self, offset: usize) -> Result<*const u8, String> {
        if offset >= self.len {
            return Err("code: an address outside its memory".to_string());
        }
        // SAFETY: inside the mapping.
        Ok(unsafe { self.start.add(offset) }.cast_const())
    }

    pub(crate) fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), String> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.len) {
            return Err("code: a part outside its memory".to_string());
        }
        // SAFETY: the range was checked; nobody else refers to the mapping before `protect`, which ends writing.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(offset), bytes.len()) };
        Ok(())
    }

    /// From now on the bytes before `text` can only be read and run, those up to `fixed` only read. Both begin a page.
    pub(crate) fn protect(self, text: usize, fixed: usize) -> Result<(), String> {
        let parts = [(0, text, libc::PROT_READ | libc::PROT_EXEC), (text, fixed, libc::PROT_READ)];
        for (from, to, access) in parts {
            let Some(len) = to.min(self.len).checked_sub(from) else { continue };
            // SAFETY: a part of the mapping, which nobody writes to any more.
            if unsafe { libc::mprotect(self.start.add(from).cast(), len, access) } != 0 {
                return Err(format!("memory for code: {}", Error::last_os_error()));
            }
        }
        Ok(())
    }
}

/// While it lives, fresh memory of the whole process comes in small pages; of several at a time the last one to go
/// restores what the last one to come had found. Compiling touches a little of much memory: clearing huge pages for
/// that would take a good part of the time, and several times the memory.
pub(crate) struct SmallPages {
    /// Whether the process has none but small pages anyway.
    before: libc::c_int,
}

impl SmallPages {
    pub(crate) fn new() -> SmallPages {
        // SAFETY: asks for a flag of the process and sets it. A system that does not know it goes on as it was.
        let before = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
        set_small_pages(1);
        SmallPages { before }
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        set_small_pages(self.before.max(0));
    }
}

fn set_small_pages(only: libc::c_int) {
    // SAFETY: sets a flag of the process, which has no bearing on what memory holds.
    let _ = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, libc::c_ulong::from(only as u32), 0, 0, 0) };
}
