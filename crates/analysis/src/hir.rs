//! The typed program: every name resolved, every expression typed, every conversion explicit. Later stages compute
//! nothing about the language from it; they only follow it.

use diagnostics::span::Span;
use syntax::ast::{Mode, Name};

pub use crate::types::{ClassId, IfaceId, Ty, TyKind, Types, UnionId};

/// Index into `Program::funcs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);
/// Index into `Func::locals`; parameters (`self` first) come before other locals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub u32);

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub types: Types,
    pub classes: Vec<Class>,
    pub unions: Vec<Union>,
    pub interfaces: Vec<Interface>,
    pub funcs: Vec<Func>,
    /// The entry, and whether it takes the arguments.
    pub main: Option<Main>,
    /// `test` blocks as functions without parameters; filled for `woc test` and `woc check` only.
    pub tests: Vec<(String, FuncId)>,
    /// The class of `catch` variables, and those of builtin results.
    pub well_known: WellKnown,
    /// Further names of records: records of equal shape are one class, which has the name of the first.
    pub aliases: Vec<(Name, ClassId)>,
    /// Which classes are traced, and why.
    pub ownership: crate::ownership::Facts,
}

#[derive(Clone, Copy, Debug)]
pub struct Main {
    pub func: FuncId,
    pub takes_args: bool,
}

/// Predeclared records (5.1). `error` is the program's own `Error` where it declares a fitting one.
#[derive(Clone, Copy, Debug, Default)]
pub struct WellKnown {
    pub error: ClassId,
    pub stat: ClassId,
    pub time_parts: ClassId,
    pub proc: ClassId,
    pub child: ClassId,
}

#[derive(Clone, Debug)]
pub struct Class {
    pub name: Name,
    /// The key of the dependency that declares it; `None` for the project's own and the predeclared ones.
    pub package: Option<Name>,
    pub span: Span,
    pub is_record: bool,
    /// `@table`: the class's name as a type means a row.
    pub is_table: bool,
    pub storage: Storage,
    pub fields: Vec<Field>,
    /// Instance and static methods by name.
    pub methods: Vec<FuncId>,
    /// Set when the class is the target of a `spawn`: its `receive`.
    pub receive: Option<FuncId>,
}

/// How rows of a class are kept (tables specification 2.1). Columns are numbered as the class's fields.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// `name:`, where it is given.
    pub label: Option<String>,
    pub durable: bool,
    /// The `index:` arguments.
    pub indexes: Vec<Vec<u32>>,
    /// The `@unique` columns.
    pub unique: Vec<u32>,
    /// The class stands in a module of the project or in one that is reachable from there.
    pub declared: bool,
    /// Some `insert` makes rows of the class, whether or not it says `@table`.
    pub inserted: bool,
}

#[derive(Clone, Debug)]
pub struct Field {
    pub name: Name,
    pub ty: Ty,
    pub span: Span,
    pub read_only: bool,
    /// The value of an omitted field. Nullable fields without a default have `Some(Default::Nil)`.
    pub default: Option<Default_>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Default_ {
    Nil,
    Now,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Vec<u8>),
    EmptyMulti,
    EmptyMap,
    List(Vec<Default_>),
    New(ClassId),
}

#[derive(Clone, Debug)]
pub struct Union {
    pub name: Name,
    pub span: Span,
    pub variants: Vec<Variant>,
    /// At least one variant has fields: values are objects. Otherwise ordinals.
    pub has_payload: bool,
}

#[derive(Clone, Debug)]
pub struct Variant {
    pub name: Name,
    pub fields: Vec<(Name, Ty)>,
}

#[derive(Clone, Debug)]
pub struct Interface {
    pub name: Name,
    pub span: Span,
    pub sigs: Vec<Sig>,
    /// For every class that is converted to this interface anywhere (directly or through another interface): the
    /// method for each signature, in order.
    pub impls: Vec<(ClassId, Vec<FuncId>)>,
}

#[derive(Clone, Debug)]
pub struct Sig {
    pub name: Name,
    /// Without `self`.
    pub params: Vec<(Mode, Ty)>,
    /// `Types::VOID` for none.
    pub ret: Ty,
}

