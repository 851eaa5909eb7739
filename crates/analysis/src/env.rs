//! The declarations of a program and the questions that bodies ask of them: what a name means in a file, what a type
//! means, which builtins exist. Filled by `decls`, read by `bodies`; nothing here looks at a body.
//!
//! Look-ups by name live in `scope`, types in `decls::types`, interfaces in `satisfy`.

use crate::hir::{self, ClassId, Default_, FuncId, IfaceId, UnionId};
use crate::types::{Ty, TyKind};
use diagnostics::span::{FileId, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use syntax::ast::{self, Mode, Name};

/// Index into `Env::modules`: one directory of one package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// The package number of the predeclared records: visible to all packages, hidden by any declaration of theirs.
pub const PRELUDE: u32 = u32::MAX;
/// The file of every span in `stdlib/`: no file of the program, so nothing may point a label at it.
pub const STDLIB_FILE: FileId = FileId(u32::MAX);
/// The reserved namespaces of `use` (4.1).
pub const NAMESPACES: [&str; 8] = ["fs", "proc", "net", "time", "json", "env", "signal", "term"];

/// Everything declared. `program` has its classes, unions, interfaces and function signatures; bodies are empty.
pub struct Env<'a> {
    pub program: hir::Program,
    pub modules: Vec<Module>,
    /// In step with the input's files; by id through `Env::file`.
    pub files: Vec<FileScope>,
    /// The syntax of each function of `program.funcs`, in step; `None` for those without a body to check (their HIR,
    /// if any, is complete: adapters of interface methods).
    pub bodies: Vec<Option<Body<'a>>>,
    pub builtins: Builtins,
    /// Type names by package, duplicates left out; used through `Env::named_type`.
    pub type_names: FxHashMap<(u32, Name), TypeEntry>,
    /// Variants that files of a package may name bare; used through `Env::variant`.
    pub variants: FxHashMap<(u32, Name), Vec<(UnionId, u32)>>,
    /// In step with `program.classes`.
    pub classes: Vec<ClassInfo>,
    /// In step with `program.unions`.
    pub unions: Vec<Origin>,
    /// In step with `program.interfaces`.
    pub ifaces: Vec<Origin>,
    /// In step with `program.funcs`.
    pub funcs: Vec<Origin>,
    pub(crate) packages: Vec<Package>,
    pub(crate) file_index: FxHashMap<FileId, usize>,
    /// Dependencies that export a type of this name.
    pub(crate) exported_types: FxHashMap<Name, Vec<u32>>,
    /// Modules that declare a free function of this name.
    pub(crate) func_modules: FxHashMap<Name, Vec<ModuleId>>,
    /// Modules that declare a constant of this name.
    pub(crate) const_modules: FxHashMap<Name, Vec<ModuleId>>,
    /// Actor classes by message type.
    pub(crate) receivers: FxHashMap<Ty, Vec<(ClassId, FuncId)>>,
    pub(crate) impls: FxHashMap<(IfaceId, ClassId), usize>,
    /// Interfaces whose values are converted to others: every class of the first serves the second too.
    pub(crate) covered: FxHashMap<IfaceId, Vec<IfaceId>>,
    pub(crate) covered_set: FxHashSet<(IfaceId, IfaceId)>,
    /// Names that spelling suggestions may still be compared with: reports of a broken program stay linear in its size.
    pub(crate) suggestions: std::cell::Cell<u32>,
    /// Names that files with syntax errors may have declared: they are not reported as unknown.
    pub(crate) unread: FxHashSet<Name>,
    /// Functions with something in them that is wrong or was not read: their HIR is not all of their source.
    pub(crate) incomplete: FxHashSet<FuncId>,
    /// Modules of dependencies that a file of another module names something of: that module, the dependency's.
    pub(crate) reached: std::cell::RefCell<FxHashSet<(ModuleId, ModuleId)>>,
    /// What `Env::file` answers for an id that is not in the input.
    pub(crate) no_file: FileScope,
}

/// The project (index 0) or one dependency.
#[derive(Debug, Default)]
pub struct Package {
    /// The key in `[deps]`; `None` for the project.
    pub key: Option<String>,
    /// Modules by directory relative to the package's root, segments joined by `/`; the root is the empty text.
    pub modules: FxHashMap<String, ModuleId>,
}

