//! Shards, fibers, actors, timers, the reactor, sockets and child processes.
//!
//! A run has one `Shared` and N `Shard`s, each a thread with its own run queue, reactor and timers; they reach each other
//! through their ports only.
//!
//! Limits for now. `WO_IO=uring` is refused. A handle that more than 64 actors have used is not closed by the death of its
//! last holder.
#![allow(unsafe_code, reason = "stack switching and system calls")]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "addresses and objects come from generated code; that they are live is the convention of `abi::symbols`"
)]
#![allow(clippy::indexing_slicing, reason = "heap and slot indexes are kept in range by the structures that hold them")]

pub mod actor;
mod addr;
mod atomics;
pub mod config;
mod counts;
mod descriptor;
pub mod durable;
pub mod fiber;
mod handle;
mod inbox;
pub mod net;
pub mod output;
pub mod park;
mod pool;
pub mod proc;
mod reactor;
mod report;
pub mod run;
pub mod shard;
mod shared;
pub mod shim;
mod stack;
pub mod stats;
pub mod stderr;
pub mod stop;
pub mod sys;
mod timer;
pub mod trace;
pub mod unix;
pub mod wait;

use std::time::Instant;
use values::ctx::Image;

/// Runs a program to its end and gives the process's exit status. Prints start-up notices, the report of a trap that
/// left `main`, and the counters where `WO_STATS` asks for them.
pub fn run(image: &'static Image) -> i32 {
    let read = config::read(&config::program_name(), config::variable);
    for notice in &read.notices {
        stderr::line(notice);
    }
    if let Some(refusal) = read.refusal {
        return refuse(&refusal);
    }
    run_with(read.config, image)
}

/// `run` with a given configuration. The caller has prepared the process.
pub fn run_with(config: config::Config, image: &'static Image) -> i32 {
    sys::unblock_terminals();
    values::ctx::install_panic_hook();
    values::object::set_heap_limit(config.heap_bytes);
    let program = config.program.clone();
    match run::run(config, image) {
        Ok(ended) => ended.status,
        Err(e) => refuse(&format!("{program}: cannot start: {}", sys::text(e))),
    }
}

/// The program does not start: says why and gives the exit status.
#[must_use]
pub fn refuse(why: &str) -> i32 {
    last_line(why);
    2
}

/// The last report of the process.
pub fn last_line(line: &str) {
    stderr::line(line);
    stderr::finish(Instant::now() + run::LAST);
}
