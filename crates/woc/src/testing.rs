//! `woc test`: a fresh process of `woc` for each test, several at a time; results are printed in the order of the
//! source. A test that does not end within `WO_TEST_MS` is killed and has failed.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::options::Invocation;
use crate::output;
use crate::pipeline::TestBlock;

/// Bytes kept of what a test writes to one stream.
const KEPT: u64 = 64 << 10;

/// Time for one test in milliseconds, its compilation included, where `WO_TEST_MS` does not say otherwise.
const LIMIT_MS: u32 = 60_000;

/// Runs the tests whose names contain `filter` and prints a line for each, then the counts. True if none failed.
pub fn run_all(invocation: &Invocation, path: &Path, tests: &[TestBlock<'_>], filter: Option<&str>) -> bool {
    let wanted = |test: &TestBlock<'_>| filter.is_none_or(|text| test.name.contains(text));
    let chosen: Vec<usize> = (0..tests.len()).filter(|i| tests.get(*i).is_some_and(wanted)).collect();
    if let (Some(text), true) = (filter, chosen.is_empty()) {
        output::stderr(&format!("woc: no test has `{}` in its name\n", text.replace(char::is_control, "\u{fffd}")));
    }
    let limit = limit();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(chosen.len());
    let (sender, results) = mpsc::channel();
    let mut failed = 0;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (sender, next, chosen) = (sender.clone(), &next, &chosen);
            let _ = scope.spawn(move || {
                while let Some(number) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(test) = tests.get(*number) else { return };
                    if sender.send((*number, run_one(invocation, path, *number, test, limit))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut due = chosen.iter();
        let mut current = due.next();
        for (number, outcome) in results {
            let _ = waiting.insert(number, outcome);
            while let Some((number, outcome)) = current.and_then(|n| Some((n, waiting.remove(n)?))) {
                failed += usize::from(outcome.is_err());
                if let Some(test) = tests.get(*number) {
                    output::stdout(&line(test, &outcome));
                }
                current = due.next();
            }
        }
    });
    output::stdout(&format!("{} passed, {failed} failed\n", chosen.len() - failed));
    failed == 0
}

/// The time that one test may take.
fn limit() -> Duration {
    let given = std::env::var_os("WO_TEST_MS");
    let read = given.as_ref().and_then(|text| text.to_str()?.trim().parse::<u32>().ok()).filter(|ms| *ms > 0);
    if let (Some(text), None) = (&given, read) {
        let text = text.to_string_lossy().replace(char::is_control, "\u{fffd}");
        output::stderr(&format!("woc: WO_TEST_MS={text} is not a number from 1 to {}; ignored\n", u32::MAX));
    }
    Duration::from_millis(read.unwrap_or(LIMIT_MS).into())
}

/// Why a test failed: in one line, and everything it wrote.
struct Failure {
    summary: String,
    written: String,
}

fn line(test: &TestBlock<'_>, outcome: &Result<(), Failure>) -> String {
    let mut name = if test.module.is_empty() { String::new() } else { format!("{}: ", test.module) };
    name.push_str(test.name);
    let name = name.replace(char::is_control, "\u{fffd}");
    match outcome {
        Ok(()) => format!("ok   {name}\n"),
        Err(failure) => {
            let mut out = format!("FAIL {name} -- {}\n", failure.summary);
            for line in failure.written.lines() {
                out.push_str("     ");
                out.push_str(line);
                out.push('\n');
            }
            out
        }
    }
}

fn run_one(
    invocation: &Invocation,
    path: &Path,
    number: usize,
    test: &TestBlock<'_>,
    limit: Duration,
) -> Result<(), Failure> {
    let cannot = |e: std::io::Error| Failure { summary: format!("cannot run it: {e}"), written: String::new() };
    let mut command = Command::new("/proc/self/exe");
    let _ = command.arg0("woc").arg("test").args(invocation.flags.iter().flat_map(|f| ["-D", f.as_str()]));
    if invocation.passes.is_empty() {
        let _ = command.arg("--no-opt");
    }
    let _ = command.arg("--only").arg(number.to_string()).arg("--").arg(path);
    let _ = command.env("WO_EPHEMERAL", "1").env_remove("WO_DATA");
    let _ = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = Instant::now();
    let mut child = command.spawn().map_err(cannot)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (ended, end_of_output) = mpsc::channel();
    let (status, stdout, stderr) = std::thread::scope(|scope| {
        let stderr_ended = ended.clone();
        let stdout = scope.spawn(move || drain(stdout, ended));
        let stderr = scope.spawn(move || drain(stderr, stderr_ended));
        let status = wait(&mut child, &end_of_output, started, limit);
        (status, stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default())
    });
    match status.map_err(cannot)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Failure { summary: summary(&stderr, status), written: stdout + &stderr }),
        None => {
            let summary = format!("{}: no end within {} ms (WO_TEST_MS)", test.place, limit.as_millis());
            Err(Failure { summary, written: stdout + &stderr })
        }
    }
}

/// How the test ended; none if it did not within `limit` and was killed. `end_of_output` is disconnected when both
/// streams are closed, which they are when the process ends, but which a program may do before that.
fn wait(
    child: &mut Child,
    end_of_output: &mpsc::Receiver<()>,
    started: Instant,
    limit: Duration,
) -> std::io::Result<Option<ExitStatus>> {
    let _ = end_of_output.recv_timeout(limit.saturating_sub(started.elapsed()));
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() >= limit {
            child.kill()?;
            let _ = child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// The first bytes of a stream, which is read to its end so that the writer never waits. `ended` goes with it.
fn drain(pipe: Option<impl Read>, ended: mpsc::Sender<()>) -> String {
    let mut kept = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = (&mut pipe).take(KEPT).read_to_end(&mut kept);
        if std::io::copy(&mut pipe, &mut std::io::sink()).is_ok_and(|more| more > 0) {
            kept.extend_from_slice("\n[…]\n".as_bytes());
        }
    }
    drop(ended);
    if kept.last().is_some_and(|b| *b != b'\n') {
        kept.push(b'\n');
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// `FILE:LINE: trap 8 in … at line LINE: …` from the report of the trap, which is the last thing that a test writes.
fn summary(stderr: &str, status: ExitStatus) -> String {
    let lines: Vec<&str> = stderr.lines().collect();
    let trap = lines.iter().rposition(|l| is_trap(l));
    let Some((trap, rest)) = trap.and_then(|at| lines.get(at..)?.split_first()) else {
        return match (status.signal(), status.code()) {
            (Some(signal), _) => format!("ended by signal {signal}"),
            (None, code) => format!("ended with status {}", code.unwrap_or(-1)),
        };
    };
    let frame = rest.iter().find_map(|l| l.strip_prefix("  at ")?.strip_suffix(')')?.rsplit_once(" ("));
    match frame {
        Some((_, place)) => format!("{place}: {trap}"),
        None => (*trap).to_owned(),
    }
}

fn is_trap(line: &str) -> bool {
    let code = line.strip_prefix("trap ").and_then(|rest| rest.split_once(" in "));
    code.is_some_and(|(code, _)| !code.is_empty() && code.bytes().all(|b| b.is_ascii_digit()))
}
