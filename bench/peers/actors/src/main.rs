//! Tasks and channels of tokio, measured as the programs of bench/actors are.
//! usage: peer-actors THREADS MEASUREMENT NUMBER…; `run` lists the measurements.
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, sleep_until};

/// The allocator of `woc`'s runtime: what differs shall not be the system's giving memory back between rounds.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Messages that may wait for one receiver, as for one actor.
const MAILBOX: usize = 1024;

fn resident() -> i64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<i64>().unwrap() * 1024
}

fn rate(n: usize, start: Instant) {
    println!("per_s {:.0}", n as f64 / start.elapsed().as_secs_f64());
}

fn percentiles(unit: &str, mut all: Vec<u64>) {
    all.sort_unstable();
    println!("p50_{unit} {}", all[all.len() / 2]);
    println!("p99_{unit} {}", all[all.len() * 99 / 100]);
    println!("max_{unit} {}", all[all.len() - 1]);
}

fn adder() -> mpsc::Sender<(u64, oneshot::Sender<u64>)> {
    let (tx, mut rx) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(MAILBOX);
    tokio::spawn(async move {
        let mut total = 0;
        while let Some((n, reply)) = rx.recv().await {
            total += n;
            let _ = reply.send(total);
        }
    });
    tx
}

async fn ask(to: &mpsc::Sender<(u64, oneshot::Sender<u64>)>, n: u64) -> u64 {
    let (reply, answer) = oneshot::channel();
    to.send((n, reply)).await.unwrap();
    answer.await.unwrap()
}

async fn call(n: usize) {
    let to = adder();
    let caller = tokio::spawn(async move {
        let start = Instant::now();
        for _ in 0..n {
            ask(&to, 1).await;
        }
        rate(n, start);
        let mut took = Vec::new();
        for _ in 0..n {
            let start = Instant::now();
            ask(&to, 1).await;
            took.push(start.elapsed().as_micros() as u64);
        }
        percentiles("us", took);
    });
    caller.await.unwrap();
}

/// `senders` to one, or one to `sinks`.
async fn oneway(n: usize, senders: usize, sinks: usize) {
    let n = n / (senders * sinks) * senders * sinks;
    let mut to = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..sinks {
        let (tx, mut rx) = mpsc::channel::<u64>(MAILBOX);
        to.push(tx);
        ends.push(tokio::spawn(async move {
            let mut sum = 0;
            for _ in 0..n / sinks {
                sum += rx.recv().await.unwrap();
            }
            sum
        }));
    }
    let start = Instant::now();
    for _ in 0..senders {
        let to = to.clone();
        tokio::spawn(async move {
            for i in 0..n / senders {
                to[i % sinks].send(i as u64).await.unwrap();
            }
        });
    }
    for end in ends {
        end.await.unwrap();
    }
    rate(n, start);
}

async fn texts(n: usize) {
    let (tx, mut rx) = mpsc::channel::<Box<[String; 10]>>(MAILBOX);
    let end = tokio::spawn(async move {
        let mut sum = 0;
        for _ in 0..n {
            let m = rx.recv().await.unwrap();
            sum += m[0].len() + m[9].len();
        }
        sum
    });
    let start = Instant::now();
    tokio::spawn(async move {
        for i in 0..n {
            let letter = std::array::from_fn(|k| format!("{}{i}", (b'a' + k as u8) as char));
            tx.send(Box::new(letter)).await.unwrap();
        }
    });
    end.await.unwrap();
    rate(n, start);
}

/// Counts arrivals up to a number that somebody waits for.
struct Gate {
    left: AtomicU64,
    open: Notify,
}

impl Gate {
    fn new(n: usize) -> Arc<Gate> {
        Arc::new(Gate { left: AtomicU64::new(n as u64), open: Notify::new() })
    }
    fn pass(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open.notify_one();
        }
    }
}

async fn spawn(form: &str, n: usize, rounds: usize) {
    for _ in 0..rounds {
        let gate = Gate::new(n);
        let mut kept = Vec::new();
        let start = Instant::now();
        for _ in 0..n {
            let (tx, mut rx) = mpsc::channel::<u64>(1);
            let gate = Arc::clone(&gate);
            tokio::spawn(async move {
                while rx.recv().await.is_some() {
                    gate.pass();
                }
            });
            if form != "only" {
                tx.try_send(1).unwrap();
            }
            if form != "gone" {
                kept.push(tx);
            }
        }
        if form != "only" {
            gate.open.notified().await;
        }
        rate(n, start);
        drop(kept);
        sleep(Duration::from_millis(200)).await;
    }
}

async fn memory(n: usize) {
    let before = resident();
    let gate = Gate::new(n);
    let mut kept = Vec::new();
    for _ in 0..n {
        let (tx, mut rx) = mpsc::channel::<u64>(1);
        let gate = Arc::clone(&gate);
        tokio::spawn(async move {
            while rx.recv().await.is_some() {
                gate.pass();
            }
        });
        tx.try_send(1).unwrap();
        kept.push(tx);
    }
    gate.open.notified().await;
    sleep(Duration::from_millis(300)).await;
    println!("bytes {:.1}", (resident() - before) as f64 / n as f64);
}

