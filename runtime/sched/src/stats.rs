//! Counters, read by `env.stat` and printed at exit. Each shard counts for itself in its port; what anyone reads is the
//! sum over all shards, of which single terms may be negative: what one shard makes, another may end.

use crate::shared::Shared;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// A counter that one thread writes and all may read.
#[derive(Default, Debug)]
pub struct Counter(AtomicI64);

impl Counter {
    #[inline]
    pub fn add(&self, n: i64) {
        self.0.store(self.0.load(Ordering::Relaxed) + n, Ordering::Relaxed);
    }

    #[inline]
    pub fn set(&self, n: i64) {
        self.0.store(n, Ordering::Relaxed);
    }

    #[must_use]
    #[inline]
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($name:ident),*) => {
        /// The counters of a shard.
        #[derive(Default, Debug)]
        pub struct Counters {
            $(pub $name: Counter,)*
            /// Most messages that waited for one actor, as this shard has seen it.
            pub mailbox_peak: Counter,
            /// Most fibers at a time.
            pub fibers_peak: Counter,
        }

        /// Sums over all shards.
        #[derive(Clone, Copy, Default, Debug)]
        pub struct Stats {
            $(pub $name: i64,)*
            pub mailbox_peak: i64,
            pub fibers_peak: i64,
        }

        impl Shared {
            /// The sums at this moment.
            #[must_use]
            pub fn stats(&self) -> Stats {
                let mut sum = Stats::default();
                for port in &self.ports {
                    $(sum.$name += port.counters.$name.get();)*
                    sum.mailbox_peak = sum.mailbox_peak.max(port.counters.mailbox_peak.get());
                    sum.fibers_peak += port.counters.fibers_peak.get();
                }
                sum
            }
        }
    };
}

// `objects_live` and `heap_bytes` are brought up to date when a shard looks after its inbox, and when a program asks.
counters!(
    actors_spawned,
    actors_reclaimed,
    actors_died,
    fibers_live,
    messages,
    messages_cross,
    messages_dropped,
    timers_armed,
    timers_fired,
    slices,
    objects_live,
    heap_bytes
);

/// Counted for all shards together.
#[derive(Default, Debug)]
pub struct Totals {
    actors: AtomicI64,
    actors_peak: AtomicI64,
    /// As of the moments when a shard looks.
    heap_peak: AtomicI64,
    /// Values of `LIVE` when the drain ended.
    at_end: OnceLock<[i64; LIVE.len()]>,
}

/// What the exit line gives as it was before the end unwound and killed.
const LIVE: [&str; 3] = ["actors_live", "fibers_live", "children_live"];

/// Names in the order of the exit line.
pub const NAMES: [&str; 20] = [
    "shards",
    "actors_spawned",
    "actors_live",
    "actors_peak",
    "actors_reclaimed",
    "actors_died",
    "fibers_live",
    "fibers_peak",
    "messages",
    "messages_cross",
    "messages_dropped",
    "mailbox_peak",
    "timers_armed",
    "timers_fired",
    "slices",
    "objects_live",
    "heap_bytes",
    "heap_bytes_peak",
    "descriptors_open",
    "children_live",
];

fn raise(peak: &AtomicI64, seen: i64) {
    if seen > peak.load(Ordering::Relaxed) {
        let _ = peak.fetch_max(seen, Ordering::Relaxed);
    }
}

impl Counters {
    /// One fiber more.
    #[inline]
    pub fn fiber_started(&self) {
        self.fibers_live.add(1);
        if self.fibers_live.get() > self.fibers_peak.get() {
            self.fibers_peak.set(self.fibers_live.get());
        }
    }
}

impl Shared {
    /// One actor more.
    pub fn actor_born(&self) {
        let live = self.totals.actors.fetch_add(1, Ordering::Relaxed) + 1;
        raise(&self.totals.actors_peak, live);
    }

    /// One actor less.
    pub fn actor_gone(&self) {
        let _ = self.totals.actors.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notes how much the heaps hold.
    pub fn sample(&self) {
        raise(&self.totals.heap_peak, self.ports.iter().map(|p| p.counters.heap_bytes.get()).sum());
    }

    /// Value of the counter `name`.
    #[must_use]
    pub fn stat(&self, name: &str) -> Option<i64> {
        let (s, t) = (self.stats(), &self.totals);
        Some(match name {
            "shards" => i64::try_from(self.ports.len()).unwrap_or(0),
            "actors_spawned" => s.actors_spawned,
            "actors_live" => t.actors.load(Ordering::Relaxed),
            "actors_peak" => t.actors_peak.load(Ordering::Relaxed),
            "actors_reclaimed" => s.actors_reclaimed,
            "actors_died" => s.actors_died,
            "fibers_live" => s.fibers_live,
            "fibers_peak" => s.fibers_peak,
            "messages" => s.messages,
            "messages_cross" => s.messages_cross,
            "messages_dropped" => s.messages_dropped,
            "mailbox_peak" => s.mailbox_peak,
            "timers_armed" => s.timers_armed,
            "timers_fired" => s.timers_fired,
            "slices" => s.slices,
            "objects_live" => s.objects_live,
            "heap_bytes" => s.heap_bytes,
            "heap_bytes_peak" => t.heap_peak.load(Ordering::Relaxed),
            "descriptors_open" => self.handles.open(),
            "children_live" => i64::try_from(self.children.live()).unwrap_or(i64::MAX),
            _ => return None,
        })
    }

    /// The drain is over: keeps what the exit line says of this moment.
    pub fn drain_ended(&self) {
        let _ = self.totals.at_end.set(LIVE.map(|name| self.stat(name).unwrap_or(0)));
    }

    /// The exit line but for `objects_live`, which is known only after everything was released.
    #[must_use]
    pub fn stats_line(&self) -> String {
        let mut line = String::from("wostats");
        let kept = |name| Some(self.totals.at_end.get()?[LIVE.iter().position(|live| *live == name)?]);
        for name in NAMES {
            if name != "objects_live" {
                line.push_str(&format!(" {name}={}", kept(name).or_else(|| self.stat(name)).unwrap_or(0)));
            }
        }
        line
    }
}
