//! Start-up variables. A value that does not parse or is out of range keeps its default and yields a notice.

use std::path::Path;

/// Everything the environment decides, read once before `main`.
#[derive(Clone, Debug)]
pub struct Config {
    /// Shards, each a thread.
    pub shards: u16,
    /// Back-edges per slice.
    pub reductions: i64,
    /// Most waiting messages of an actor.
    pub mailbox: u32,
    /// Bound of the drain in milliseconds.
    pub drain_ms: i64,
    /// Stack limit of `main` and of the other fibers in KiB.
    pub main_stack_kb: usize,
    pub stack_kb: usize,
    /// Most helper threads.
    pub pool: usize,
    /// Limit of `net.connect` in milliseconds.
    pub connect_ms: i64,
    /// Most live children.
    pub proc_max: usize,
    /// Bound of the program's heap in bytes.
    pub heap_bytes: u64,
    /// When a call without an answer is looked at for a cycle, in milliseconds.
    pub cycle_ms: i64,
    /// Print the counters at exit.
    pub stats: bool,
    /// Keep recent events.
    pub trace: bool,
    /// Release every object at the end, so that what is left can be counted.
    pub release_all: bool,
    /// What stderr lines begin with.
    pub program: String,
}

/// The configuration, notices to print, and a refusal to start.
pub struct Read {
    pub config: Config,
    pub notices: Vec<String>,
    pub refusal: Option<String>,
}

/// The value of a variable; one that is not UTF-8 with replacement characters, so that it is refused with a notice.
#[must_use]
pub fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Reads the variables through `get`.
pub fn read(program: &str, get: impl Fn(&str) -> Option<String>) -> Read {
    let mut notices = Vec::new();
    let mut number = |name: &str, min: i64, max: i64| -> Option<i64> {
        let text = get(name)?;
        match text.trim().parse::<i64>() {
            Ok(n) if (min..=max).contains(&n) => Some(n),
            _ => {
                notices.push(format!("{program}: {name}={text} is not a number from {min} to {max}; ignored"));
                None
            }
        }
    };
    let int = i64::from(i32::MAX);
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get().min(256));
    let size = |n: Option<i64>, default: usize| n.and_then(|n| usize::try_from(n).ok()).unwrap_or(default);
    let shards = size(number("WO_SHARDS", 1, 256), cpus);
    let reductions = number("WO_REDUCTIONS", 1, int).unwrap_or(4000);
    let mailbox = number("WO_MAILBOX", 1, int).and_then(|n| u32::try_from(n).ok()).unwrap_or(1024);
    let drain_ms = number("WO_DRAIN_MS", 0, int).unwrap_or(2000);
    let stack = number("WO_STACK_KB", 64, 1_048_576);
    let pool = size(number("WO_POOL", 1, 256), 16);
    let connect_ms = number("WO_CONNECT_MS", 1, int).unwrap_or(30_000);
    let proc_max = size(number("WO_PROC_MAX", 1, int), 256);
    let heap_mb = number("WO_HEAP_MB", 1, 1_048_576);
    let heap_bytes = heap_mb.map_or_else(|| memory() / 2, |mb| mb.unsigned_abs() << 20);
    let mut flag = |name: &str| match get(name).as_deref() {
        Some("1") => true,
        None | Some("" | "0") => false,
        Some(other) => {
            notices.push(format!("{program}: {name}={other} means nothing, {name}=1 switches it on; ignored"));
            false
        }
    };
    let trace = flag("WO_TRACE");
    let stats = flag("WO_STATS");
    let refusal = (get("WO_IO").as_deref() == Some("uring"))
        .then(|| format!("{program}: WO_IO=uring: io_uring is not available here"));
    Read {
        config: Config {
            shards: u16::try_from(shards).unwrap_or(1),
            reductions,
            mailbox,
            drain_ms,
            main_stack_kb: size(stack, 4096),
            stack_kb: size(stack, 512),
            pool,
            connect_ms,
            proc_max,
            heap_bytes,
            cycle_ms: 5000,
            stats,
            trace,
            release_all: stats || cfg!(debug_assertions),
            program: program.to_string(),
        },
        notices,
        refusal,
    }
}

/// What `woc` and the programs it makes read.
const VARIABLES: [&str; 21] = [
    "WO_CHECKPOINT_BYTES",
    "WO_CHECKPOINT_RATIO",
    "WO_CONNECT_MS",
    "WO_DATA",
    "WO_DB_MB",
    "WO_DRAIN_MS",
    "WO_EPHEMERAL",
    "WO_HEAP_MB",
    "WO_IO",
    "WO_MAILBOX",
    "WO_OPT",
    "WO_PERF",
    "WO_POOL",
    "WO_PROC_MAX",
    "WO_REDUCTIONS",
    "WO_SHARDS",
    "WO_STACK_KB",
    "WO_STATS",
    "WO_TEST_MS",
    "WO_TRACE",
    "WO_WAL_STATS",
];

/// Notices about the names that look like misspelt `VARIABLES`: one letter is wrong, or the unit is missing. Other
/// names are the program's own.
pub fn misspelt(program: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut notices = Vec::new();
    for name in names.filter(|name| !VARIABLES.contains(&name.as_str())) {
        let lacks_unit = |v: &str| name.len() > 3 && v.strip_prefix(&name).is_some_and(|rest| rest.starts_with('_'));
        if let Some(meant) = VARIABLES.iter().find(|v| lacks_unit(v) || one_edit(name.as_bytes(), v.as_bytes())) {
            notices.push(format!("{program}: {name} means nothing; did you mean {meant}?"));
        }
    }
    notices.sort_unstable();
    notices
}

