//! The part of an actor's record that all shards touch: how many addresses of it there are, how many messages wait for
//! it, and what it is doing. Everything else of the record belongs to its home shard.
//!
//! A sender of another shard reserves a place before it hands its message over, so the cap holds at every instant, and a
//! message under way keeps the record. An address that could be the last one is not given up away from home: it travels
//! to the home shard, which alone decides that an actor is unreachable. Whoever sees a count of addresses there
//! (`refs`, with Acquire) sees the reservations that were made by those who have given theirs up (Release).

use crate::atomics::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, Ordering};

/// What an actor is doing, as senders see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// No fiber, no message in its mailbox.
    Idle,
    /// Its fiber runs, is in the run queue, or gives way to a busy target of its own.
    Ready,
    /// Its fiber waits for something else.
    Parked,
    /// Died, was reclaimed, or the program ends: no state, no messages.
    Gone,
}

pub struct Counts {
    refs: AtomicI64,
    waiting: AtomicU32,
    phase: AtomicU8,
    /// Senders wait for room: others wait behind them.
    crowded: AtomicBool,
    /// Senders that were told of room and have not tried again yet.
    owed: AtomicU32,
}

impl Default for Counts {
    /// Of a new actor: one address.
    fn default() -> Counts {
        Counts {
            refs: AtomicI64::new(1),
            waiting: AtomicU32::new(0),
            phase: AtomicU8::new(Phase::Idle as u8),
            crowded: AtomicBool::new(false),
            owed: AtomicU32::new(0),
        }
    }
}

impl Counts {
    /// Addresses outside the runtime's own bookkeeping, plus timers and registrations that name the actor.
    #[must_use]
    pub fn refs(&self) -> i64 {
        self.refs.load(Ordering::Acquire)
    }

    /// One more address, by someone who holds one.
    pub fn retain(&self) {
        let _ = self.refs.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives up an address on the home shard; how many are left.
    pub fn release_home(&self) -> i64 {
        self.refs.fetch_sub(1, Ordering::AcqRel) - 1
    }

    /// Gives up an address on another shard. False: no more than `own` would be left, which is for the home shard to
    /// judge; the address is still counted and must travel there.
    #[must_use]
    pub fn release_away(&self, own: i64) -> bool {
        let give_up = |refs: i64| (refs - 1 > own).then(|| refs - 1);
        self.refs.fetch_update(Ordering::Release, Ordering::Relaxed, give_up).is_ok()
    }

    /// Messages in the mailbox or on their way to it.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Acquire)
    }

    /// Takes a place for one more message; how many wait with it, or `None` when `cap` wait already. `alone`: no other
    /// thread runs actors.
    pub fn reserve(&self, cap: u32, alone: bool) -> Option<u32> {
        if alone {
            let waiting = self.waiting.load(Ordering::Relaxed);
            if waiting >= cap {
                return None;
            }
            self.waiting.store(waiting + 1, Ordering::Relaxed);
            return Some(waiting + 1);
        }
        let more = |waiting: u32| (waiting < cap).then(|| waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|before| before + 1)
    }

    /// So many messages leave the mailbox, or never get there.
    pub fn leave(&self, messages: u32, alone: bool) {
        if alone {
            self.waiting.store(self.waiting.load(Ordering::Relaxed).saturating_sub(messages), Ordering::Relaxed);
        } else {
            let _ = self.waiting.fetch_sub(messages, Ordering::Relaxed);
        }
    }

    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Idle,
            1 => Phase::Ready,
            2 => Phase::Parked,
            _ => Phase::Gone,
        }
    }

    /// Set by the home shard only.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// What room there is belongs to senders that wait for it. A hint: one that has waited already need not look.
    #[must_use]
    pub fn crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed) || self.owed.load(Ordering::Relaxed) > 0
    }

    /// A sender that waits is told of room.
    pub fn owe(&self) {
        let _ = self.owed.fetch_add(1, Ordering::Relaxed);
    }

    /// It tries again, or does not wait any longer.
    pub fn settle(&self) {
        let _ = self.owed.fetch_sub(1, Ordering::Relaxed);
    }

    /// Set by the home shard only.
    pub fn set_crowded(&self, crowded: bool) {
        self.crowded.store(crowded, Ordering::Relaxed);
    }
}

/// All orders in which senders, holders of addresses and the home shard may run, as far as loom explores them
/// (`scripts/explore.sh`).
#[cfg(all(test, feature = "explore"))]
mod explore {
    use super::Counts;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn mb_2_no_more_than_the_cap_wait_at_any_instant() {
        loom::model(|| {
            let counts = Arc::new(Counts::default());
            let sender = |counts: &Arc<Counts>| {
                let counts = Arc::clone(counts);
                thread::spawn(move || {
                    let got = counts.reserve(1, false).is_some();
                    assert!(counts.waiting() <= 1);
                    got
                })
            };
            let (a, b) = (sender(&counts), sender(&counts));
            let took = counts.waiting() > 0;
            if took {
                counts.leave(1, false);
            }
            let got = i32::from(a.join().unwrap()) + i32::from(b.join().unwrap());
            assert_eq!(counts.waiting(), u32::try_from(got - i32::from(took)).unwrap());
        });
    }

    /// Whoever holds an address sends and gives the address up. If the home shard finds no address and no message, then
    /// the message has been dealt with: nobody will touch the record again.
    #[test]
    fn rcl_1_an_actor_with_a_message_under_way_is_not_unreachable() {
        loom::model(|| {
            let counts = Arc::new(Counts::default());
            counts.retain();
            let holder = {
                let counts = Arc::clone(&counts);
                thread::spawn(move || {
                    assert!(counts.reserve(8, false).is_some());
                    counts.release_away(0)
                })
            };
            // The home shard gives up its own address and looks.
            let _ = counts.release_home();
            let unreachable = counts.refs() == 0 && counts.waiting() == 0;
            assert!(!unreachable);
            let gave_up = holder.join().unwrap();
            if !gave_up {
                // The last address has travelled home.
                assert_eq!(counts.release_home(), 0);
            }
            assert_eq!((counts.refs(), counts.waiting()), (0, 1));
        });
    }

    /// Of several holders on other shards none gives up the last address.
    #[test]
    fn rcl_1_the_last_address_always_travels_home() {
        loom::model(|| {
            let counts = Arc::new(Counts::default());
            counts.retain();
            let holder = |counts: &Arc<Counts>| {
                let counts = Arc::clone(counts);
                thread::spawn(move || counts.release_away(0))
            };
            let (a, b) = (holder(&counts), holder(&counts));
            let given_up = i64::from(a.join().unwrap()) + i64::from(b.join().unwrap());
            assert!(given_up < 2);
            assert_eq!(counts.refs(), 2 - given_up);
        });
    }
}
