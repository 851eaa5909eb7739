//! Descriptor handles: numbers that are never used twice, so that a stale one cannot reach another connection. A
//! handle is a slot and the slot's generation; inherited descriptors keep their own numbers.

use crate::fiber::Token;
use crate::sys;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const SLOT_BITS: u32 = 24;
/// Inherited descriptors beyond this number are not reachable.
const INHERITED: i32 = 1 << 20;
/// A handle that more actors than these have used is not closed by the death of one.
const HOLDERS: usize = 64;

/// An open descriptor and who waits on it.
pub struct Entry {
    pub fd: i32,
    /// Inherited: shared with other processes, so it stays blocking and is only used when ready.
    pub inherited: bool,
    pub registered: bool,
    /// A read may succeed: nothing has shown since the last event that the descriptor was drained.
    pub readable: bool,
    /// End of stream or an error was reported.
    pub hup: bool,
    pub readers: VecDeque<Token>,
    /// The fiber whose write waits for room.
    pub writer: Option<Token>,
    /// A write is in progress; others queue.
    pub writing: bool,
    pub write_queue: VecDeque<Token>,
    /// Actors that hold the handle (0 is `main`): the one that opened it, until another uses it; then those that did.
    holder: u64,
    opened_only: bool,
    more_holders: BTreeSet<u64>,
    shared: bool,
    generation: u64,
}

impl Entry {
    fn new() -> Entry {
        Entry {
            fd: -1,
            inherited: false,
            registered: false,
            readable: true,
            hup: false,
            readers: VecDeque::new(),
            writer: None,
            writing: false,
            write_queue: VecDeque::new(),
            holder: 0,
            opened_only: true,
            shared: false,
            more_holders: BTreeSet::new(),
            generation: 0,
        }
    }

    /// `who` performs an operation on the handle.
    pub fn hold(&mut self, who: u64) {
        if self.holder == who {
            self.opened_only = false;
        } else if self.opened_only {
            self.holder = who;
            self.opened_only = false;
        } else if !self.shared && !self.inherited {
            let _ = self.more_holders.insert(who);
            if self.more_holders.len() > HOLDERS {
                self.more_holders.clear();
                self.shared = true;
            }
        }
    }
}

/// The handles of the process.
pub struct Handles {
    /// Entry `i` belongs to handle numbers whose slot part is `first + i`; below `first` lie inherited descriptors.
    first: u64,
    inherited: BTreeMap<u64, Entry>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    pub open: i64,
}

impl Handles {
    /// A table that knows the descriptors open now.
    #[must_use]
    pub fn inherited() -> Handles {
        let mut fds: Vec<i32> = vec![0, 1, 2];
        if let Ok(dir) = std::fs::read_dir("/proc/self/fd") {
            fds.extend(dir.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()));
        }
        // SAFETY: only asks for flags; the directory's own descriptor is closed by now and so not valid.
        fds.retain(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0);
        fds.retain(|fd| *fd < INHERITED);
        let top = fds.iter().copied().max().unwrap_or(2).max(2);
        let inherited = fds
            .into_iter()
            .map(|fd| (u64::from(fd.unsigned_abs()), Entry { fd, inherited: true, ..Entry::new() }))
            .collect();
        let first = u64::from(top.unsigned_abs()) + 1;
        Handles { first, inherited, entries: Vec::new(), free: Vec::new(), open: 0 }
    }

    /// The entry of an open handle.
    pub fn get(&mut self, handle: i64) -> Option<&mut Entry> {
        let h = u64::try_from(handle).ok()?;
        let slot = h & ((1 << SLOT_BITS) - 1);
        let generation = h >> SLOT_BITS;
        let e = if slot < self.first {
            self.inherited.get_mut(&slot)?
        } else {
            self.entries.get_mut(usize::try_from(slot - self.first).ok()?)?
        };
        (e.fd >= 0 && e.generation == generation).then_some(e)
    }

    /// Takes over an open descriptor for its holder; gives the new handle, or `None` (and closes it) when the table is
    /// full.
    pub fn insert(&mut self, fd: i32, holder: u64) -> Option<i64> {
        let at = match self.free.pop() {
            Some(at) => at as usize,
            None => {
                if self.first + self.entries.len() as u64 >= 1 << SLOT_BITS {
                    sys::close(fd);
                    return None;
                }
                self.entries.push(Entry::new());
                self.entries.len() - 1
            }
        };
        let e = self.entries.get_mut(at)?;
        e.fd = fd;
        (e.registered, e.readable, e.hup, e.writing) = (false, true, false, false);
        (e.holder, e.opened_only, e.shared) = (holder, true, false);
        self.open += 1;
        i64::try_from((e.generation << SLOT_BITS) | (self.first + at as u64)).ok()
    }

    /// Closes a handle; gives the waits to end.
    pub fn close(&mut self, handle: i64) -> Vec<Token> {
        let first = self.first;
        let Some(e) = self.get(handle) else { return Vec::new() };
        let mut waits: Vec<Token> = e.readers.drain(..).collect();
        waits.extend(e.writer.take());
        waits.extend(e.write_queue.drain(..));
        match std::mem::replace(&mut e.fd, -1) {
            // The number must not pass to a connection: the runtime's own output goes there.
            fd @ 0..=2 => sys::blank(fd),
            fd => sys::close(fd),
        }
        e.more_holders.clear();
        e.generation += 1;
        if !e.inherited {
            self.open -= 1;
            let slot = u64::try_from(handle).unwrap_or(0) & ((1 << SLOT_BITS) - 1);
            if let Some(at) = slot.checked_sub(first).and_then(|at| u32::try_from(at).ok()) {
                self.free.push(at);
            }
        }
        waits
    }

    /// Handles whose only holder is `who`; `who` no longer holds the others.
    pub fn held_by(&mut self, who: u64) -> Vec<i64> {
        let first = self.first;
        let mut only = Vec::new();
        for (i, e) in self.entries.iter_mut().enumerate() {
            if e.fd < 0 || e.shared {
                continue;
            }
            if e.holder == who {
                match e.more_holders.pop_first() {
                    Some(next) => e.holder = next,
                    None => only.extend(i64::try_from((e.generation << SLOT_BITS) | (first + i as u64))),
                }
            } else {
                let _ = e.more_holders.remove(&who);
            }
        }
        only
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        for e in &self.entries {
            if e.fd >= 0 {
                sys::close(e.fd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::Handles;

    fn fd() -> i32 {
        // SAFETY: duplicates stdin's stand-in.
        unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }
    }

    #[test]
    fn fd_1_numbers_are_never_used_twice() {
        let mut t = Handles::inherited();
        let a = t.insert(fd(), 1).unwrap();
        assert!(a > 2);
        assert!(t.close(a).is_empty());
        let b = t.insert(fd(), 1).unwrap();
        assert_ne!(a, b);
        assert!(t.get(a).is_none() && t.get(b).is_some());
        assert!(t.get(-1).is_none() && t.get(i64::MAX).is_none());
        assert_eq!(t.open, 1);
    }

    #[test]
    fn fd_5_only_handles_without_another_holder_go() {
        let mut t = Handles::inherited();
        let (a, b) = (t.insert(fd(), 7).unwrap(), t.insert(fd(), 7).unwrap());
        // One that only opened it gives way to the first that uses it.
        let c = t.insert(fd(), 9).unwrap();
        t.get(c).unwrap().hold(7);
        t.get(b).unwrap().hold(7);
        t.get(b).unwrap().hold(8);
        assert!(t.held_by(9).is_empty());
        assert_eq!(t.held_by(7), [a, c]);
        assert_eq!(t.held_by(8), [b]);
    }
}
