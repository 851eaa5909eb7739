//! The stages in their order. Every call into another crate's stage is one function here; nothing here prints.

use diagnostics::Diagnostic;
use diagnostics::span::FileId;
use project::Project;

use crate::options::Stage;

pub use stages::{Hir, check, dump_ast, dump_lowered, dump_tokens, has_main, run};

fn id(index: usize) -> FileId {
    FileId(u32::try_from(index).unwrap_or(u32::MAX))
}

#[cfg(feature = "stages")]
mod stages {
    use super::{Diagnostic, Project, Stage, id};

    pub type Hir = analysis::hir::Program;

    /// Parses and checks everything. The program is there exactly when no diagnostic is an error.
    pub fn check(project: &Project, flags: &[String]) -> (Option<Hir>, Vec<Diagnostic>) {
        let mut diagnostics = Vec::new();
        let mut files = Vec::new();
        for (index, file) in project.files.iter().enumerate() {
            let parsed = syntax::parse(id(index), &file.bytes, flags);
            diagnostics.extend(parsed.diagnostics);
            files.push(analysis::InputFile {
                id: id(index),
                package: file.package.clone(),
                module: file.module.clone(),
                display: file.display.clone(),
                ast: parsed.file,
            });
        }
        let is_library = project.kind == project::Kind::Library;
        let output = analysis::check(&analysis::Input { files, is_library });
        diagnostics.extend(output.diagnostics);
        let failed = diagnostics.iter().any(Diagnostic::is_error);
        (output.program.filter(|_| !failed), diagnostics)
    }

    pub fn has_main(hir: &Hir) -> bool {
        hir.main.is_some()
    }

    /// Compiles in memory and runs; the result is the program's exit status, the error an internal failure.
    pub fn run(hir: &Hir, optimize: bool, files: Vec<String>, args: Vec<Vec<u8>>) -> Result<i32, String> {
        let program = mir::lower(hir, optimize);
        let options = codegen::Options { optimize, verify: cfg!(debug_assertions), files, args };
        let image = codegen::compile(&program, &options)?;
        drop(program);
        Ok(sched::run(image))
    }

    /// The tokens of every file, each below a line with its name.
    pub fn dump_tokens(project: &Project, flags: &[String]) -> String {
        let mut out = String::new();
        for (index, file) in project.files.iter().enumerate() {
            heading(&mut out, &file.display);
            out.push_str(&syntax::dump_tokens(id(index), &file.bytes, flags));
        }
        out
    }

    /// The tree of every file, each below a line with its name, and what the parser said.
    pub fn dump_ast(project: &Project, flags: &[String]) -> (String, Vec<Diagnostic>) {
        let mut out = String::new();
        let mut diagnostics = Vec::new();
        for (index, file) in project.files.iter().enumerate() {
            let parsed = syntax::parse(id(index), &file.bytes, flags);
            heading(&mut out, &file.display);
            out.push_str(&syntax::dump_ast(&parsed.file));
            diagnostics.extend(parsed.diagnostics);
        }
        (out, diagnostics)
    }

    fn heading(out: &mut String, display: &str) {
        out.push_str("== ");
        out.push_str(display);
        out.push('\n');
    }

    /// The text of a stage behind the checker.
    pub fn dump_lowered(hir: &Hir, stage: Stage, optimize: bool) -> Result<String, String> {
        if stage == Stage::Hir {
            return Ok(format!("{hir:#?}\n"));
        }
        let program = mir::lower(hir, optimize);
        let options = codegen::Options { optimize, ..codegen::Options::default() };
        match stage {
            Stage::Clif => codegen::dump_clif(&program, &options),
            Stage::Asm => codegen::dump_asm(&program, &options),
            _ => Ok(mir::dump(&program)),
        }
    }
}

#[cfg(not(feature = "stages"))]
mod stages {
    use super::{Diagnostic, Project, Stage, id};

    #[derive(Default)]
    pub struct Hir;

    pub fn check(_project: &Project, _flags: &[String]) -> (Option<Hir>, Vec<Diagnostic>) {
        let _ = id(0);
        (Some(Hir), Vec::new())
    }

    pub fn has_main(_hir: &Hir) -> bool {
        true
    }

    pub fn run(_hir: &Hir, _optimize: bool, _files: Vec<String>, _args: Vec<Vec<u8>>) -> Result<i32, String> {
        Err("this woc was built without its stages".to_owned())
    }

    pub fn dump_tokens(_project: &Project, _flags: &[String]) -> String {
        String::new()
    }

    pub fn dump_ast(_project: &Project, _flags: &[String]) -> (String, Vec<Diagnostic>) {
        (String::new(), Vec::new())
    }

    pub fn dump_lowered(_hir: &Hir, _stage: Stage, _optimize: bool) -> Result<String, String> {
        Err("this woc was built without its stages".to_owned())
    }
}
