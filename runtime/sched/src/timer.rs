//! Timers: one binary heap ordered by due time, then arming order. A fiber has at most one entry, which is moved
//! rather than added again; entries that turn out early when they fire are put back by the shard.

use crate::sys::NEVER;

/// What an entry is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Look at the deadline of the fiber in this slot.
    Fiber(u32),
    /// Send the message kept under this index.
    After(u32),
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    due: u64,
    seq: u64,
    what: Due,
}

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.due, self.seq)
    }
}

const NONE: u32 = u32::MAX;

/// The timers of a shard; arming, moving and firing cost O(log n).
#[derive(Default)]
pub struct Timers {
    heap: Vec<Entry>,
    /// Per fiber slot: its place in the heap.
    places: Vec<u32>,
    seq: u64,
}

impl Timers {
    /// Due time of the earliest entry, `NEVER` if there is none.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.heap.first().map_or(NEVER, |e| e.due)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Arms a message timer.
    pub fn arm_after(&mut self, due: u64, index: u32) {
        self.push(due, Due::After(index));
    }

    /// Makes sure that an entry of the fiber fires at `due` or before.
    pub fn arm_fiber(&mut self, due: u64, slot: u32) {
        let at = self.places.get(slot as usize).copied().unwrap_or(NONE);
        if at == NONE {
            self.push(due, Due::Fiber(slot));
        } else if let Some(e) = self.heap.get_mut(at as usize)
            && due < e.due
        {
            self.seq += 1;
            e.due = due;
            e.seq = self.seq;
            self.up(at as usize);
        }
    }

    /// Removes and returns the earliest entry due at `now` or before.
    pub fn pop(&mut self, now: u64) -> Option<Due> {
        let first = *self.heap.first()?;
        if first.due > now {
            return None;
        }
        let last = self.heap.pop()?;
        self.place(first.what, NONE);
        if !self.heap.is_empty() {
            self.heap[0] = last;
            self.place(last.what, 0);
            self.down(0);
        }
        Some(first.what)
    }

    fn push(&mut self, due: u64, what: Due) {
        self.seq += 1;
        let at = self.heap.len();
        self.heap.push(Entry { due, seq: self.seq, what });
        self.place(what, at);
        self.up(at);
    }

    fn place(&mut self, what: Due, at: impl TryInto<u32>) {
        if let Due::Fiber(slot) = what {
            let slot = slot as usize;
            if slot >= self.places.len() {
                self.places.resize(slot + 1, NONE);
            }
            self.places[slot] = at.try_into().unwrap_or(NONE);
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.place(self.heap[a].what, a);
        self.place(self.heap[b].what, b);
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent].key() <= self.heap[at].key() {
                break;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && self.heap[child].key() < self.heap[least].key() {
                    least = child;
                }
            }
            if least == at {
                break;
            }
            self.swap(at, least);
            at = least;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::{Due, Timers};

    #[test]
    fn tmr_3_fires_in_order_of_due_time_then_arming() {
        let mut t = Timers::default();
        for (i, due) in [50u64, 10, 30, 10, 20, 10].iter().enumerate() {
            t.arm_after(*due, u32::try_from(i).unwrap());
        }
        let mut order = Vec::new();
        while let Some(d) = t.pop(100) {
            order.push(d);
        }
        assert_eq!(order, [1, 3, 5, 4, 2, 0].map(Due::After));
    }

    #[test]
    fn a_fiber_has_one_entry_that_only_moves_forward() {
        let mut t = Timers::default();
        t.arm_fiber(100, 3);
        t.arm_fiber(200, 3);
        t.arm_fiber(40, 3);
        t.arm_after(60, 0);
        assert_eq!((t.len(), t.next()), (2, 40));
        assert_eq!(t.pop(50), Some(Due::Fiber(3)));
        assert_eq!(t.pop(50), None);
        t.arm_fiber(55, 3);
        assert_eq!(t.pop(70), Some(Due::Fiber(3)));
        assert_eq!(t.pop(70), Some(Due::After(0)));
        assert!(t.is_empty());
    }
}
