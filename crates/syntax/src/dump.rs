//! Readable, stable text forms of tokens and tree. The tree is printed as S-expressions, one statement, member or
//! declaration a line; left-nested chains are walked by a loop.

use std::fmt::Write as _;

use diagnostics::span::{FileId, LineIndex};

use crate::ast::{
    Annotation, AnnotationArgs, Block, Class, Const, Decl, DefaultKind, Expr, ExprKind, Field, File, Fn, Handler,
    Ident, Literal, Mode, Piece, Query, Sig, Stmt, StmtKind, Switch, TableValue, Type, TypeKind, UnOp,
};
use crate::lex::lex;

pub(crate) fn tokens(source: &[u8], flags: &[String]) -> String {
    let index = LineIndex::new(source);
    let mut out = String::new();
    if u32::try_from(source.len()).is_err() {
        return out;
    }
    for token in lex(FileId(0), source, flags).tokens {
        let (line, col) = index.line_col(token.start);
        let text = source.get(token.start as usize..token.end as usize).unwrap_or_default();
        let _ = write!(out, "{line}:{col} {:?}", token.kind);
        if !text.is_empty() && text != b"\n" {
            let _ = write!(out, " {}", text.escape_ascii());
        }
        out.push('\n');
    }
    out
}

/// The tree as S-expressions, for `woc dump ast`: the same text for the same tree, without positions.
#[must_use]
pub fn dump_ast(file: &File) -> String {
    let mut printer = Printer { out: String::new(), depth: 0 };
    for decl in &file.decls {
        printer.decl(decl);
    }
    printer.out
}

struct Printer {
    out: String,
    depth: usize,
}

fn names(path: &[Ident]) -> String {
    path.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join("/")
}

fn quote(text: &[u8]) -> String {
    format!("\"{}\"", text.escape_ascii())
}

