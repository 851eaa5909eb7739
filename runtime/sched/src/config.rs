//! Start-up variables. A value that does not parse or is out of range keeps its default and yields a notice.

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
    let trace = get("WO_TRACE").as_deref() == Some("1");
    let stats = get("WO_STATS").as_deref() == Some("1");
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

/// Bytes of memory the process may use: physical memory or the limit of its control group, whichever is smaller.
#[must_use]
pub fn memory() -> u64 {
    // SAFETY: plain library calls.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let physical = u64::try_from(pages).unwrap_or(0).saturating_mul(u64::try_from(size).unwrap_or(0));
    let mut least = if physical == 0 { 1 << 33 } else { physical };
    for path in ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"] {
        if let Some(n) = std::fs::read_to_string(path).ok().and_then(|t| t.trim().parse::<u64>().ok()) {
            least = least.min(n);
        }
    }
    least
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
    fn env_2_uring_is_refused() {
        let r = super::read("p", |n| (n == "WO_IO").then(|| "uring".into()));
        assert!(r.refusal.unwrap().contains("uring"));
    }
}
