//! Arithmetic, control flow, memory, counts, concatenation.

use super::*;
use abi::{layout, trap};
use mir::ir::{Callee, CheckedOp, FloatOp, IntOp};

fn int_op(op: IntOp, a: i64, b: i64) -> i64 {
    let mut f = Build::new("op", &[Rep::Int, Rep::Int], &[Rep::Int]);
    let dst = f.local(Rep::Int);
    let _ = f.push(InstKind::IntOp(dst, op, Local(0), Local(1))).ret(dst);
    eval(&program(vec![f.func]), a, b).unwrap()[0]
}

fn checked(op: CheckedOp, a: i64, b: i64, constant: bool) -> Result<i64, (i64, String)> {
    let mut f = Build::new("op", &[Rep::Int, Rep::Int], &[Rep::Int]);
    let (dst, unwind) = (f.local(Rep::Int), f.resume());
    let rhs = if constant { f.int(b) } else { Local(1) };
    let _ = f.push(InstKind::Checked { dst, op, lhs: Local(0), rhs, unwind }).ret(dst);
    eval(&program(vec![f.func]), a, b).map(|words| words[0])
}

#[test]
fn integers_wrap_and_compare() {
    assert_eq!(int_op(IntOp::Add, i64::MAX, 1), i64::MIN);
    assert_eq!(int_op(IntOp::Sub, i64::MIN, 1), i64::MAX);
    assert_eq!(int_op(IntOp::Mul, i64::MAX, 2), -2);
    assert_eq!(int_op(IntOp::And, 12, 10), 8);
    assert_eq!(int_op(IntOp::Or, 12, 10), 14);
    assert_eq!(int_op(IntOp::Xor, -1, 5), -6);
    assert_eq!(int_op(IntOp::Shl, 3, 63), i64::MIN);
    assert_eq!(int_op(IntOp::Shr, -8, 2), -2);
    assert_eq!(int_op(IntOp::Lt, -1, 1), 1);
    assert_eq!(int_op(IntOp::Ge, -1, 1), 0);
    assert_eq!(int_op(IntOp::Le, 1, 1), 1);
    assert_eq!(int_op(IntOp::Gt, 1, 1), 0);
    assert_eq!(int_op(IntOp::Eq, 7, 7), 1);
    assert_eq!(int_op(IntOp::Ne, 7, 7), 0);
}

#[test]
fn division_follows_the_specification() {
    for constant in [false, true] {
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -1), (i64::MIN, 1), (i64::MAX, -1), (i64::MIN, 10), (0, 5)] {
            assert_eq!(checked(CheckedOp::Div, a, b, constant), Ok(a / b), "{a} / {b}");
            assert_eq!(checked(CheckedOp::Rem, a, b, constant), Ok(a % b), "{a} % {b}");
        }
        for op in [CheckedOp::Div, CheckedOp::Rem] {
            assert_eq!(checked(op, 1, 0, constant), Err((trap::DIV0, "division by zero".to_string())));
            assert_eq!(checked(op, i64::MIN, 0, constant), Err((trap::DIV0, "division by zero".to_string())));
            let text = "INT64_MIN / -1 overflows".to_string();
            assert_eq!(checked(op, i64::MIN, -1, constant), Err((trap::DIV0, text)));
        }
    }
}

#[test]
fn shift_counts_are_checked() {
    for constant in [false, true] {
        assert_eq!(checked(CheckedOp::Shl, 1, 63, constant), Ok(i64::MIN));
        assert_eq!(checked(CheckedOp::Shl, 1, 0, constant), Ok(1));
        assert_eq!(checked(CheckedOp::Shr, i64::MIN, 63, constant), Ok(-1));
        for count in [-1, 64, i64::MIN, i64::MAX] {
            let text = "shift count out of range 0..63".to_string();
            assert_eq!(checked(CheckedOp::Shl, 1, count, constant), Err((trap::SHIFT, text.clone())));
            assert_eq!(checked(CheckedOp::Shr, 1, count, constant), Err((trap::SHIFT, text)));
        }
    }
}

