//! Calls between generated functions and of the runtime, dispatch, entries, and errors of compilation.

use super::*;
use crate::code::PAGE;
use abi::{layout, trap};
use cranelift_codegen::Context;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, types};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use mir::ir::{Callee, IntOp, Table};

pub(crate) fn fib() -> Func {
    let mut f = Build::new("fib", &[Rep::Int], &[Rep::Int]);
    let (one, two, cond, a, b) = (f.int(1), f.int(2), f.local(Rep::Int), f.local(Rep::Int), f.local(Rep::Int));
    let (small, big, unwind) = (f.block(), f.block(), f.resume());
    let _ = f.push(InstKind::IntOp(cond, IntOp::Lt, Local(0), two));
    let _ = f.term(Term::Branch { cond, then: small, otherwise: big }).go(small).ret(Local(0)).go(big);
    for dst in [a, b] {
        let _ = f.push(InstKind::IntOp(Local(0), IntOp::Sub, Local(0), one));
        let callee = Callee::Func(FuncId(0));
        let _ = f.push(InstKind::Call { dsts: vec![dst], callee, args: vec![Local(0)], unwind: Some(unwind) });
    }
    let _ = f.push(InstKind::IntOp(a, IntOp::Add, a, b)).ret(a);
    f.func.recursive = true;
    f.func
}

fn call(f: &mut Build, dsts: &[Local], callee: Callee, args: &[Local], unwind: BlockId) {
    let _ = f.push(InstKind::Call { dsts: dsts.to_vec(), callee, args: args.to_vec(), unwind: Some(unwind) });
}

#[test]
fn recursion() {
    assert_eq!(eval(&program(vec![fib()]), 20, 0).unwrap()[0], 6765);
}

#[test]
fn recursion_pays_reductions() {
    for image in images(&program(vec![fib()])) {
        let mut ctx = ctx(image);
        ctx.budget = 50;
        assert_eq!(run(image, &mut ctx, 0, 15, 0)[0], 610);
        assert!(doubles::yields() > 10);
    }
}

#[test]
fn two_results_between_functions() {
    let mut pair = Build::new("pair", &[Rep::Int, Rep::Float], &[Rep::Int, Rep::Float]);
    let one = pair.int(1);
    let _ = pair.push(InstKind::IntOp(Local(0), IntOp::Add, Local(0), one));
    let _ = pair.push(InstKind::FloatNeg(Local(1), Local(1))).term(Term::Return(vec![Local(0), Local(1)]));
    let mut words = Build::new("words", &[Rep::Int], &[Rep::Int, Rep::Int]);
    let _ = words.term(Term::Return(vec![Local(0), Local(0)]));

    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int, Rep::Float]);
    let (a, b, c, x, unwind) =
        (f.local(Rep::Int), f.local(Rep::Int), f.local(Rep::Int), f.local(Rep::Float), f.resume());
    call(&mut f, &[a, b], Callee::Func(FuncId(2)), &[Local(0)], unwind);
    let _ = f.push(InstKind::Float(x, 2.5)).push(InstKind::IntOp(c, IntOp::Add, a, b));
    call(&mut f, &[c, x], Callee::Func(FuncId(1)), &[c, x], unwind);
    let _ = f.term(Term::Return(vec![c, x]));
    let words = eval(&program(vec![f.func, pair.func, words.func]), 10, 0).unwrap();
    assert_eq!(words, [21, (-2.5f64).to_bits() as i64]);
}

#[test]
fn two_results_of_the_runtime() {
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int, Rep::Float]);
    let (a, b, x, unwind) = (f.local(Rep::Int), f.local(Rep::Int), f.local(Rep::Float), f.resume());
    call(&mut f, &[a, b], Callee::Runtime("parse_int"), &[Local(0)], unwind);
    call(&mut f, &[x], Callee::Runtime("float"), &[b], unwind);
    let _ = f.term(Term::Return(vec![a, x]));
    assert_eq!(eval(&program(vec![f.func]), 10, 0).unwrap(), [9, 11.0f64.to_bits() as i64]);
}

