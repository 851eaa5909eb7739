//! A directory in memory, for tests: its power can be cut at any operation, any operation can fail or wait.
//!
//! After a cut, the disk holds what was synced, and of the rest what chance leaves: of each sector a state that it was
//! in since the last sync, of each length likewise, of the changes of names any that do not build on one that is lost.
//! Chance follows from the seed alone, so that the same operations with the same script leave the same disk.

use super::{Disk, Fault, File};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a disk writes entirely or not at all.
pub const SECTOR: usize = 512;

/// System errors for `Action::Fail`.
pub const EIO: i32 = 5;
pub const ENOSPC: i32 = 28;

/// A directory in memory. Clones are the same directory.
#[derive(Clone)]
pub struct Simulated {
    machine: Arc<Machine>,
}

/// An operation that is about to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// From 1 on, over all operations on the disk and its files.
    pub number: u64,
    /// As in `Fault`.
    pub operation: &'static str,
    /// The file's, or empty for one on the directory.
    pub name: String,
}

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Proceed,
    /// Fails with a system error. A write may have written a part, a sync may have dropped what it was to make durable:
    /// no later sync covers that.
    Fail(i32),
    /// The power is cut: this operation and all that follow fail.
    CutBefore,
    CutWithin,
    CutAfter,
}

impl Simulated {
    /// An empty directory.
    #[must_use]
    pub fn new(seed: u64) -> Simulated {
        Simulated::with_files(seed, &BTreeMap::new())
    }

    /// A directory of files that are durable.
    #[must_use]
    pub fn with_files(seed: u64, files: &BTreeMap<String, Vec<u8>>) -> Simulated {
        let mut state = State::new(seed);
        for (name, bytes) in files {
            let id = state.add(bytes.clone());
            let _ = state.names.durable.insert(name.clone(), id);
        }
        state.names.current = state.names.durable.clone();
        let script: Arc<Script> = Arc::new(|_| Action::Proceed);
        Simulated { machine: Arc::new(Machine { state: Mutex::new(state), script: Mutex::new(script) }) }
    }

    /// Asks `script` before each operation from now on. It may wait and may use the disk; other operations go on
    /// meanwhile. What is written after a sync began is not covered by it.
    pub fn script(&self, script: impl Fn(&Step) -> Action + Send + Sync + 'static) {
        *self.machine.script.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(script);
    }

    /// How many operations there have been; none is counted after a cut.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.machine.lock().steps
    }

    /// The files as they are to be read now, or after a cut as the next start finds them.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut state = self.machine.lock();
        let names = state.names.current.clone();
        names.into_iter().map(|(name, id)| (name, state.file(id).current.clone())).collect()
    }

    /// The disk at the next start: cuts the power if it is still on. Operations are numbered anew and there is no
    /// script; the old disk and its files stay dead.
    #[must_use]
    pub fn restart(&self) -> Simulated {
        let seed = self.machine.lock().cut();
        Simulated::with_files(seed, &self.files())
    }

    fn handle(&self, name: &str, id: u64) -> Arc<dyn File> {
        Arc::new(Handle { machine: self.machine.clone(), name: name.to_owned(), id })
    }
}

