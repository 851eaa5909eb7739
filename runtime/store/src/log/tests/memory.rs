//! A directory in memory that knows what a loss of power would leave of it, and fails when it is told to.

use crate::disk::{Disk, Fault, File};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Names and contents of files.
pub type Image = BTreeMap<String, Vec<u8>>;

/// Random numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }
}

#[derive(Clone, Default)]
pub struct Memory(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    released: Condvar,
}

#[derive(Default)]
struct State {
    contents: Vec<Contents>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    /// Operations that change something, so far.
    operations: u64,
    /// The operation that fails, and whether those after it do too.
    fails: Option<(u64, bool)>,
    /// Whether syncs of files have to wait.
    held: bool,
    held_syncs: usize,
}

#[derive(Clone, Default)]
struct Contents {
    live: Vec<u8>,
    synced: Vec<u8>,
    /// What the next sync makes durable. A failed one drops it.
    dirty: Vec<Range<usize>>,
}

impl Contents {
    /// What the file is like once its dirty bytes are durable.
    fn sync(&mut self) -> Vec<u8> {
        let mut synced = self.synced.clone();
        synced.resize(self.live.len(), 0);
        for range in self.dirty.drain(..) {
            let range = range.start.min(synced.len())..range.end.min(synced.len());
            synced[range.clone()].copy_from_slice(&self.live[range]);
        }
        synced
    }
}

struct Open {
    disk: Memory,
    number: usize,
    name: String,
}

impl From<Image> for Memory {
    /// All of it durable.
    fn from(image: Image) -> Memory {
        let disk = Memory::default();
        let mut state = disk.state();
        for (name, bytes) in image {
            let number = state.contents.len();
            state.contents.push(Contents { live: bytes.clone(), synced: bytes, dirty: Vec::new() });
            let _ = state.names.insert(name.clone(), number);
            let _ = state.durable_names.insert(name, number);
        }
        drop(state);
        disk
    }
}

impl Memory {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// What a process that starts now finds.
    pub fn image(&self) -> Image {
        let state = self.state();
        state.names.iter().map(|(name, number)| (name.clone(), state.contents[*number].live.clone())).collect()
    }

    /// What a loss of power may leave: of what was not synced any part, in pieces of 64 bytes.
    pub fn power_cut(&self, random: &mut Random) -> Image {
        let state = self.state();
        let names = if random.below(2) == 0 { &state.names } else { &state.durable_names };
        let torn = |number: &usize, random: &mut Random| {
            let Contents { live, synced, .. } = &state.contents[*number];
            let mut bytes = synced.clone();
            bytes.resize([live.len(), synced.len()][random.below(2)], 0);
            for (i, piece) in bytes.chunks_mut(64).enumerate() {
                let Some(new) = live.get(i * 64..).filter(|_| random.below(2) == 0) else { continue };
                let len = piece.len().min(new.len());
                piece[..len].copy_from_slice(&new[..len]);
            }
            bytes
        };
        names.iter().map(|(name, number)| (name.clone(), torn(number, random))).collect()
    }

    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Lets the operation with this number fail (from 0), or this one and all that follow.
    pub fn fail_at(&self, operation: u64, for_ever: bool) {
        self.state().fails = Some((operation, for_ever));
    }

    /// Lets syncs of files wait.
    pub fn hold(&self) {
        self.state().held = true;
    }

    pub fn release(&self) {
        self.state().held = false;
        self.0.released.notify_all();
    }

    /// Blocks until a sync waits.
    pub fn await_held_sync(&self) {
        let mut state = self.state();
        while state.held_syncs == 0 {
            state = self.0.released.wait(state).unwrap();
        }
    }

    /// Counts an operation that changes something, and fails it if that was asked for.
    fn change(&self, operation: &'static str, name: &str) -> Result<MutexGuard<'_, State>, Fault> {
        let mut state = self.state();
        let number = state.operations;
        state.operations += 1;
        match state.fails {
            Some((at, for_ever)) if number == at || for_ever && number > at => Err(fault(operation, name)),
            _ => Ok(state),
        }
    }
}

fn fault(operation: &'static str, name: &str) -> Fault {
    Fault { operation, path: name.into(), error: io::Error::other("asked for") }
}

impl Disk for Memory {
    fn list(&self) -> Result<Vec<String>, Fault> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>, Fault> {
        let number = *self.state().names.get(name).ok_or_else(|| fault("open", name))?;
        Ok(Arc::new(Open { disk: self.clone(), number, name: name.into() }))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>, Fault> {
        let mut state = self.change("create", name)?;
        let number = state.contents.len();
        state.contents.push(Contents::default());
        let _ = state.names.insert(name.into(), number);
        Ok(Arc::new(Open { disk: self.clone(), number, name: name.into() }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        let mut state = self.change("rename", from)?;
        let number = state.names.remove(from).ok_or_else(|| fault("rename", from))?;
        let _ = state.names.insert(to.into(), number);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        let mut state = self.change("remove", name)?;
        state.names.remove(name).map(drop).ok_or_else(|| fault("remove", name))
    }

    fn sync_dir(&self) -> Result<(), Fault> {
        let mut state = self.change("sync", ".")?;
        state.durable_names = state.names.clone();
        Ok(())
    }
}

impl File for Open {
    fn size(&self) -> Result<u64, Fault> {
        Ok(self.disk.state().contents[self.number].live.len() as u64)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        let state = self.disk.state();
        let rest = state.contents[self.number].live.get(at as usize..).unwrap_or_default();
        let len = rest.len().min(into.len());
        into[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        let mut state = self.disk.change("write", &self.name)?;
        let contents = &mut state.contents[self.number];
        let range = at as usize..at as usize + bytes.len();
        let len = contents.live.len().max(range.end);
        contents.live.resize(len, 0);
        contents.live[range.clone()].copy_from_slice(bytes);
        contents.dirty.push(range);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Fault> {
        self.disk.change("cut", &self.name)?.contents[self.number].live.resize(len as usize, 0);
        Ok(())
    }

    fn sync(&self) -> Result<(), Fault> {
        // What is written during a sync is not covered by it.
        let synced = self.disk.state().contents[self.number].sync();
        let mut state = self.disk.change("sync", &self.name)?;
        state.held_syncs += 1;
        self.disk.0.released.notify_all();
        while state.held {
            state = self.disk.0.released.wait(state).unwrap();
        }
        state.held_syncs -= 1;
        state.contents[self.number].synced = synced;
        Ok(())
    }
}