#[derive(Clone, Debug)]
pub struct Func {
    /// The bare name.
    pub name: Name,
    /// `name` for functions, `Class.name` for methods: what stack traces print.
    pub display: Name,
    pub span: Span,
    /// The class of a method (static ones too).
    pub class: Option<ClassId>,
    pub is_static: bool,
    /// The first `params.len()` locals; for instance methods the first is `self`.
    pub params: Vec<Mode>,
    pub locals: Vec<Local>,
    /// `Types::VOID` for none.
    pub ret: Ty,
    pub body: Block,
    /// No reachable end and no reachable `return`.
    pub never_returns: bool,
}

#[derive(Clone, Debug)]
pub struct Local {
    pub name: Name,
    pub ty: Ty,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Block {
    pub stmts: Vec<Stmt>,
    /// The closing brace, for the line of a fall-through.
    pub end: Span,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Declares and initialises. The value's type is the local's.
    Let(LocalId, Expr),
    /// The value's type is the place's.
    Assign(Place, Expr),
    /// `place op= value`: base and index of the place evaluated once, then the place read, then the value.
    OpAssign(Place, BinaryOp, Expr),
    Expr(Expr),
    If {
        arms: Vec<(Expr, Block)>,
        otherwise: Option<Block>,
    },
    While {
        cond: Expr,
        body: Block,
    },
    DoWhile {
        body: Block,
        cond: Expr,
    },
    /// Over a `multi`.
    ForMulti {
        var: LocalId,
        iter: Expr,
        body: Block,
    },
    ForMap {
        key: LocalId,
        value: LocalId,
        iter: Expr,
        body: Block,
    },
    /// The value has the function's result type; `None` in functions without result, and in functions with a nullable
    /// result for nil.
    Return(Option<Expr>),
    Break,
    Continue,
}

/// What can be assigned to.
#[derive(Clone, Debug)]
pub enum Place {
    Local(LocalId),
    /// Object, field index.
    Field(Expr, ClassId, u32),
    /// `multi`, index.
    Element(Expr, Expr),
    /// `map`, key.
    Entry(Expr, Expr),
    /// Row, column index: one statement of the store. `op=` is one atomic statement, its value is evaluated first.
    Column(Expr, ClassId, u32),
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub ty: Ty,
    pub span: Span,
}

impl Expr {
    /// The expressions it evaluates itself, in order: of a `switch` only the subject, of a `try` none, because the rest
    /// stands in blocks.
    pub fn each_operand<'a>(&'a self, mut visit: impl FnMut(&'a Expr)) {
        match &self.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Text(_)
            | ExprKind::Nil
            | ExprKind::Local(_)
            | ExprKind::EmptyMap
            | ExprKind::Ordinal { .. }
            | ExprKind::Try { .. } => {}
            ExprKind::IntNeg(a)
            | ExprKind::FloatNeg(a)
            | ExprKind::Not(a)
            | ExprKind::IsNil { operand: a, .. }
            | ExprKind::Wrap(a)
            | ExprKind::Unwrap(a, _)
            | ExprKind::Convert(a)
            | ExprKind::VoidAsInt(a)
            | ExprKind::Field(a, ..)
            | ExprKind::JsonDecode(a) => visit(a),
            ExprKind::Binary(_, a, b)
            | ExprKind::And(a, b)
            | ExprKind::Or(a, b)
            | ExprKind::NullableEq { lhs: a, rhs: b, .. }
            | ExprKind::Element(a, b)
            | ExprKind::Entry(a, b) => {
                visit(a);
                visit(b);
            }
            ExprKind::Concat(items)
            | ExprKind::List(items)
            | ExprKind::NewVariant { args: items, .. }
            | ExprKind::Call(_, items)
            | ExprKind::Builtin(_, items) => items.iter().for_each(visit),
            ExprKind::CallIface { recv, args, .. } => {
                visit(recv);
                args.iter().for_each(visit);
            }
            ExprKind::New { fields, .. } | ExprKind::Spawn { fields, .. } => {
                fields.iter().for_each(|(_, value)| visit(value));
            }
            ExprKind::Store(op) => op.operands().into_iter().for_each(visit),
            ExprKind::Switch(switch) => visit(&switch.subject),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    // two Ints -> Int; Div, Rem, Shl, Shr may trap
    IntAdd,
    IntSub,
    IntMul,
    IntDiv,
    IntRem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    // two Ints -> Bool
    IntLt,
    IntLe,
    IntGt,
    IntGe,
    /// Ints, Bools, ordinals, rows.
    WordEq,
    WordNe,
    // two Floats -> Float / Bool
    FloatAdd,
    FloatSub,
    FloatMul,
    FloatDiv,
    FloatLt,
    FloatLe,
    FloatGt,
    FloatGe,
    FloatEq,
    FloatNe,
    // two Texts or Bytes -> Bool
    TextLt,
    TextLe,
    TextGt,
    TextGe,
    TextEq,
    TextNe,
    /// Identity of objects, containers and actors.
    RefEq,
    RefNe,
}

/// What a nil becomes where a value is needed (5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OnNil {
    /// Scalars and actors: the zero value.
    Zero,
    /// Trap 6 `null text`.
    TrapText,
    /// Trap 6 `null receiver`.
    TrapReceiver,
    /// A message: the builtin that takes it traps with a text of its own (11.6).
    Message,
    /// The checker has proved it is not nil (narrowed): no check. Scalars: the value word is taken.
    Proved,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Vec<u8>),
    /// Type `?T`, `T~`.
    Nil,
    Local(LocalId),
    IntNeg(Box<Expr>),
    FloatNeg(Box<Expr>),
    Not(Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    /// Both operands have the same nullable type: nil equals nil only, values by `eq` of the inner type (`WordEq`,
    /// `FloatEq`, `TextEq`, `RefEq`); `negated` for `!=`.
    NullableEq {
        eq: BinaryOp,
        negated: bool,
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    /// Operand of nullable or `T~` type; `negated` for `!= nil`.
    IsNil {
        operand: Box<Expr>,
        negated: bool,
    },
    /// One allocation. Parts have type Text, Json, Int, Bool, Float or a row.
    Concat(Vec<Expr>),
    /// `T` to `?T`.
    Wrap(Box<Expr>),
    /// `?T` or `T~` to `T`.
    Unwrap(Box<Expr>, OnNil),
    /// Same representation, another type: Bool to Int, row and Int, Text and Json, `T~` and `?T`, interface to
    /// interface, class to interface, a void call to Int 0 is `VoidAsInt`.
    Convert(Box<Expr>),
    VoidAsInt(Box<Expr>),
    Field(Box<Expr>, ClassId, u32),
    /// `multi[i]`, traps.
    Element(Box<Expr>, Box<Expr>),
    /// `map[k]`: `V~`, or `?V` where the value type is nullable.
    Entry(Box<Expr>, Box<Expr>),
    /// Given fields in written order, then the omitted ones by their defaults, in declaration order.
    New {
        class: ClassId,
        fields: Vec<(u32, Expr)>,
        defaults: Vec<u32>,
    },
    /// A variant of a payload union as an object; of a bare union use `Ordinal`.
    NewVariant {
        union: UnionId,
        variant: u32,
        args: Vec<Expr>,
    },
    Ordinal {
        union: UnionId,
        variant: u32,
    },
    /// Type `multi T`; items have type `T`.
    List(Vec<Expr>),
    EmptyMap,
    /// Free functions, methods (receiver first) and static methods.
    Call(FuncId, Vec<Expr>),
    CallIface {
        iface: IfaceId,
        slot: u32,
        recv: Box<Expr>,
        args: Vec<Expr>,
    },
    Builtin(Builtin, Vec<Expr>),
    Spawn {
        class: ClassId,
        fields: Vec<(u32, Expr)>,
        defaults: Vec<u32>,
    },
    /// `json.decode(text) as T`; the expression's type is `?T`, the operand's `?Text`.
    JsonDecode(Box<Expr>),
    Switch(Box<Switch>),
    /// Reads and statements of the store.
    Store(Box<StoreOp>),
    /// Body and handler have the expression's type unless it is `VOID`/`NEVER` (statement position).
    Try {
        body: Box<Expr>,
        var: LocalId,
        handler: Box<BlockExpr>,
    },
}

/// An access to the table store (tables specification).
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "only ever behind the box of `ExprKind::Store`")]
pub enum StoreOp {
    /// `row.f`: a copy of the column's value.
    Column(Expr, ClassId, u32),
    /// `row.f` of a backlink column: the rows that refer to this one, as `multi ref C`.
    Backlink(Expr, ClassId, u32),
    /// Values as in `ExprKind::New`; gives the row.
    Insert { class: ClassId, fields: Vec<(u32, Expr)>, defaults: Vec<u32> },
    /// Gives the Int 0.
    Delete(Expr),
    /// Gives a `multi` of the projection's type.
    Query(Box<Query>),
}

