//! The command `woc`: all of the compiler's input and output, printing and exit codes (language specification 14).
//!
//! Exit codes: 0 success, 1 errors in the program, 2 usage, unreadable input or manifest, lost output, 70 internal
//! failure.
//! `woc run` passes the program's own status on. An executable that `woc build` made is this one with a compiled
//! program behind it, and runs that instead.

mod command;
mod crash;
mod db;
mod executable;
mod fmt;
mod options;
mod output;
mod pipeline;
mod profile;
mod scaffold;
mod testing;

#[cfg(not(feature = "sanitizer"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    let status = crash::guarded(move || match executable::attached() {
        Ok(None) => match options::parse(args) {
            Ok(invocation) => match command::execute(&invocation) {
                0 if output::lost() => options::USAGE,
                status => status,
            },
            Err(status) => status,
        },
        Ok(Some(code)) => command::run_built(&code, args),
        Err(text) => command::refuse_start(&text),
    });
    // Nothing is worth destroying: large trees would take longer to free than to compile.
    std::process::exit(status);
}
