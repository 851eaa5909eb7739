//! Runner of the conformance corpus (language specification 15): every directory below `tests/corpus/KIND/` is a test.
//!
//! Cases that run do so with optimisation on and off, which must agree, and must leave no object behind.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use corpus::{Finished, Report, command, finish, reports, root, woc};
use libtest_mimic::{Arguments, Failed, Trial};

const LIMIT: Duration = Duration::from_secs(60);
/// Where the tables of a program are kept that is run with a store.
const DATA: &str = "data";
/// Where a program runs on several shards.
const SHARDS: u32 = 4;

/// How a program is run.
#[derive(Clone, Copy)]
struct Mode {
    optimize: bool,
    shards: u32,
    /// Durable tables are kept in a directory.
    store: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Run,
    CompileFail,
    Trap,
    Fmt,
}

const KINDS: [(&str, Kind); 4] =
    [("run", Kind::Run), ("compile-fail", Kind::CompileFail), ("trap", Kind::Trap), ("fmt", Kind::Fmt)];

fn main() -> ExitCode {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, kind) in KINDS {
        let mut dirs: Vec<PathBuf> = fs::read_dir(root().join("tests/corpus").join(name))
            .map(|entries| entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect())
            .unwrap_or_default();
        dirs.sort();
        for dir in dirs {
            let title = format!("{name}/{}", dir.file_name().unwrap_or_default().to_string_lossy());
            trials.push(Trial::test(title, move || Case { dir, kind }.test().map_err(Failed::from)));
        }
    }
    if !args.list
        && let Err(e) = woc()
    {
        eprintln!("{e}");
        return ExitCode::FAILURE;
    }
    libtest_mimic::run(&args, trials).exit_code()
}

struct Case {
    dir: PathBuf,
    kind: Kind,
}

impl Case {
    fn test(&self) -> Result<(), String> {
        if !self.dir.join("fixture.wo").is_file() {
            return Err("no fixture.wo".to_owned());
        }
        match self.kind {
            Kind::CompileFail => self.compile_fail(),
            Kind::Run => self.run(),
            Kind::Trap => self.trap(),
            Kind::Fmt => self.fmt(),
        }
    }

    fn compile_fail(&self) -> Result<(), String> {
        let wanted = self.required("fixture.code")?;
        let wanted = wanted.trim();
        let (out, found) = self.check()?;
        let context = || show(&out);
        if out.status != Some(1) {
            return Err(format!("status {:?}, wanted 1{}", out.status, context()));
        }
        let errors: BTreeSet<&str> = found.iter().map(|r| r.code.as_str()).filter(|c| c.starts_with("WO-E")).collect();
        if errors != BTreeSet::from([wanted]) {
            return Err(format!("error codes {errors:?}, wanted only {wanted}{}", context()));
        }
        if let Some(list) = self.optional("fixture.diag") {
            let wanted: Vec<String> = list.lines().map(words).filter(|l| !l.is_empty()).collect();
            let found: Vec<String> = found.iter().map(|r| format!("{}:{} {}", r.line, r.col, r.code)).collect();
            if wanted != found {
                return Err(format!("reports {found:#?}, wanted {wanted:#?}{}", context()));
            }
        }
        self.warnings(&found)
    }

    fn run(&self) -> Result<(), String> {
        let wanted = fs::read(self.dir.join("fixture.out")).map_err(|e| format!("fixture.out: {e}"))?;
        let out = self.execute(self.status(0)?)?;
        if out.stdout != wanted {
            return Err(difference(&wanted, &out.stdout) + &show(&out));
        }
        self.check_warnings()
    }

    fn trap(&self) -> Result<(), String> {
        let wanted = self.required("fixture.trap")?;
        let mut lines = wanted.lines();
        let code = lines.next().unwrap_or_default().trim();
        let message = lines.next();
        let out = self.execute(self.status(1)?)?;
        let stderr = out.stderr_text();
        let Some(line) = stderr.lines().find(|l| l.starts_with("trap ")) else {
            return Err(format!("no trap line{}", show(&out)));
        };
        let (head, text) = line.split_once(": ").unwrap_or((line, ""));
        if head.split(' ').nth(1) != Some(code) {
            return Err(format!("`{line}`, wanted trap {code}{}", show(&out)));
        }
        if message.is_some_and(|m| m != text) {
            return Err(format!("message `{text}`, wanted `{}`{}", message.unwrap_or_default(), show(&out)));
        }
        if let Ok(wanted) = fs::read(self.dir.join("fixture.out"))
            && out.stdout != wanted
        {
            return Err(difference(&wanted, &out.stdout));
        }
        self.check_warnings()
    }

