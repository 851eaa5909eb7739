//! The acceptance gates of the example programs, with real clients, run as users run them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::process::Command;
use std::time::Duration;

use corpus::{finish, root, woc};

#[track_caller]
fn gate(script: &str, args: &[&str]) {
    gate_with(script, args, &[]);
}

#[track_caller]
fn gate_with(script: &str, args: &[&str], env: &[(&str, &str)]) {
    let woc = woc().unwrap_or_else(|e| panic!("{e}"));
    let mut command = Command::new(if script.ends_with(".py") { "python3" } else { "bash" });
    let _ = command.arg(root().join("scripts").join(script)).args(args).env("WOC", woc).envs(env.iter().copied());
    let out = finish(&mut command, Duration::from_secs(600)).expect("the script runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let failed: Vec<&str> = text.lines().filter(|l| l.starts_with("FAIL")).collect();
    let (failed_lines, err) = (failed.join("\n"), out.stderr_text());
    assert!(out.status == Some(0) && failed.is_empty(), "{script}: {:?}\n{failed_lines}\n{err}", out.status);
    assert!(text.contains(" checks, 0 failures"), "{script} did not come to its end:\n{text}");
}

#[test]
fn chat() {
    gate("chat-accept.sh", &[]);
}

#[test]
fn hello() {
    gate("hello-accept.sh", &[]);
}

#[test]
fn porch() {
    gate("porch-accept.sh", &[]);
}

/// The leg of a stepped clock is left out where the tool for it is missing; everything else runs.
#[test]
fn web_app() {
    let has_faketime = Command::new("faketime").arg("--version").output().is_ok();
    let skip: &[_] = if has_faketime { &[] } else { &[("GATE_SKIP", "W68"), ("GATE_SKIP_OK", "1")] };
    gate_with("web-app-accept.sh", &[], skip);
}

#[test]
fn storefront_clients() {
    gate("storefront-clients.py", &[]);
}

/// A few kills under load; `just web-app-crash` is the real thing.
#[test]
fn storefront_crash() {
    gate("storefront-crash.py", &["--runs", "2"]);
}

#[test]
fn fibers() {
    gate("fibers-accept.sh", &[]);
}

#[test]
fn scenarios() {
    gate("scenarios-accept.sh", &[]);
}

/// A few runs, so that the runner and its programs are known to work; `just stress` is the real thing.
#[test]
fn stress() {
    gate("stress.py", &["--runs", "2"]);
}

/// A few crashes of each kind; `just crash` is the real thing.
#[test]
fn crash() {
    gate("crash.py", &["--short"]);
}

/// [FMT-1]: the format's document is enough to read a store.
#[test]
fn format() {
    gate("format.py", &[]);
}

/// [SEM-8], [PLN-2]: an index never changes a result.
#[test]
fn queries() {
    gate("queries.py", &["--programs", "4"]);
}

#[test]
fn proc() {
    gate("proc-accept.sh", &[]);
}

#[test]
fn runtime() {
    gate("runtime-accept.sh", &[]);
}

#[test]
fn db_actor() {
    gate("db-actor-accept.sh", &[]);
}

#[test]
fn employee() {
    gate("employee-accept.sh", &[]);
}

#[test]
fn db_bench() {
    gate("db-bench-accept.sh", &[]);
}
