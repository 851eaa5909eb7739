//! One function per command: loads the project, runs the stages as far as the command needs them, reports.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use diagnostics::Diagnostic;
use diagnostics::render::{Format, SourceFile, render};
use project::{Project, ProjectFile};

use crate::options::{Action, Invocation, Stage, USAGE, help_text};
use crate::pipeline::{self, Entry, NotRun, Tests};
use crate::{crash, db, executable, fmt, output, scaffold, testing};

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const OK: i32 = 0;
const ERRORS: i32 = 1;

/// Unknown classes, functions of modules without `use`, unknown modules, types and names.
const UNRESOLVED: [u16; 5] = [207, 210, 216, 225, 403];

/// Carries `invocation` out; the result is the exit status.
pub fn execute(invocation: &Invocation) -> i32 {
    match &invocation.action {
        Action::Version => {
            output::stdout(&format!("writeonce {VERSION} {}\n", crash::platform()));
            OK
        }
        Action::Help => {
            output::stdout(help_text());
            OK
        }
        Action::Make(path) => make(invocation, path),
        Action::Check(path) => check(invocation, path),
        Action::Build { path, output } => build(invocation, path, output.as_deref()),
        Action::Test { path, filter, only: None } => test(invocation, path, filter.as_deref()),
        Action::Test { path, only: Some(number), .. } => run_test(invocation, path, *number),
        Action::New { name, library } => scaffold::create(name, *library),
        Action::UpdateDeps(dir) => update_deps(invocation, dir),
        Action::Run { path, args } => run(invocation, path, args),
        Action::Dump { stage, path } => dump(invocation, *stage, path),
        Action::Fmt { paths, check } => fmt::run(invocation, paths, *check),
        Action::Db(command) => db::run(command),
    }
}

/// A loaded project and what the stages said about it so far.
struct Session<'a> {
    invocation: &'a Invocation,
    project: Project,
    diagnostics: Vec<Diagnostic>,
}

impl Session<'_> {
    /// Reads the project; on failure everything is printed and the exit status is the error.
    fn open<'a>(invocation: &'a Invocation, path: &Path) -> Result<Session<'a>, i32> {
        match project::load(path, VERSION) {
            Ok(project) => Ok(Session { invocation, project, diagnostics: Vec::new() }),
            Err(error) => Err(refused(invocation, error)),
        }
    }

    /// Prints what was found; true if there is an error among it.
    fn report(&mut self) -> bool {
        let failed = self.diagnostics.iter().any(Diagnostic::is_error);
        if !self.diagnostics.is_empty() {
            let source = |f: &ProjectFile| SourceFile { display: f.display.clone(), bytes: f.bytes.clone() };
            let files: Vec<SourceFile> = self.project.files.iter().map(source).collect();
            output::stderr(&render(&mut self.diagnostics, &files, self.invocation.format, output::color()));
        }
        if failed && self.invocation.format == Format::Human {
            self.mention_project();
        }
        failed
    }

    /// Where one file of a project is read alone and names something that is not in it: says so.
    fn mention_project(&self) {
        let is_missing = |d: &Diagnostic| d.is_error() && UNRESOLVED.contains(&d.code.number);
        if self.project.kind != project::Kind::File || !self.diagnostics.iter().any(is_missing) {
            return;
        }
        let file = &self.project.root;
        let Some(dir) = file.ancestors().skip(1).find(|dir| dir.join(project::MANIFEST).is_file()) else { return };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        output::stderr(&format!(
            "woc: {} was read alone; to read its project, name the directory {} instead\n",
            printable(file),
            printable(dir)
        ));
    }

    /// All stages of the front end, and the report. The error is the exit status.
    fn checked(&mut self, tests: Tests) -> Result<pipeline::Hir, i32> {
        let hir = self.analyse(tests);
        self.reported(hir)
    }

    fn reported(&mut self, hir: Option<pipeline::Hir>) -> Result<pipeline::Hir, i32> {
        match (self.report(), hir) {
            (true, _) => Err(ERRORS),
            (false, Some(hir)) => Ok(hir),
            (false, None) => Err(crash::failed("the checker gave neither a program nor an error")),
        }
    }

    /// The refusal of a program without an entry.
    fn no_main(&self) -> i32 {
        let (kind, way) = match self.project.kind {
            project::Kind::Library => ("library", "test it with `woc test`"),
            _ => ("program", "declare `fn main() { … }`"),
        };
        output::stderr(&format!("woc: {kind} `{}` has no `main` to run: {way}\n", self.project.name));
        USAGE
    }

    /// All stages of the front end. The HIR is missing if there is an error.
    fn analyse(&mut self, tests: Tests) -> Option<pipeline::Hir> {
        let (hir, diagnostics) = pipeline::check(&self.project, &self.invocation.flags, tests);
        self.diagnostics = diagnostics;
        hir
    }
}

fn printable(path: &Path) -> String {
    path.to_string_lossy().replace(char::is_control, "\u{fffd}")
}

/// Prints why there is no project; gives the exit status.
fn refused(invocation: &Invocation, error: project::Error) -> i32 {
    match error {
        project::Error::Unreadable(text) => {
            output::stderr(&format!("woc: {}\n", text.replace(char::is_control, "\u{fffd}")));
        }
        project::Error::Manifest { files, mut diagnostics } => {
            output::stderr(&render(&mut diagnostics, &files, invocation.format, output::color()));
        }
    }
    USAGE
}

