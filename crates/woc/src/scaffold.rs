//! `woc new`: a project to start from.

use std::ffi::OsStr;
use std::path::Path;

use crate::options::USAGE;
use crate::output;

const PROGRAM: &str = "\
fn greeting(name: Text) -> Text { return \"hello, ${name}\" }

fn main() { print(greeting(\"world\")) }

test \"greets by name\" { assert_eq(greeting(\"you\"), \"hello, you\") }
";

const LIBRARY: &str = "\
-- The greeting for `name`.
pub fn greeting(name: Text) -> Text { return \"hello, ${name}\" }

test \"greets by name\" { assert_eq(greeting(\"you\"), \"hello, you\") }
";

/// What commands put into a project's directory.
const IGNORED: &str = "target/\n.wo-data/\n.wo-deps/\n";

/// Makes the directory `name` with a manifest, a source file and a test. Gives the exit status.
pub fn create(name: &OsStr, library: bool) -> i32 {
    match files(name, library) {
        Ok(()) => {
            let shown = name.to_string_lossy().replace(char::is_control, "\u{fffd}");
            output::stdout(&if library {
                format!("made the library `{shown}`: test it with `woc test {shown}`\n")
            } else {
                format!("made the program `{shown}`: run it with `woc run {shown}`\n")
            });
            0
        }
        Err(text) => {
            output::stderr(&format!("woc: {}\n", text.replace(char::is_control, "\u{fffd}")));
            USAGE
        }
    }
}

fn files(path: &OsStr, library: bool) -> Result<(), String> {
    let dir = Path::new(path);
    let name = dir.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let fits = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !fits {
        let shown = path.to_string_lossy();
        return Err(format!("`{shown}` is no name for a project: letters, digits, `-` and `_`, a letter first"));
    }
    if !syntax::is_name(name) {
        return Err(format!("`{name}` is no name for a project: it is a reserved word of the language"));
    }
    if analysis::env::Env::is_namespace_name(name) {
        return Err(format!("`{name}` is no name for a project: `use {name}` means a part of the standard library"));
    }
    let told = |what: &Path, e: &std::io::Error| format!("{}: {}", what.display(), project::system_text(e));
    std::fs::create_dir(dir).map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => format!("{} exists already; nothing was changed", dir.display()),
        _ => told(dir, &e),
    })?;
    let kind = if library { "kind = \"library\"\n" } else { "" };
    let manifest = format!("name = \"{name}\"\nversion = \"0.1.0\"\n{kind}");
    let (source_name, source) = if library { ("lib.wo", LIBRARY) } else { ("main.wo", PROGRAM) };
    for (file, text) in [("wo.toml", manifest.as_str()), (source_name, source), (".gitignore", IGNORED)] {
        let at = dir.join(file);
        std::fs::write(&at, text).map_err(|e| told(&at, &e))?;
    }
    Ok(())
}
