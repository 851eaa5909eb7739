//! Names of generated code for `perf`: with `WO_PERF=1` a program writes `/tmp/perf-PID.map`, the file in which perf
//! looks for the symbols of code that lies in no file. A line is start, size and name, the numbers in hexadecimal.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

use codegen::Symbol;

use crate::output;

pub fn wanted() -> bool {
    std::env::var_os("WO_PERF").is_some_and(|v| v == "1")
}

/// Writes the map of code that lies at `base`. A failure is a line on stderr: the program can do without.
pub fn write(base: u64, symbols: &[Symbol]) {
    let path = format!("/tmp/perf-{}.map", std::process::id());
    if let Err(e) = put(&path, &map(base, symbols)) {
        let why = project::system_text(&e);
        output::stderr(&format!(
            "{}: WO_PERF: {path}: {why}; perf will show no names\n",
            sched::config::program_name()
        ));
    }
}

fn put(path: &str, text: &str) -> io::Result<()> {
    // The directory is everybody's: a file that lies there is replaced, never written through.
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?.write_all(text.as_bytes())
}

fn map(base: u64, symbols: &[Symbol]) -> String {
    let mut out = String::new();
    for symbol in symbols {
        let _ = writeln!(out, "{:x} {:x} {}", base + u64::from(symbol.offset), symbol.size, symbol.name);
    }
    out
}
