//! Standard output and error. A reader that went away is no reason to fail; output that is lost otherwise is, with
//! one line for the first loss.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

static LOST: AtomicBool = AtomicBool::new(false);

pub fn stdout(text: &str) {
    stdout_bytes(text.as_bytes());
}

pub fn stdout_bytes(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe && !LOST.swap(true, Ordering::Relaxed) => {
            stderr(&format!("woc: standard output: {}\n", project::system_text(&e)));
        }
        Ok(()) | Err(_) => {}
    }
}

/// Whether some of standard output was given could not be written.
pub fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

pub fn stderr(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Whether diagnostics are coloured: on a terminal and without `NO_COLOR` (set and not empty).
pub fn color() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
