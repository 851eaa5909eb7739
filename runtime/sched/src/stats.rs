//! Counters of a shard, read by `env.stat` and printed at exit.

use crate::shard::Shard;

#[derive(Default, Debug)]
pub struct Stats {
    pub actors_spawned: i64,
    pub actors_live: i64,
    pub actors_peak: i64,
    pub actors_reclaimed: i64,
    pub actors_died: i64,
    pub fibers_live: i64,
    pub fibers_peak: i64,
    pub messages: i64,
    pub messages_cross: i64,
    pub messages_dropped: i64,
    pub mailbox_peak: i64,
    pub timers_armed: i64,
    pub timers_fired: i64,
    pub slices: i64,
    pub heap_bytes_peak: i64,
}

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

impl Shard {
    /// Value of the counter `name`.
    #[must_use]
    pub fn stat(&self, name: &str) -> Option<i64> {
        let s = &self.stats;
        Some(match name {
            "shards" => 1,
            "actors_spawned" => s.actors_spawned,
            "actors_live" => s.actors_live,
            "actors_peak" => s.actors_peak,
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
            "objects_live" => self.heap.objects_live,
            "heap_bytes" => self.heap.bytes_live,
            "heap_bytes_peak" => s.heap_bytes_peak.max(self.heap.bytes_live),
            "descriptors_open" => self.handles.open,
            "children_live" => i64::try_from(self.children.all.live()).unwrap_or(i64::MAX),
            _ => return None,
        })
    }

    /// The exit line but for `objects_live`, which is known only after everything was released.
    pub fn stats_line(&self) -> String {
        let mut line = String::from("wostats");
        for name in NAMES {
            if name != "objects_live" {
                line.push_str(&format!(" {name}={}", self.stat(name).unwrap_or(0)));
            }
        }
        line
    }
}
