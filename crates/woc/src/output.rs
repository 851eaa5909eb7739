//! Standard output and error. A reader that went away is no reason to fail: errors of writing are ignored.

use std::io::{IsTerminal as _, Write as _};

pub fn stdout(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

pub fn stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Whether diagnostics are coloured: on a terminal and without `NO_COLOR` (set and not empty).
pub fn color() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