/// No symbol returns a word and a Float yet; the machine signature must agree with Rust's all the same.
#[test]
fn a_word_and_a_float_from_rust() {
    use abi::symbols::Rep::{F, W};
    let isa = crate::machine::isa(&Options::default(), false).unwrap();
    let mut ctx = Context::new();
    ctx.func.signature = crate::unit::signature([W, W], []);
    let mut frontend = FunctionBuilderContext::new();
    let mut b = FunctionBuilder::new(&mut ctx.func, &mut frontend);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    b.seal_all_blocks();
    let params = b.block_params(entry).to_vec();
    let callee = b.ins().iconst(types::I64, (doubles::word_float as *const u8).expose_provenance() as i64);
    let sig = b.import_signature(crate::unit::signature([W], [W, F]));
    let inst = b.ins().call_indirect(sig, callee, &params[..2]);
    let results = b.inst_results(inst).to_vec();
    let _ = b.ins().store(MemFlagsData::trusted(), results[0], params[2], 0);
    let _ = b.ins().store(MemFlagsData::trusted(), results[1], params[2], 8);
    let _ = b.ins().return_(&[]);
    b.finalize(isa.frontend_config());
    crate::compile::compile(&mut ctx, isa.as_ref()).unwrap();
    let code = ctx.compiled_code().unwrap();
    assert!(code.buffer.relocs().is_empty());
    let mut memory = crate::memory::Mapping::new(PAGE).unwrap();
    memory.write(0, code.code_buffer()).unwrap();
    let entry = memory.at(0).unwrap();
    memory.protect(PAGE, PAGE).unwrap();
    type Entry = extern "C" fn(*mut Ctx, i64, *mut [u64; 2]);
    // SAFETY: compiled above with this signature, to code that refers to nothing; its memory is never given back.
    let f = unsafe { std::mem::transmute::<*const u8, Entry>(entry) };
    let mut out = [0; 2];
    f(std::ptr::null_mut(), 7, &mut out);
    assert_eq!(out, [8, 3.5f64.to_bits()]);
}

#[test]
fn traps_of_the_runtime_unwind() {
    // On the unwind path the destination keeps what it held before the call.
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int]);
    let (x, dst, catch) = (f.local(Rep::Float), f.local(Rep::Int), f.block());
    let _ = f.push(InstKind::FromBits(x, Local(0))).push(InstKind::Int(dst, 3));
    call(&mut f, &[dst], Callee::Runtime("trunc"), &[x], catch);
    let _ = f.ret(dst).go(catch).ret(dst);
    let program = program(vec![f.func]);
    for image in images(&program) {
        let mut fine = ctx(image);
        assert_eq!(run(image, &mut fine, 0, 9.75f64.to_bits() as i64, 0)[0], 9);
        assert_eq!(fine.trap, 0);
        let mut trapped = ctx(image);
        assert_eq!(run(image, &mut trapped, 0, f64::NAN.to_bits() as i64, 0)[0], 3);
        assert_eq!((trapped.trap, trapped.trap_recorded), (trap::BOUNDS, true));
    }
}

#[test]
fn a_trap_without_unwind_block_leaves_the_function() {
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int]);
    let (x, dst) = (f.local(Rep::Float), f.local(Rep::Int));
    let _ = f.push(InstKind::FromBits(x, Local(0)));
    let callee = Callee::Runtime("trunc");
    let _ = f.push(InstKind::Call { dsts: vec![dst], callee, args: vec![x], unwind: None }).ret(dst);
    let program = program(vec![f.func]);
    assert_eq!(eval(&program, 9.75f64.to_bits() as i64, 0).unwrap()[0], 9);
    assert_eq!(eval(&program, f64::NAN.to_bits() as i64, 0).unwrap_err().0, trap::BOUNDS);
}

