//! What one shard knows of children: those its actors started and those its fibers wait for. A child's end, and output
//! of one that `run` started, are events of the shard's reactor; they wake the fiber that waits, reap the child and let
//! its owner be reclaimed.

use super::table::{Children, Key};
use crate::actor::{self, Actor};
use crate::fiber::{Outcome, Token};
use crate::shard::Shard;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Set in the keys under which the reactor knows descriptors of children; handles and its own eventfd have others.
pub const KEY: u64 = 1 << 63;

/// Which descriptor of a child an event is about.
#[derive(Clone, Copy)]
pub enum What {
    End = 0,
    Stdout = 1,
    Stderr = 2,
}

/// A shard's part in the children.
pub struct Local {
    /// The program's children, shared with all shards.
    pub all: Arc<Children>,
    watches: BTreeMap<u64, Watch>,
}

pub struct Watch {
    key: Key,
    /// Readable when the child has ended. Each shard that watches has its own.
    _pidfd: OwnedFd,
    /// The fiber of this shard that waits.
    pub token: Token,
    /// The actor of this shard that started the child with `spawn`; null for none, and once the child has ended.
    owner: *mut Actor,
    /// A fiber is in `run` for the child: it waits for outputs too, which others may hold open after the child's end, so
    /// the watch stays until that fiber gives it up.
    attended: bool,
}

impl Local {
    #[must_use]
    pub fn new(all: &Arc<Children>) -> Local {
        Local { all: Arc::clone(all), watches: BTreeMap::new() }
    }

    pub fn watch(&mut self, key: Key) -> Option<&mut Watch> {
        self.watches.get_mut(&key.serial)
    }

    /// Whether a child that the actor started lives: such an actor is not reclaimed.
    #[must_use]
    pub fn owned_by(&self, actor: *const Actor) -> bool {
        self.watches.values().any(|w| std::ptr::eq(w.owner, actor))
    }

    /// No fiber of this shard waits any longer; `ended`: nor is there anything to wait for.
    pub fn unwatch(&mut self, key: Key, ended: bool) {
        if let Some(w) = self.watches.get_mut(&key.serial) {
            w.token = Token::NONE;
            w.attended = false;
            if ended && w.owner.is_null() {
                let _ = self.watches.remove(&key.serial);
            }
        }
    }
}

/// The reactor's key of a descriptor.
pub fn reactor_key(key: Key, what: What) -> u64 {
    KEY | key.serial << 2 | what as u64
}

/// Watches a child that the running fiber attends to until `unwatch`.
pub fn attend(s: &mut Shard, key: Key, pidfd: OwnedFd) -> Result<(), i32> {
    add(s, key, pidfd, std::ptr::null_mut())?;
    if let Some(w) = s.children.watch(key) {
        w.attended = true;
    }
    Ok(())
}

/// Watches a child from this shard.
pub fn add(s: &mut Shard, key: Key, pidfd: OwnedFd, owner: *mut Actor) -> Result<(), i32> {
    s.reactor.register(pidfd.as_raw_fd(), reactor_key(key, What::End))?;
    let watch = Watch { key, _pidfd: pidfd, token: Token::NONE, owner, attended: false };
    let _ = s.children.watches.insert(key.serial, watch);
    Ok(())
}

/// An event of a descriptor whose key has `KEY`.
pub fn ready(s: &mut Shard, reactor_key: u64) {
    let serial = (reactor_key & !KEY) >> 2;
    let Some(w) = s.children.watches.get_mut(&serial) else { return };
    let (key, token) = (w.key, w.token);
    let _ = s.wake(token, Outcome::Ready);
    if reactor_key & 3 != What::End as u64 || !s.children.all.ended(key) {
        return;
    }
    let Some(w) = s.children.watches.get_mut(&serial) else { return };
    let owner = std::mem::replace(&mut w.owner, std::ptr::null_mut());
    if token == Token::NONE && !w.attended {
        let _ = s.children.watches.remove(&serial);
    }
    if !owner.is_null() {
        // It lives: an actor with a live child is not reclaimed, and one that died is no owner any more.
        actor::suspect(s, owner);
        actor::sweep(s);
    }
}

/// The actor dies: so do its children. Whoever waits for one gets its code.
pub fn owner_died(s: &mut Shard, actor: *const Actor) {
    for w in s.children.watches.values_mut().filter(|w| std::ptr::eq(w.owner, actor)) {
        w.owner = std::ptr::null_mut();
        s.children.all.abandon(w.key);
    }
}
