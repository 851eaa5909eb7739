//! Stack limits, large frames, and the site table seen through frame pointers.

use super::*;
use abi::trap;
use mir::ir::{Callee, IntOp};
use values::ctx::Frame;

/// `f(n)`: traps by division at line 30 when n is 0, else calls itself at line 20 and adds 1.
fn deep() -> Func {
    let mut f = Build::new("deep", &[Rep::Int], &[Rep::Int]);
    let (one, dst) = (f.int(1), f.local(Rep::Int));
    let (zero, rec, unwind) = (f.block(), f.block(), f.resume());
    let _ = f.term(Term::Branch { cond: Local(0), then: rec, otherwise: zero });
    let op = mir::ir::CheckedOp::Div;
    let _ = f.go(zero).line(30).push(InstKind::Checked { dst, op, lhs: one, rhs: Local(0), unwind }).ret(dst);
    let _ = f.go(rec).push(InstKind::IntOp(Local(0), IntOp::Sub, Local(0), one)).line(20);
    let callee = Callee::Func(FuncId(0));
    let _ = f.push(InstKind::Call { dsts: vec![dst], callee, args: vec![Local(0)], unwind: Some(unwind) });
    let _ = f.line(21).push(InstKind::IntOp(dst, IntOp::Add, dst, one)).ret(dst);
    f.func
}

#[test]
fn a_trap_records_lines_and_functions() {
    let mut outer = Build::new("outer", &[Rep::Int], &[Rep::Int]);
    let (dst, unwind) = (outer.local(Rep::Int), outer.resume());
    let callee = Callee::Func(FuncId(0));
    let call = InstKind::Call { dsts: vec![dst], callee, args: vec![Local(0)], unwind: Some(unwind) };
    let _ = outer.line(40).push(call).ret(dst);
    for image in images(&program(vec![deep(), outer.func])) {
        let mut ctx = ctx(image);
        let _ = run(image, &mut ctx, 1, 3, 0);
        assert_eq!(ctx.trap, trap::DIV0);
        let frame = |func, line| Frame { func, line };
        let expected = [frame(0, 30), frame(0, 20), frame(0, 20), frame(0, 20), frame(1, 40)];
        assert_eq!(doubles::frames(), expected);
        assert_eq!((image.funcs[1].display.as_str(), image.funcs[1].file.as_str()), ("outer", "a.wo"));
        assert!(image.sites.is_sorted_by(|a, b| a.offset < b.offset));
    }
}

/// Where the stack is now, roughly.
fn stack_pointer() -> u64 {
    let here = 0u8;
    (&raw const here).addr() as u64
}

#[test]
fn the_stack_limit_traps() {
    for image in images(&program(vec![deep()])) {
        let mut ctx = ctx(image);
        ctx.stack_limit = stack_pointer() - 64 * 1024;
        let _ = run(image, &mut ctx, 0, i64::MAX, 0);
        assert_eq!((ctx.trap, doubles::message().as_str()), (trap::STACK, "stack overflow"));
        let frames = doubles::frames();
        assert_eq!(frames[0], Frame { func: 0, line: 1 });
        assert!(frames.len() > 500 && frames[1..].iter().all(|f| *f == Frame { func: 0, line: 20 }));
    }
}

/// `f(n, p)`: recursion to depth `n` with `live` values, read from `p`, live across the call; returns their sum.
fn wide(live: i32) -> Func {
    let mut f = Build::new("wide", &[Rep::Int, Rep::Int], &[Rep::Int]);
    let (one, dst) = (f.int(1), f.local(Rep::Int));
    let (zero, rec, unwind) = (f.block(), f.block(), f.resume());
    let _ = f.term(Term::Branch { cond: Local(0), then: rec, otherwise: zero }).go(zero).ret(Local(0)).go(rec);
    let mut values = Vec::new();
    for i in 0..live {
        // Loads do not move over calls, arithmetic would.
        let v = f.local(Rep::Int);
        let _ = f.push(InstKind::Load { dst: v, base: Local(1), offset: 8 * i });
        values.push(v);
    }
    let _ = f.push(InstKind::IntOp(Local(0), IntOp::Sub, Local(0), one)).line(20);
    let callee = Callee::Func(FuncId(0));
    let _ = f.push(InstKind::Call { dsts: vec![dst], callee, args: vec![Local(0), Local(1)], unwind: Some(unwind) });
    for v in values {
        let _ = f.push(InstKind::IntOp(dst, IntOp::Add, dst, v));
    }
    let _ = f.ret(dst);
    f.func
}

