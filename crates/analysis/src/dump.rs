//! `woc dump hir`: the typed program as text, declarations first, then functions. For reading; nothing parses it.

use crate::hir::{
    Arm, ArmTest, Block, BlockExpr, Class, Default_, Expr, ExprKind, Func, LocalId, Place, Program, Stmt, StmtKind,
    StoreOp, Switch,
};
use crate::show::show;
use crate::types::{ClassId, Ty, Types};
use std::fmt::Write;
use syntax::ast::Mode;

/// A readable form of the whole program. Locals print as `name#id`, conversions by their names.
#[must_use]
pub fn dump_hir(program: &Program) -> String {
    let mut dump = Dump { program, out: String::new(), depth: 0, locals: &[] };
    for class in &program.classes {
        dump.class(class);
    }
    for union in &program.unions {
        let variants = union.variants.iter().map(|v| {
            let fields = v.fields.iter().map(|(name, ty)| format!("{name}: {}", show(program, *ty)));
            let fields = fields.collect::<Vec<_>>().join(", ");
            if fields.is_empty() { v.name.to_string() } else { format!("{}({fields})", v.name) }
        });
        let variants = variants.collect::<Vec<_>>().join(" | ");
        dump.line(&format!("union {} = {variants}", union.name));
    }
    for iface in &program.interfaces {
        dump.line(&format!("interface {} {{", iface.name));
        dump.depth += 1;
        for sig in &iface.sigs {
            let params = sig.params.iter().map(|(mode, ty)| format!("{}{}", mode_word(*mode), show(program, *ty)));
            let params = params.collect::<Vec<_>>().join(", ");
            dump.line(&format!("fn {}({params}){}", sig.name, result(program, sig.ret)));
        }
        for (class, funcs) in &iface.impls {
            let funcs = funcs.iter().map(|f| format!("f{}", f.0)).collect::<Vec<_>>().join(", ");
            dump.line(&format!("impl {}: {funcs}", dump.class_name(*class)));
        }
        dump.depth -= 1;
        dump.line("}");
    }
    if let Some(main) = program.main {
        dump.line(&format!("main f{}{}", main.func.0, if main.takes_args { " (args)" } else { "" }));
    }
    for (name, func) in &program.tests {
        dump.line(&format!("test {name:?} f{}", func.0));
    }
    for (i, func) in program.funcs.iter().enumerate() {
        dump.func(i, func);
    }
    dump.out
}

struct Dump<'p> {
    program: &'p Program,
    out: String,
    depth: usize,
    locals: &'p [crate::hir::Local],
}

fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Borrow => "",
        Mode::Mut => "mut ",
        Mode::Take => "take ",
    }
}

fn result(program: &Program, ty: Ty) -> String {
    if ty == Types::VOID { String::new() } else { format!(" -> {}", show(program, ty)) }
}

fn text(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes))
}

impl<'p> Dump<'p> {
    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn class_name(&self, class: ClassId) -> String {
        self.program.classes.get(class.0 as usize).map_or_else(|| "?".to_owned(), |c| c.name.to_string())
    }

    fn field_name(&self, class: ClassId, field: u32) -> String {
        let class = self.program.classes.get(class.0 as usize);
        class.and_then(|c| c.fields.get(field as usize)).map_or_else(|| "?".to_owned(), |f| f.name.to_string())
    }

    fn class(&mut self, class: &'p Class) {
        let kind = match (class.is_record, class.is_table) {
            (true, _) => "record",
            (_, true) => "table",
            _ => "class",
        };
        self.line(&format!("{kind} {} {{", class.name));
        self.depth += 1;
        for field in &class.fields {
            let default = field.default.as_ref().map(|d| format!(" = {}", self.default(d))).unwrap_or_default();
            let access = if field.read_only { "pub(read) " } else { "" };
            let line = format!("{access}{}: {}{default}", field.name, show(self.program, field.ty));
            self.line(&line);
        }
        self.depth -= 1;
        self.line("}");
    }

    fn default(&self, default: &Default_) -> String {
        match default {
            Default_::Nil => "nil".to_owned(),
            Default_::Now => "now".to_owned(),
            Default_::Int(n) => n.to_string(),
            Default_::Float(f) => format!("{f:?}"),
            Default_::Bool(b) => b.to_string(),
            Default_::Text(t) => text(t),
            Default_::EmptyMulti => "[]".to_owned(),
            Default_::EmptyMap => "{}".to_owned(),
            Default_::List(items) => {
                format!("[{}]", items.iter().map(|i| self.default(i)).collect::<Vec<_>>().join(", "))
            }
            Default_::New(class) => format!("{} {{}}", self.class_name(*class)),
        }
    }

