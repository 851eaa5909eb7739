//! What the test binaries share: where the repository is, a `woc` built once, and processes with a time limit.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The repository's root.
#[must_use]
pub fn root() -> &'static Path {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests)
}

/// The compiler under test: `WOC` of the environment, else the workspace's own, built on first use in the profile of
/// the running test.
///
/// # Errors
/// Why it could not be built; the same for every caller.
pub fn woc() -> Result<&'static Path, &'static str> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(build) {
        Ok(path) => Ok(path),
        Err(e) => Err(e),
    }
}

fn build() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("WOC") {
        return std::path::absolute(path).map_err(|e| e.to_string());
    }
    // A test binary lies in TARGET/PROFILE/deps, or in TARGET/TRIPLE/PROFILE/deps when cross-compiled.
    let exe = std::env::current_exe().map_err(|e| e.to_string())?;
    let dir = exe.parent().and_then(Path::parent).ok_or("the test binary lies outside a target directory")?;
    let name = dir.file_name().and_then(|n| n.to_str()).unwrap_or("debug");
    let profile = if name == "debug" { "dev" } else { name };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into()));
    let _ = cargo.current_dir(root()).args(["build", "--quiet", "-p", "woc", "--bin", "woc", "--profile", profile]);
    let above = dir.parent().ok_or("no target directory")?;
    let triple = above.file_name().and_then(|n| n.to_str()).filter(|n| n.matches('-').count() >= 2);
    match (triple, above.parent()) {
        (Some(triple), Some(target)) => {
            let _ = cargo.args(["--target", triple]).arg("--target-dir").arg(target);
        }
        _ => {
            let _ = cargo.arg("--target-dir").arg(above);
        }
    }
    let out = cargo.output().map_err(|e| format!("cannot start cargo: {e}"))?;
    if !out.status.success() {
        return Err(format!("cargo build -p woc failed:\n{}", String::from_utf8_lossy(&out.stderr)));
    }
    Ok(dir.join("woc"))
}

/// How a process ended.
#[derive(Debug)]
pub struct Finished {
    /// Exit status; none when a signal or the time limit ended it.
    pub status: Option<i32>,
    pub timed_out: bool,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Finished {
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A command that runs `woc` in `dir` with none of the caller's `WO_…` variables, without colour and input.
///
/// # Errors
/// As `woc`.
pub fn command(dir: &Path) -> Result<Command, String> {
    let mut command = Command::new(woc()?);
    let _ = command.current_dir(dir).env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
    for (name, _) in std::env::vars_os().filter(|(n, _)| n.as_encoded_bytes().starts_with(b"WO_")) {
        let _ = command.env_remove(name);
    }
    Ok(command)
}

/// Runs to the end or to `limit`, then kills.
///
/// # Errors
/// The system's, for starting and waiting.
pub fn finish(command: &mut Command, limit: Duration) -> io::Result<Finished> {
    let _ = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let (status, timed_out) = wait(&mut child, limit)?;
    let join = |t: JoinHandle<Vec<u8>>| t.join().unwrap_or_default();
    Ok(Finished { status, timed_out, stdout: join(stdout), stderr: join(stderr) })
}

fn wait(child: &mut Child, limit: Duration) -> io::Result<(Option<i32>, bool)> {
    let started = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status.code(), false));
        }
        if started.elapsed() >= limit {
            child.kill()?;
            let _ = child.wait()?;
            return Ok((None, true));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// A report of `--format short`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub line: u32,
    pub col: u32,
    pub code: String,
}

/// The reports among `text`, which is what `woc check --format short` wrote to standard error.
#[must_use]
pub fn reports(text: &str) -> Vec<Report> {
    text.lines().filter_map(report).collect()
}

fn report(line: &str) -> Option<Report> {
    let (place, rest) = [": error WO-E", ": warning WO-W"].iter().find_map(|mark| {
        let at = line.find(mark)?;
        Some((line.get(..at)?, line.get(at + mark.len() - "WO-E".len()..)?))
    })?;
    let mut parts = place.rsplitn(3, ':');
    let col = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some(Report { line, col, code: rest.split(':').next()?.to_owned() })
}
