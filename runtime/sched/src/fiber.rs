//! Fibers: a coroutine, its context and what it waits for. Every wait has its own number; a wake-up that names another
//! number is ignored. A fiber that must end is resumed with `Outcome::Unwind`: its builtin returns with
//! `trap::UNWIND` pending and generated code releases what it holds.

use crate::actor::Actor;
use crate::shard::Shard;
use crate::stack::FiberStack;
use corosensei::{Coroutine, Yielder};
use values::ctx::Ctx;
use values::object::Obj;

pub type Co = Coroutine<(), (), (), FiberStack>;

/// Names one wait of one fiber of any shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub shard: u16,
    pub slot: u32,
    pub wait: u64,
}

impl Token {
    /// No fiber.
    pub const NONE: Token = Token { shard: u16::MAX, slot: u32::MAX, wait: 0 };
}

/// What a parked fiber waits for; decides what a stop does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Sleep,
    /// `accept`, `read`, `connect`: a stop unwinds.
    Input,
    /// `accept_dl`, `read_dl`: a stop gives nil.
    InputDl,
    /// `write`, `write_dl`: goes on for a bounded time after a stop.
    Write,
    Call,
    /// An operation of the pool that a stop does not disturb.
    Pool,
    /// Name resolution: a stop unwinds.
    Resolve,
    /// Room in a full mailbox.
    Space,
    /// A write of the store becomes durable.
    Commit,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ready,
    Deadline,
    /// The stop resolved it; the operation returns what it returns at a deadline.
    Stop,
    /// The descriptor was closed, or the called actor died.
    Closed,
    /// The fiber must unwind; `trap::UNWIND` is pending.
    Unwind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Free,
    /// In the run queue.
    Runnable,
    Running,
    /// Its slice is over; the shard puts it at the tail after its round of checks.
    Yielded,
    Parked(Wait),
}

pub struct Fiber {
    pub ctx: Ctx,
    pub co: Option<Co>,
    pub yielder: *const Yielder<(), ()>,
    /// Near where the stack ended when the fiber last gave the thread back.
    pub depth: *const u8,
    pub shard: *mut Shard,
    pub slot: u32,
    pub state: State,
    pub wait: u64,
    pub outcome: Outcome,
    pub deadline: u64,
    /// Order of birth.
    pub seq: u64,
    /// Null for `main`.
    pub actor: *mut Actor,
    /// The message in progress and who waits for its reply.
    pub msg: *mut Obj,
    pub caller: Token,
    /// Reply words of the call this fiber waits in, whether the callee replied one word or two, and whether the first is
    /// an address.
    pub reply: [u64; 2],
    pub reply_pair: bool,
    pub reply_address: bool,
    /// What `receive` of this fiber stores its own reply through.
    pub out: [u64; 2],
    /// The actor this fiber waits for in a call, and when the call began and must end.
    pub calling: *mut Actor,
    pub call_start: u64,
    pub call_deadline: u64,
    /// It has had its first slice; its coroutine waits for the next fiber in the slot, or must return.
    pub begun: bool,
    pub rests: bool,
    pub retired: bool,
    pub pool_result: Option<crate::pool::Result>,
    /// Exit status of `main`.
    pub status: i64,
}

impl Fiber {
    #[must_use]
    pub fn token(&self) -> Token {
        Token { shard: self.shard().id, slot: self.slot, wait: self.wait }
    }

    #[must_use]
    pub fn is_parked(&self) -> bool {
        matches!(self.state, State::Parked(_))
    }
}

/// The fiber that runs with this context.
#[must_use]
pub fn of<'a>(ctx: &Ctx) -> &'a mut Fiber {
    // SAFETY: the scheduler sets `ctx.fiber` to the record that holds the context, which lives as long as the shard;
    // one thread uses it, and callers keep the reference only up to the next call that may switch.
    unsafe { &mut *ctx.fiber.cast::<Fiber>() }
}

/// Gives the thread back to the shard's loop until the fiber is resumed.
pub fn switch(fiber: *mut Fiber) {
    let here = 0u8;
    // SAFETY: the fiber is the running one, so its yielder is live; no reference into the record is held across.
    unsafe {
        (*fiber).depth = &raw const here;
        (*(*fiber).yielder).suspend(());
    }
}