    fn func(&mut self, index: usize, func: &'p Func) {
        self.locals = &func.locals;
        let params = func.params.iter().zip(&func.locals).enumerate();
        let params = params.map(|(i, (mode, local))| {
            format!("{}{}#{i}: {}", mode_word(*mode), local.name, show(self.program, local.ty))
        });
        let params = params.collect::<Vec<_>>().join(", ");
        let never = if func.never_returns { " never" } else { "" };
        let line = format!("f{index} {}({params}){}{never} {{", func.display, result(self.program, func.ret));
        self.line(&line);
        self.block(&func.body);
        self.line("}");
    }

    fn local(&self, id: LocalId) -> String {
        let name = self.locals.get(id.0 as usize).map_or("?", |l| l.name.as_str());
        format!("{name}#{}", id.0)
    }

    fn block(&mut self, block: &Block) {
        self.depth += 1;
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
        self.depth -= 1;
    }

    fn block_expr(&mut self, block: &BlockExpr) {
        self.block(&block.block);
        if let Some(value) = &block.value {
            self.depth += 1;
            let line = format!("=> {}", self.expr(value));
            self.line(&line);
            self.depth -= 1;
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Let(local, value) => {
                let ty = self.locals.get(local.0 as usize).map(|l| show(self.program, l.ty)).unwrap_or_default();
                let line = format!("let {}: {ty} = {}", self.local(*local), self.expr(value));
                self.line(&line);
            }
            StmtKind::Assign(place, value) => {
                let line = format!("{} = {}", self.place(place), self.expr(value));
                self.line(&line);
            }
            StmtKind::OpAssign(place, op, value) => {
                let line = format!("{} {op:?}= {}", self.place(place), self.expr(value));
                self.line(&line);
            }
            StmtKind::Expr(value) => {
                let line = self.expr(value);
                self.line(&line);
            }
            StmtKind::If { arms, otherwise } => {
                for (i, (cond, block)) in arms.iter().enumerate() {
                    let line = format!("{}if {} {{", if i == 0 { "" } else { "} else " }, self.expr(cond));
                    self.line(&line);
                    self.block(block);
                }
                if let Some(block) = otherwise {
                    self.line("} else {");
                    self.block(block);
                }
                self.line("}");
            }
            StmtKind::While { cond, body } => {
                let line = format!("while {} {{", self.expr(cond));
                self.line(&line);
                self.block(body);
                self.line("}");
            }
            StmtKind::DoWhile { body, cond } => {
                self.line("do {");
                self.block(body);
                let line = format!("}} while {}", self.expr(cond));
                self.line(&line);
            }
            StmtKind::ForMulti { var, iter, body } => {
                let line = format!("for {} in {} {{", self.local(*var), self.expr(iter));
                self.line(&line);
                self.block(body);
                self.line("}");
            }
            StmtKind::ForMap { key, value, iter, body } => {
                let line = format!("for {}, {} in {} {{", self.local(*key), self.local(*value), self.expr(iter));
                self.line(&line);
                self.block(body);
                self.line("}");
            }
            StmtKind::Return(Some(value)) => {
                let line = format!("return {}", self.expr(value));
                self.line(&line);
            }
            StmtKind::Return(None) => self.line("return"),
            StmtKind::Break => self.line("break"),
            StmtKind::Continue => self.line("continue"),
        }
    }

    fn place(&mut self, place: &Place) -> String {
        match place {
            Place::Local(local) => self.local(*local),
            Place::Field(object, class, field) => {
                format!("{}.{}", self.expr(object), self.field_name(*class, *field))
            }
            Place::Element(list, index) => format!("{}[{}]", self.expr(list), self.expr(index)),
            Place::Entry(map, key) => format!("{}[{}]", self.expr(map), self.expr(key)),
            Place::Column(row, class, column) => {
                format!("row {}.{}", self.expr(row), self.field_name(*class, *column))
            }
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) -> String {
        exprs.iter().map(|e| self.expr(e)).collect::<Vec<_>>().join(", ")
    }

    fn construct(&mut self, word: &str, class: ClassId, fields: &[(u32, Expr)], defaults: &[u32]) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (field, value) in fields {
            parts.push(format!("{}: {}", self.field_name(class, *field), self.expr(value)));
        }
        for field in defaults {
            parts.push(format!("{}: default", self.field_name(class, *field)));
        }
        format!("{word}{} {{ {} }}", self.class_name(class), parts.join(", "))
    }

