//! Twins of docs/examples/db-bench: SQLite (WAL, synchronous=FULL) and redb (immediate durability), each write a
//! transaction of its own, each lookup one that sees the newest state.
//! usage: peer-store sqlite|redb DIR (insert ROWS | lookup ROWS TIMES | queries ROWS | fill ROWS | open); one line of JSON,
//! or `filled`. Only SQLite has queries.

mod queries;
mod redb_store;
mod sqlite_store;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub struct Item {
    pub code: String,
    pub shelf: i64,
    pub count: i64,
    pub note: &'static str,
}

pub trait Store: Sized {
    fn open(dir: &Path) -> Result<Self>;
    fn insert(&mut self, item: &Item) -> Result<()>;
    fn insert_all(&mut self, items: &mut dyn Iterator<Item = Item>) -> Result<()>;
    fn find(&mut self, code: &str) -> Result<Option<i64>>;
    fn rows(&mut self) -> Result<u64>;
}

fn item(n: i64) -> Item {
    Item { code: format!("item-{n}"), shelf: n % 1000, count: n, note: "spare part" }
}

/// Rows of a transaction where their time does not count.
const BULK: usize = 10_000;

fn fill<S: Store>(store: &mut S, rows: i64) -> Result<()> {
    let mut items = (0..rows).map(item).peekable();
    while items.peek().is_some() {
        store.insert_all(&mut items.by_ref().take(BULK))?;
    }
    Ok(())
}

/// Numbers in an order that no cache foresees.
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Dice {
        Dice(88_172_645_463_325_252)
    }

    pub fn roll(&mut self, sides: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 1) as i64 % sides
    }
}

/// Processor time of the process, in hundredths of a second.
pub fn cpu() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    Ok(fields[11].parse::<f64>()? + fields[12].parse::<f64>()?)
}

fn run<S: Store>(dir: &Path, figure: &str, numbers: &[i64]) -> Result<()> {
    let mut store = S::open(dir)?;
    match (figure, numbers) {
        ("insert", [rows]) => {
            let mut took = Vec::new();
            let start = Instant::now();
            let mut last = start;
            for n in 0..*rows {
                store.insert(&item(n))?;
                let now = Instant::now();
                took.push((now - last).as_micros());
                last = now;
            }
            let per_s = *rows as f64 / start.elapsed().as_secs_f64();
            took.sort_unstable();
            let (p50, p99) = (took[took.len() / 2], took[took.len() * 99 / 100]);
            println!(r#"{{"per_s":{per_s:.0},"p50_us":{p50},"p99_us":{p99}}}"#);
        }
        ("lookup", [rows, times]) => {
            fill(&mut store, *rows)?;
            let mut dice = Dice::new();
            let (start, before) = (Instant::now(), cpu()?);
            for _ in 0..*times {
                let n = dice.roll(*rows);
                assert_eq!(store.find(&format!("item-{n}"))?, Some(n));
            }
            let (elapsed, spent) = (start.elapsed().as_secs_f64(), cpu()? - before);
            let (per_s, per_cpu_s) = (*times as f64 / elapsed, *times as f64 * 100.0 / spent);
            println!(r#"{{"per_s":{per_s:.0},"per_cpu_s":{per_cpu_s:.0}}}"#);
        }
        ("queries", [rows]) => queries::run(dir, *rows)?,
        ("fill", [rows]) => {
            fill(&mut store, *rows)?;
            println!("filled");
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        ("open", []) => println!(r#"{{"rows":{}}}"#, store.rows()?),
        _ => {
            return Err(
                "usage: peer-store sqlite|redb DIR (insert ROWS|lookup ROWS TIMES|queries ROWS|fill ROWS|open)".into(),
            );
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [peer, dir, figure, numbers @ ..] = &args[..] else { return Err("arguments are missing".into()) };
    let numbers = numbers.iter().map(|n| n.parse()).collect::<std::result::Result<Vec<i64>, _>>()?;
    match peer.as_str() {
        "sqlite" => run::<sqlite_store::Sqlite>(Path::new(dir), figure, &numbers),
        "redb" => run::<redb_store::Redb>(Path::new(dir), figure, &numbers),
        _ => Err(format!("there is no peer {peer}").into()),
    }
}