    fn fmt(&self) -> Result<(), String> {
        let wanted = self.required("fixture.fmt")?;
        for from in ["fixture.wo", "fixture.fmt"] {
            let dir = scratch()?;
            let file = dir.path().join("fixture.wo");
            let _ = fs::copy(self.dir.join(from), &file).map_err(|e| e.to_string())?;
            let mut command = command(dir.path())?;
            let _ = command.arg("fmt").arg(&file);
            let out = finish(&mut command, LIMIT).map_err(|e| e.to_string())?;
            if out.status != Some(0) {
                return Err(format!("woc fmt: status {:?}{}", out.status, show(&out)));
            }
            let found = fs::read(&file).map_err(|e| e.to_string())?;
            if found != wanted.as_bytes() {
                return Err(format!("{from}: {}", difference(wanted.as_bytes(), &found)));
            }
        }
        Ok(())
    }

    /// Runs optimised and not; both must agree in standard output and status, end with `status` and release everything.
    /// A program with actors runs on several shards too, where it must print the same lines in some order; one whose
    /// `fixture.env` sets `WO_SHARDS` is about the order on that many. A program with tables runs with a store too.
    fn execute(&self, status: i32) -> Result<Finished, String> {
        let usual = Mode { optimize: true, shards: 1, store: false };
        let optimized = self.execute_once(usual, status)?;
        let plain = self.execute_once(Mode { optimize: false, ..usual }, status)?;
        if optimized.stdout != plain.stdout {
            let what = difference(&optimized.stdout, &plain.stdout);
            return Err(format!("without optimisation stdout differs: {what}"));
        }
        let source = self.required("fixture.wo")?;
        let pinned = self.optional("fixture.env").is_some_and(|env| env.contains("WO_SHARDS="));
        let shards = if source.contains("spawn") && !pinned { SHARDS } else { 1 };
        if shards > 1 {
            let several = self.execute_once(Mode { shards, ..usual }, status)?;
            same_lines(&optimized, &several).map_err(|what| format!("on {shards} shards other lines: {what}"))?;
        }
        // Tables specification [ATM-3], [VOL-1]: a store changes nothing but that rows survive.
        if source.contains("@table") {
            let stored = self.execute_once(Mode { shards, store: true, ..usual }, status)?;
            same_lines(&optimized, &stored).map_err(|what| format!("with a store other lines: {what}"))?;
        }
        Ok(optimized)
    }

    fn execute_once(&self, mode: Mode, status: i32) -> Result<Finished, String> {
        let dir = scratch()?;
        let mut command = command(dir.path())?;
        let _ = command.env("WO_SHARDS", mode.shards.to_string()).env("WO_STATS", "1");
        let _ = if mode.store { command.env("WO_DATA", DATA) } else { command.env("WO_EPHEMERAL", "1") };
        let _ = command.env("WO_OPT", if mode.optimize { "1" } else { "0" });
        for line in self.optional("fixture.env").unwrap_or_default().lines().filter(|l| !l.is_empty()) {
            let (name, value) = line.split_once('=').ok_or(format!("fixture.env: `{line}` is not K=V"))?;
            let _ = command.env(name, value);
        }
        let _ = command.arg("run").args(self.flags()).arg(&self.dir);
        if let Some(args) = self.optional("fixture.args") {
            let _ = command.arg("--").args(args.lines());
        }
        let out = finish(&mut command, LIMIT).map_err(|e| e.to_string())?;
        if mode.store && dir.path().join(DATA).exists() {
            sound(dir.path())?;
        }
        let (how, kept) =
            (if mode.optimize { "optimised" } else { "not optimised" }, if mode.store { ", store" } else { "" });
        let mode = format!("{how}, shards {}{kept}", mode.shards);
        if out.timed_out {
            return Err(format!("{mode}: no end within {LIMIT:?}{}", show(&out)));
        }
        if out.status != Some(status) {
            return Err(format!("{mode}: status {:?}, wanted {status}{}", out.status, show(&out)));
        }
        let stderr = out.stderr_text();
        let stats = stderr.lines().find(|l| l.starts_with("wostats ")).ok_or_else(|| {
            let shown = show(&out);
            format!("{mode}: no `wostats` line{shown}")
        })?;
        if !stats.split(' ').any(|field| field == "objects_live=0") {
            return Err(format!("{mode}: objects were left behind: {stats}"));
        }
        Ok(out)
    }

