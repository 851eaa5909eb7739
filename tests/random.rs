//! Random programs through `woc run`: optimised and unoptimised code print the same, trap alike and leave nothing
//! behind. Deterministic; `RANDOM_PROGRAMS` sets how many, `RANDOM_SEED` where to start.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "random/generate.rs"]
mod generate;

use std::fs;
use std::path::Path;
use std::time::Duration;

use corpus::{Finished, command, finish};

const PROGRAMS: u64 = 40;
/// Functions in one program, each run once by itself and by those behind it.
const FUNCTIONS: usize = 12;
const LIMIT: Duration = Duration::from_secs(60);

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(usual)
}

fn run(file: &Path, optimize: bool) -> Finished {
    let mut command = command(file.parent().unwrap()).unwrap();
    let _ = command.env("WO_SHARDS", "1").env("WO_EPHEMERAL", "1").env("WO_STATS", "1");
    let _ = command.env("WO_OPT", if optimize { "1" } else { "0" }).arg("run").arg(file);
    finish(&mut command, LIMIT).unwrap()
}

/// What is wrong with the program of this seed.
fn fault(seed: u64, file: &Path) -> Option<String> {
    fs::write(file, generate::program(seed, FUNCTIONS)).unwrap();
    let runs = [run(file, true), run(file, false)];
    for (run, mode) in runs.iter().zip(["optimised", "not optimised"]) {
        let stderr = run.stderr_text();
        let stats = stderr.lines().find(|l| l.starts_with("wostats ")).unwrap_or("no `wostats` line");
        if run.status != Some(0) {
            let errors: Vec<&str> =
                stderr.lines().filter(|l| l.contains("error") || l.contains("trap")).take(3).collect();
            return Some(format!("{mode}: status {:?}: {errors:?}", run.status));
        }
        if !stats.split(' ').any(|field| field == "objects_live=0") {
            return Some(format!("{mode}: objects were left behind: {stats}"));
        }
    }
    if runs[0].stdout != runs[1].stdout {
        let texts = [runs[0].stdout_text(), runs[1].stdout_text()];
        let differs = texts[0].lines().zip(texts[1].lines()).find(|(a, b)| a != b);
        return Some(format!("optimised and not optimised disagree: {differs:?}"));
    }
    None
}

#[test]
fn random_programs_agree() {
    let dir = tempfile::tempdir().unwrap();
    let (first, count) = (number("RANDOM_SEED", 1), number("RANDOM_PROGRAMS", PROGRAMS));
    let faults: Vec<String> = (first..first + count)
        .filter_map(|seed| {
            let file = dir.path().join(format!("random-{seed}.wo"));
            let fault = fault(seed, &file)?;
            Some(format!("seed {seed}: {fault}\n{}", generate::program(seed, FUNCTIONS)))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
