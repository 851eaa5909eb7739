//! The children of the program: which there are, how they ended, who waits. One table for all shards, behind a lock that
//! is held for short system calls only. A child is reaped under that lock and nowhere else, so that its process number
//! names no other process for as long as its entry says that it lives.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Codes of ended children that nobody has asked for; the oldest beyond it are forgotten.
const KEPT: usize = 65_536;
/// Process numbers are smaller; what an id has above them tells children apart whose numbers are equal.
const NUMBERS: i64 = 1 << 22;

/// Names one child for ever; its `id` is what programs know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub id: i64,
    pub serial: u64,
}

struct Child {
    serial: u64,
    pid: libc::pid_t,
    /// Exit code, and its place among those kept, once the child has been reaped.
    ended: Option<(i32, u64)>,
    /// A fiber is in `wait_dl`.
    waited: bool,
    /// Of `run`: programs cannot name it.
    private: bool,
    /// Killed, and nobody will ask for the code but a waiter that is there already.
    abandoned: bool,
    /// Handle of its terminal.
    terminal: Option<i64>,
}

#[derive(Default)]
struct Table {
    by_id: BTreeMap<i64, Child>,
    /// Children that live or are being started.
    live: usize,
    serials: u64,
    /// Ids of ended children in the order of their ends.
    kept: BTreeMap<u64, i64>,
    most_kept: usize,
    /// The program ends: no child may be left from now on.
    closed: bool,
}

pub struct Children {
    most: usize,
    table: Mutex<Table>,
    fewer: Condvar,
}

/// How a wait begins.
pub enum Begin {
    Unknown,
    /// Another fiber waits.
    Waited,
    Ended(i32),
    /// Its number. Another shard may reap it, and the number pass on, as soon as this is known: whether it has ended is
    /// to be looked at once more after the number was used.
    Lives(Key, libc::pid_t),
}

impl Children {
    #[must_use]
    pub fn new(most: usize) -> Children {
        let table = Table { most_kept: KEPT, ..Table::default() };
        Children { most, table: Mutex::new(table), fewer: Condvar::new() }
    }

    /// The ceiling.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Children that live now, those being started included.
    #[must_use]
    pub fn live(&self) -> usize {
        let mut t = self.lock();
        t.reap_all();
        t.live
    }

    /// A place for a child about to be started; `None` at the ceiling.
    pub fn reserve(self: &Arc<Children>) -> Option<Place> {
        let mut t = self.lock();
        if t.live >= self.most {
            t.reap_all();
        }
        if t.live >= self.most {
            return None;
        }
        t.live += 1;
        Some(Place { children: Arc::clone(self), taken: false })
    }

    /// Whether the child has ended; it is reaped then. One that is not in the table any more has.
    #[must_use]
    pub fn ended(&self, key: Key) -> bool {
        let mut t = self.lock();
        t.reap(key.id);
        t.get(key).is_none_or(|c| c.ended.is_some())
    }

    /// Begins the one wait that a child may have; takes the code of one that has ended.
    pub fn begin_wait(&self, id: i64) -> Begin {
        let mut t = self.lock();
        t.reap(id);
        let Some(c) = t.by_id.get_mut(&id).filter(|c| !c.private) else { return Begin::Unknown };
        if c.waited {
            return Begin::Waited;
        }
        if let Some((code, _)) = c.ended {
            t.remove(id);
            return Begin::Ended(code);
        }
        c.waited = true;
        Begin::Lives(Key { id, serial: c.serial }, c.pid)
    }

    /// Ends the wait; takes the code if the child has ended.
    pub fn finish_wait(&self, key: Key) -> Option<i32> {
        let mut t = self.lock();
        t.reap(key.id);
        let c = t.get_mut(key)?;
        c.waited = false;
        let (code, _) = c.ended?;
        t.remove(key.id);
        Some(code)
    }

    /// Sends a signal to a child that programs can name. One that has ended, but whose code was not taken, gets none.
    /// `None`: there is no such child.
    pub fn signal(&self, id: i64, signal: i32) -> Option<Result<(), i32>> {
        let mut t = self.lock();
        t.reap(id);
        let c = t.by_id.get(&id).filter(|c| !c.private)?;
        Some(if c.ended.is_some() { Ok(()) } else { kill(c.pid, signal) })
    }