/// Clauses in their order of work: filter, order, skip, take, project.
#[derive(Clone, Debug)]
pub struct Query {
    /// The range variable, a row.
    pub var: LocalId,
    pub class: ClassId,
    /// `None`: all rows of the class; else a `multi` of rows (a backlink too).
    pub source: Option<Expr>,
    /// Bool; all must hold.
    pub filters: Vec<Expr>,
    /// Keys with `desc`.
    pub order: Vec<(Expr, bool)>,
    pub skip: Option<Expr>,
    pub take: Option<Expr>,
    pub select: Expr,
}

impl StoreOp {
    /// The expressions it holds, in order of evaluation.
    #[must_use]
    pub fn operands(&self) -> Vec<&Expr> {
        match self {
            StoreOp::Column(row, ..) | StoreOp::Backlink(row, ..) | StoreOp::Delete(row) => vec![row],
            StoreOp::Insert { fields, .. } => fields.iter().map(|f| &f.1).collect(),
            StoreOp::Query(query) => {
                let mut out: Vec<&Expr> = query.source.iter().collect();
                out.extend(&query.filters);
                out.extend(query.order.iter().map(|k| &k.0));
                out.extend(query.skip.iter().chain(&query.take));
                out.push(&query.select);
                out
            }
        }
    }
}

