//! Loops cost one reduction a turn, wherever the budget is kept meanwhile.

use super::*;
use abi::trap;
use mir::ir::{Callee, CheckedOp, IntOp};

/// `f(n, m)`: counts `n` down; divides 100 by what is left minus `m` in each turn. With `calls` it also calls.
fn count_down(calls: bool) -> Program {
    let mut f = Build::new("f", &[Rep::Int, Rep::Int], &[Rep::Int]);
    let (one, hundred, dst, by) = (f.int(1), f.int(100), f.local(Rep::Int), f.local(Rep::Int));
    let (head, body, exit, unwind) = (f.block(), f.block(), f.block(), f.resume());
    let _ = f.push(InstKind::Int(dst, 0)).term(Term::Jump(head)).go(head);
    let _ = f.term(Term::Branch { cond: Local(0), then: body, otherwise: exit }).go(body);
    let _ = f.push(InstKind::IntOp(by, IntOp::Sub, Local(0), Local(1)));
    let _ = f.push(InstKind::Checked { dst, op: CheckedOp::Div, lhs: hundred, rhs: by, unwind });
    if calls {
        let _ = f.push(InstKind::Call {
            dsts: vec![],
            callee: Callee::Func(FuncId(1)),
            args: vec![],
            unwind: Some(unwind),
        });
    }
    let _ = f.push(InstKind::IntOp(Local(0), IntOp::Sub, Local(0), one));
    let _ = f.push(InstKind::Safepoint { unwind }).term(Term::Jump(head));
    let _ = f.go(exit).ret(dst);
    let mut g = Build::new("g", &[], &[]);
    let _ = g.term(Term::Return(vec![]));
    program(vec![f.func, g.func])
}

#[test]
fn a_turn_costs_one() {
    for calls in [false, true] {
        for image in images(&count_down(calls)) {
            for n in [0, 1, 7, 1000] {
                let mut ctx = ctx(image);
                ctx.budget = 5000;
                let _ = run(image, &mut ctx, 0, n, -1);
                assert_eq!((ctx.trap, ctx.budget), (0, 5000 - n), "{n} turns, calls: {calls}");
            }
        }
    }
}

#[test]
fn turns_before_a_trap_are_paid() {
    for calls in [false, true] {
        for image in images(&count_down(calls)) {
            let mut ctx = ctx(image);
            ctx.budget = 5000;
            let _ = run(image, &mut ctx, 0, 100, 40);
            assert_eq!((ctx.trap, ctx.budget), (trap::DIV0, 5000 - 60), "calls: {calls}");
        }
    }
}

#[test]
fn a_slice_ends_within_the_loop() {
    for image in images(&count_down(false)) {
        let mut ctx = ctx(image);
        ctx.budget = 50;
        let _ = run(image, &mut ctx, 0, 10_000, -1);
        assert!(ctx.trap == 0 && doubles::yields() >= 5, "{} yields", doubles::yields());
    }
}
