//! Descriptor handles: numbers that are never used twice, so that a stale one cannot reach another connection. A
//! handle is a slot and the slot's generation; inherited descriptors keep their own numbers. The table belongs to all
//! shards; its stripes have a lock each.

use crate::descriptor::Descriptor;
use crate::sys;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SLOT_BITS: u32 = 24;
/// Inherited descriptors beyond this number are not reachable.
const INHERITED: i32 = 1 << 20;
const STRIPES: usize = 64;

#[derive(Default)]
struct Stripe {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

#[derive(Default)]
struct Slot {
    generation: u64,
    open: Option<Arc<Descriptor>>,
}

/// The handles of the process.
pub struct Handles {
    /// Slot `i` belongs to handle numbers whose slot part is `first + i`; below `first` lie inherited descriptors.
    first: u64,
    inherited: Mutex<BTreeMap<u64, Arc<Descriptor>>>,
    /// Slot `i` is number `i / STRIPES` of stripe `i % STRIPES`.
    stripes: [Mutex<Stripe>; STRIPES],
    /// Stripe of the next handle.
    next: AtomicUsize,
    open: AtomicI64,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
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
        let entry = |fd: i32| (u64::from(fd.unsigned_abs()), Arc::new(Descriptor::new(fd, i64::from(fd), true, 0)));
        Handles {
            first: u64::from(top.unsigned_abs()) + 1,
            inherited: Mutex::new(fds.into_iter().map(entry).collect()),
            stripes: std::array::from_fn(|_| Mutex::default()),
            next: AtomicUsize::new(0),
            open: AtomicI64::new(0),
        }
    }

    /// Handles that the program has not closed.
    #[must_use]
    pub fn open(&self) -> i64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Stripe, place in it and generation; `None` for numbers that no handle has.
    fn place(&self, handle: u64) -> Option<(&Mutex<Stripe>, usize, u64)> {
        let slot = usize::try_from((handle & ((1 << SLOT_BITS) - 1)).checked_sub(self.first)?).ok()?;
        Some((self.stripes.get(slot % STRIPES)?, slot / STRIPES, handle >> SLOT_BITS))
    }

    /// The descriptor of an open handle.
    #[must_use]
    pub fn get(&self, handle: i64) -> Option<Arc<Descriptor>> {
        let h = u64::try_from(handle).ok()?;
        if h < self.first {
            return lock(&self.inherited).get(&h).cloned();
        }
        let (stripe, at, generation) = self.place(h)?;
        let stripe = lock(stripe);
        let slot = stripe.slots.get(at).filter(|s| s.generation == generation)?;
        slot.open.clone()
    }

    /// Takes over an open descriptor for its holder; gives the new handle, or `None` (and closes it) when the table is
    /// full.
    pub fn insert(&self, fd: i32, holder: u64) -> Option<i64> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        for offset in 0..STRIPES {
            let number = (start + offset) % STRIPES;
            let mut stripe = lock(&self.stripes[number]);
            let at = match stripe.free.pop() {
                Some(at) => at,
                None => {
                    let at = stripe.slots.len();
                    if self.first + (at * STRIPES + number) as u64 >= 1 << SLOT_BITS {
                        continue;
                    }
                    stripe.slots.push(Slot::default());
                    at
                }
            };
            let Some(slot) = stripe.slots.get_mut(at) else { continue };
            let handle = (slot.generation << SLOT_BITS) | (self.first + (at * STRIPES + number) as u64);
            let handle = handle.cast_signed();
            slot.open = Some(Arc::new(Descriptor::new(fd, handle, false, holder)));
            let _ = self.open.fetch_add(1, Ordering::Relaxed);
            return Some(handle);
        }
        sys::close(fd);
        None
    }

    /// Takes the handle out of the table: no operation finds it from now on.
    pub fn take(&self, handle: i64) -> Option<Arc<Descriptor>> {
        let h = u64::try_from(handle).ok()?;
        if h < self.first {
            return lock(&self.inherited).remove(&h);
        }
        let (stripe, at, generation) = self.place(h)?;
        let mut stripe = lock(stripe);
        let slot = stripe.slots.get_mut(at).filter(|s| s.generation == generation)?;
        let taken = slot.open.take()?;
        slot.generation += 1;
        stripe.free.push(at);
        let _ = self.open.fetch_sub(1, Ordering::Relaxed);
        Some(taken)
    }

    /// Handles whose only holder is `who`; `who` no longer holds the others.
    pub fn held_by(&self, who: u64) -> Vec<i64> {
        let mut only = Vec::new();
        for stripe in &self.stripes {
            for d in lock(stripe).slots.iter().filter_map(|s| s.open.as_ref()) {
                if d.state().drop_holder(who) {
                    only.push(d.handle);
                }
            }
        }
        only
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::Handles;

    fn fd() -> i32 {
        // SAFETY: a plain system call; the table owns the descriptor.
        unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) }
    }

    #[test]
    fn fd_1_numbers_are_never_used_twice() {
        let t = Handles::inherited();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..300 {
            let h = t.insert(fd(), 1).unwrap();
            assert!(h > 2 && seen.insert(h));
            assert!(t.get(h).is_some() && t.take(h).is_some());
            assert!(t.get(h).is_none() && t.take(h).is_none());
        }
        assert!(t.get(-1).is_none() && t.get(i64::MAX).is_none());
        assert_eq!(t.open(), 0);
    }

    #[test]
    fn fd_2_a_descriptor_in_use_is_closed_after_the_use() {
        let t = Handles::inherited();
        let h = t.insert(fd(), 1).unwrap();
        let used = t.get(h).unwrap();
        assert!(t.take(h).unwrap().close().is_empty());
        // SAFETY: only asks for flags.
        let open = |fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
        let number = used.fd;
        assert!(used.state().closed && open(number));
    }

    #[test]
    fn fd_5_only_handles_without_another_holder_go() {
        let t = Handles::inherited();
        let (a, b) = (t.insert(fd(), 7).unwrap(), t.insert(fd(), 7).unwrap());
        // One that only opened it gives way to the first that uses it.
        let c = t.insert(fd(), 9).unwrap();
        let hold = |h, who| t.get(h).unwrap().state().hold(who);
        hold(c, 7);
        hold(b, 7);
        hold(b, 8);
        assert!(t.held_by(9).is_empty());
        let mut of_7 = t.held_by(7);
        of_7.sort_unstable();
        assert_eq!(of_7, [a, c]);
        assert_eq!(t.held_by(8), [b]);
    }
}
