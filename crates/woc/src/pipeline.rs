//! The stages in their order. Every call into another crate's stage is one function here; nothing here prints.

use std::path::{Path, PathBuf};

use codegen::{Code, Machine};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, LineIndex, Span};
use mir::Passes;
use mir::ir::Program;
use project::{Project, ProjectFile};
use syntax::ast;

use crate::options::Stage;
use crate::profile;

/// What becomes of `test` blocks behind the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// `woc check` checks them.
    Keep,
    /// Every other command drops them.
    Drop,
}

fn id(index: usize) -> FileId {
    FileId(u32::try_from(index).unwrap_or(u32::MAX))
}

pub type Hir = analysis::hir::Program;

/// Everything in a part of a file that looks like a name.
fn words(file: &[u8], part: Span) -> impl Iterator<Item = ast::Name> {
    let part = file.get(part.start as usize..part.end as usize).unwrap_or_default();
    let words = part.split(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    words.filter(|word| !word.is_empty()).map(|word| String::from_utf8_lossy(word).into())
}

/// Parses and checks everything. The program is there exactly when no diagnostic is an error.
pub fn check(project: &Project, flags: &[String], tests: Tests) -> (Option<Hir>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut files = Vec::new();
    for (index, file) in project.files.iter().enumerate() {
        let mut parsed = syntax::parse(id(index), &file.bytes, flags);
        diagnostics.extend(parsed.diagnostics);
        // Tests of dependencies are theirs to run.
        if tests == Tests::Drop || file.package.is_some() {
            parsed.file.decls.retain(|decl| match decl {
                ast::Decl::Test(test) => {
                    parsed.file.unwanted.extend(words(&file.bytes, test.span));
                    false
                }
                _ => true,
            });
        }
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

/// A `test` block, for people.
pub struct TestBlock<'a> {
    pub name: &'a str,
    /// Module path of its file; empty for the root.
    pub module: String,
    /// `FILE:LINE`.
    pub place: String,
}

/// The test blocks in the order of `Entry::Test`.
pub fn tests<'a>(hir: &'a Hir, project: &Project) -> Vec<TestBlock<'a>> {
    let block = |(name, func): &'a (String, analysis::hir::FuncId)| {
        let span = usize::try_from(func.0).ok().and_then(|i| hir.funcs.get(i)).map(|f| f.span);
        let file = span.and_then(|s| usize::try_from(s.file.0).ok()).and_then(|i| project.files.get(i));
        let line = span.zip(file).map_or(0, |(s, f)| LineIndex::new(&f.bytes).line_col(s.start).0);
        TestBlock {
            name,
            module: file.map(|f| f.module.join("/")).unwrap_or_default(),
            place: format!("{}:{line}", file.map_or("", |f| &f.display)),
        }
    };
    hir.tests.iter().map(block).collect()
}

pub fn has_main(hir: &Hir) -> bool {
    hir.main.is_some()
}

/// What the first fiber runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    Main,
    /// The test block of this number, which must exist.
    Test(usize),
}

/// Compiles in memory and runs; the result is the program's exit status, the error an internal failure.
pub fn run(hir: &Hir, project: &Project, passes: Passes, entry: Entry, args: Vec<Vec<u8>>) -> Result<i32, String> {
    let files = project.files.iter().map(|f| f.display.clone()).collect();
    let code = compile(hir, project, entry, passes, Machine::Host, files)?;
    execute(code, args, Some(store_of(project)))
}

/// The directory of a store whose place nobody has named.
pub const DATA: &str = ".wo-data";

/// Where the store of a program goes that is run from its sources: in its project, or beside its file.
fn store_of(project: &Project) -> PathBuf {
    let place = match project.kind {
        project::Kind::File => project.root.parent().unwrap_or(Path::new("")),
        _ => &project.root,
    };
    place.join(DATA)
}

/// The program as bytes for `run_built`, which any machine may load.
pub fn build(hir: &Hir, project: &Project, passes: Passes) -> Result<Vec<u8>, String> {
    let files = project.files.iter().map(built_name).collect();
    compile(hir, project, Entry::Main, passes, Machine::Baseline, files)?.encode()
}