#[derive(Debug)]
pub struct Module {
    /// 0 is the project; others are dependencies.
    pub package: u32,
    /// For messages: `.`, `a/b`, `porch/http`.
    pub path: String,
    /// Directory relative to the package's root, as a `use` inside the package writes it; empty for the root.
    pub inner: String,
    /// Free functions declared here, `pub` or not.
    pub funcs: FxHashMap<Name, FuncEntry>,
    /// Constants by name: each file's own (several files may declare one).
    pub consts: FxHashMap<Name, Vec<ConstEntry>>,
    pub files: Vec<FileId>,
}

#[derive(Clone, Debug)]
pub struct FuncEntry {
    pub func: FuncId,
    pub is_pub: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct ConstEntry {
    pub file: FileId,
    pub is_pub: bool,
    pub value: ast::Literal,
    pub span: Span,
}

/// Where a declaration stands.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub package: u32,
    pub module: ModuleId,
    pub file: FileId,
    pub is_pub: bool,
}

/// What a class has besides `hir::Class`.
#[derive(Clone, Debug)]
pub struct ClassInfo {
    /// `None` for predeclared records.
    pub origin: Option<Origin>,
    pub fields: FxHashMap<Name, u32>,
    pub methods: FxHashMap<Name, FuncId>,
    pub consts: FxHashMap<Name, ClassConst>,
}

#[derive(Clone, Debug)]
pub struct ClassConst {
    pub is_static: bool,
    pub value: ast::Literal,
    pub span: Span,
}

/// A declared type name.
#[derive(Clone, Debug)]
pub struct TypeEntry {
    pub named: NamedType,
    /// `class`, `record`, `union`, `interface`.
    pub kind: &'static str,
    pub is_pub: bool,
    /// `None` for predeclared records.
    pub module: Option<ModuleId>,
    pub span: Span,
    /// For a record that shares its class with another of the same shape but has other defaults: its own, one per
    /// field.
    pub defaults: Option<Vec<Option<Default_>>>,
}

/// What one file sees.
#[derive(Debug)]
pub struct FileScope {
    pub id: FileId,
    pub package: u32,
    pub module: ModuleId,
    pub display: String,
    /// Parts of the file were not read.
    pub is_broken: bool,
    /// Words of tests that were left out.
    pub unwanted: FxHashSet<Name>,
    pub uses: Vec<UseEntry>,
    /// Used modules other than its own, each once, with the `uses` that reach it.
    pub(crate) used_modules: FxHashMap<ModuleId, Vec<usize>>,
    /// `uses` by alias.
    pub(crate) aliases: FxHashMap<Name, Vec<usize>>,
}

/// A `use` of the file; `used` is set by bodies when something was reached through it (`WO-W202` otherwise).
#[derive(Debug)]
pub struct UseEntry {
    pub alias: Name,
    /// As written, segments joined by `/`.
    pub path: String,
    /// Of an unknown module: the alias that was probably meant.
    pub near: Option<Name>,
    pub target: UseTarget,
    pub extensions: bool,
    pub span: Span,
    pub used: std::cell::Cell<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseTarget {
    /// A reserved namespace: `net`, `json`, …
    Namespace(Name),
    Module(ModuleId),
    /// Reported already.
    Unknown,
}

pub struct Body<'a> {
    pub file: FileId,
    pub block: &'a ast::Block,
    /// Parameter names and positions, `self` included for methods.
    pub params: Vec<(Name, Span)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedType {
    /// A class, record, or table class.
    Class(ClassId),
    Union(UnionId),
    Iface(IfaceId),
}

/// What a type name means in a file (4.2).
#[derive(Clone, Debug)]
pub enum TypeLookup<'e> {
    Found(&'e TypeEntry),
    /// Declared by a dependency without `pub` (`WO-E217`).
    NotExported {
        module: String,
        span: Span,
    },
    /// Exported by several dependencies: their keys (`WO-E218`).
    Ambiguous(Vec<String>),
    None,
}

/// What a bare function name means in a file (4.2), before variants and builtins are considered.
#[derive(Clone, Debug)]
pub enum FuncLookup {
    Found(FuncId),
    /// Exported by several used modules: their paths.
    Ambiguous(Vec<String>),
    None,
}

/// Where an unresolved bare function could come from, for `WO-E217` and `WO-E210`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    NotExported {
        module: String,
        span: Span,
    },
    /// `module` as a `use` of this file would write it; `.` for a root module, which no `use` reaches.
    UnusedModule {
        module: String,
    },
    Nowhere,
}

