//! Links the compiler's unwinder (libgcc_eh) into the executable, so that `woc` and what it builds need no shared
//! library but the C library. Without the archive (another C compiler, another target) the shared libgcc_s serves as
//! usual.

use std::env;
use std::path::Path;
use std::process::Command;

const ARCHIVE: &str = "libgcc_eh.a";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CC");
    // The compiler asked below is this machine's own.
    if env::var("TARGET") != env::var("HOST") || env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|c| c != "gnu") {
        return;
    }
    let cc = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let Ok(out) = Command::new(cc).arg(format!("-print-file-name={ARCHIVE}")).output() else { return };
    let path = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    // A name without a directory says that the compiler does not have it.
    if let Some(dir) = Path::new(&path).parent().filter(|_| Path::new(&path).is_absolute()) {
        println!("cargo::rustc-link-search=native={}", dir.display());
        println!("cargo::rustc-link-lib=static:+whole-archive,+verbatim={ARCHIVE}");
    }
}
