//! Speed of compilation and of compiled code on hand-built kernels, without the rest of the compiler and runtime:
//! `cargo run --release -p codegen --example kernels`; with `asm` it prints their machine code.
#![allow(unsafe_code, reason = "stand-ins for runtime functions")]
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "an example")]

use std::collections::HashMap;
use std::time::Instant;

use codegen::{Options, compile, load_with};
use mir::ir::{
    Block, BlockId, Callee, CheckedOp, Func, FuncId, Inst, InstKind, IntOp, Local, LocalDecl, Program, Rep, Term,
};
use values::ctx::Ctx;

extern "C" fn nothing(_: *mut Ctx) {}
extern "C" fn refill(ctx: *mut Ctx) {
    // SAFETY: generated code passes the context below.
    unsafe { (*ctx).budget = 4000 };
}

fn func(display: &str, params: u32, locals: usize, blocks: Vec<(Vec<InstKind>, Term)>) -> Func {
    let line = |(i, kind)| Inst { kind, line: i as u32 + 1 };
    Func {
        display: display.to_string(),
        file: 0,
        line: 1,
        params,
        results: vec![Rep::Int],
        locals: (0..locals).map(|_| LocalDecl { rep: Rep::Int, name: String::new() }).collect(),
        blocks: blocks
            .into_iter()
            .map(|(insts, term)| Block {
                cold: matches!(term, Term::Resume),
                insts: insts.into_iter().enumerate().map(line).collect(),
                term,
            })
            .collect(),
        entry_unwind: None,
        recursive: display == "fib",
    }
}

fn fib(me: u32) -> Func {
    let call = |dst| InstKind::Call {
        dsts: vec![Local(dst)],
        callee: Callee::Func(FuncId(me)),
        args: vec![Local(0)],
        unwind: Some(BlockId(3)),
    };
    let minus = InstKind::IntOp(Local(0), IntOp::Sub, Local(0), Local(1));
    let entry = vec![
        InstKind::Int(Local(1), 1),
        InstKind::Int(Local(2), 2),
        InstKind::IntOp(Local(3), IntOp::Lt, Local(0), Local(2)),
    ];
    let branch = Term::Branch { cond: Local(3), then: BlockId(1), otherwise: BlockId(2) };
    let sum = InstKind::IntOp(Local(4), IntOp::Add, Local(4), Local(5));
    let body = vec![minus.clone(), call(4), minus, call(5), sum];
    let blocks = vec![
        (entry, branch),
        (vec![], Term::Return(vec![Local(0)])),
        (body, Term::Return(vec![Local(4)])),
        (vec![], Term::Resume),
    ];
    func("fib", 1, 6, blocks)
}

/// A linear congruential generator, `n` steps, with a checked remainder in each.
fn lcg() -> Func {
    let entry = vec![
        InstKind::Int(Local(1), 1),
        InstKind::Int(Local(2), 6_364_136_223_846_793_005),
        InstKind::Int(Local(3), 1_442_695_040_888_963_407),
        InstKind::Int(Local(4), 0),
        InstKind::Int(Local(5), 1),
        InstKind::Int(Local(8), 1000),
    ];
    let head = vec![InstKind::IntOp(Local(6), IntOp::Gt, Local(0), Local(4))];
    let body = vec![
        InstKind::IntOp(Local(1), IntOp::Mul, Local(1), Local(2)),
        InstKind::IntOp(Local(1), IntOp::Add, Local(1), Local(3)),
        InstKind::Checked { dst: Local(7), op: CheckedOp::Rem, lhs: Local(1), rhs: Local(8), unwind: BlockId(4) },
        InstKind::IntOp(Local(1), IntOp::Xor, Local(1), Local(7)),
        InstKind::IntOp(Local(0), IntOp::Sub, Local(0), Local(5)),
        InstKind::Safepoint { unwind: BlockId(4) },
    ];
    let blocks = vec![
        (entry, Term::Jump(BlockId(1))),
        (head, Term::Branch { cond: Local(6), then: BlockId(2), otherwise: BlockId(3) }),
        (body, Term::Jump(BlockId(1))),
        (vec![], Term::Return(vec![Local(1)])),
        (vec![], Term::Resume),
    ];
    func("lcg", 1, 9, blocks)
}

/// `main`, which calls function 1 with `n`.
fn main_of(n: i64) -> Func {
    let call = InstKind::Call {
        dsts: vec![Local(1)],
        callee: Callee::Func(FuncId(1)),
        args: vec![Local(0)],
        unwind: Some(BlockId(1)),
    };
    let blocks = vec![(vec![InstKind::Int(Local(0), n), call], Term::Return(vec![Local(1)])), (vec![], Term::Resume)];
    func("main", 0, 2, blocks)
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("asm") {
        let program = Program { funcs: vec![main_of(1), fib(1), lcg()], ..Program::default() };
        print!("{}", codegen::dump_asm(&program, &Options { optimize: true, ..Options::default() }).unwrap());
        return;
    }
    let functions: HashMap<&str, *const u8> = HashMap::from([
        ("sched.yield", refill as *const u8),
        ("sched.overflow", nothing as *const u8),
        ("trap.site", nothing as *const u8),
        ("trap.raise", nothing as *const u8),
        ("rt.released", nothing as *const u8),
    ]);
    for optimize in [false, true] {
        let options = Options { optimize, ..Options::default() };
        for (name, kernel, n) in [("fib(35)", fib(1), 35), ("lcg 10^8", lcg(), 100_000_000)] {
            let program = Program { funcs: vec![main_of(n), kernel], main: Some(FuncId(0)), ..Program::default() };
            let start = Instant::now();
            let code = compile(&program, &options).unwrap();
            let compiled = start.elapsed();
            let image = load_with(code, &functions, Vec::new()).unwrap();
            let mut ctx = Ctx { budget: 4000, ..Ctx::new(std::ptr::null_mut(), image) };
            let start = Instant::now();
            let result = image.main.unwrap()(&mut ctx);
            println!("optimize={optimize} {name} = {result}: {:.1?}, compiled in {compiled:.1?}", start.elapsed());
        }
        let n = 2000;
        let funcs = (0..n).map(|i| if i % 2 == 0 { fib(i) } else { lcg() }).collect();
        let program = Program { funcs, ..Program::default() };
        let start = Instant::now();
        let _ = compile(&program, &options).unwrap();
        let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(n);
        println!("optimize={optimize} {n} functions: {us:.1} us each");
    }
}
