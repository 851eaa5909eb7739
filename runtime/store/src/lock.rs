//! The locks of a statement: those of all tables that it touches, taken in ascending order, so that no two statements
//! wait for each other.

use crate::store::Slot;
use crate::table::Table;
use smallvec::SmallVec;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A panic leaves a lock usable: it surfaces as a trap of the fiber concerned, and the tables of the others go on.
pub(crate) fn read(lock: &RwLock<Table>) -> RwLockReadGuard<'_, Table> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write(lock: &RwLock<Table>) -> RwLockWriteGuard<'_, Table> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// One table locked for reading.
pub(crate) fn only(slots: &[Slot], table: u32) -> Option<RwLockReadGuard<'_, Table>> {
    slots.get(table as usize).map(|slot| read(&slot.table))
}

/// A table by its number.
type Held<'s> = (usize, RwLockReadGuard<'s, Table>);

/// Tables locked for reading.
pub(crate) struct Reading<'s> {
    guards: SmallVec<[Held<'s>; 2]>,
}

impl<'s> Reading<'s> {
    /// `tables` is ascending, each once.
    pub fn new(slots: &'s [Slot], tables: impl Iterator<Item = usize>) -> Reading<'s> {
        let guards: SmallVec<[Held<'s>; 2]> = tables.filter_map(|t| Some((t, read(&slots.get(t)?.table)))).collect();
        debug_assert!(guards.is_sorted_by(|a, b| a.0 < b.0));
        Reading { guards }
    }

    pub fn get(&self, table: usize) -> Option<&Table> {
        self.guards.iter().find(|(t, _)| *t == table).map(|(_, guard)| &**guard)
    }
}

/// One table locked for writing, others for reading.
pub(crate) struct Writing<'s> {
    own: usize,
    guard: RwLockWriteGuard<'s, Table>,
    others: SmallVec<[Held<'s>; 2]>,
}

impl<'s> Writing<'s> {
    /// `others` is ascending, each once, without `own`.
    pub fn new(slots: &'s [Slot], own: usize, others: &[usize]) -> Option<Writing<'s>> {
        let slot = slots.get(own)?;
        debug_assert!(others.is_sorted() && !others.contains(&own));
        let (before, after) = others.split_at(others.partition_point(|t| *t < own));
        let mut held = SmallVec::new();
        let mut take = |tables: &[usize]| {
            held.extend(tables.iter().filter_map(|t| Some((*t, read(&slots.get(*t)?.table)))));
        };
        take(before);
        let guard = write(&slot.table);
        take(after);
        Some(Writing { own, guard, others: held })
    }

    pub fn own(&mut self) -> &mut Table {
        &mut self.guard
    }

    pub fn get(&self, table: usize) -> Option<&Table> {
        if table == self.own {
            return Some(&self.guard);
        }
        self.others.iter().find(|(t, _)| *t == table).map(|(_, guard)| &**guard)
    }
}