#[derive(Clone, Debug)]
pub enum QualifiedLookup {
    Found(FuncId),
    NotExported { module: String, span: Span },
    Ambiguous(Vec<String>),
    Unknown { module: String },
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConstLookup {
    Found(ast::Literal),
    Ambiguous(Vec<String>),
    None,
}

/// What `alias.NAME` means.
#[derive(Clone, Debug, PartialEq)]
pub enum QualifiedConst {
    Found(ast::Literal),
    Ambiguous(Vec<String>),
    NotExported { module: String, span: Span },
    Unknown,
}

/// Signatures of `stdlib/`.
#[derive(Default)]
pub struct Builtins {
    /// Namespace (`builtins` for free ones) and name to overloads, in declaration order.
    pub sigs: FxHashMap<(Name, Name), Vec<BuiltinSig>>,
}

#[derive(Clone, Debug)]
pub struct BuiltinSig {
    pub namespace: Name,
    pub name: Name,
    pub params: Vec<(Mode, Name, Pattern)>,
    /// `None`: no value.
    pub ret: Option<Pattern>,
    /// The documentation says `Not available yet`: using it is `WO-E406`.
    pub available: bool,
}

/// A type with variables (`T K V M N R`), as signatures of `stdlib/` write it.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    Var(Name),
    Ty(Ty),
    Nullable(Box<Pattern>),
    Multi(Box<Pattern>),
    Map(Box<Pattern>, Box<Pattern>),
    /// `actor M`.
    Actor(Box<Pattern>),
}

/// Why a class does not satisfy an interface, in words: "`area` takes 1 parameter, `Shape.area` takes none".
pub type Mismatch = String;

pub use crate::show::show;