impl Disk for Simulated {
    fn list(&self) -> Result<Vec<String>, Fault> {
        self.machine.whole("listing", "", |state| Ok(state.names.current.keys().cloned().collect()))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>, Fault> {
        self.machine.whole("opening", name, |state| state.names.id(name)).map(|id| self.handle(name, id))
    }

    fn create(&self, name: &str) -> Result<Arc<dyn File>, Fault> {
        let create = |state: &mut State| match state.names.id(name) {
            Ok(id) => {
                state.edit(id, Edit::Len(0));
                Ok(id)
            }
            Err(_) => {
                let id = state.add(Vec::new());
                state.change(vec![(name.to_owned(), Some(id))]);
                Ok(id)
            }
        };
        self.machine.whole("creation", name, create).map(|id| self.handle(name, id))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), Fault> {
        self.machine.whole("renaming", from, |state| {
            let id = state.names.id(from)?;
            state.change(vec![(from.to_owned(), None), (to.to_owned(), Some(id))]);
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> Result<(), Fault> {
        self.machine.whole("removal", name, |state| {
            let _ = state.names.id(name)?;
            state.change(vec![(name.to_owned(), None)]);
            Ok(())
        })
    }

    fn sync_dir(&self) -> Result<(), Fault> {
        let sync = |state: &mut State, begun, chance| state.names.settle(begun, chance, &mut state.random);
        self.machine.sync("", sync)
    }
}

/// An open file.
struct Handle {
    machine: Arc<Machine>,
    name: String,
    id: u64,
}

impl Handle {
    fn read<T>(&self, operation: &'static str, of: impl FnOnce(&[u8]) -> T) -> Result<T, Fault> {
        self.machine.whole(operation, &self.name, |state| Ok(of(&state.file(self.id).current)))
    }
}

impl File for Handle {
    fn size(&self) -> Result<u64, Fault> {
        self.read("size", |bytes| bytes.len() as u64)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        self.read("read", |bytes| {
            let found = bytes.get(at as usize..).unwrap_or_default();
            into.iter_mut().zip(found).map(|(to, from)| *to = *from).count()
        })
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        let write = |state: &mut State, len: usize| {
            if let Some(bytes) = bytes.get(..len).filter(|bytes| !bytes.is_empty()) {
                state.edit(self.id, Edit::Write { at: at as usize, bytes: bytes.to_vec() });
            }
        };
        let whole = |state: &mut State, _| {
            write(state, bytes.len());
            Ok(())
        };
        let part = |state: &mut State, _| {
            let len = state.random.below(bytes.len() + 1);
            write(state, len);
        };
        self.machine.step("write", &self.name, whole, part)
    }

    fn set_len(&self, len: u64) -> Result<(), Fault> {
        self.machine.whole("resizing", &self.name, |state| {
            state.edit(self.id, Edit::Len(len as usize));
            Ok(())
        })
    }

    fn sync(&self) -> Result<(), Fault> {
        self.machine.sync(&self.name, |state, begun, chance| {
            let State { files, random, .. } = state;
            files.entry(self.id).or_default().settle(begun, chance, random);
        })
    }
}

type Script = dyn Fn(&Step) -> Action + Send + Sync;

struct Machine {
    state: Mutex<State>,
    script: Mutex<Arc<Script>>,
}

impl Machine {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One operation: `whole` if it happens, `part` if it fails or the power is cut within it. Both get the time at
    /// which it began.
    fn step<T>(
        &self,
        operation: &'static str,
        name: &str,
        whole: impl FnOnce(&mut State, u64) -> io::Result<T>,
        part: impl FnOnce(&mut State, u64),
    ) -> Result<T, Fault> {
        let fault = |error| Fault { operation, path: name.to_owned(), error };
        let (step, begun) = {
            let mut state = self.lock();
            state.check_power().map_err(fault)?;
            state.steps += 1;
            (Step { number: state.steps, operation, name: name.to_owned() }, state.time)
        };
        let script = self.script.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let action = script(&step);
        let mut state = self.lock();
        state.check_power().map_err(fault)?;
        match action {
            Action::Proceed => return whole(&mut state, begun).map_err(fault),
            Action::Fail(error) => {
                part(&mut state, begun);
                return Err(fault(io::Error::from_raw_os_error(error)));
            }
            Action::CutBefore => {}
            Action::CutWithin => part(&mut state, begun),
            Action::CutAfter => drop(whole(&mut state, begun)),
        }
        let _ = state.cut();
        Err(fault(power_is_off()))
    }

    /// An operation that is done entirely or not at all.
    fn whole<T>(
        &self,
        operation: &'static str,
        name: &str,
        perform: impl FnOnce(&mut State) -> io::Result<T>,
    ) -> Result<T, Fault> {
        self.step(operation, name, |state, _| perform(state), |_, _| ())
    }

    fn sync(&self, name: &str, settle: impl Fn(&mut State, u64, Chance)) -> Result<(), Fault> {
        let whole = |state: &mut State, begun| {
            settle(state, begun, Chance::CERTAIN);
            Ok(())
        };
        let part = |state: &mut State, begun| {
            let chance = state.random.chance();
            settle(state, begun, chance);
        };
        self.step("sync", name, whole, part)
    }
}

fn power_is_off() -> io::Error {
    io::Error::other("the power is off")
}

struct State {
    random: Random,
    steps: u64,
    /// How many edits and changes there have been: they are numbered with it.
    time: u64,
    files: BTreeMap<u64, Content>,
    names: Names,
    /// The seed of the disk at the next start: there is one if the power is off.
    next_seed: Option<u64>,
}

impl State {
    fn new(seed: u64) -> State {
        State {
            random: Random(seed),
            steps: 0,
            time: 0,
            files: BTreeMap::new(),
            names: Names::default(),
            next_seed: None,
        }
    }

    fn check_power(&self) -> io::Result<()> {
        if self.next_seed.is_none() { Ok(()) } else { Err(power_is_off()) }
    }

    fn file(&mut self, id: u64) -> &mut Content {
        self.files.entry(id).or_default()
    }

    /// A new file that no name leads to.
    fn add(&mut self, bytes: Vec<u8>) -> u64 {
        let id = self.files.len() as u64;
        let _ = self.files.insert(id, Content { durable: bytes.clone(), current: bytes, pending: Vec::new() });
        id
    }

    fn edit(&mut self, id: u64, edit: Edit) {
        let time = self.time;
        self.time += 1;
        let file = self.file(id);
        match &edit {
            Edit::Write { at, bytes } => put(&mut file.current, *at, bytes),
            Edit::Len(len) => file.current.resize(*len, 0),
        }
        file.pending.push((time, edit));
    }

    fn change(&mut self, change: Change) {
        apply(&change, &mut self.names.current);
        self.names.pending.push((self.time, change));
        self.time += 1;
    }

    /// Cuts the power unless it is off: only what the disk has is left. The seed of the next start.
    fn cut(&mut self) -> u64 {
        if let Some(seed) = self.next_seed {
            return seed;
        }
        let chance = self.random.chance();
        self.names.settle(u64::MAX, chance, &mut self.random);
        self.names.current = self.names.durable.clone();
        for file in self.files.values_mut() {
            let chance = self.random.chance();
            file.settle(u64::MAX, chance, &mut self.random);
            file.current = file.durable.clone();
        }
        let seed = self.random.next();
        self.next_seed = Some(seed);
        seed
    }
}

/// Which file has which name.
#[derive(Default)]
struct Names {
    durable: BTreeMap<String, u64>,
    current: BTreeMap<String, u64>,
    /// What happened since the last sync, with its time.
    pending: Vec<(u64, Change)>,
}

/// Names, each with the file that has it from then on. It happens as a whole.
type Change = Vec<(String, Option<u64>)>;

impl Names {
    fn id(&self, name: &str) -> io::Result<u64> {
        self.current.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Decides which of the changes before `begun` the disk has. A change of a name is lost with an earlier one that is.
    fn settle(&mut self, begun: u64, chance: Chance, random: &mut Random) {
        let count = self.pending.partition_point(|(time, _)| *time < begun);
        let mut lost = BTreeSet::new();
        for (_, change) in self.pending.drain(..count) {
            let builds_on_lost = change.iter().any(|(name, _)| lost.contains(name));
            if random.reached(chance, 1) == 1 && !builds_on_lost {
                apply(&change, &mut self.durable);
            } else {
                lost.extend(change.into_iter().map(|(name, _)| name));
            }
        }
    }
}

fn apply(change: &Change, names: &mut BTreeMap<String, u64>) {
    for (name, file) in change {
        let _ = match file {
            Some(id) => names.insert(name.clone(), *id),
            None => names.remove(name),
        };
    }
}

#[derive(Default)]
struct Content {
    durable: Vec<u8>,
    current: Vec<u8>,
    /// What happened since the last sync, with its time.
    pending: Vec<(u64, Edit)>,
}

enum Edit {
    Write { at: usize, bytes: Vec<u8> },
    Len(usize),
}

impl Content {
    /// Decides what of the edits before `begun` the disk has: for each sector and for the length, how many of them.
    fn settle(&mut self, begun: u64, chance: Chance, random: &mut Random) {
        let count = self.pending.partition_point(|(time, _)| *time < begun);
        let of_length = random.reached(chance, count);
        let mut of_sector = BTreeMap::new();
        let mut len = self.durable.len();
        for (edit, (_, kind)) in self.pending.drain(..count).enumerate() {
            match kind {
                Edit::Write { at, bytes } => {
                    for (at, piece) in sectors(at, &bytes) {
                        let reached = of_sector.entry(at / SECTOR).or_insert_with(|| random.reached(chance, count));
                        if edit < *reached {
                            put(&mut self.durable, at, piece);
                        }
                    }
                    if edit < of_length {
                        len = len.max(at + bytes.len());
                    }
                }
                Edit::Len(set) if edit < of_length => {
                    // What was behind the end does not come back when the file grows again.
                    self.durable.resize(set, 0);
                    len = set;
                }
                Edit::Len(_) => {}
            }
        }
        self.durable.resize(len, 0);
    }
}

/// Bytes that belong at `at`, cut where sectors begin.
fn sectors(mut at: usize, mut bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(bytes.len().min(SECTOR - at % SECTOR));
        pieces.push((at, piece));
        at += piece.len();
        bytes = rest;
    }
    pieces
}

fn put(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let end = at + piece.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    if let Some(to) = bytes.get_mut(at..end) {
        to.copy_from_slice(piece);
    }
}

/// How much survives: of 100 things, so many.
#[derive(Clone, Copy)]
struct Chance(u64);

impl Chance {
    const CERTAIN: Chance = Chance(100);
}

/// A generator of numbers that follow from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Nothing and everything are as likely as something between.
    fn chance(&mut self) -> Chance {
        Chance([0, 10, 50, 90, 100].get(self.below(5)).copied().unwrap_or_default())
    }

    /// How many of `count` edits in a row reached the disk: all of them by `chance`, else any number below.
    fn reached(&mut self, chance: Chance, count: usize) -> usize {
        if (self.below(100) as u64) < chance.0 {
            return count;
        }
        if chance.0 == 0 || count == 0 { 0 } else { self.below(count) }
    }
}
