//! The program as a whole: functions, dispatch tables, adapters, the entry.

use super::{Cx, lower_default, lower_func};
use crate::builder::Builder;
use crate::graph;
use crate::ir::{BlockId, Callee, Func, FuncId, InstKind, Local, Program, Rep, Table, Term};
use crate::passes::Passes;
use crate::shapes::{Layouts, Shape, reply_of, shape};
use abi::desc::Reply;
use abi::layout;
use analysis::hir::{self, ClassId};
use rustc_hash::FxHashMap;
use syntax::ast::Mode;

/// HIR function ids are MIR function ids; made functions follow.
pub fn lower_program(program: &hir::Program, passes: Passes) -> Program {
    let mut tables = Vec::new();
    let mut next = 0;
    for iface in &program.interfaces {
        tables.push(next);
        next += u32::try_from(iface.sigs.len()).unwrap_or(0);
    }
    let mut cx = Cx {
        program,
        passes,
        layouts: Layouts::new(program),
        texts: Vec::new(),
        text_index: FxHashMap::default(),
        tables,
        default_classes: Vec::new(),
        file: 0,
        plans: Vec::new(),
    };
    let mut out = Program::default();
    for (i, func) in program.funcs.iter().enumerate() {
        let id = hir::FuncId(u32::try_from(i).unwrap_or(u32::MAX));
        out.funcs.push(lower_func(&mut cx, id, func));
    }
    let mut next = 0;
    while let Some(class) = cx.default_classes.get(next).copied() {
        out.funcs.push(lower_default(&mut cx, class));
        next += 1;
    }
    dispatch_tables(&cx, &mut out);
    receives(&cx, &mut out);
    entry(&cx, &mut out);
    for (name, test) in &program.tests {
        let entry = test_entry(&cx, &mut out, *test);
        out.tests.push((name.clone(), entry));
    }
    cx.plans.sort_by_key(|plan| (plan.file, plan.line));
    out.plans = cx.plans;
    out.texts = cx.texts;
    out.shapes = cx.layouts.shapes;
    for func in &mut out.funcs {
        graph::clean(func);
    }
    graph::mark_recursive(&mut out);
    out
}

/// Result and parameters of a function as the machine sees them.
#[derive(PartialEq, Eq)]
struct Signature {
    /// With whether the callee owns the argument.
    params: Vec<(Shape, bool)>,
    result: Shape,
}

fn signature(cx: &Cx<'_>, id: hir::FuncId) -> Signature {
    let Some(func) = cx.program.funcs.get(id.0 as usize) else {
        return Signature { params: Vec::new(), result: Shape::None };
    };
    let params = func.locals.iter().zip(&func.params).map(|(l, mode)| param(cx, l.ty, *mode)).collect();
    Signature { params, result: cx.result(id) }
}

fn param(cx: &Cx<'_>, ty: hir::Ty, mode: Mode) -> (Shape, bool) {
    let shape = shape(cx.program, ty);
    (shape, mode == Mode::Take && shape.is_managed())
}

fn dispatch_tables(cx: &Cx<'_>, out: &mut Program) {
    for iface in &cx.program.interfaces {
        for (slot, sig) in iface.sigs.iter().enumerate() {
            let mut wanted =
                Signature { params: vec![(Shape::One(Rep::Obj), false)], result: shape(cx.program, sig.ret) };
            wanted.params.extend(sig.params.iter().map(|(mode, ty)| param(cx, *ty, *mode)));
            let mut rows = Vec::new();
            for (class, methods) in &iface.impls {
                let Some(method) = methods.get(slot).copied() else { continue };
                let given = signature(cx, method);
                let func = if given == wanted { FuncId(method.0) } else { adapter(cx, out, method, &wanted, &given) };
                rows.push((class.0, func));
            }
            rows.sort_unstable_by_key(|(class, _)| *class);
            out.tables.push(Table { name: format!("{}.{}", iface.name, sig.name), rows });
        }
    }
}

/// A function of signature `wanted` that calls `method`, whose signature is `given`: `T` becomes `?T` where the
/// method takes or the interface yields one, an ordinal leaves the object that it was sent in, and a result that nobody
/// wants is released.
fn adapter(cx: &Cx<'_>, out: &mut Program, method: hir::FuncId, wanted: &Signature, given: &Signature) -> FuncId {
    let mut b = Builder::new();
    let mut args = Vec::new();
    let mut incoming = Vec::new();
    for (shape, owned) in &wanted.params {
        let locals = declare(&mut b, *shape);
        if *owned {
            locals.iter().for_each(|l| b.own(*l));
        }
        incoming.push(locals);
    }
    let entry_unwind = if b.depth() > 0 { Some(b.unwind()) } else { None };
    let params = u32::try_from(b.locals.len()).unwrap_or(u32::MAX);
    for (i, (to, taken)) in given.params.iter().enumerate() {
        let (from, owned) = wanted.params.get(i).copied().unwrap_or((Shape::None, false));
        let locals = incoming.get(i).cloned().unwrap_or_default();
        if *taken {
            // The reference goes on to the method.
            locals.iter().for_each(|l| if owned { b.disown(*l) } else { b.retain(*l) });
        }
        args.extend(convert(&mut b, from, *to, locals));
    }
    let results = declare(&mut b, given.result);
    b.call(FuncId(method.0), args, results.clone());
    b.close(0);
    if given.result.is_managed() && !wanted.result.is_managed() {
        results.iter().for_each(|r| b.release(*r));
    }
    let results = convert(&mut b, given.result, wanted.result, results);
    b.end(Term::Return(results));
    let made = Made { params, results: wanted.result.reps(), entry_unwind };
    push(cx, out, method, b, made)
}

