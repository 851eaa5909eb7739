//! What all shards of a run share: the configuration, the table of descriptors, the helper threads, and of each shard
//! the port through which other threads reach it. Nothing here belongs to one shard; everything is atomic or locked.

use crate::actor::Actor;
use crate::config::Config;
use crate::fiber::{Outcome, Token};
use crate::handle::Handles;
use crate::inbox::Inbox;
use crate::pool::{self, Pool};
use crate::proc::Children;
use crate::stats::{Counters, Totals};
use crate::sys;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use values::ctx::Image;
use values::object::Obj;

/// What a shard, or a helper thread, hands to a shard. Owned pointers in it are owned by the receiver from then on;
/// addresses are counted, but for a message's, which its reserved place keeps alive.
pub enum Post {
    /// A message for an actor of the shard, for which a place in the mailbox is reserved.
    Message {
        to: *mut Actor,
        msg: *mut Obj,
        caller: Token,
    },
    /// A message of the runtime itself.
    Deliver {
        to: *mut Actor,
        msg: *mut Obj,
        what: &'static str,
    },
    /// The reply to a call: its words, whether there are two, and whether the first is an address.
    Reply {
        to: Token,
        words: [u64; 2],
        pair: bool,
        address: bool,
    },
    /// A wait ends.
    Wake {
        to: Token,
        outcome: Outcome,
    },
    /// An address that could be the last one.
    Release(*mut Actor),
    /// A sender waits for room in a mailbox.
    Space {
        of: *mut Actor,
        sender: Token,
    },
    /// There may be room; the sender may try again.
    Room {
        sender: Token,
        of: *mut Actor,
    },
    /// That sender waits no longer; the room is for another.
    Unused {
        of: *mut Actor,
    },
    Monitor {
        watched: *mut Actor,
        observer: *mut Actor,
        notice: *mut Obj,
    },
    /// A timer for an actor of the shard.
    After {
        due: u64,
        to: *mut Actor,
        msg: *mut Obj,
    },
    /// A helper thread is done; no result: the job panicked.
    Done {
        to: Token,
        result: Option<pool::Result>,
    },
    /// Looks for a cycle of calls.
    Probe(Box<crate::actor::Probe>),
}

// SAFETY: objects in a post are referred to by nothing on the sender's side (`values::copy::transfer`), actors' records
// may be touched from any shard as `counts` says.
unsafe impl Send for Post {}

/// On cache lines of its own: also the neighbour that processors load along with a line.
#[repr(align(128))]
pub struct Alone<T>(pub T);

impl<T> std::ops::Deref for Alone<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What other threads see of a shard.
pub struct Port {
    inbox: Inbox<Post>,
    wake_fd: i32,
    /// Items handed over, and items that have been dealt with.
    sent: AtomicU64,
    taken: AtomicU64,
    /// The shard sleeps and has nothing under way.
    quiet: AtomicBool,
    /// The shard has noticed the stop and resolved its waits.
    pub stopped: AtomicBool,
    /// Which the shard writes all the time, unlike what comes before.
    pub counters: Alone<Counters>,
}

impl Port {
    fn new() -> Result<Port, i32> {
        // SAFETY: plain system call.
        let wake_fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if wake_fd < 0 {
            return Err(sys::errno());
        }
        Ok(Port {
            inbox: Inbox::default(),
            wake_fd,
            sent: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            quiet: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            counters: Alone(Counters::default()),
        })
    }

    #[must_use]
    pub fn wake_fd(&self) -> i32 {
        self.wake_fd
    }

    /// Hands over `posts`, in order, and wakes the shard where it sleeps.
    pub fn hand(&self, posts: Vec<Post>) {
        let _ = self.sent.fetch_add(posts.len() as u64, Ordering::SeqCst);
        if self.inbox.push(posts) {
            self.kick();
        }
    }

    /// Ends the shard's sleep, or the one that it is about to begin.
    pub fn kick(&self) {
        sys::raise_event(self.wake_fd);
    }

    /// Takes back what `kick` and signals wrote. For the shard itself.
    pub fn calm(&self) {
        let mut n = 0u64;
        // SAFETY: eight writable bytes; the descriptor does not block.
        let _ = unsafe { libc::read(self.wake_fd, (&raw mut n).cast(), 8) };
    }

