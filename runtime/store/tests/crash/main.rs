//! The durability test matrix over a simulated disk (tables specification 14): random statements over three tables, and
//! crashes, tears, flipped bits and failures at any operation. After each, the store must be what the model is after
//! some beginning of the statements that has all acknowledged ones.
//!
//! What happens follows from seeds. A failure prints its own; `CRASH_SEED=N` runs that one alone, `CRASH_RUNS=N` tries
//! N of them instead of a few, `CRASH_BITS=1` flips each bit of the files that it damages (minutes for each seed).
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod failures;
mod files;
mod life;
#[path = "../model/naive.rs"]
#[allow(dead_code, reason = "the model test uses all of it")]
mod naive;
mod power;
mod prefix;
#[path = "../schema/program.rs"]
#[allow(dead_code, reason = "the schema's tests use all of it")]
mod program;
#[path = "../model/random.rs"]
mod random;
mod verdict;
mod workload;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs a test for `few` seeds, or as many or the one that the environment says.
fn seeds(few: u64, test: impl Fn(u64)) {
    let runs = setting("CRASH_RUNS").unwrap_or(few);
    let chosen = setting("CRASH_SEED");
    for seed in chosen.map_or(1..=runs, |seed| seed..=seed) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| test(seed))) {
            eprintln!("failed with CRASH_SEED={seed}");
            resume_unwind(panic);
        }
    }
}
