//! The syntax tree: what the parser produces and every later stage reads. It mirrors the grammar of the language
//! one to one, keeps the position of every node, and holds no facts that the text does not state. The parser never
//! fails: a declaration that could not be read is left out and reported, of a statement only the names remain that it may
//! have declared.

use diagnostics::span::Span;

/// An identifier's text; cheap to clone.
pub type Name = smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    pub name: Name,
    pub span: Span,
}

/// One source file.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub decls: Vec<Decl>,
    /// Names that declarations which could not be read may have declared.
    pub unread: Vec<Name>,
    /// Something in the file was reported and left out.
    pub is_broken: bool,
    /// Words of tests that were left out, by whoever does not want them.
    pub unwanted: Vec<Name>,
}

#[derive(Clone, Debug)]
pub enum Decl {
    Use(Use),
    Test(Test),
    Const(Const),
    Fn(Fn),
    Interface(Interface),
    Class(Class),
    Record(Record),
    Union(Union),
}

/// `use a/b` or `using a/b`.
#[derive(Clone, Debug)]
pub struct Use {
    pub path: Vec<Ident>,
    /// `using`: extension methods too.
    pub extensions: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Test {
    pub name: Vec<u8>,
    pub name_span: Span,
    pub body: Block,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Const {
    pub is_pub: bool,
    /// `static const` in a class.
    pub is_static: bool,
    pub name: Ident,
    pub value: Literal,
    pub value_span: Span,
}

/// A literal of a constant or a field default.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Vec<u8>),
}

/// A free function, a method, or (inside `Interface`) nothing: signatures are `Sig`.
#[derive(Clone, Debug)]
pub struct Fn {
    pub is_pub: bool,
    pub is_static: bool,
    pub sig: Sig,
    pub body: Block,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Sig {
    pub name: Ident,
    pub params: Vec<Param>,
    /// `None`: no value. `fn f() ?-> T` arrives as a nullable type.
    pub ret: Option<Type>,
    /// Doc text: the comment lines directly above, without `--`. Only filled for interfaces of the standard library.
    pub doc: String,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Borrow,
    Mut,
    Take,
}

#[derive(Clone, Debug)]
pub struct Param {
    pub mode: Mode,
    pub name: Ident,
    pub ty: Type,
}

#[derive(Clone, Debug)]
pub struct Interface {
    pub is_pub: bool,
    pub name: Ident,
    pub sigs: Vec<Sig>,
    pub doc: String,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Class {
    pub is_pub: bool,
    pub annotations: Vec<Annotation>,
    pub name: Ident,
    pub fields: Vec<Field>,
    pub consts: Vec<Const>,
    pub methods: Vec<Fn>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Field {
    /// `pub(read)`.
    pub read_only: bool,
    pub name: Ident,
    pub ty: Type,
    pub annotations: Vec<Annotation>,
    pub default: Option<Default_>,
    pub span: Span,
}

/// A field default.
#[derive(Clone, Debug)]
pub struct Default_ {
    pub kind: DefaultKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum DefaultKind {
    Now,
    Nil,
    Literal(Literal),
    /// A constant's name.
    Const(Name),
    List(Vec<Default_>),
    EmptyMap,
    /// `Name {}`.
    New(Ident),
    /// Anything else: a parsed expression that the checker refuses (`WO-E403`).
    Invalid,
}

#[derive(Clone, Debug)]
pub struct Annotation {
    pub name: Ident,
    pub args: AnnotationArgs,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum AnnotationArgs {
    /// No parentheses, or an annotation whose arguments are not looked at.
    None,
    /// `@table(…)`; problems with single arguments are the checker's (`WO-E102`).
    Table(Vec<TableArg>),
}

#[derive(Clone, Debug)]
pub struct TableArg {
    pub key: Ident,
    pub value: TableValue,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TableValue {
    Text(Vec<u8>),
    Word(Name),
    Names(Vec<Ident>),
    Other,
}

/// `typedef R = { … }`. A `?` before a field name is already folded into the field's type.
#[derive(Clone, Debug)]
pub struct Record {
    pub is_pub: bool,
    pub name: Ident,
    pub fields: Vec<Field>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Union {
    pub is_pub: bool,
    pub name: Ident,
    pub variants: Vec<Variant>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Variant {
    pub name: Ident,
    pub fields: Vec<(Ident, Type)>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Type {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TypeKind {
    Nullable(Box<Type>),
    Multi(Box<Type>),
    Map(Box<Type>, Box<Type>),
    Ref(Ident),
    Actor(Ident),
    Backlink(Ident, Ident),
    Named(Ident),
    /// `m.C`: only `net.Conn` is a type, all others are `WO-E225`.
    Qualified(Ident, Ident),
}

#[derive(Clone, Debug, Default)]
pub struct Block {
    pub stmts: Vec<Stmt>,
    /// From `{` to `}` inclusive.
    pub span: Span,
    /// Something inside was reported and left out: what the block does at its end is not known.
    pub is_broken: bool,
}

#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum StmtKind {
    Let {
        name: Ident,
        ty: Option<Type>,
        value: Expr,
    },
    If(If),
    While {
        cond: Expr,
        body: Block,
    },
    /// `second` is the value of `for k, v in m`.
    For {
        first: Ident,
        second: Option<Ident>,
        iter: Expr,
        body: Block,
    },
    DoWhile {
        body: Block,
        cond: Expr,
    },
    Return(Option<Expr>),
    Break,
    Continue,
    Expr(Expr),
    Assign {
        target: Expr,
        value: Expr,
    },
    /// `target op= value`; `op` is one of the five arithmetic operators.
    OpAssign {
        target: Expr,
        op: BinOp,
        value: Expr,
    },
    /// It could not be read, which is reported.
    Unread {
        /// Names in front of its first punctuation: it may have declared them, or tested them for nil. The empty name
        /// stands for any.
        names: Vec<Name>,
        /// It began as a `return`, `break` or `continue`.
        leaves: bool,
        /// The local of a `let`.
        local: Option<Ident>,
    },
}

/// An `if` chain as the list of its arms, so that a long `else if` chain is not deep.
#[derive(Clone, Debug)]
pub struct If {
    pub arms: Vec<(Expr, Block)>,
    pub otherwise: Option<Block>,
}

#[derive(Clone, Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Add,
    Sub,
    BitOr,
    BitXor,
    Mul,
    Div,
    Rem,
    BitAnd,
    Shl,
    Shr,
}

impl BinOp {
    /// The operator as written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            BinOp::Or => "or",
            BinOp::And => "and",
            BinOp::Eq => "==",
            BinOp::Ne => "!=",
            BinOp::Lt => "<",
            BinOp::Le => "<=",
            BinOp::Gt => ">",
            BinOp::Ge => ">=",
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::BitOr => "|",
            BinOp::BitXor => "^",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Rem => "%",
            BinOp::BitAnd => "&",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnOp {
    Neg,
    Not,
}

#[derive(Clone, Debug)]
pub enum ExprKind {
    /// It holds a lexical error, which is reported.
    Unread,
    Int(i64),
    Float(f64),
    Bool(bool),
    Nil,
    /// A quoted or raw literal: plain pieces and holes in order. No pieces: the empty text.
    Text(Vec<Piece>),
    Name(Name),
    /// `a op b`; chains of one level nest to the left and may be very deep: walk `lhs` with a loop.
    Binary {
        op: BinOp,
        op_span: Span,
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    /// A whole `..` chain.
    Concat(Vec<Expr>),
    Unary {
        op: UnOp,
        operand: Box<Expr>,
    },
    /// `e as T`.
    As(Box<Expr>, Type),
    Field(Box<Expr>, Ident),
    Index(Box<Expr>, Box<Expr>),
    /// `callee` is a `Name` (free call, variant, builtin) or a `Field` (method, namespace member, static).
    Call {
        callee: Box<Expr>,
        args: Vec<Expr>,
    },
    /// `C { f: e }`.
    New {
        class: Ident,
        fields: Vec<(Ident, Expr)>,
    },
    Spawn {
        class: Ident,
        fields: Vec<(Ident, Expr)>,
    },
    Insert {
        class: Ident,
        fields: Vec<(Ident, Expr)>,
    },
    Delete(Box<Expr>),
    List(Vec<Expr>),
    /// `{}`.
    EmptyMap,
    Switch(Box<Switch>),
    Try {
        body: Box<Expr>,
        var: Ident,
        handler: Box<Handler>,
    },
    Query(Box<Query>),
}

#[derive(Clone, Debug)]
pub enum Piece {
    Text(Vec<u8>),
    Hole(Expr),
    /// `{{ e }}` in a raw literal: `${esc(e)}`; the identifier `esc` sits at the hole's opening braces.
    Escaped(Expr, Span),
}

#[derive(Clone, Debug)]
pub enum Handler {
    Block(Block),
    Expr(Expr),
}

#[derive(Clone, Debug)]
pub struct Switch {
    pub subject: Expr,
    pub arms: Vec<Arm>,
}

#[derive(Clone, Debug)]
pub struct Arm {
    /// Empty for `default`.
    pub values: Vec<Expr>,
    pub is_default: bool,
    pub body: Block,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Query {
    pub var: Ident,
    pub source: Expr,
    pub filters: Vec<Expr>,
    /// `group e by e into x`: parsed to be refused.
    pub group: Option<Span>,
    pub order: Vec<(Expr, bool)>,
    pub skip: Option<Expr>,
    pub take: Option<Expr>,
    pub select: Expr,
}

// ---- long chains ----

/// The operand at the left end of a chain, if `kind` is a link of one.
fn left_mut(kind: &mut ExprKind) -> Option<&mut Box<Expr>> {
    match kind {
        ExprKind::Binary { lhs: left, .. }
        | ExprKind::As(left, _)
        | ExprKind::Field(left, _)
        | ExprKind::Index(left, _)
        | ExprKind::Call { callee: left, .. } => Some(left),
        _ => None,
    }
}

/// Takes the left operand out if it is a link itself; a leaf stays in its place.
fn take_link(kind: &mut ExprKind) -> Option<Expr> {
    let left = left_mut(kind)?;
    let _ = left_mut(&mut left.kind)?;
    let span = left.span;
    Some(std::mem::replace(left, Expr { kind: ExprKind::Nil, span }))
}

/// Long chains nest to the left; they are taken apart by a loop, so that dropping them needs no deep stack.
impl Drop for Expr {
    fn drop(&mut self) {
        let mut next = take_link(&mut self.kind);
        while let Some(mut link) = next {
            next = take_link(&mut link.kind);
        }
    }
}