/// A block with a value.
#[derive(Clone, Debug)]
pub struct BlockExpr {
    pub block: Block,
    /// `None`: no value is needed, or the block cannot complete.
    pub value: Option<Expr>,
}

#[derive(Clone, Debug)]
pub struct Switch {
    /// Evaluated once into this local.
    pub subject: Expr,
    pub subject_local: LocalId,
    /// In test order: `default` is last.
    pub arms: Vec<Arm>,
    /// A union subject whose arms cover all variants needs no default; the end is then unreachable.
    pub exhaustive: bool,
}

#[derive(Clone, Debug)]
pub struct Arm {
    pub test: ArmTest,
    pub body: BlockExpr,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ArmTest {
    Default,
    /// Any of these Bool expressions (which read `subject_local`).
    Any(Vec<Expr>),
    /// Ordinals of a bare union.
    Ordinals(Vec<u32>),
    /// Variants of a payload union; bindings only with a single variant, one local per field.
    Variants(UnionId, Vec<u32>, Vec<LocalId>),
}

/// A builtin call. `Plain` ones are calls of the runtime symbol of that name, arguments as declared; the others are
/// specialised by the types of their arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Builtin {
    /// The name in `stdlib/`, which is the runtime's symbol: `byte_at`, `net.read_dl`.
    Plain(Name),
    LenText,
    LenMulti,
    LenMap,
    MultiNew,
    MapNew,
    Push,
    /// `get` on a multi.
    GetMulti,
    /// `get` on a map: traps 7.
    GetMap,
    /// `set(m, k, v)`.
    SetMap,
    HasMap,
    RemoveMap,
    Latest,
    Pop,
    Shift,
    Slice,
    Sort,
    Reverse,
    KeyAt,
    ValAt,
    JsonEncode,
    /// `trap(msg)`.
    Trap,
    Assert,
    AssertEq,
    ClassName,
    Send,
    Call,
    CallDl,
    Monitor,
    After,
}