/// Why a built program did not run.
pub enum NotRun {
    /// The bytes are not those of `build`.
    Damaged,
    /// The processor lacks what they need.
    Machine(String),
    Failed(String),
}

/// Runs what `build` made; the result is the program's exit status.
pub fn run_built(code: &[u8], args: Vec<Vec<u8>>) -> Result<i32, NotRun> {
    let code = codegen::Code::decode(code).ok_or(NotRun::Damaged)?;
    let missing = codegen::missing_features();
    if !missing.is_empty() {
        return Err(NotRun::Machine(missing.join(", ")));
    }
    execute(code, args, None).map_err(NotRun::Failed)
}

/// Loads and runs; says before where the code lies, if a profiler shall know.
fn execute(code: Code, args: Vec<Vec<u8>>, own_store: Option<PathBuf>) -> Result<i32, String> {
    let symbols = profile::wanted().then(|| code.symbols());
    let image = codegen::load(code, args)?;
    if let Some(symbols) = symbols {
        profile::write(image.base, &symbols);
    }
    Ok(builtins::run(image, own_store))
}

/// The path of a file below the project, or below the key of its dependency: a built program says nothing about the
/// machine that built it.
fn built_name(file: &ProjectFile) -> String {
    let name = Path::new(&file.display).file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let parts = file.package.iter().chain(&file.module).cloned().chain([name]);
    parts.collect::<Vec<_>>().join("/")
}

fn compile(
    hir: &Hir,
    project: &Project,
    entry: Entry,
    passes: Passes,
    machine: Machine,
    files: Vec<String>,
) -> Result<Code<'static>, String> {
    let program = lower(hir, project, passes, |program| {
        if let Entry::Test(number) = entry {
            program.main = program.tests.get(number).map(|(_, entry)| *entry);
        }
        mir::keep_reachable(program);
    });
    let options = codegen::Options { optimize: !passes.is_empty(), verify: cfg!(debug_assertions), machine, files };
    codegen::compile(&program, &options)
}

fn lower(hir: &Hir, project: &Project, passes: Passes, select: impl FnOnce(&mut Program)) -> Program {
    let mut program = mir::lower_part(hir, passes, select);
    let lines: Vec<LineIndex> = project.files.iter().map(|f| LineIndex::new(&f.bytes)).collect();
    let at = |file| usize::try_from(file).ok().and_then(|i: usize| lines.get(i));
    mir::resolve_lines(&mut program, |file, offset| at(file).map_or(0, |l| l.line_col(offset).0));
    program
}

/// The tokens of every file, each below a line with its name.
pub fn dump_tokens(project: &Project, flags: &[String]) -> String {
    let mut out = String::new();
    for file in &project.files {
        heading(&mut out, &file.display);
        out.push_str(&syntax::dump_tokens(&file.bytes, flags));
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
pub fn dump_lowered(hir: &Hir, project: &Project, stage: Stage, passes: Passes) -> Result<String, String> {
    match stage {
        Stage::Hir => return Ok(analysis::dump_hir(hir)),
        Stage::Gc => return Ok(analysis::dump_gc(hir)),
        _ => {}
    }
    let program = lower(hir, project, passes, |_| {});
    let options = codegen::Options { optimize: !passes.is_empty(), ..codegen::Options::default() };
    match stage {
        Stage::Plan => {
            let name = |file| usize::try_from(file).ok().and_then(|i: usize| project.files.get(i)).map(|f| &f.display);
            let line = |p: &mir::ir::Plan| format!("{}:{}: {}\n", name(p.file).map_or("", |n| n), p.line, p.text);
            Ok(program.plans.iter().map(line).collect())
        }
        Stage::Clif => codegen::dump_clif(&program, &options),
        Stage::Asm => codegen::dump_asm(&program, &options),
        _ => Ok(mir::dump(&program)),
    }
}
