//! Counters of a shard, read by `env.stat` and printed at exit.

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