#[test]
fn floats_compare_as_ieee_says() {
    let run = |op: FloatOp, a: f64, b: f64| {
        let mut f = Build::new("op", &[Rep::Int, Rep::Int], &[Rep::Int]);
        let (x, y) = (f.local(Rep::Float), f.local(Rep::Float));
        let dst = f.local(Rep::Int);
        let _ = f.push(InstKind::FromBits(x, Local(0))).push(InstKind::FromBits(y, Local(1)));
        let _ = f.push(InstKind::FloatOp(dst, op, x, y)).ret(dst);
        eval(&program(vec![f.func]), a.to_bits() as i64, b.to_bits() as i64).unwrap()[0]
    };
    let nan = f64::NAN;
    assert_eq!(run(FloatOp::Eq, nan, nan), 0);
    assert_eq!(run(FloatOp::Ne, nan, nan), 1);
    assert_eq!(run(FloatOp::Eq, -0.0, 0.0), 1);
    for op in [FloatOp::Lt, FloatOp::Le, FloatOp::Gt, FloatOp::Ge] {
        assert_eq!(run(op, nan, 1.0), 0);
        assert_eq!(run(op, 1.0, nan), 0);
    }
    assert_eq!(run(FloatOp::Lt, 1.0, 2.0), 1);
    assert_eq!(run(FloatOp::Ge, 2.0, 2.0), 1);
}

#[test]
fn floats_compute() {
    let mut f = Build::new("op", &[Rep::Int], &[Rep::Float]);
    let (x, y, z) = (f.local(Rep::Float), f.local(Rep::Float), f.local(Rep::Float));
    let _ = f.push(InstKind::FromBits(x, Local(0))).push(InstKind::Float(y, 0.5));
    for op in [FloatOp::Add, FloatOp::Mul, FloatOp::Sub, FloatOp::Div] {
        let _ = f.push(InstKind::FloatOp(x, op, x, y));
    }
    let _ = f.push(InstKind::FloatNeg(z, x)).ret(z);
    let words = eval(&program(vec![f.func]), 3.0f64.to_bits() as i64, 0).unwrap();
    assert_eq!(f64::from_bits(words[0] as u64), -(((3.0 + 0.5) * 0.5 - 0.5) / 0.5));
}

/// `s = 0; while n > 0 { s = s + n; n = n - 1 }`, with a safepoint on the back-edge.
pub(crate) fn sum_loop() -> Func {
    let mut f = Build::new("sum", &[Rep::Int], &[Rep::Int]);
    let (s, one, zero, cond) = (f.int(0), f.int(1), f.int(0), f.local(Rep::Int));
    let (head, body, done, unwind) = (f.block(), f.block(), f.block(), f.resume());
    let _ = f.term(Term::Jump(head)).go(head);
    let _ = f.push(InstKind::IntOp(cond, IntOp::Gt, Local(0), zero));
    let _ = f.term(Term::Branch { cond, then: body, otherwise: done }).go(body);
    let _ = f.push(InstKind::IntOp(s, IntOp::Add, s, Local(0)));
    let _ = f.push(InstKind::IntOp(Local(0), IntOp::Sub, Local(0), one));
    let _ = f.push(InstKind::Safepoint { unwind }).term(Term::Jump(head)).go(done).ret(s);
    f.func
}

#[test]
fn loops_pay_reductions() {
    for image in images(&program(vec![sum_loop()])) {
        let mut ctx = ctx(image);
        ctx.budget = 100;
        assert_eq!(run(image, &mut ctx, 0, 1000, 0)[0], 500_500);
        // The back-edge that finds the budget of 100 used up yields, so a slice has 101 of them.
        assert_eq!((doubles::yields(), ctx.budget), (1000 / 101, 100 - 1000 % 101));
    }
}

#[test]
fn a_stop_unwinds_a_loop() {
    for image in images(&program(vec![sum_loop()])) {
        let mut ctx = ctx(image);
        ctx.budget = 5;
        doubles::stop_at_yield();
        let _ = run(image, &mut ctx, 0, i64::MAX, 0);
        assert_eq!(ctx.trap, trap::UNWIND);
        assert_eq!(doubles::yields(), 1);
    }
}