    /// Kills a child whose code somebody still waits for.
    pub fn kill(&self, key: Key) {
        if let Some(c) = self.lock().get(key).filter(|c| c.ended.is_none()) {
            let _ = kill(c.pid, libc::SIGKILL);
        }
    }

    /// Kills a child that nobody will ask for.
    pub fn abandon(&self, key: Key) {
        let mut t = self.lock();
        let Some(c) = t.get_mut(key) else { return };
        c.abandoned = true;
        if c.ended.is_none() {
            let _ = kill(c.pid, libc::SIGKILL);
        } else if !c.waited {
            t.remove(key.id);
        }
    }

    pub fn set_terminal(&self, key: Key, handle: i64) {
        if let Some(c) = self.lock().get_mut(key) {
            c.terminal = Some(handle);
        }
    }

    /// The handle of the child's terminal, if it has one; `None`: there is no such child.
    pub fn terminal(&self, id: i64) -> Option<Option<i64>> {
        self.lock().by_id.get(&id).filter(|c| !c.private).map(|c| c.terminal)
    }

    /// Kills all children and reaps them, waiting at most `bound` for their ends. Those that are being started are
    /// killed by who starts them.
    pub fn end_all(&self, bound: Duration) {
        let until = Instant::now() + bound;
        let mut t = self.lock();
        t.closed = true;
        for c in t.by_id.values_mut().filter(|c| c.ended.is_none()) {
            c.abandoned = true;
            let _ = kill(c.pid, libc::SIGKILL);
        }
        loop {
            t.reap_all();
            if t.live == 0 || Instant::now() >= until {
                break;
            }
            t = self.fewer.wait_timeout(t, Duration::from_millis(1)).unwrap_or_else(PoisonError::into_inner).0;
        }
        t.by_id.retain(|_, c| c.ended.is_none());
        t.kept.clear();
    }
}

impl Table {
    fn get(&self, key: Key) -> Option<&Child> {
        self.by_id.get(&key.id).filter(|c| c.serial == key.serial)
    }

    fn get_mut(&mut self, key: Key) -> Option<&mut Child> {
        self.by_id.get_mut(&key.id).filter(|c| c.serial == key.serial)
    }

    fn remove(&mut self, id: i64) {
        if let Some((_, order)) = self.by_id.remove(&id).and_then(|c| c.ended) {
            let _ = self.kept.remove(&order);
        }
    }

    /// Reaps the child if it has ended.
    fn reap(&mut self, id: i64) {
        let Some(c) = self.by_id.get_mut(&id).filter(|c| c.ended.is_none()) else { return };
        let Some(code) = exit_code(c.pid, libc::WNOHANG) else { return };
        self.live -= 1;
        self.serials += 1;
        c.ended = Some((code, self.serials));
        let gone = c.abandoned && !c.waited;
        let _ = self.kept.insert(self.serials, id);
        if gone {
            self.remove(id);
        } else if self.kept.len() > self.most_kept
            && let Some((_, oldest)) = self.kept.pop_first()
        {
            let _ = self.by_id.remove(&oldest);
        }
    }

    fn reap_all(&mut self) {
        let live: Vec<i64> = self.by_id.iter().filter(|(_, c)| c.ended.is_none()).map(|(id, _)| *id).collect();
        for id in live {
            self.reap(id);
        }
    }
}

/// One of the children that may live at a time, held while it is being started.
pub struct Place {
    children: Arc<Children>,
    taken: bool,
}

impl Place {
    /// Enters the child that was started. `None`: the program has ended meanwhile; the child is killed and reaped here.
    pub fn fill(mut self, pid: libc::pid_t, private: bool) -> Option<Key> {
        let mut t = self.children.lock();
        if t.closed {
            drop(t);
            let _ = kill(pid, libc::SIGKILL);
            let _ = exit_code(pid, 0);
            return None;
        }
        let mut id = i64::from(pid);
        // The number of an ended child whose code is kept can come again.
        while t.by_id.contains_key(&id) {
            id += NUMBERS;
        }
        t.serials += 1;
        let serial = t.serials;
        let child = Child { serial, pid, ended: None, waited: false, private, abandoned: false, terminal: None };
        let _ = t.by_id.insert(id, child);
        drop(t);
        self.taken = true;
        Some(Key { id, serial })
    }

    #[must_use]
    pub fn children(&self) -> Arc<Children> {
        Arc::clone(&self.children)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.taken {
            self.children.lock().live -= 1;
            self.children.fewer.notify_all();
        }
    }
}

