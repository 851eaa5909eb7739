//! Reads all declarations of a program into an `Env`, in passes over all files: modules and `use`s, type names, record
//! shapes, members and signatures, defaults and annotations, the entry. Each pass relies on the earlier ones only, so
//! the order of declarations never matters. Nothing here looks at a body.

mod annotations;
mod classes;
pub(crate) mod columns;
mod defaults;
mod entry;
mod functions;
pub mod limits;
pub(crate) mod modules;
mod names;
mod shapes;
mod stdlib;
pub(crate) mod types;
mod unions;

use crate::Input;
use crate::env::{Builtins, Env, FileScope, ModuleId};
use crate::hir::{ClassId, IfaceId, Program, UnionId};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use syntax::ast;

/// A class or record of the source with the class it became. Two declarations of one name are both here, so that both
/// are checked; records of one shape share a class.
pub(crate) struct ClassDecl<'a> {
    pub file: FileId,
    pub class: ClassId,
    pub source: ClassSource<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum ClassSource<'a> {
    Class(&'a ast::Class),
    Record(&'a ast::Record),
}

impl<'a> ClassSource<'a> {
    pub fn fields(self) -> &'a [ast::Field] {
        match self {
            ClassSource::Class(class) => &class.fields,
            ClassSource::Record(record) => &record.fields,
        }
    }

    pub fn name(self) -> &'a ast::Ident {
        match self {
            ClassSource::Class(class) => &class.name,
            ClassSource::Record(record) => &record.name,
        }
    }
}

/// What later passes need of the source.
#[derive(Default)]
pub(crate) struct Decls<'a> {
    pub classes: Vec<ClassDecl<'a>>,
    pub unions: Vec<(FileId, UnionId, &'a ast::Union)>,
    pub ifaces: Vec<(FileId, IfaceId, &'a ast::Interface)>,
}

/// Reads the declarations. Reports go to `diags`; the result answers for what is sound of the program.
pub fn collect<'a>(input: &'a Input, diags: &mut Vec<Diagnostic>) -> Env<'a> {
    let mut env = empty();
    env.unread = input.files.iter().flat_map(|f| &f.ast.unread).cloned().collect();
    modules::collect(&mut env, input, diags);
    let mut decls = names::collect(&mut env, input, diags);
    shapes::unify(&mut env, &mut decls);
    entry::adopt_error(&mut env, &decls);
    stdlib::declare(&mut env);
    unions::members(&mut env, &decls, diags);
    classes::members(&mut env, &decls, diags);
    functions::signatures(&mut env, input, &decls, diags);
    annotations::check(&mut env, &decls, diags);
    columns::check(&env, &decls, diags);
    columns::record(&mut env, &decls);
    defaults::check(&mut env, &decls, diags);
    entry::find(&mut env, input, diags);
    env
}

fn empty<'a>() -> Env<'a> {
    Env {
        program: Program::default(),
        modules: Vec::new(),
        files: Vec::new(),
        bodies: Vec::new(),
        builtins: Builtins::default(),
        type_names: FxHashMap::default(),
        variants: FxHashMap::default(),
        classes: Vec::new(),
        unions: Vec::new(),
        ifaces: Vec::new(),
        funcs: Vec::new(),
        packages: Vec::new(),
        file_index: FxHashMap::default(),
        exported_types: FxHashMap::default(),
        func_modules: FxHashMap::default(),
        const_modules: FxHashMap::default(),
        receivers: FxHashMap::default(),
        impls: FxHashMap::default(),
        covered: FxHashMap::default(),
        covered_set: FxHashSet::default(),
        suggestions: std::cell::Cell::new(200_000),
        unread: FxHashSet::default(),
        incomplete: FxHashSet::default(),
        reached: RefCell::default(),
        no_file: FileScope {
            id: crate::env::STDLIB_FILE,
            package: crate::env::PRELUDE,
            module: ModuleId(u32::MAX),
            display: String::new(),
            is_broken: false,
            unwanted: FxHashSet::default(),
            uses: Vec::new(),
            used_modules: FxHashMap::default(),
            aliases: FxHashMap::default(),
        },
    }
}

/// `WO-E215`: the second declaration of a name where only one is allowed.
pub(crate) fn duplicate(kind: &str, name: &str, at: Span, first: Span, place: &str) -> Diagnostic {
    Diagnostic::error(215, at, format!("{kind} `{name}` is declared twice in {place}"))
        .label("declared again here")
        .related(first, "first declared here")
        .note(format!("a name must mean one thing in {place}"))
        .help("rename or remove one of the two")
}