#[test]
fn switches_find_their_case() {
    let mut f = Build::new("pick", &[Rep::Int], &[Rep::Int]);
    let default = f.block();
    let values = [0, 1, 2, 3, -1, i64::MIN, i64::MAX, 100, 1];
    let mut cases = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let block = f.block();
        let _ = f.go(block);
        let result = f.int(i as i64);
        let _ = f.ret(result);
        cases.push((*value, block));
    }
    let _ = f.go(BlockId(0)).term(Term::Switch { on: Local(0), cases, default }).go(default);
    let none = f.int(-7);
    let _ = f.ret(none);
    let program = program(vec![f.func]);
    for (i, value) in values.iter().enumerate().take(8) {
        assert_eq!(eval(&program, *value, 0).unwrap()[0], i as i64);
    }
    assert_eq!(eval(&program, 4, 0).unwrap()[0], -7);
}

#[test]
fn undefined_locals_read_as_zero() {
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int, Rep::Float]);
    let (a, b) = (f.local(Rep::Int), f.local(Rep::Float));
    let (then, done) = (f.block(), f.block());
    let _ = f.term(Term::Branch { cond: Local(0), then, otherwise: done }).go(then);
    let _ = f.push(InstKind::Int(a, 5)).push(InstKind::Float(b, 1.0)).term(Term::Jump(done)).go(done);
    let _ = f.term(Term::Return(vec![a, b]));
    let program = program(vec![f.func]);
    assert_eq!(eval(&program, 0, 0).unwrap(), [0, 0]);
    assert_eq!(eval(&program, 1, 0).unwrap(), [5, 1.0f64.to_bits() as i64]);
}

pub(super) fn object(count: i32, kind: u32, words: &[u64]) -> &'static mut [u64] {
    let header = u64::from(count as u32) | u64::from(kind) << 32;
    Box::leak([&[header], words].concat().into_boxed_slice())
}

pub(super) fn address(object: &mut [u64]) -> i64 {
    object.as_mut_ptr().expose_provenance() as i64
}

/// Current count of the object at `at`.
pub(super) fn count(at: i64) -> i32 {
    let header = std::ptr::with_exposed_provenance::<u64>(at as usize);
    // SAFETY: tests pass leaked objects; volatile, because generated code writes them.
    unsafe { header.read_volatile() as i32 }
}

#[test]
fn fields_and_kinds() {
    let mut f = Build::new("f", &[Rep::Obj], &[Rep::Int, Rep::Int]);
    let (x, y, kind) = (f.local(Rep::Float), f.local(Rep::Int), f.local(Rep::Int));
    let _ = f.push(InstKind::Load { dst: x, base: Local(0), offset: 8 });
    let _ = f.push(InstKind::FloatNeg(x, x));
    let _ = f.push(InstKind::Store { base: Local(0), offset: 16, src: x });
    let _ = f.push(InstKind::Load { dst: y, base: Local(0), offset: 16 });
    let _ = f.push(InstKind::Kind(kind, Local(0))).term(Term::Return(vec![y, kind]));
    let at = address(object(1, 0xf000_0010, &[2.5f64.to_bits(), 0]));
    assert_eq!(eval(&program(vec![f.func]), at, 0).unwrap(), [(-2.5f64).to_bits() as i64, 0xf000_0010]);
}