fn check(invocation: &Invocation, path: &Path) -> i32 {
    let checked = Session::open(invocation, path).and_then(|mut session| session.checked(Tests::Keep));
    checked.map_or_else(|status| status, |_| OK)
}

/// `woc PATH`.
fn make(invocation: &Invocation, path: &Path) -> i32 {
    match Session::open(invocation, path) {
        Ok(session) if session.project.kind == project::Kind::Program => build_session(session, None),
        Ok(mut session) => session.checked(Tests::Keep).map_or_else(|status| status, |_| OK),
        Err(status) => status,
    }
}

fn build(invocation: &Invocation, path: &Path, out: Option<&Path>) -> i32 {
    Session::open(invocation, path).map_or_else(|status| status, |session| build_session(session, out))
}

fn build_session(mut session: Session<'_>, out: Option<&Path>) -> i32 {
    let hir = match session.checked(Tests::Drop) {
        Ok(hir) => hir,
        Err(status) => return status,
    };
    if !pipeline::has_main(&hir) {
        return session.no_main();
    }
    let code = match pipeline::build(&hir, &session.project, session.invocation.passes) {
        Ok(code) => code,
        Err(what) => return crash::failed(&what),
    };
    match executable::write(&session.project, &code, out) {
        Ok(()) => OK,
        Err(text) => {
            output::stderr(&format!("woc: {}\n", text.replace(char::is_control, "\u{fffd}")));
            USAGE
        }
    }
}

fn run(invocation: &Invocation, path: &Path, args: &[OsString]) -> i32 {
    let mut session = match Session::open(invocation, path) {
        Ok(session) => session,
        Err(status) => return status,
    };
    let hir = match session.checked(Tests::Drop) {
        Ok(hir) => hir,
        Err(status) => return status,
    };
    if !pipeline::has_main(&hir) {
        return session.no_main();
    }
    let args = args.iter().map(|a| a.clone().into_vec()).collect();
    match pipeline::run(&hir, &session.project, invocation.passes, Entry::Main, args) {
        Ok(status) => status,
        Err(what) => crash::failed(&what),
    }
}

/// The program of a built executable, with all of `argv` (its name first).
pub fn run_built(code: &[u8], argv: Vec<OsString>) -> i32 {
    let args = argv.into_iter().skip(1).map(OsString::into_vec).collect();
    match pipeline::run_built(code, args) {
        Ok(status) => status,
        Err(NotRun::Damaged) => refuse_start(&executable::damaged("the program in it cannot be read")),
        Err(NotRun::Machine(missing)) => refuse_start(&format!("this processor is too old: it lacks {missing}")),
        Err(NotRun::Failed(what)) => crash::failed(&what),
    }
}

/// An executable that cannot do its work here: a line under its name.
pub fn refuse_start(text: &str) -> i32 {
    let name = std::env::args_os().next().unwrap_or_default();
    let name = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    output::stderr(&format!("{name}: {text}\n"));
    USAGE
}

fn test(invocation: &Invocation, path: &Path, filter: Option<&str>) -> i32 {
    let mut session = match Session::open(invocation, path) {
        Ok(session) => session,
        Err(status) => return status,
    };
    let hir = match session.checked(Tests::Keep) {
        Ok(hir) => hir,
        Err(status) => return status,
    };
    let tests = pipeline::tests(&hir, &session.project);
    if testing::run_all(invocation, path, &tests, filter) { OK } else { ERRORS }
}

/// One test as the program of this process. What the checker has to say, `test` said.
fn run_test(invocation: &Invocation, path: &Path, number: usize) -> i32 {
    // `test` enforces the time limit: without it nobody would.
    sched::sys::end_with_parent();
    let mut session = match Session::open(invocation, path) {
        Ok(session) => session,
        Err(status) => return status,
    };
    match session.analyse(Tests::Keep) {
        Some(hir) if number < hir.tests.len() => {
            match pipeline::run(&hir, &session.project, invocation.passes, Entry::Test(number), Vec::new()) {
                Ok(status) => status,
                Err(what) => crash::failed(&what),
            }
        }
        _ => {
            output::stderr("woc: the program changed while its tests ran\n");
            USAGE
        }
    }
}

fn update_deps(invocation: &Invocation, dir: &Path) -> i32 {
    match project::update_deps(dir, VERSION) {
        Ok(pinned) => {
            let lines: Vec<String> = pinned.iter().map(|(key, commit)| format!("{key} {commit}\n")).collect();
            output::stdout(&lines.concat());
            OK
        }
        Err(error) => refused(invocation, error),
    }
}

fn dump(invocation: &Invocation, stage: Stage, path: &Path) -> i32 {
    let mut session = match Session::open(invocation, path) {
        Ok(session) => session,
        Err(status) => return status,
    };
    let text = match stage {
        Stage::Tokens => Ok(pipeline::dump_tokens(&session.project, &invocation.flags)),
        Stage::Ast => {
            let (text, diagnostics) = pipeline::dump_ast(&session.project, &invocation.flags);
            session.diagnostics = diagnostics;
            Ok(text)
        }
        Stage::Hir | Stage::Gc | Stage::Plan | Stage::Mir | Stage::Clif | Stage::Asm => {
            match session.analyse(Tests::Drop) {
                Some(hir) => pipeline::dump_lowered(&hir, &session.project, stage, invocation.passes),
                None => Ok(String::new()),
            }
        }
    };
    if session.report() {
        return ERRORS;
    }
    match text {
        Ok(text) => {
            output::stdout(&text);
            OK
        }
        Err(what) => crash::failed(&what),
    }
}