async fn parked(n: usize) {
    let before = resident();
    for _ in 0..n {
        tokio::spawn(sleep(Duration::from_secs(3600)));
    }
    sleep(Duration::from_millis(300)).await;
    println!("bytes {:.1}", (resident() - before) as f64 / n as f64);
}

async fn switch(fibers: usize, turns: usize) {
    let at = tokio::time::Instant::now() + Duration::from_millis(500);
    let mut tasks = Vec::new();
    for _ in 0..fibers {
        tasks.push(tokio::spawn(async move {
            sleep_until(at).await;
            let start = Instant::now();
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            (start, Instant::now())
        }));
    }
    let mut spans = Vec::new();
    for task in tasks {
        spans.push(task.await.unwrap());
    }
    let first = spans.iter().map(|s| s.0).min().unwrap();
    let last = spans.iter().map(|s| s.1).max().unwrap();
    println!("ns {:.1}", (last - first).as_nanos() as f64 / (fibers * turns) as f64);
}

async fn timers(n: usize, ms: usize, half_busy: bool) {
    let (tx, mut rx) = mpsc::unbounded_channel();
    let end = Instant::now() + Duration::from_millis(ms as u64 + 1000);
    if half_busy {
        tokio::spawn(async move {
            while Instant::now() < end {
                let stop = Instant::now() + Duration::from_micros(1000);
                // Gives way about as often as a slice ends in bench/actors/timers.wo.
                while Instant::now() < stop {
                    for _ in 0..4000 {
                        std::hint::black_box(Instant::now());
                    }
                    tokio::task::yield_now().await;
                }
                sleep(Duration::from_millis(1)).await;
            }
        });
    }
    for i in 0..n {
        let due = Instant::now() + Duration::from_millis((100 + i * 7919 % n * ms / n) as u64);
        let tx = tx.clone();
        tokio::spawn(async move {
            sleep_until(due.into()).await;
            tx.send(due.elapsed().as_micros() as u64).unwrap();
        });
    }
    let mut late = Vec::new();
    for _ in 0..n {
        late.push(rx.recv().await.unwrap());
    }
    percentiles("us", late);
}

async fn crowd(n: usize, calls: usize) {
    let to = adder();
    let start = Instant::now();
    let due = start + Duration::from_millis(3000);
    let gate = Gate::new(n);
    for _ in 0..n {
        let gate = Arc::clone(&gate);
        tokio::spawn(async move {
            sleep_until(due.into()).await;
            gate.pass();
        });
    }
    ask(&to, 0).await;
    println!("park_ms {:.1}", start.elapsed().as_secs_f64() * 1000.0);
    let start = Instant::now();
    for _ in 0..calls {
        ask(&to, 1).await;
    }
    println!("calls_per_s {:.0}", calls as f64 / start.elapsed().as_secs_f64());
    gate.open.notified().await;
    println!("wake_ms {:.1}", due.elapsed().as_secs_f64() * 1000.0);
}

fn turns(n: usize) {
    let start = Instant::now();
    for i in 0..n {
        let _ = std::hint::black_box(i);
    }
    println!("turn_ns {:.3}", start.elapsed().as_nanos() as f64 / n as f64);
}

async fn echo() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    loop {
        let (mut conn, _) = listener.accept().await.unwrap();
        conn.set_nodelay(true).unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = conn.read(&mut buffer).await {
                if conn.write_all(&buffer[..n]).await.is_err() {
                    break;
                }
            }
        });
    }
}

async fn run(threads: usize, form: &str, n: &[usize]) {
    match form {
        "call" => call(n[0]).await,
        "one" => oneway(n[0], 1, 1).await,
        "in" => oneway(n[0], threads, 1).await,
        "out" => oneway(n[0], 1, threads).await,
        "texts" => texts(n[0]).await,
        "only" | "idle" | "gone" => spawn(form, n[0], n[1]).await,
        "memory" => memory(n[0]).await,
        "parked" => parked(n[0]).await,
        "switch" => switch(n[0], n[1]).await,
        "timers" => timers(n[0], n[1], false).await,
        "timers-half" => timers(n[0], n[1], true).await,
        "crowd" => crowd(n[0], n[1]).await,
        "loop" => turns(n[0]),
        "echo" => echo().await,
        _ => panic!("no such measurement: {form}"),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let threads: usize = args[0].parse().unwrap();
    let numbers: Vec<usize> = args[2..].iter().map(|s| s.parse().unwrap()).collect();
    let rt = if threads == 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()
    } else {
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
    };
    rt.unwrap().block_on(run(threads, &args[1], &numbers));
}