#[test]
fn elements_are_checked() {
    for words in [1u32, 2, 3] {
        let mut f = Build::new("f", &[Rep::Obj, Rep::Int], &[Rep::Int]);
        let (at, dst, unwind) = (f.local(Rep::Int), f.local(Rep::Int), f.resume());
        let (multi, index) = (Local(0), Local(1));
        let _ = f.push(InstKind::Element { dst: at, multi, index, words, checked: true, unwind });
        let _ = f.push(InstKind::Load { dst, base: at, offset: 0 }).ret(dst);
        let program = program(vec![f.func]);
        let data: &'static mut [u64] = Box::leak((0..12).collect());
        let multi = address(object(1, layout::KIND_MULTI, &[4, 4, data.as_mut_ptr().expose_provenance() as u64]));
        for i in 0..4 {
            assert_eq!(eval(&program, multi, i).unwrap()[0], i * i64::from(words));
        }
        for i in [4, -1, i64::MIN, i64::MAX] {
            assert_eq!(eval(&program, multi, i), Err((trap::BOUNDS, "multi index out of range".to_string())));
        }
    }
}

#[test]
fn counts_follow_retain_and_release() {
    // Cold blocks release out of line.
    for (nonnull, cold) in [(false, false), (true, false), (false, true)] {
        let mut f = Build::new("f", &[Rep::Obj, Rep::Int], &[]);
        let (retain, release) = (f.block(), f.block());
        f.func.blocks[release.0 as usize].cold = cold;
        let _ = f.term(Term::Branch { cond: Local(1), then: retain, otherwise: release });
        let _ = f.go(retain).push(InstKind::Retain { local: Local(0), nonnull }).term(Term::Return(vec![]));
        let _ = f.go(release).push(InstKind::Release { local: Local(0), nonnull }).term(Term::Return(vec![]));
        let program = program(vec![f.func]);
        for image in images(&program) {
            let mut ctx = ctx(image);
            let at = address(object(layout::QUIET + 1, 16, &[]));
            let _ = run(image, &mut ctx, 0, at, 1);
            assert_eq!(count(at), layout::QUIET + 2);
            let _ = run(image, &mut ctx, 0, at, 0);
            assert_eq!((count(at), doubles::released()), (layout::QUIET + 1, vec![]));
            let _ = run(image, &mut ctx, 0, at, 0);
            assert_eq!((count(at), doubles::released()), (layout::QUIET, vec![at]));
            // The runtime looks at every release of an object that may be on a cycle.
            let traced = address(object(1, 16, &[]));
            let _ = run(image, &mut ctx, 0, traced, 1);
            let _ = run(image, &mut ctx, 0, traced, 0);
            assert_eq!((count(traced), doubles::released()), (1, vec![traced]));
            let _ = run(image, &mut ctx, 0, traced, 0);
            assert_eq!((count(traced), doubles::released()), (0, vec![traced]));
            let literal = address(object(layout::IMMORTAL, 0, &[]));
            let _ = run(image, &mut ctx, 0, literal, 0);
            let _ = run(image, &mut ctx, 0, literal, 1);
            assert_eq!((count(literal), doubles::released()), (layout::IMMORTAL, vec![]));
            if !nonnull {
                let _ = run(image, &mut ctx, 0, 0, 0);
                let _ = run(image, &mut ctx, 0, 0, 1);
                assert_eq!(doubles::released(), vec![]);
            }
        }
    }
}

#[test]
fn null_traps_with_its_text() {
    let mut f = Build::new("f", &[Rep::Obj], &[Rep::Int]);
    let unwind = f.resume();
    let _ =
        f.push(InstKind::TrapIfNull { local: Local(0), code: trap::EXPLICIT, text: TextId(0), unwind }).ret(Local(0));
    let mut program = program(vec![f.func]);
    program.texts.push(b"null receiver".to_vec());
    assert_eq!(eval(&program, 0, 0), Err((trap::EXPLICIT, "null receiver".to_string())));
    assert_eq!(eval(&program, 8, 0).unwrap()[0], 8);
}