    /// Blocks inside of expressions are written at once, before the line that the expression stands on.
    fn expr(&mut self, expr: &Expr) -> String {
        match &expr.kind {
            ExprKind::Int(n) => n.to_string(),
            ExprKind::Float(f) => format!("{f:?}"),
            ExprKind::Bool(b) => b.to_string(),
            ExprKind::Text(t) => text(t),
            ExprKind::Nil => "nil".to_owned(),
            ExprKind::Local(local) => self.local(*local),
            ExprKind::IntNeg(e) | ExprKind::FloatNeg(e) => format!("-{}", self.expr(e)),
            ExprKind::Not(e) => format!("not {}", self.expr(e)),
            ExprKind::Binary(..) => {
                // Long chains nest to the left: down the left side by a loop.
                let mut rights = Vec::new();
                let mut at = expr;
                while let ExprKind::Binary(op, lhs, rhs) = &at.kind {
                    rights.push((*op, rhs));
                    at = lhs;
                }
                let mut out = self.expr(at);
                for (op, rhs) in rights.into_iter().rev() {
                    let _ = write!(out, " {op:?} {}", self.operand(rhs));
                }
                out
            }
            ExprKind::And(..) => self.chain(expr, "and"),
            ExprKind::Or(..) => self.chain(expr, "or"),
            ExprKind::NullableEq { eq, negated, lhs, rhs } => {
                let op = if *negated { "!=" } else { "==" };
                format!("({} {op}[{eq:?}] {})", self.expr(lhs), self.expr(rhs))
            }
            ExprKind::IsNil { operand, negated } => {
                format!("({} {} nil)", self.expr(operand), if *negated { "!=" } else { "==" })
            }
            ExprKind::Concat(parts) => format!("concat({})", self.exprs(parts)),
            ExprKind::Wrap(e) => format!("wrap({})", self.expr(e)),
            ExprKind::Unwrap(e, on_nil) => format!("unwrap[{on_nil:?}]({})", self.expr(e)),
            ExprKind::Convert(e) => format!("({} to {})", self.expr(e), show(self.program, expr.ty)),
            ExprKind::VoidAsInt(e) => format!("void_as_int({})", self.expr(e)),
            ExprKind::Field(object, class, field) => {
                format!("{}.{}", self.operand(object), self.field_name(*class, *field))
            }
            ExprKind::Element(base, index) | ExprKind::Entry(base, index) => {
                format!("{}[{}]", self.operand(base), self.expr(index))
            }
            ExprKind::New { class, fields, defaults } => self.construct("", *class, fields, defaults),
            ExprKind::Spawn { class, fields, defaults } => self.construct("spawn ", *class, fields, defaults),
            ExprKind::NewVariant { union, variant, args } => {
                format!("{}({})", self.variant_name(*union, *variant), self.exprs(args))
            }
            ExprKind::Ordinal { union, variant } => self.variant_name(*union, *variant),
            ExprKind::List(items) => format!("[{}]", self.exprs(items)),
            ExprKind::EmptyMap => "{}".to_owned(),
            ExprKind::Call(func, args) => {
                let name = self.program.funcs.get(func.0 as usize).map_or("?", |f| f.display.as_str()).to_owned();
                format!("{name}[f{}]({})", func.0, self.exprs(args))
            }
            ExprKind::CallIface { iface, slot, recv, args } => {
                let decl = self.program.interfaces.get(iface.0 as usize);
                let name = decl.and_then(|i| Some((&i.name, &i.sigs.get(*slot as usize)?.name)));
                let name = name.map_or_else(|| "?".to_owned(), |(i, m)| format!("{i}.{m}"));
                format!("{}.{name}({})", self.operand(recv), self.exprs(args))
            }
            ExprKind::Builtin(builtin, args) => match builtin {
                crate::hir::Builtin::Plain(name) => format!("{name}({})", self.exprs(args)),
                other => format!("{other:?}({})", self.exprs(args)),
            },
            ExprKind::Store(op) => self.store(op),
            ExprKind::JsonDecode(e) => format!("json.decode({}) as {}", self.expr(e), show(self.program, expr.ty)),
            ExprKind::Switch(switch) => self.switch(switch),
            ExprKind::Try { body, var, handler } => {
                let body = self.expr(body);
                let head = format!("handler {} {{", self.local(*var));
                self.line(&head);
                self.block_expr(handler);
                self.line("}");
                format!("try {body} catch (handler {})", self.local(*var))
            }
        }
    }

