//! One function per command: loads the project, runs the stages as far as the command needs them, reports.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use diagnostics::Diagnostic;
use diagnostics::render::{SourceFile, render};
use project::{Project, ProjectFile};

use crate::options::{Action, Invocation, Stage, USAGE, help_text, usage_error};
use crate::pipeline::{self, Tests};
use crate::{crash, fmt, output};

const OK: i32 = 0;
const ERRORS: i32 = 1;

/// Carries `invocation` out; the result is the exit status.
pub fn execute(invocation: &Invocation) -> i32 {
    match &invocation.action {
        Action::Version => {
            output::stdout(&format!("writeonce {} {}\n", env!("CARGO_PKG_VERSION"), crash::platform()));
            OK
        }
        Action::Help => {
            output::stdout(help_text());
            OK
        }
        Action::Unavailable(form) => {
            output::stderr(&format!("woc: `woc {form}` is not available yet in this version\n"));
            USAGE
        }
        // `woc PATH` on a program will also build `target/<name>`, together with `woc build`; until then it checks.
        Action::Check(path) => check(invocation, path),
        Action::Run { path, args } => run(invocation, path, args),
        Action::Dump { stage, path } => dump(invocation, *stage, path),
        Action::Fmt { paths, check } => fmt::run(invocation, paths, *check),
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
        match project::load(path, env!("CARGO_PKG_VERSION")) {
            Ok(project) => Ok(Session { invocation, project, diagnostics: Vec::new() }),
            Err(project::Error::Unreadable(text)) => {
                output::stderr(&format!("woc: {}\n", text.replace(char::is_control, "\u{fffd}")));
                Err(USAGE)
            }
            Err(project::Error::Manifest { files, mut diagnostics }) => {
                output::stderr(&render(&mut diagnostics, &files, invocation.format, output::color()));
                Err(USAGE)
            }
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
        failed
    }

    /// All stages of the front end. The HIR is missing if there is an error.
    fn analyse(&mut self, tests: Tests) -> Option<pipeline::Hir> {
        let (hir, diagnostics) = pipeline::check(&self.project, &self.invocation.flags, tests);
        self.diagnostics = diagnostics;
        hir
    }
}

fn check(invocation: &Invocation, path: &Path) -> i32 {
    let mut session = match Session::open(invocation, path) {
        Ok(session) => session,
        Err(status) => return status,
    };
    let hir = session.analyse(Tests::Keep);
    match (session.report(), hir) {
        (true, _) => ERRORS,
        (false, Some(_)) => OK,
        (false, None) => crash::failed("the checker gave neither a program nor an error"),
    }
}

fn run(invocation: &Invocation, path: &Path, args: &[OsString]) -> i32 {
    let mut session = match Session::open(invocation, path) {
        Ok(session) => session,
        Err(status) => return status,
    };
    let hir = session.analyse(Tests::Drop);
    if session.report() {
        return ERRORS;
    }
    let Some(hir) = hir else {
        return crash::failed("the checker gave neither a program nor an error");
    };
    if !pipeline::has_main(&hir) {
        let kind = if session.project.kind == project::Kind::Library { "library" } else { "program" };
        output::stderr(&format!("woc: {kind} `{}` has no `main` to run\n", session.project.name));
        return USAGE;
    }
    let args = args.iter().map(|a| a.clone().into_vec()).collect();
    match pipeline::run(&hir, &session.project, invocation.optimize, args) {
        Ok(status) => status,
        Err(what) => crash::failed(&what),
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
        Stage::Plan => {
            return usage_error("this dump is not available yet in this version");
        }
        Stage::Hir | Stage::Gc | Stage::Mir | Stage::Clif | Stage::Asm => match session.analyse(Tests::Drop) {
            Some(hir) => pipeline::dump_lowered(&hir, &session.project, stage, invocation.optimize),
            None => Ok(String::new()),
        },
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