#[test]
fn concatenates_parts() {
    let mut f = Build::new("f", &[Rep::Int, Rep::Int], &[Rep::Obj, Rep::Obj]);
    let (short, long, float) = (f.local(Rep::Obj), f.local(Rep::Obj), f.local(Rep::Float));
    let unwind = f.resume();
    let text = f.text(0);
    let _ = f.push(InstKind::Float(float, 1.5));
    let _ = f.push(InstKind::Concat { dst: short, into: None, parts: vec![(0, text), (1, Local(0))], unwind });
    let parts = vec![(2, float), (3, Local(1)), (0, text)];
    let _ = f.push(InstKind::Concat { dst: long, into: Some(short), parts, unwind });
    let _ = f.term(Term::Return(vec![short, long]));
    let mut program = program(vec![f.func]);
    program.texts.push("ä=".into());
    for image in images(&program) {
        let mut ctx = ctx(image);
        let words = run(image, &mut ctx, 0, -3, 1);
        assert_eq!(words.map(|at| String::from_utf8(doubles::bytes(at)).unwrap()), ["ä=-3", "ä=-31.5trueä="]);
    }
}

/// A local with one definition that does not lie on every path to its use: zero before, the last value after.
#[test]
fn a_definition_in_a_loop_is_seen_by_the_next_round() {
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int]);
    let (sum, one, last, unwind) = (f.int(0), f.int(1), f.local(Rep::Int), f.resume());
    let (head, done) = (f.block(), f.block());
    let _ = f.term(Term::Jump(head)).go(head);
    // `last` is read before it is set in the same round.
    let _ = f.push(InstKind::IntOp(sum, IntOp::Add, sum, last)).push(InstKind::Copy(last, Local(0)));
    let _ = f.push(InstKind::IntOp(Local(0), IntOp::Sub, Local(0), one)).push(InstKind::Safepoint { unwind });
    let _ = f.term(Term::Branch { cond: Local(0), then: head, otherwise: done }).go(done);
    let _ = f.push(InstKind::IntOp(sum, IntOp::Shl, sum, last)).ret(sum);
    // Rounds set 4, 3, 2, 1 and add 0, 4, 3, 2; then the shift by 1.
    assert_eq!(eval(&program(vec![f.func]), 4, 0).unwrap()[0], 9 << 1);
}

/// The destination of a call that traps is not assigned on its unwind path.
#[test]
fn a_handler_does_not_see_the_results_of_the_call_that_trapped() {
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int]);
    let (dst, handler) = (f.local(Rep::Int), f.block());
    let op = CheckedOp::Div;
    let _ = f.push(InstKind::Checked { dst, op, lhs: Local(0), rhs: Local(0), unwind: handler }).ret(dst);
    let _ = f.go(handler).ret(dst);
    for image in images(&program(vec![f.func])) {
        let mut ctx = ctx(image);
        assert_eq!(run(image, &mut ctx, 0, 9, 0)[0], 1);
        assert_eq!(run(image, &mut ctx, 0, 0, 0)[0], 0);
        assert_eq!(ctx.trap, trap::DIV0);
    }
}

#[test]
fn roots_and_bytes_are_inline() {
    let mut f = Build::new("f", &[Rep::Obj, Rep::Int], &[Rep::Int, Rep::Float]);
    let (byte, four, root, unwind) = (f.local(Rep::Int), f.local(Rep::Float), f.local(Rep::Float), f.resume());
    let call =
        |dst, name, args, unwind| InstKind::Call { dsts: vec![dst], callee: Callee::Runtime(name), args, unwind };
    let _ = f.push(call(byte, "byte_at", vec![Local(0), Local(1)], Some(unwind)));
    let _ = f.push(InstKind::Float(four, 4.0)).push(call(root, "sqrt", vec![four], None));
    let _ = f.term(Term::Return(vec![byte, root]));
    let program = program(vec![f.func]);
    let clif = crate::dump_clif(&program, &Options::default()).unwrap();
    assert!(clif.contains(" sqrt ") && clif.contains("uload8") && !clif.contains("%sqrt"), "{clif}");
    let at = address(object(1, 0, &[2, 0, u64::from(b'h') | u64::from(b'i') << 8]));
    assert_eq!(eval(&program, at, 1).unwrap(), [i64::from(b'i'), 2.0f64.to_bits() as i64]);
    for index in [2, -1, i64::MIN] {
        assert_eq!(eval(&program, at, index), Err((trap::BOUNDS, trap::BYTE_INDEX.to_string())));
    }
}
