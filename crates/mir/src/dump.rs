//! MIR as text: stable, one instruction a line. Locals are `%n`; a definition shows the rep (`:i`, `:f`, `:o`, `:a`).

use crate::ir::{Block, Callee, Func, InstKind, Local, Program, Rep, Term};
use std::fmt::Write;

/// The whole program as text.
#[must_use]
pub fn dump(program: &Program) -> String {
    let mut out = String::new();
    for (i, text) in program.texts.iter().enumerate() {
        let _ = writeln!(out, "text {i} = \"{}\"", text.escape_ascii());
    }
    for (i, table) in program.tables.iter().enumerate() {
        let rows: Vec<String> = table.rows.iter().map(|(class, f)| format!("{class} -> f{}", f.0)).collect();
        let _ = writeln!(out, "table {i} {} = {{{}}}", table.name, rows.join(", "));
    }
    for (class, f) in &program.receives {
        let _ = writeln!(out, "receive {class} = f{}", f.0);
    }
    for (name, f) in &program.tests {
        let _ = writeln!(out, "test \"{}\" = f{}", name.escape_default(), f.0);
    }
    if let Some(main) = program.main {
        let _ = writeln!(out, "main = f{}", main.0);
    }
    for (i, func) in program.funcs.iter().enumerate() {
        dump_func(&mut out, program, i, func);
    }
    out
}

struct Printer<'a> {
    program: &'a Program,
    func: &'a Func,
}

fn dump_func(out: &mut String, program: &Program, i: usize, func: &Func) {
    let p = Printer { program, func };
    let params: Vec<String> = (0..func.params).map(|i| p.def(Local(i))).collect();
    let results: Vec<&str> = func.results.iter().map(|r| rep(*r)).collect();
    let name = if func.display.is_empty() { "(made)" } else { &func.display };
    let recursive = if func.recursive { " recursive" } else { "" };
    let unwind = func.entry_unwind.map(|b| format!(" unwind b{}", b.0)).unwrap_or_default();
    let _ = writeln!(out, "\nf{i} {name}({}) -> ({}){recursive}{unwind}", params.join(", "), results.join(", "));
    for (n, block) in func.blocks.iter().enumerate() {
        p.block(out, n, block);
    }
}

fn rep(rep: Rep) -> &'static str {
    match rep {
        Rep::Int => "i",
        Rep::Float => "f",
        Rep::Obj => "o",
        Rep::Actor => "a",
    }
}

