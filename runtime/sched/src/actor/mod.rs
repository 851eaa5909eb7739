//! Actors: records with an address count, state and a bounded mailbox. An idle actor holds no fiber. What all shards may
//! touch of a record is atomic (`counts`); the rest belongs to the actor's home shard.
//!
//! `mail` sends and delivers, `call` waits for replies, `life` has birth, turns, death and reclaiming.

mod call;
mod life;
mod mail;

pub use call::{Answer, Probe, call, call_timer, probe};
pub use life::{
    die_unstarted, discard, empty, release, release_in, release_later, search, spawn, suspect, sweep, turn,
};
pub use mail::{after, arm, arrive, deliver, monitor, parked, room, send, unused, wait_for_room, watch, woken};

use crate::counts::Counts;
use crate::fiber::Token;
use crate::shard::Shard;
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use values::object::Obj;

/// What a pending timer counts in the program's memory, besides its message: its places in the shard's lists.
pub const TIMER_BYTES: usize = 64;

/// A waiting message, owned, and the wait that its reply ends.
struct Envelope {
    msg: *mut Obj,
    caller: Token,
}

struct Monitor {
    observer: *mut Actor,
    notice: *mut Obj,
}

/// What few actors have.
#[derive(Default)]
struct Rare {
    /// Time of the last notice about a full mailbox.
    last_notice: u64,
    /// Senders that wait for room.
    space: VecDeque<Token>,
    monitors: Vec<Monitor>,
}

/// See `Actor::own_slots`.
const DEEP: u8 = 255;

/// No place in a list, no fiber.
const NONE: u32 = u32::MAX;

/// A record is two cache lines: senders of other shards write one of them with each message, the home shard alone uses
/// the other.
#[repr(C)]
pub struct Actor {
    pub counts: Counts,
    /// Numbers actors from 1; `main` is 0.
    pub id: u64,
    pub home: u16,
    /// Fields of the state that can hold an address, at most 254; `DEEP`: other parts of the state can too.
    own_slots: u8,
    local: UnsafeCell<Local>,
}

const _: () = assert!(size_of::<Actor>() == 128);

/// The part of a record that its home shard alone touches.
#[repr(align(64))]
struct Local {
    state: *mut Obj,
    mailbox: VecDeque<Envelope>,
    rare: Option<Box<Rare>>,
    class: u32,
    /// Slot of the delivery fiber while busy.
    fiber: u32,
    /// Place in the shard's list of actors that have had a message or a monitor and are not gone.
    listed: u32,
    /// Messages that have left the mailbox and whose places are not free yet.
    left: u8,
    /// In the shard's queue of actors that may be unreachable, and in that of those to be searched.
    queued: bool,
    queued_deep: bool,
    /// When it was its turn there it was busy, or a message was on its way to it.
    look_when_idle: bool,
}

impl Actor {
    /// The home shard's part. Short-lived: nothing that runs meanwhile may ask for it again.
    #[allow(clippy::mut_from_ref, reason = "one thread uses it, as the comment inside says")]
    fn local<'a>(&self) -> &'a mut Local {
        // SAFETY: called on the home shard's thread only; callers drop the reference before they call what may come
        // back to the same record.
        unsafe { &mut *self.local.get() }
    }

    /// For the home shard, and for the one that spawns it.
    #[must_use]
    pub fn class(&self) -> u32 {
        self.local().class
    }

    /// The delivery fiber while busy.
    #[must_use]
    pub fn fiber(&self) -> u32 {
        self.local().fiber
    }

    /// As many addresses as the actor may hold of itself; what is left of them decides whether it is suspect.
    #[must_use]
    fn own_most(&self) -> i64 {
        if self.own_slots == DEEP { i64::MAX - 1 } else { i64::from(self.own_slots) }
    }

    #[must_use]
    fn is_home(&self, s: &Shard) -> bool {
        self.home == s.id
    }
}

/// Counts one more address. Null is allowed.
pub extern "C" fn retain(actor: *mut Actor) {
    if !actor.is_null() {
        // SAFETY: the caller holds an address, so the record lives.
        unsafe { &*actor }.counts.retain();
    }
}

/// The record behind an address.
fn at<'a>(actor: *mut Actor) -> &'a Actor {
    // SAFETY: callers hold an address, or a reserved place in the mailbox, which keep the record.
    unsafe { &*actor }
}