#[test]
fn large_frames_are_checked_before_they_are_made() {
    let live = 4000;
    let words: &'static mut [i64] = Box::leak((0..i64::from(live)).collect());
    let (sum, at) = (words.iter().sum::<i64>(), words.as_mut_ptr().expose_provenance() as i64);
    for image in images(&program(vec![wide(live)])) {
        let mut fine = ctx(image);
        assert_eq!(run(image, &mut fine, 0, 3, at)[0], sum * 3);
        assert_eq!(fine.trap, 0);

        let mut ctx = ctx(image);
        ctx.stack_limit = stack_pointer() - 256 * 1024;
        let _ = run(image, &mut ctx, 0, i64::MAX, at);
        assert_eq!(ctx.trap, trap::STACK);
        let frames = doubles::frames();
        assert!((5..20).contains(&frames.len()), "{}", frames.len());
        assert!(frames[1..].iter().all(|f| *f == Frame { func: 0, line: 20 }));
    }
}

/// A leaf without calls is not checked; a limit above the stack pointer makes the difference visible.
#[test]
fn small_leaves_skip_the_check() {
    for image in images(&program(vec![super::ops::sum_loop()])) {
        let mut ctx = ctx(image);
        ctx.stack_limit = u64::MAX;
        assert_eq!(run(image, &mut ctx, 0, 10, 0)[0], 55);
        assert_eq!(ctx.trap, 0);
    }
}

/// A function that owns its parameters gives them back where its entry traps, with and without a stub in front.
#[test]
fn the_entry_releases_what_the_callee_owns() {
    for locals in [0, 3000] {
        let mut f = Build::new("f", &[Rep::Obj, Rep::Obj], &[Rep::Int]);
        let (body, first, second, end) = (f.block(), f.block(), f.block(), f.resume());
        let release = |n| InstKind::Release { local: Local(n), nonnull: false };
        let _ = f.term(Term::Jump(body));
        let _ = f.go(first).push(release(1)).term(Term::Jump(second));
        let _ = f.go(second).push(release(0)).term(Term::Jump(end));
        let _ = f.go(body);
        let wide: Vec<Local> = (0..locals).map(|n| f.int(n)).collect();
        let dst = f.local(Rep::Int);
        let (callee, args) = (Callee::Func(FuncId(0)), vec![Local(0), Local(1)]);
        let _ = f.push(InstKind::Call { dsts: vec![dst], callee, args, unwind: Some(end) });
        // All are alive during the call.
        for local in &wide {
            let _ = f.push(InstKind::IntOp(dst, IntOp::Add, dst, *local)).push(InstKind::IntOp(
                *local,
                IntOp::Mul,
                dst,
                dst,
            ));
        }
        let _ = f.ret(dst);
        for block in [first, second] {
            f.func.blocks[block.0 as usize].cold = true;
        }
        f.func.entry_unwind = Some(first);
        for image in images(&program(vec![f.func])) {
            let mut ctx = ctx(image);
            ctx.stack_limit = stack_pointer() - 256 * 1024;
            let objects = [2, 3].map(|n| ops::address(ops::object(n, 16, &[0])));
            let _ = run(image, &mut ctx, 0, objects[0], objects[1]);
            assert_eq!(ctx.trap, trap::STACK, "{locals} locals");
            assert_eq!(objects.map(ops::count), [1, 2], "{locals} locals");
        }
    }
}