impl Printer<'_> {
    /// `%n:rep`, with the source name where there is one.
    fn def(&self, local: Local) -> String {
        match self.func.locals.get(local.0 as usize) {
            Some(l) if l.name.is_empty() => format!("%{}:{}", local.0, rep(l.rep)),
            Some(l) => format!("%{}:{}({})", local.0, rep(l.rep), l.name),
            None => format!("%{}:?", local.0),
        }
    }

    fn text(&self, id: u32) -> String {
        let bytes = self.program.texts.get(id as usize).map_or(&[][..], Vec::as_slice);
        format!("\"{}\"", bytes.escape_ascii())
    }

    fn callee(&self, callee: &Callee) -> String {
        match callee {
            Callee::Func(id) => {
                let name = self.program.funcs.get(id.0 as usize).map_or("", |f| f.display.as_str());
                format!("f{}<{name}>", id.0)
            }
            Callee::Runtime(name) => (*name).to_string(),
            Callee::Table(t) => {
                let name = self.program.tables.get(*t as usize).map_or("", |t| t.name.as_str());
                format!("table {t}<{name}>")
            }
        }
    }

    fn block(&self, out: &mut String, n: usize, block: &Block) {
        let _ = writeln!(out, "b{n}:{}", if block.cold { " cold" } else { "" });
        for inst in &block.insts {
            let _ = writeln!(out, "  {}", self.inst(&inst.kind));
        }
        let _ = writeln!(out, "  {}", term(&block.term));
    }

    fn inst(&self, inst: &InstKind) -> String {
        let unwind = inst.unwind().map_or(String::new(), |b| format!(" !b{}", b.0));
        let nn = |nonnull: &bool| if *nonnull { "" } else { "?" };
        match inst {
            InstKind::Int(d, v) => format!("{} = {v}", self.def(*d)),
            InstKind::Float(d, v) => format!("{} = {v:?}", self.def(*d)),
            InstKind::Text(d, id) => format!("{} = {}", self.def(*d), self.text(id.0)),
            InstKind::Null(d) => format!("{} = null", self.def(*d)),
            InstKind::Copy(d, s) => format!("{} = %{}", self.def(*d), s.0),
            InstKind::IntOp(d, op, l, r) => format!("{} = {} %{}, %{}", self.def(*d), lower(op), l.0, r.0),
            InstKind::FloatOp(d, op, l, r) => format!("{} = f{} %{}, %{}", self.def(*d), lower(op), l.0, r.0),
            InstKind::FloatNeg(d, s) => format!("{} = fneg %{}", self.def(*d), s.0),
            InstKind::ToBits(d, s) => format!("{} = to_bits %{}", self.def(*d), s.0),
            InstKind::FromBits(d, s) => format!("{} = from_bits %{}", self.def(*d), s.0),
            InstKind::Checked { dst, op, lhs, rhs, .. } => {
                format!("{} = {} %{}, %{}{unwind}", self.def(*dst), lower(op), lhs.0, rhs.0)
            }
            InstKind::Load { dst, base, offset } => format!("{} = load %{}+{offset}", self.def(*dst), base.0),
            InstKind::Store { base, offset, src } => format!("store %{}+{offset}, %{}", base.0, src.0),
            InstKind::Kind(d, s) => format!("{} = kind %{}", self.def(*d), s.0),
            InstKind::Element { dst, multi, index, words, checked, .. } => {
                let (u, unwind) = if *checked { ("", unwind) } else { (" unchecked", String::new()) };
                format!("{} = element{u} %{}[%{}] x{words}{unwind}", self.def(*dst), multi.0, index.0)
            }
            InstKind::Push { multi, first, second, .. } => {
                format!("push %{}, {}{unwind}", multi.0, list(&words(first, second)))
            }
            InstKind::Init { multi, at, first, second } => {
                format!("init %{}[{at}], {}", multi.0, list(&words(first, second)))
            }
            InstKind::Retain { local, nonnull } => format!("retain{} %{}", nn(nonnull), local.0),
            InstKind::Release { local, nonnull } => format!("release{} %{}", nn(nonnull), local.0),
            InstKind::TrapIfNull { local, code, text, .. } => {
                format!("trap_if_null %{}, {code} {}{unwind}", local.0, self.text(text.0))
            }
            InstKind::Call { dsts, callee, args, .. } => {
                let defs: Vec<String> = dsts.iter().map(|d| self.def(*d)).collect();
                let eq = if defs.is_empty() { "" } else { " = " };
                format!("{}{eq}call {}({}){unwind}", defs.join(", "), self.callee(callee), list(args))
            }
            InstKind::Concat { dst, into, parts, .. } => {
                let kinds = ["text", "int", "float", "bool"];
                let parts: Vec<String> = parts
                    .iter()
                    .map(|(k, l)| {
                        let kind = usize::try_from(*k).ok().and_then(|k| kinds.get(k)).unwrap_or(&"?");
                        format!("{kind} %{}", l.0)
                    })
                    .collect();
                match into {
                    Some(into) => format!("{} = append %{} [{}]{unwind}", self.def(*dst), into.0, parts.join(", ")),
                    None => format!("{} = concat [{}]{unwind}", self.def(*dst), parts.join(", ")),
                }
            }
            InstKind::Safepoint { .. } => format!("safepoint{unwind}"),
        }
    }
}

fn lower(op: &impl std::fmt::Debug) -> String {
    format!("{op:?}").to_lowercase()
}

fn words(first: &Local, second: &Option<Local>) -> Vec<Local> {
    [*first].into_iter().chain(*second).collect()
}

fn list(locals: &[Local]) -> String {
    let all: Vec<String> = locals.iter().map(|l| format!("%{}", l.0)).collect();
    all.join(", ")
}

fn term(term: &Term) -> String {
    match term {
        Term::Jump(b) => format!("jump b{}", b.0),
        Term::Branch { cond, then, otherwise } => format!("branch %{} b{} b{}", cond.0, then.0, otherwise.0),
        Term::Switch { on, cases, default } => {
            let cases: Vec<String> = cases.iter().map(|(v, b)| format!("{v} b{}", b.0)).collect();
            format!("switch %{} [{}] else b{}", on.0, cases.join(", "), default.0)
        }
        Term::Return(values) if values.is_empty() => "return".to_string(),
        Term::Return(values) => format!("return {}", list(values)),
        Term::Resume => "resume".to_string(),
        Term::Unreachable => "unreachable".to_string(),
    }
}