fn declare(b: &mut Builder, shape: Shape) -> Vec<Local> {
    shape.reps().into_iter().map(|rep| b.temp(rep)).collect()
}

fn convert(b: &mut Builder, from: Shape, to: Shape, locals: Vec<Local>) -> Vec<Local> {
    match (from, to, locals.as_slice()) {
        (a, b, _) if a == b => locals,
        (Shape::One(a), Shape::Pair(r), [value]) if a == r => vec![b.int(1), *value],
        (Shape::Pair(a), Shape::One(r), [_, value]) if a == r => vec![*value],
        // A message that was boxed (`Layouts::box_class`).
        (Shape::One(Rep::Obj), Shape::One(Rep::Int), [object]) => {
            vec![b.load(Rep::Int, false, *object, layout::FIELDS)]
        }
        _ => to
            .reps()
            .into_iter()
            .map(|rep| {
                let dst = b.temp(rep);
                b.emit(match rep {
                    Rep::Int => InstKind::Int(dst, 0),
                    Rep::Float => InstKind::Float(dst, 0.0),
                    Rep::Obj | Rep::Actor => InstKind::Null(dst),
                });
                dst
            })
            .collect(),
    }
}

/// The outside of a made function.
struct Made {
    params: u32,
    results: Vec<Rep>,
    entry_unwind: Option<BlockId>,
}

/// Adds a made function. Its display name is empty: stack traces leave it out.
fn push(cx: &Cx<'_>, out: &mut Program, like: hir::FuncId, b: Builder, made: Made) -> FuncId {
    let span = cx.program.funcs.get(like.0 as usize).map(|f| f.span).unwrap_or_default();
    let id = FuncId(u32::try_from(out.funcs.len()).unwrap_or(u32::MAX));
    out.funcs.push(Func {
        display: String::new(),
        file: span.file.0,
        line: span.start,
        params: made.params,
        results: made.results,
        locals: b.locals,
        blocks: b.blocks,
        entry_unwind: made.entry_unwind,
        recursive: false,
    });
    id
}

fn receives(cx: &Cx<'_>, out: &mut Program) {
    for (i, class) in cx.program.classes.iter().enumerate() {
        let Some(receive) = class.receive else { continue };
        let id = ClassId(u32::try_from(i).unwrap_or(u32::MAX));
        let given = signature(cx, receive);
        // The runtime hands over objects, and a result that no `call` can ask for is released here.
        let mut wanted = Signature { params: given.params.clone(), result: given.result };
        if let Some((message @ Shape::One(Rep::Int), _)) = wanted.params.get_mut(1) {
            *message = Shape::One(Rep::Obj);
        }
        if reply_of(given.result) == Reply::None {
            wanted.result = Shape::None;
        }
        let func = if given == wanted { FuncId(receive.0) } else { adapter(cx, out, receive, &wanted, &given) };
        out.receives.push((id.0, func));
    }
}

/// The entry itself where it takes no arguments, else a function that hands them over.
fn entry(cx: &Cx<'_>, out: &mut Program) {
    let Some(main) = cx.program.main else { return };
    if !main.takes_args {
        out.main = Some(FuncId(main.func.0));
        return;
    }
    let mut b = Builder::new();
    let args = b.runtime1("rt.args", Vec::new(), Rep::Obj);
    b.own(args);
    let status = b.temp(Rep::Int);
    let func = cx.program.funcs.get(main.func.0 as usize);
    if func.is_some_and(|f| f.params.first() == Some(&Mode::Take)) {
        b.disown(args);
    }
    b.call(FuncId(main.func.0), vec![args], vec![status]);
    b.close(0);
    b.end(Term::Return(vec![status]));
    let made = Made { params: 0, results: vec![Rep::Int], entry_unwind: None };
    out.main = Some(push(cx, out, main.func, b, made));
}

/// A function that can be `Program::main`: runs the test and yields 0, whatever the test's body returned.
fn test_entry(cx: &Cx<'_>, out: &mut Program, test: hir::FuncId) -> FuncId {
    let mut b = Builder::new();
    b.call(FuncId(test.0), Vec::new(), Vec::new());
    let status = b.int(0);
    b.close(0);
    b.end(Term::Return(vec![status]));
    push(cx, out, test, b, Made { params: 0, results: vec![Rep::Int], entry_unwind: None })
}

/// Parameters and results of a callee; `None` for runtime functions and unknown ids.
pub fn callee_signature(program: &Program, callee: &Callee) -> Option<(Vec<Rep>, Vec<Rep>)> {
    let func = match callee {
        Callee::Func(id) => program.funcs.get(id.0 as usize)?,
        Callee::Table(t) => {
            let (_, id) = program.tables.get(*t as usize)?.rows.first()?;
            program.funcs.get(id.0 as usize)?
        }
        Callee::Runtime(_) => return None,
    };
    let params = func.locals.iter().take(func.params as usize).map(|l| l.rep).collect();
    Some((params, func.results.clone()))
}