#[test]
fn interfaces_dispatch_on_the_class() {
    let method = |name: &str, result: i64| {
        let mut f = Build::new(name, &[Rep::Obj, Rep::Int], &[Rep::Int]);
        let k = f.int(result);
        let _ = f.push(InstKind::IntOp(k, IntOp::Add, k, Local(1))).ret(k);
        f.func
    };
    let mut f = Build::new("f", &[Rep::Obj, Rep::Int], &[Rep::Int]);
    let (dst, unwind) = (f.local(Rep::Int), f.resume());
    call(&mut f, &[dst], Callee::Table(0), &[Local(0), Local(1)], unwind);
    let _ = f.ret(dst);
    let mut program = program(vec![f.func, method("A.m", 100), method("B.m", 200)]);
    program.tables.push(Table { name: "m".to_string(), rows: vec![(1, FuncId(1)), (2, FuncId(2))] });
    let object = |class: u32| {
        let header = 1 | u64::from(abi::layout::FIRST_CLASS + class) << 32;
        Box::leak(Box::new([header, 0])).as_mut_ptr().expose_provenance() as i64
    };
    assert_eq!(eval(&program, object(1), 5).unwrap()[0], 105);
    assert_eq!(eval(&program, object(2), 5).unwrap()[0], 205);
    // A class without the method.
    assert_eq!(eval(&program, object(0), 5).unwrap_err().0, trap::EXPLICIT);
}

#[test]
fn many_parameters() {
    let mut sum = Build::new("sum", &[Rep::Int; 12], &[Rep::Int]);
    let total = sum.int(0);
    for i in 0..12 {
        let _ = sum.push(InstKind::IntOp(total, IntOp::Add, total, Local(i)));
        let _ = sum.push(InstKind::IntOp(total, IntOp::Add, total, total));
    }
    let _ = sum.ret(total);
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int]);
    let (dst, unwind) = (f.local(Rep::Int), f.resume());
    let args: Vec<Local> = (0..12).map(|i| f.int(i)).collect();
    call(&mut f, &[dst], Callee::Func(FuncId(1)), &args, unwind);
    let _ = f.ret(dst);
    let expected = (0..12).fold(0, |total, i| (total + i) * 2);
    assert_eq!(eval(&program(vec![f.func, sum.func]), 0, 0).unwrap()[0], expected);
}

#[test]
fn main_gives_the_status() {
    let mut with = Build::new("main", &[], &[Rep::Int]);
    let status = with.int(7);
    let _ = with.ret(status);
    let mut without = Build::new("main", &[], &[]);
    let _ = without.int(7);
    let _ = without.term(Term::Return(vec![]));
    for (func, expected) in [(with.func, 7), (without.func, 0)] {
        let mut program = program(vec![func]);
        program.main = Some(FuncId(0));
        for image in images(&program) {
            assert_eq!(image.main.unwrap()(&mut ctx(image)), expected);
        }
    }
    assert!(images(&program(vec![])).iter().all(|image| image.main.is_none()));
}

#[test]
fn an_unimplemented_runtime_function_is_an_error() {
    let mut f = Build::new("f", &[], &[]);
    let dst = f.local(Rep::Int);
    let _ = f.push(InstKind::Call { dsts: vec![dst], callee: Callee::Runtime("now"), args: vec![], unwind: None });
    let _ = f.term(Term::Return(vec![]));
    let program = program(vec![f.func]);
    let code = compile(&program, &Options::default()).unwrap();
    let error = load_with(code, &doubles::functions(), Vec::new()).err().unwrap();
    assert_eq!(error, "the runtime function `now` is not implemented");
    assert!(crate::dump_clif(&program, &Options::default()).unwrap().contains("%now"));
}

#[test]
fn malformed_mir_is_an_error() {
    let broken: [fn(&mut Build); 7] = [
        |f| {
            let _ = f.push(InstKind::Int(Local(99), 1));
        },
        |f| {
            let _ = f.push(InstKind::Text(Local(0), TextId(5)));
        },
        |f| {
            let _ = f.term(Term::Jump(BlockId(50)));
        },
        |f| {
            let _ = f.term(Term::Return(vec![]));
        },
        |f| {
            let _ = f.push(InstKind::Retain { local: Local(0), nonnull: true });
        },
        |f| call(f, &[], Callee::Func(FuncId(0)), &[], BlockId(0)),
        |f| call(f, &[], Callee::Runtime("no such"), &[], BlockId(0)),
    ];
    for damage in broken {
        let mut f = Build::new("f", &[Rep::Int], &[Rep::Int]);
        let _ = f.ret(Local(0));
        damage(&mut f);
        let result = compile(&program(vec![f.func]), &Options::default());
        assert!(result.err().unwrap().starts_with("code generation of `f`: "));
    }
}

