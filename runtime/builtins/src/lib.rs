//! The functions of `abi::symbols`: arguments checked, then one of the runtime's crates.
#![allow(unsafe_code, reason = "generated code passes raw objects")]

mod io;
mod pure;
mod results;
pub mod tables;

use sched::config;
use std::path::PathBuf;

/// Name and address of every runtime function, each once.
pub fn functions() -> impl Iterator<Item = (&'static str, *const u8)> {
    pure::functions().into_iter().chain(io::functions()).chain(tables::functions())
}

/// Opens the program's tables and runs it to its end; gives the process's exit status. `own_store` is where durable tables
/// go if no variable says so.
#[must_use]
pub fn run(image: &'static values::ctx::Image, own_store: Option<PathBuf>) -> i32 {
    // Before the store is: a write beyond the limit on a file's size is to fail, not to end the process.
    sched::sys::prepare_process();
    let program = config::program_name();
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let mut notices = config::misspelt(&program, names);
    let opened = tables::open(&image.shapes, &program, config::memory, |name| std::env::var_os(name), own_store);
    notices.extend(opened.notices);
    for notice in &notices {
        sched::stderr::line(notice);
    }
    match opened.refusal {
        Some(why) => sched::refuse(&why),
        None => {
            let status = sched::run(image);
            tables::close();
            status
        }
    }
}

#[cfg(test)]
mod tests {
    /// The table of addresses holds the names of the contract: none missing, none besides, none twice.
    #[test]
    fn every_symbol_has_its_function() {
        let mut names: Vec<&str> = super::functions().map(|(name, _)| name).collect();
        names.sort_unstable();
        let mut wanted: Vec<&str> = abi::symbols::SYMBOLS.iter().map(|s| s.name).collect();
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        wanted.dedup();
        assert_eq!(names.len(), wanted.len(), "a name stands twice");
    }
}