fn kill(pid: libc::pid_t, signal: i32) -> Result<(), i32> {
    // SAFETY: plain system call. The child was not reaped, so the number is its own.
    if unsafe { libc::kill(pid, signal) } < 0 { Err(crate::sys::errno()) } else { Ok(()) }
}

/// Reaps a child: its exit code, -1 after a signal; `None` while it lives and `flags` do not let this wait.
pub fn exit_code(pid: libc::pid_t, flags: i32) -> Option<i32> {
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable.
        let rc = unsafe { libc::waitpid(pid, &raw mut status, flags) };
        if rc == pid {
            return Some(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 });
        }
        if rc == 0 {
            return None;
        }
        // Somebody else took the code: what is certain is that there is no such child any more.
        if crate::sys::errno() != libc::EINTR {
            return Some(-1);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::{Begin, Children, NUMBERS};
    use std::sync::Arc;
    use std::time::Duration;

    /// A child of this process.
    #[allow(clippy::zombie_processes, reason = "the table reaps it")]
    fn born(command: &str) -> libc::pid_t {
        let child = std::process::Command::new("sh").args(["-c", command]).spawn().unwrap();
        libc::pid_t::try_from(child.id()).unwrap()
    }

    fn ending(code: i32) -> libc::pid_t {
        born(&format!("exit {code}"))
    }

    fn code(t: &Arc<Children>, id: i64) -> Option<i32> {
        loop {
            match t.begin_wait(id) {
                Begin::Ended(code) => return Some(code),
                Begin::Lives(key, _) => {
                    if let Some(code) = t.finish_wait(key) {
                        return Some(code);
                    }
                }
                Begin::Unknown => return None,
                Begin::Waited => panic!("nobody waits"),
            }
        }
    }

    #[test]
    fn proc_3_the_latest_codes_are_kept() {
        let t = Arc::new(Children::new(9));
        t.lock().most_kept = 2;
        let ids: Vec<i64> = (1..=4)
            .map(|n| {
                let key = t.reserve().unwrap().fill(ending(n), false).unwrap();
                while !t.ended(key) {}
                key.id
            })
            .collect();
        assert_eq!(t.live(), 0);
        assert_eq!(ids.iter().map(|id| code(&t, *id)).collect::<Vec<_>>(), [None, None, Some(3), Some(4)]);
        assert!(ids.iter().all(|id| code(&t, *id).is_none()));
    }

    #[test]
    fn proc_3_a_kept_code_is_told_apart_from_a_later_child_with_the_same_number() {
        let t = Arc::new(Children::new(9));
        let pid = ending(7);
        let first = t.reserve().unwrap().fill(pid, false).unwrap();
        while !t.ended(first) {}
        // As if the system had given the number again; there is no such child, which is what its code says.
        let second = t.reserve().unwrap().fill(pid, false).unwrap();
        assert_eq!((first.id, second.id), (i64::from(pid), i64::from(pid) + NUMBERS));
        assert_eq!((code(&t, first.id), code(&t, second.id)), (Some(7), Some(-1)));
    }

    #[test]
    fn proc_5_places_are_limited_and_come_back() {
        let t = Arc::new(Children::new(2));
        let (a, b) = (t.reserve().unwrap(), t.reserve().unwrap());
        assert!(t.reserve().is_none());
        drop(a);
        let pid = ending(0);
        let key = b.fill(pid, true).unwrap();
        // What `run` started has no id for programs.
        assert!(matches!(t.begin_wait(key.id), Begin::Unknown) && t.signal(key.id, 0).is_none());
        let _c = t.reserve().unwrap();
        // At the ceiling the ended are noticed.
        while t.reserve().is_none() {}
        assert_eq!(t.finish_wait(key), Some(0));
    }

    #[test]
    fn end_2_no_child_is_entered_after_the_end() {
        let t = Arc::new(Children::new(2));
        let late = t.reserve().unwrap();
        let key = t.reserve().unwrap().fill(born("exec sleep 60"), false).unwrap();
        t.end_all(Duration::from_millis(200));
        assert!(matches!(t.begin_wait(key.id), Begin::Unknown));
        let pid = ending(0);
        assert!(late.fill(pid, false).is_none());
        assert_eq!((super::exit_code(pid, libc::WNOHANG), t.live()), (Some(-1), 0));
    }
}