impl Printer {
    fn word(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A line break and the indentation.
    fn line(&mut self) {
        self.out.push('\n');
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
    }

    fn decl(&mut self, decl: &Decl) {
        match decl {
            Decl::Use(u) => {
                let word = if u.extensions { "using" } else { "use" };
                let _ = write!(self.out, "({word} {})", names(&u.path));
            }
            Decl::Test(t) => {
                let _ = write!(self.out, "(test {}", quote(&t.name));
                self.block(&t.body);
                self.word(")");
            }
            Decl::Const(c) => self.constant(c),
            Decl::Fn(f) => self.function(f),
            Decl::Interface(i) => {
                self.head("interface", i.is_pub, &i.name);
                self.depth += 1;
                for sig in &i.sigs {
                    self.line();
                    self.word("(sig ");
                    self.sig(sig);
                    if !sig.doc.is_empty() {
                        let _ = write!(self.out, " doc {}", quote(sig.doc.as_bytes()));
                    }
                    self.word(")");
                }
                self.depth -= 1;
                self.word(")");
            }
            Decl::Class(c) => self.class(c),
            Decl::Record(r) => {
                self.head("typedef", r.is_pub, &r.name);
                self.fields(&r.fields);
                self.word(")");
            }
            Decl::Union(u) => {
                self.head("union", u.is_pub, &u.name);
                for variant in &u.variants {
                    let _ = write!(self.out, " ({}", variant.name.name);
                    for (name, ty) in &variant.fields {
                        let _ = write!(self.out, " {}: ", name.name);
                        self.ty(ty);
                    }
                    self.word(")");
                }
                self.word(")");
            }
        }
        self.out.push('\n');
    }

    fn head(&mut self, word: &str, is_pub: bool, name: &Ident) {
        let export = if is_pub { "pub " } else { "" };
        let _ = write!(self.out, "({export}{word} {}", name.name);
    }

    fn constant(&mut self, c: &Const) {
        let stat = if c.is_static { "static " } else { "" };
        self.word("(");
        self.word(stat);
        self.word(if c.is_pub { "pub const " } else { "const " });
        let _ = write!(self.out, "{} ", c.name.name);
        self.literal(&c.value);
        self.word(")");
    }

    fn literal(&mut self, literal: &Literal) {
        let _ = match literal {
            Literal::Int(v) => write!(self.out, "{v}"),
            Literal::Float(v) => write!(self.out, "{v:?}"),
            Literal::Bool(v) => write!(self.out, "{v}"),
            Literal::Text(v) => write!(self.out, "{}", quote(v)),
        };
    }

    fn function(&mut self, f: &Fn) {
        self.word("(");
        self.word(if f.is_pub { "pub " } else { "" });
        self.word(if f.is_static { "static " } else { "" });
        self.word("fn ");
        self.sig(&f.sig);
        self.block(&f.body);
        self.word(")");
    }

    fn sig(&mut self, sig: &Sig) {
        let _ = write!(self.out, "{} (", sig.name.name);
        for (i, param) in sig.params.iter().enumerate() {
            self.word(if i > 0 { ", " } else { "" });
            self.word(match param.mode {
                Mode::Borrow => "",
                Mode::Mut => "mut ",
                Mode::Take => "take ",
            });
            let _ = write!(self.out, "{}: ", param.name.name);
            self.ty(&param.ty);
        }
        self.word(")");
        if let Some(ret) = &sig.ret {
            self.word(" -> ");
            self.ty(ret);
        }
    }

    fn class(&mut self, c: &Class) {
        self.head("class", c.is_pub, &c.name);
        self.annotations(&c.annotations);
        self.fields(&c.fields);
        self.depth += 1;
        for value in &c.consts {
            self.line();
            self.constant(value);
        }
        for method in &c.methods {
            self.line();
            self.function(method);
        }
        self.depth -= 1;
        self.word(")");
    }

    fn annotations(&mut self, annotations: &[Annotation]) {
        for annotation in annotations {
            let _ = write!(self.out, " @{}", annotation.name.name);
            let AnnotationArgs::Table(args) = &annotation.args else { continue };
            self.word("(");
            for (i, arg) in args.iter().enumerate() {
                self.word(if i > 0 { ", " } else { "" });
                let _ = write!(self.out, "{}: ", arg.key.name);
                let _ = match &arg.value {
                    TableValue::Text(text) => write!(self.out, "{}", quote(text)),
                    TableValue::Word(word) => write!(self.out, "{word}"),
                    TableValue::Names(list) => write!(self.out, "[{}]", names(list)),
                    TableValue::Other => write!(self.out, "?"),
                };
            }
            self.word(")");
        }
    }

    fn fields(&mut self, fields: &[Field]) {
        self.depth += 1;
        for field in fields {
            self.line();
            self.word(if field.read_only { "(pub(read) field " } else { "(field " });
            let _ = write!(self.out, "{}: ", field.name.name);
            self.ty(&field.ty);
            self.annotations(&field.annotations);
            if let Some(default) = &field.default {
                self.word(" = ");
                self.default(&default.kind);
            }
            self.word(")");
        }
        self.depth -= 1;
    }

    fn default(&mut self, kind: &DefaultKind) {
        match kind {
            DefaultKind::Now => self.word("now"),
            DefaultKind::Nil => self.word("nil"),
            DefaultKind::Literal(literal) => self.literal(literal),
            DefaultKind::Const(name) => self.word(name),
            DefaultKind::List(items) => {
                self.word("[");
                for (i, item) in items.iter().enumerate() {
                    self.word(if i > 0 { ", " } else { "" });
                    self.default(&item.kind);
                }
                self.word("]");
            }
            DefaultKind::EmptyMap => self.word("{}"),
            DefaultKind::New(class) => {
                let _ = write!(self.out, "{} {{}}", class.name);
            }
            DefaultKind::Invalid => self.word("<invalid>"),
        }
    }

    fn ty(&mut self, ty: &Type) {
        match &ty.kind {
            TypeKind::Nullable(inner) => {
                self.word("?");
                self.ty(inner);
            }
            TypeKind::Multi(inner) => {
                self.word("multi ");
                self.ty(inner);
            }
            TypeKind::Map(key, value) => {
                self.word("map<");
                self.ty(key);
                self.word(", ");
                self.ty(value);
                self.word(">");
            }
            TypeKind::Ref(name) => {
                let _ = write!(self.out, "ref {}", name.name);
            }
            TypeKind::Actor(name) => {
                let _ = write!(self.out, "actor {}", name.name);
            }
            TypeKind::Backlink(class, field) => {
                let _ = write!(self.out, "backlink {}.{}", class.name, field.name);
            }
            TypeKind::Named(name) => self.word(&name.name),
            TypeKind::Qualified(module, name) => {
                let _ = write!(self.out, "{}.{}", module.name, name.name);
            }
        }
    }

    fn block(&mut self, block: &Block) {
        self.depth += 1;
        for stmt in &block.stmts {
            self.line();
            self.stmt(stmt);
        }
        self.depth -= 1;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let { name, ty, value } => {
                let _ = write!(self.out, "(let {}", name.name);
                if let Some(ty) = ty {
                    self.word(": ");
                    self.ty(ty);
                }
                self.arg(value);
                self.word(")");
            }
            StmtKind::If(chain) => {
                self.word("(if");
                for (cond, body) in &chain.arms {
                    self.arg(cond);
                    self.word(" then");
                    self.block(body);
                }
                if let Some(otherwise) = &chain.otherwise {
                    self.line();
                    self.word("else");
                    self.block(otherwise);
                }
                self.word(")");
            }
            StmtKind::While { cond, body } => {
                self.word("(while");
                self.arg(cond);
                self.block(body);
                self.word(")");
            }
            StmtKind::For { first, second, iter, body } => {
                let _ = write!(self.out, "(for {}", first.name);
                if let Some(second) = second {
                    let _ = write!(self.out, ", {}", second.name);
                }
                self.word(" in");
                self.arg(iter);
                self.block(body);
                self.word(")");
            }
            StmtKind::DoWhile { body, cond } => {
                self.word("(do-while");
                self.arg(cond);
                self.block(body);
                self.word(")");
            }
            StmtKind::Return(value) => {
                self.word("(return");
                if let Some(value) = value {
                    self.arg(value);
                }
                self.word(")");
            }
            StmtKind::Unread { .. } => self.word("(unread)"),
            StmtKind::Break => self.word("(break)"),
            StmtKind::Continue => self.word("(continue)"),
            StmtKind::Expr(value) => self.expr(value),
            StmtKind::Assign { target, value } => self.form("=", [target, value]),
            StmtKind::OpAssign { target, op, value } => {
                let word = format!("{}=", op.symbol());
                self.form(&word, [target, value]);
            }
        }
    }