#[test]
fn dumps_are_readable_and_stable() {
    let mut f = fib();
    f.line = 12;
    let program = program(vec![f]);
    let options = Options { optimize: true, files: vec!["a.wo".to_string()], ..Options::default() };
    let clif = crate::dump_clif(&program, &options).unwrap();
    assert!(clif.starts_with("; fib (a.wo:12)\nfunction %fib(i64, i64) -> i64 system_v {"), "{clif}");
    assert!(clif.contains("%sched.overflow"));
    assert_eq!(clif, crate::dump_clif(&program, &options).unwrap());
    let asm = crate::dump_asm(&program, &options).unwrap();
    assert!(asm.contains("ret") && asm.contains("%fib"), "{asm}");
    assert_eq!(asm, crate::dump_asm(&program, &options).unwrap());
}

/// A push stores its element where there is room, and calls the runtime on a cold path only.
#[test]
fn pushes_are_inline() {
    let mut f = Build::new("f", &[Rep::Obj, Rep::Int], &[]);
    let unwind = f.resume();
    let push = InstKind::Push { multi: Local(0), first: Local(1), second: None, unwind };
    let _ = f.push(push).term(Term::Return(vec![]));
    let clif = crate::dump_clif(&program(vec![f.func]), &Options::default()).unwrap();
    let name = clif.lines().find(|l| l.contains("%multi.push")).and_then(|l| l.trim().split(' ').next()).unwrap();
    let (mut cold, mut stores, mut calls) = (false, 0, Vec::new());
    for line in clif.lines().map(str::trim) {
        if line.starts_with("block") {
            cold = line.contains(" cold");
        }
        stores += u32::from(!cold && line.contains(" store"));
        if line.contains(&format!("call {name}(")) {
            calls.push(cold);
        }
    }
    assert_eq!((stores, calls), (2, vec![true]), "element and length, and a call:\n{clif}");
}

/// Each call's result lives to the end, and is released by a chain of unwind blocks when a later call traps.
#[test]
fn long_unwind_chains() {
    const QUIET: u32 = layout::QUIET as u32;
    let n = 200;
    let mut f = Build::new("f", &[Rep::Obj, Rep::Int], &[]);
    let mut unwind = f.resume();
    for _ in 0..n {
        let x = f.local(Rep::Obj);
        call(&mut f, &[x], Callee::Func(FuncId(1)), &[Local(0)], unwind);
        let next = f.block();
        f.func.blocks[next.0 as usize].cold = true;
        let _ = f.go(next).push(InstKind::Release { local: x, nonnull: true }).term(Term::Jump(unwind));
        let _ = f.go(BlockId(0));
        unwind = next;
    }
    let _ = f.push(InstKind::TrapIfNull { local: Local(1), code: trap::EXPLICIT, text: TextId(0), unwind });
    for x in 0..n {
        let _ = f.push(InstKind::Release { local: Local(2 + x), nonnull: false });
    }
    let _ = f.term(Term::Return(vec![]));
    let mut g = Build::new("g", &[Rep::Obj], &[Rep::Obj]);
    let _ = g.ret(Local(0));
    let mut program = program(vec![f.func, g.func]);
    program.texts.push(Vec::new());
    for image in images(&program) {
        for fails in [false, true] {
            let object: &'static mut [u64] = Box::leak(Box::new([u64::from(n + 1 + QUIET), 0]));
            let at = object.as_mut_ptr().expose_provenance();
            let mut ctx = ctx(image);
            let _ = run(image, &mut ctx, 0, at as i64, i64::from(!fails));
            assert_eq!(ctx.trap != 0, fails);
            // SAFETY: the object is leaked; volatile, because generated code wrote it.
            let header = unsafe { std::ptr::with_exposed_provenance::<u64>(at).read_volatile() };
            assert_eq!(header as u32, QUIET + 1);
        }
    }
}