/// A letter inserted, removed, replaced, or swapped with its neighbour.
fn one_edit(a: &[u8], b: &[u8]) -> bool {
    let same = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (a.get(same..).unwrap_or_default(), b.get(same..).unwrap_or_default());
    let inserted = matches!(a, [_, rest @ ..] if rest == b);
    let removed = matches!(b, [_, rest @ ..] if rest == a);
    let replaced = matches!((a, b), ([_, a @ ..], [_, b @ ..]) if a == b);
    let swapped = matches!((a, b), ([x, y, a @ ..], [v, w, b @ ..]) if (x, y) == (w, v) && a == b);
    inserted || removed || replaced || swapped
}

/// Bytes of memory the process may use: physical memory or the limit of its control group, whichever is smaller.
#[must_use]
pub fn memory() -> u64 {
    // SAFETY: plain library calls.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let physical = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let physical = if physical == 0 { 1 << 33 } else { physical };
    group_limit(Path::new("/sys/fs/cgroup"), &groups).map_or(physical, |limit| limit.min(physical))
}

/// The least limit of memory among the control groups that `groups`, as in /proc/self/cgroup, names and those around
/// them. In a container the names may be those of the outside: then what it has at `root` is its own.
fn group_limit(root: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        let (top, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let own = top.join(path.trim_start_matches('/'));
        let around = own.ancestors().take_while(|group| group.starts_with(&top));
        around.filter_map(|group| std::fs::read_to_string(group.join(file)).ok()?.trim().parse().ok()).collect()
    });
    limits.min()
}

/// Base name of the running executable.
#[must_use]
pub fn program_name() -> String {
    let arg = std::env::args_os().next().unwrap_or_default();
    let base = std::path::Path::new(&arg).file_name().map(|n| n.to_string_lossy().into_owned());
    base.unwrap_or_else(|| "woc".to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    #[test]
    fn env_1_bad_values_keep_the_default_and_give_one_notice() {
        let r = super::read("p", |n| match n {
            "WO_MAILBOX" => Some("0".into()),
            "WO_REDUCTIONS" => Some("7".into()),
            "WO_POOL" => Some("many".into()),
            _ => None,
        });
        assert_eq!((r.config.mailbox, r.config.reductions, r.config.pool), (1024, 7, 16));
        assert_eq!(r.notices.len(), 2);
        assert!(r.notices.iter().any(|n| n.contains("WO_POOL") && n.contains("many")));
    }

    #[test]
    fn a_switch_that_is_neither_on_nor_off_gives_a_notice() {
        let stats = |value: &str| {
            let read = super::read("p", |n| (n == "WO_STATS").then(|| value.into()));
            (read.config.stats, read.notices)
        };
        assert_eq!(stats("1"), (true, vec![]));
        assert_eq!(stats("0"), (false, vec![]));
        assert_eq!(stats(""), (false, vec![]));
        let notice = "p: WO_STATS=yes means nothing, WO_STATS=1 switches it on; ignored";
        assert_eq!(stats("yes"), (false, vec![notice.to_owned()]));
    }

    #[test]
    fn lim_1_the_least_limit_of_the_groups_around_the_process_holds() {
        let dir = std::env::temp_dir().join(format!("wo-groups-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = dir.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| super::group_limit(&dir, groups);
        assert_eq!(limit("0::/\n"), None);
        write("system.slice/memory.max", "900\n");
        write("system.slice/app.service/memory.max", "max\n");
        write("user.slice/memory.max", "100\n");
        assert_eq!(limit("0::/system.slice/app.service\n"), Some(900));
        assert_eq!(limit("0::/system.slice\n1:cpu:/user.slice\n"), Some(900));
        // A container's own group, which it sees at the top.
        write("memory.max", "500\n");
        assert_eq!(limit("0::/system.slice/app.service\n"), Some(500));
        assert_eq!(limit("0::/../../docker/7\n"), Some(500));
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/own/memory.limit_in_bytes", "300\n");
        assert_eq!(limit("4:cpu,memory:/own/inner\n3:cpuset:/\n"), Some(300));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn names_that_look_misspelt_give_a_notice() {
        let notices = |name: &str| super::misspelt("p", std::iter::once(name.to_owned()));
        let cases = [
            ("WO_SHARD", "WO_SHARDS"),
            ("WO_SHARDSS", "WO_SHARDS"),
            ("WO_SHRADS", "WO_SHARDS"),
            ("WO_STACK_MB", "WO_STACK_KB"),
            ("WO_EPHEMRAL", "WO_EPHEMERAL"),
            ("WO_HEAP", "WO_HEAP_MB"),
        ];
        for (name, meant) in cases {
            assert_eq!(notices(name), [format!("p: {name} means nothing; did you mean {meant}?")]);
        }
        for own in ["WO_", "WO", "WO_HOME", "WO_SHARDS_FILE", "PATH"].into_iter().chain(super::VARIABLES) {
            assert!(notices(own).is_empty(), "{own}");
        }
    }

    #[test]
    fn env_2_uring_is_refused() {
        let r = super::read("p", |n| (n == "WO_IO").then(|| "uring".into()));
        assert!(r.refusal.unwrap().contains("uring"));
    }
}