    /// A blank and the expression.
    fn arg(&mut self, expr: &Expr) {
        self.word(" ");
        self.expr(expr);
    }

    fn form<'e>(&mut self, word: &str, args: impl IntoIterator<Item = &'e Expr>) {
        let _ = write!(self.out, "({word}");
        for arg in args {
            self.arg(arg);
        }
        self.word(")");
    }

    fn object(&mut self, word: &str, class: &Ident, fields: &[(Ident, Expr)]) {
        let _ = write!(self.out, "({word} {}", class.name);
        for (name, value) in fields {
            let _ = write!(self.out, " {}:", name.name);
            self.arg(value);
        }
        self.word(")");
    }

    /// Operands may be chains of thousands of links, hence the check of the stack.
    fn expr(&mut self, expr: &Expr) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.expr_kind(&expr.kind, expr));
    }

    fn expr_kind(&mut self, kind: &ExprKind, expr: &Expr) {
        match kind {
            ExprKind::Unread => self.word("(unread)"),
            ExprKind::Int(v) => {
                let _ = write!(self.out, "{v}");
            }
            ExprKind::Float(v) => {
                let _ = write!(self.out, "{v:?}");
            }
            ExprKind::Bool(v) => {
                let _ = write!(self.out, "{v}");
            }
            ExprKind::Nil => self.word("nil"),
            ExprKind::Text(pieces) => self.text(pieces),
            ExprKind::Name(name) => self.word(name),
            ExprKind::Binary { .. } => self.chain(expr),
            ExprKind::Concat(items) => self.form("..", items),
            ExprKind::Unary { op, operand } => {
                self.form(if *op == UnOp::Neg { "-" } else { "not" }, [operand.as_ref()]);
            }
            ExprKind::As(value, ty) => {
                self.word("(as");
                self.arg(value);
                self.word(" ");
                self.ty(ty);
                self.word(")");
            }
            ExprKind::Field(base, name) => {
                self.word("(.");
                self.word(&name.name);
                self.arg(base);
                self.word(")");
            }
            ExprKind::Index(base, index) => self.form("index", [base.as_ref(), index.as_ref()]),
            ExprKind::Call { callee, args } => {
                self.form("call", std::iter::once(callee.as_ref()).chain(args));
            }
            ExprKind::New { class, fields } => self.object("new", class, fields),
            ExprKind::Spawn { class, fields } => self.object("spawn", class, fields),
            ExprKind::Insert { class, fields } => self.object("insert", class, fields),
            ExprKind::Delete(row) => self.form("delete", [row.as_ref()]),
            ExprKind::List(items) => self.form("list", items),
            ExprKind::EmptyMap => self.word("{}"),
            ExprKind::Switch(switch) => self.switch(switch),
            ExprKind::Try { body, var, handler } => {
                self.word("(try");
                self.arg(body);
                let _ = write!(self.out, " catch {}", var.name);
                match handler.as_ref() {
                    Handler::Expr(value) => self.arg(value),
                    Handler::Block(block) => {
                        self.word(" do");
                        self.block(block);
                    }
                }
                self.word(")");
            }
            ExprKind::Query(query) => self.query(query),
        }
    }

    /// A left-nested chain of binary operators.
    fn chain(&mut self, expr: &Expr) {
        let mut links = Vec::new();
        let mut at = expr;
        while let ExprKind::Binary { op, lhs, rhs, .. } = &at.kind {
            links.push((*op, rhs));
            at = lhs;
        }
        for (op, _) in &links {
            let _ = write!(self.out, "({} ", op.symbol());
        }
        self.expr(at);
        for (_, rhs) in links.iter().rev() {
            self.arg(rhs);
            self.word(")");
        }
    }

    fn text(&mut self, pieces: &[Piece]) {
        match pieces {
            [] => self.word("\"\""),
            [Piece::Text(text)] => self.word(&quote(text)),
            _ => {
                self.word("(text");
                for piece in pieces {
                    match piece {
                        Piece::Text(text) => {
                            let _ = write!(self.out, " {}", quote(text));
                        }
                        Piece::Hole(value) => self.arg(value),
                        Piece::Escaped(value, _) => {
                            self.word(" ");
                            self.form("esc", [value]);
                        }
                    }
                }
                self.word(")");
            }
        }
    }

    fn switch(&mut self, switch: &Switch) {
        self.word("(switch");
        self.arg(&switch.subject);
        self.depth += 1;
        for arm in &switch.arms {
            self.line();
            if arm.is_default {
                self.word("(default");
            } else {
                self.word("(case");
                for value in &arm.values {
                    self.arg(value);
                }
                self.word(" :");
            }
            self.block(&arm.body);
            self.word(")");
        }
        self.depth -= 1;
        self.word(")");
    }

    fn query(&mut self, query: &Query) {
        let _ = write!(self.out, "(from {}", query.var.name);
        self.arg(&query.source);
        for filter in &query.filters {
            self.word(" where");
            self.arg(filter);
        }
        if query.group.is_some() {
            self.word(" group");
        }
        for (key, descending) in &query.order {
            self.word(if *descending { " desc" } else { " asc" });
            self.arg(key);
        }
        if let Some(skip) = &query.skip {
            self.word(" skip");
            self.arg(skip);
        }
        if let Some(take) = &query.take {
            self.word(" take");
            self.arg(take);
        }
        self.word(" select");
        self.arg(&query.select);
        self.word(")");
    }
}