impl Env<'_> {
    /// The text of a type as diagnostics print it.
    #[must_use]
    pub fn show(&self, ty: Ty) -> String {
        show(&self.program, ty)
    }

    /// The method of that name, static ones included.
    #[must_use]
    pub fn method(&self, class: ClassId, name: &str) -> Option<FuncId> {
        self.classes.get(class.0 as usize)?.methods.get(name).copied()
    }

    /// The field of that name and its index.
    #[must_use]
    pub fn field(&self, class: ClassId, name: &str) -> Option<(u32, &hir::Field)> {
        let index = *self.classes.get(class.0 as usize)?.fields.get(name)?;
        Some((index, self.program.classes.get(class.0 as usize)?.fields.get(index as usize)?))
    }

    /// A constant of the class; with `static_only` as `Cls.NAME` outside of it sees it.
    #[must_use]
    pub fn class_const(&self, class: ClassId, name: &str, static_only: bool) -> Option<ast::Literal> {
        let found = self.classes.get(class.0 as usize)?.consts.get(name)?;
        (found.is_static || !static_only).then(|| found.value.clone())
    }

    /// Whether a constructor may leave the field out (3.4): it has a default, is nullable, or is a backlink.
    #[must_use]
    pub fn omittable(&self, field: &hir::Field) -> bool {
        field.default.is_some()
            || matches!(self.program.types.kind(field.ty), TyKind::Nullable(_) | TyKind::Backlink(..))
    }

    /// The defaults that `name { … }` uses where they differ from those of the class it stands for: records of equal
    /// shape are one class, but each alias constructs with its own defaults (3.5). One entry per field; nullable fields
    /// without a default have `Some(Default_::Nil)`. `None`: use the defaults of the class.
    ///
    /// An omitted field whose entry is `None` here is missing (`WO-E206`) even where the class has a default. HIR's
    /// `New.defaults` means the defaults of the class, so bodies write these out as given fields.
    #[must_use]
    pub fn record_defaults(&self, file: FileId, name: &str) -> Option<&[Option<Default_>]> {
        match self.type_lookup(file, name) {
            TypeLookup::Found(entry) => entry.defaults.as_deref(),
            _ => None,
        }
    }

    /// The entry of an actor class: its `receive`, the message type, the result type (`VOID` for none). The error says
    /// what is wrong with the class, for `WO-E221`.
    pub fn receive_of(&self, class: ClassId) -> Result<(FuncId, Ty, Ty), String> {
        let Some(decl) = self.program.classes.get(class.0 as usize) else {
            return Err("it is not a class".to_owned());
        };
        if decl.is_table {
            return Err(format!("`{}` is an `@table` class: its values are rows, not objects", decl.name));
        }
        let found = self.method(class, "receive");
        let Some((id, func)) = found.and_then(|id| Some((id, self.program.funcs.get(id.0 as usize)?))) else {
            return Err(format!("`{}` has no method `receive`", decl.name));
        };
        if func.is_static {
            return Err(format!("`{}.receive` is static", decl.name));
        }
        let (Some(mode), Some(local), 2) = (func.params.get(1), func.locals.get(1), func.params.len()) else {
            let given = func.params.len().saturating_sub(1);
            return Err(format!("`{}.receive` takes {given} parameters instead of one message", decl.name));
        };
        if *mode == Mode::Take {
            return Err(format!("`{}.receive` declares its message `take`; it is bare or `mut`", decl.name));
        }
        match self.program.types.kind(local.ty) {
            TyKind::Class(_) | TyKind::Union(_) | TyKind::Error => Ok((id, local.ty, func.ret)),
            _ => Err(format!(
                "the message of `{}.receive` is `{}`; it must be a class, a record or a union",
                decl.name,
                self.show(local.ty)
            )),
        }
    }

    /// All actor classes of the program that receive this message type, in declaration order (`WO-E226`).
    #[must_use]
    pub fn receivers_of(&self, message: Ty) -> Vec<(ClassId, FuncId)> {
        self.receivers.get(&message).cloned().unwrap_or_default()
    }

    /// Whether `json.decode(…) as ty` is possible (10.2); the error is the path of the field that is not decodable,
    /// `Order.shape`, or the type itself where it is no target at all.
    pub fn decodable(&self, ty: Ty) -> Result<(), String> {
        let types = &self.program.types;
        match types.kind(ty) {
            TyKind::Class(_) | TyKind::Multi(_) | TyKind::Map(..) | TyKind::Json | TyKind::Error => {}
            _ => return Err(format!("`{}`", self.show(ty))),
        }
        let mut seen = FxHashSet::default();
        let mut work = vec![(ty, String::new())];
        while let Some((ty, path)) = work.pop() {
            match types.kind(ty) {
                TyKind::Nullable(inner) | TyKind::Multi(inner) => work.push((inner, path)),
                TyKind::Map(key, value) if key == crate::types::Types::TEXT || key == crate::types::Types::ERROR => {
                    work.push((value, path));
                }
                TyKind::Class(class) => {
                    if !seen.insert(class) {
                        continue;
                    }
                    let Some(decl) = self.program.classes.get(class.0 as usize) else { continue };
                    let prefix = if path.is_empty() { decl.name.to_string() } else { path };
                    // Reversed, so that the first bad field in declaration order is the one reported.
                    for field in decl.fields.iter().rev() {
                        work.push((field.ty, format!("{prefix}.{}", field.name)));
                    }
                }
                TyKind::Union(union) if self.program.unions.get(union.0 as usize).is_some_and(|u| !u.has_payload) => {}
                TyKind::Int
                | TyKind::Bool
                | TyKind::Float
                | TyKind::Text
                | TyKind::Bytes
                | TyKind::Json
                | TyKind::Row(_)
                | TyKind::Backlink(..)
                | TyKind::Error => {}
                _ => {
                    let shown = self.show(ty);
                    return Err(if path.is_empty() { format!("`{shown}`") } else { format!("`{path}: {shown}`") });
                }
            }
        }
        Ok(())
    }

    pub(crate) fn origin(&self, file: FileId, is_pub: bool) -> Origin {
        let scope = self.file(file);
        Origin { package: scope.package, module: scope.module, file, is_pub }
    }
}