    /// Gives what has come to `each`. For the shard itself only.
    pub fn take(&self, each: impl FnMut(Post)) -> u64 {
        let n = self.inbox.take(each);
        if n > 0 {
            let _ = self.taken.fetch_add(n, Ordering::SeqCst);
        }
        n
    }

    /// Something has been handed over.
    #[must_use]
    pub fn has_come(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// The shard is about to sleep; `quiet`: with nothing under way. False: something has come. For the shard itself.
    #[must_use]
    pub fn may_sleep(&self, quiet: bool) -> bool {
        if !self.inbox.may_sleep() {
            return false;
        }
        self.quiet.store(quiet, Ordering::SeqCst);
        true
    }

    /// The shard goes on. For the shard itself.
    pub fn awake(&self) {
        self.inbox.awake();
        if self.quiet.load(Ordering::Relaxed) {
            self.quiet.store(false, Ordering::SeqCst);
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        sys::close(self.wake_fd);
    }
}

pub struct Shared {
    pub config: Config,
    pub image: &'static Image,
    pub ports: Box<[Port]>,
    pub handles: Handles,
    pub children: Arc<Children>,
    pub pool: Pool,
    /// Each shard has a processor of its own, as far as the system says.
    pub spins: bool,
    pub totals: Totals,
    spawned: AtomicU64,
    ending: AtomicBool,
    draining: AtomicBool,
    /// Time of the last notice about the limit of descriptors.
    limit_notice: AtomicU64,
}

impl Shared {
    /// Gives the error number of the failing system call.
    pub fn new(config: Config, image: &'static Image) -> Result<Shared, i32> {
        let handles = Handles::inherited();
        let ports = (0..config.shards).map(|_| Port::new()).collect::<Result<Box<[Port]>, i32>>()?;
        Ok(Shared {
            pool: Pool::new(config.pool),
            spins: std::thread::available_parallelism().is_ok_and(|n| n.get() >= usize::from(config.shards)),
            children: Arc::new(Children::new(config.proc_max)),
            config,
            image,
            ports,
            handles,
            totals: Totals::default(),
            spawned: AtomicU64::new(0),
            ending: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            limit_notice: AtomicU64::new(0),
        })
    }

    /// One thread runs all actors.
    #[must_use]
    pub fn alone(&self) -> bool {
        self.ports.len() == 1
    }

    /// Number and home of the next actor.
    pub fn place(&self) -> (u64, u16) {
        let n = self.spawned.fetch_add(1, Ordering::Relaxed);
        (n + 1, u16::try_from(n % self.ports.len() as u64).unwrap_or(0))
    }

    #[must_use]
    pub fn port(&self, shard: u16) -> Option<&Port> {
        self.ports.get(usize::from(shard))
    }

    /// No `.wo` code runs any more, but to unwind.
    #[must_use]
    pub fn ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Has every shard unwind its fibers.
    pub fn end(&self) {
        self.ending.store(true, Ordering::SeqCst);
        self.ports.iter().for_each(Port::kick);
    }

    #[must_use]
    pub fn draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst)
    }

    /// Shards that become quiet wake shard 0 from now on.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::SeqCst);
    }

    /// Nothing would happen by itself any more on the shards but 0, whose own part the caller knows, nor between them:
    /// they have noticed the stop, they sleep, and what was handed to them has been dealt with. Read twice, since one may
    /// have woken another while they were looked at.
    #[must_use]
    pub fn others_quiescent(&self) -> bool {
        let look = || {
            let mut sum = 0;
            for (i, p) in self.ports.iter().enumerate() {
                let (taken, sent) = (p.taken.load(Ordering::SeqCst), p.sent.load(Ordering::SeqCst));
                let quiet = i == 0 || (p.quiet.load(Ordering::SeqCst) && p.stopped.load(Ordering::SeqCst));
                if !quiet || taken != sent {
                    return None;
                }
                sum += sent;
            }
            Some(sum)
        };
        let first = look();
        first.is_some() && first == look()
    }

    /// Whether a notice about the limit of descriptors is due, at most one in `gap` nanoseconds.
    pub fn limit_notice_due(&self, now: u64, gap: u64) -> bool {
        let last = self.limit_notice.load(Ordering::Relaxed);
        (last == 0 || now.saturating_sub(last) >= gap)
            && self.limit_notice.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