    fn store(&mut self, op: &StoreOp) -> String {
        match op {
            StoreOp::Column(row, class, column) | StoreOp::Backlink(row, class, column) => {
                format!("row {}.{}", self.operand(row), self.field_name(*class, *column))
            }
            StoreOp::Insert { class, fields, defaults } => self.construct("insert ", *class, fields, defaults),
            StoreOp::Delete(row) => format!("delete {}", self.operand(row)),
            StoreOp::Query(query) => {
                let source = match &query.source {
                    Some(rows) => self.expr(rows),
                    None => self.class_name(query.class),
                };
                let mut out = format!("from {} in {source}", self.local(query.var));
                for filter in &query.filters {
                    out.push_str(&format!(" where {}", self.expr(filter)));
                }
                for (at, (key, desc)) in query.order.iter().enumerate() {
                    out.push_str(if at == 0 { " order by " } else { ", " });
                    out.push_str(&self.expr(key));
                    out.push_str(if *desc { " desc" } else { "" });
                }
                for (word, bound) in [("skip", &query.skip), ("take", &query.take)] {
                    if let Some(bound) = bound {
                        out.push_str(&format!(" {word} {}", self.expr(bound)));
                    }
                }
                out.push_str(&format!(" select {}", self.expr(&query.select)));
                out
            }
        }
    }

    fn chain(&mut self, expr: &Expr, word: &str) -> String {
        let mut rights = Vec::new();
        let mut at = expr;
        while let (ExprKind::And(lhs, rhs), "and") | (ExprKind::Or(lhs, rhs), "or") = (&at.kind, word) {
            rights.push(rhs);
            at = lhs;
        }
        let mut out = self.operand(at);
        for rhs in rights.into_iter().rev() {
            let _ = write!(out, " {word} {}", self.operand(rhs));
        }
        out
    }

    fn operand(&mut self, expr: &Expr) -> String {
        let text = self.expr(expr);
        match &expr.kind {
            ExprKind::Binary(..) | ExprKind::And(..) | ExprKind::Or(..) | ExprKind::Not(_) | ExprKind::IntNeg(_) => {
                format!("({text})")
            }
            _ => text,
        }
    }

    fn variant_name(&self, union: crate::hir::UnionId, variant: u32) -> String {
        let union = self.program.unions.get(union.0 as usize);
        let names = union.and_then(|u| Some((&u.name, &u.variants.get(variant as usize)?.name)));
        names.map_or_else(|| "?".to_owned(), |(u, v)| format!("{u}.{v}"))
    }

    fn switch(&mut self, switch: &Switch) -> String {
        let subject = self.expr(&switch.subject);
        let head = format!(
            "switch {} = {subject}{} {{",
            self.local(switch.subject_local),
            if switch.exhaustive { " exhaustive" } else { "" }
        );
        self.line(&head);
        for arm in &switch.arms {
            self.arm(arm);
        }
        self.line("}");
        format!("(switch {})", self.local(switch.subject_local))
    }

    fn arm(&mut self, arm: &Arm) {
        let head = match &arm.test {
            ArmTest::Default => "default:".to_owned(),
            ArmTest::Any(tests) => format!("case {}:", self.exprs(tests)),
            ArmTest::Ordinals(ordinals) => format!("case {ordinals:?}:"),
            ArmTest::Variants(union, variants, bindings) => {
                let names = variants.iter().map(|v| self.variant_name(*union, *v)).collect::<Vec<_>>().join(", ");
                let bindings = bindings.iter().map(|b| self.local(*b)).collect::<Vec<_>>().join(", ");
                if bindings.is_empty() { format!("case {names}:") } else { format!("case {names}({bindings}):") }
            }
        };
        self.line(&head);
        self.block_expr(&arm.body);
    }
}