    fn check(&self) -> Result<(Finished, Vec<Report>), String> {
        let dir = scratch()?;
        let mut command = command(dir.path())?;
        let _ = command.args(["check", "--format", "short"]).args(self.flags()).arg(&self.dir);
        let out = finish(&mut command, LIMIT).map_err(|e| e.to_string())?;
        if out.timed_out {
            return Err(format!("woc check: no end within {LIMIT:?}"));
        }
        let found = reports(&out.stderr_text());
        Ok((out, found))
    }

    fn check_warnings(&self) -> Result<(), String> {
        let (out, found) = self.check()?;
        if out.status != Some(0) {
            return Err(format!("woc check: status {:?}{}", out.status, show(&out)));
        }
        self.warnings(&found)
    }

    /// The warnings of `found` are those of `fixture.warn`; without that file there are none.
    fn warnings(&self, found: &[Report]) -> Result<(), String> {
        let list = self.optional("fixture.warn").unwrap_or_default();
        let wanted: BTreeSet<&str> = list.split_whitespace().collect();
        let found: BTreeSet<&str> = found.iter().map(|r| r.code.as_str()).filter(|c| c.starts_with("WO-W")).collect();
        if wanted != found { Err(format!("warnings {found:?}, wanted {wanted:?}")) } else { Ok(()) }
    }

    fn flags(&self) -> Vec<String> {
        let names = self.optional("fixture.flags").unwrap_or_default();
        names.split_whitespace().flat_map(|n| ["-D".to_owned(), n.trim_start_matches("-D").to_owned()]).collect()
    }

    fn status(&self, usual: i32) -> Result<i32, String> {
        match self.optional("fixture.exit") {
            Some(text) => text.trim().parse().map_err(|_| format!("fixture.exit: `{text}` is no status")),
            None => Ok(usual),
        }
    }

    fn optional(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(name)).ok()
    }

    fn required(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.dir.join(name)).map_err(|e| format!("{name}: {e}"))
    }
}

/// `woc db check` has nothing to say of the store in `dir`.
fn sound(dir: &Path) -> Result<(), String> {
    let mut command = command(dir)?;
    let _ = command.args(["db", "check", DATA]);
    let out = finish(&mut command, LIMIT).map_err(|e| e.to_string())?;
    if out.status == Some(0) { Ok(()) } else { Err(format!("woc db check: status {:?}{}", out.status, show(&out))) }
}

/// The same lines in some order, or where they differ.
fn same_lines(wanted: &Finished, found: &Finished) -> Result<(), String> {
    let sorted = |out: &[u8]| {
        let mut lines: Vec<Vec<u8>> = out.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        lines.join(&b'\n')
    };
    let (wanted, found) = (sorted(&wanted.stdout), sorted(&found.stdout));
    if wanted == found { Ok(()) } else { Err(difference(&wanted, &found)) }
}

fn scratch() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|e| format!("no empty working directory: {e}"))
}

/// White space around the parts of a line is ignored.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn show(out: &Finished) -> String {
    let mut text = String::new();
    for (name, bytes) in [("stdout", &out.stdout), ("stderr", &out.stderr)] {
        if !bytes.is_empty() {
            let shown: String = String::from_utf8_lossy(bytes).chars().take(4000).collect();
            let _ = write!(text, "\n--- {name}\n{shown}");
        }
    }
    text
}

fn difference(wanted: &[u8], found: &[u8]) -> String {
    let (wanted, found) = (String::from_utf8_lossy(wanted), String::from_utf8_lossy(found));
    let (mut w, mut f) = (wanted.split_inclusive('\n'), found.split_inclusive('\n'));
    for line in 1.. {
        match (w.next(), f.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => return format!("stdout line {line}: {:?}, wanted {:?}", b.unwrap_or(""), a.unwrap_or("")),
        }
    }
    "the same".to_owned()
}
