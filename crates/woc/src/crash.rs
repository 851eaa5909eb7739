//! Internal failures: a large stack so that deep programs do not cause one, and an apology with exit status 70 when a
//! stage panics all the same.

use std::sync::{Mutex, PoisonError};

use crate::{command, output};

pub const INTERNAL: i32 = 70;

/// Address space for the stages' recursion; the system commits only what is touched. Smaller sizes serve where the
/// address space is limited.
const STACK_SIZES: [usize; 3] = [1 << 30, 256 << 20, 64 << 20];

static LAST_PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs `work` on a thread with a large stack and gives its exit status, 70 if it panicked, 2 if there is no memory for
/// the stack.
pub fn guarded(work: impl FnOnce() -> i32 + Send + 'static) -> i32 {
    // The hook only remembers: the runtime catches panics of its own functions and turns them into traps, and those
    // must not print.
    std::panic::set_hook(Box::new(|info| {
        let mut last = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(info.to_string());
    }));
    let work = std::sync::Arc::new(Mutex::new(Some(work)));
    let mut refusal = String::new();
    for size in STACK_SIZES {
        let work = std::sync::Arc::clone(&work);
        let body = move || work.lock().unwrap_or_else(PoisonError::into_inner).take().map(|work| work());
        let thread = match std::thread::Builder::new().name("woc".to_owned()).stack_size(size).spawn(body) {
            Ok(thread) => thread,
            Err(e) => {
                refusal = project::system_text(&e);
                continue;
            }
        };
        return match thread.join() {
            Ok(Some(status)) => status,
            Ok(None) => failed("the work was lost"),
            Err(_) => {
                let what = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).take();
                failed(&what.unwrap_or_else(|| "unknown panic".to_owned()))
            }
        };
    }
    command::refuse_start(&format!("cannot start: {refusal}"))
}

/// Prints the apology and gives status 70.
pub fn failed(what: &str) -> i32 {
    let version = env!("CARGO_PKG_VERSION");
    output::stderr(&format!(
        "woc: internal failure, which is a bug in woc and not in your program. Sorry.\n  \
         what failed: {}\n  \
         version: writeonce {version} {}\n  \
         please report it with these lines, the command line and, if you can, the smallest program that shows it\n",
        what.replace('\n', "\n    "),
        platform()
    ));
    INTERNAL
}

/// `linux/amd64` and the like.
pub fn platform() -> String {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{}/{arch}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "tests")]

    #[test]
    fn a_panic_is_an_internal_failure() {
        assert_eq!(super::guarded(|| 3), 3);
        assert_eq!(super::guarded(|| panic!("on purpose")), super::INTERNAL);
    }
}
