//! The text of lowered functions, pinned: where the retains, releases, unwind blocks and safepoints are.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod support;

use analysis::hir::*;
use support::*;

/// Compares the dump of one function with `tests/snapshots/NAME.mir`; with `BLESS=1` in the environment it writes the
/// file instead.
fn expect(p: &Program, func: usize, optimize: bool, name: &str) {
    let all = mir::dump(&mir::lower(p, optimize));
    let start = all.find(&format!("\nf{func} ")).expect("function") + 1;
    let rest = &all[start..];
    let end = rest.find("\n\n").map_or(rest.len(), |e| e + 1);
    let got = &rest[..end];
    let path = format!("{}/tests/snapshots/{name}.mir", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(got == want, "got:\n{got}\nwant:\n{want}");
}

#[test]
fn fib() {
    let mut p = program();
    let rec = |k| call(FuncId(0), vec![bin(BinaryOp::IntSub, var(0, INT), int(k))], INT);
    let body = vec![
        if_(bin(BinaryOp::IntLt, var(0, INT), int(2)), vec![ret(var(0, INT))]),
        ret(bin(BinaryOp::IntAdd, rec(1), rec(2))),
    ];
    let _ = func(&mut p, "fib", 1, &[("n", INT)], INT, body);
    expect(&p, 0, false, "fib");
    // The return of `n < 2` is repeated at both calls, and costs what the callee's entry would.
    expect(&p, 0, true, "fib-optimized");
}

#[test]
fn borrows() {
    let mut p = program();
    let class = class(&mut p, "Body", &[("x", FLOAT), ("name", TEXT)]);
    let ty = class_ty(&mut p, class);
    let bodies = multi_ty(&mut p, ty);
    let first = || ex(ExprKind::Element(bx(var(0, bodies)), bx(int(0))), ty);
    let x = || field(var(1, ty), class, 0, FLOAT);
    let double = set(Place::Field(var(1, ty), class, 0), bin(BinaryOp::FloatAdd, x(), x()));
    // Nothing after it can take the element out of its place: not counted.
    let _ = func(&mut p, "quiet", 1, &[("bs", bodies), ("b", ty)], VOID, vec![let_(1, first()), double.clone()]);
    // A push may not be known to leave it there: counted.
    let push = run(builtin(Builtin::Push, vec![var(0, bodies), var(1, ty)], VOID));
    let _ = func(&mut p, "loud", 1, &[("bs", bodies), ("b", ty)], VOID, vec![let_(1, first()), double, push]);
    expect(&p, 0, true, "borrow");
    expect(&p, 1, true, "no-borrow");
}

#[test]
fn lists() {
    let mut p = program();
    let texts = multi_ty(&mut p, TEXT);
    let items = vec![text("a"), concat(vec![text("b"), var(0, INT)]), text("c")];
    let _ = func(&mut p, "f", 1, &[("n", INT)], texts, vec![ret(list(items, texts))]);
    expect(&p, 0, true, "list");
}

#[test]
fn take_parameters() {
    let mut p = program();
    let id = func(&mut p, "f", 2, &[("t", TEXT), ("u", TEXT)], TEXT, vec![print(var(1, TEXT)), ret(var(0, TEXT))]);
    p.funcs[id.0 as usize].params = vec![syntax::ast::Mode::Take, syntax::ast::Mode::Borrow];
    let args = vec![concat(vec![var(0, TEXT), text("!")]), var(0, TEXT)];
    let _ = func(&mut p, "g", 1, &[("s", TEXT)], VOID, vec![print(call(id, args, TEXT))]);
    expect(&p, 0, true, "take-callee");
    expect(&p, 1, true, "take-caller");
}

#[test]
fn append_in_a_loop() {
    let mut p = program();
    let body = vec![
        let_(1, text("")),
        let_(2, int(0)),
        while_(
            bin(BinaryOp::IntLt, var(2, INT), var(0, INT)),
            vec![
                stmt(StmtKind::OpAssign(Place::Local(LocalId(2)), BinaryOp::IntAdd, int(1))),
                set_var(1, concat(vec![var(1, TEXT), text("x")])),
            ],
        ),
        ret(var(1, TEXT)),
    ];
    let _ = func(&mut p, "f", 1, &[("n", INT), ("s", TEXT), ("i", INT)], TEXT, body);
    expect(&p, 0, false, "append");
}

#[test]
fn field_assignment() {
    let mut p = program();
    let class = class(&mut p, "Box", &[("n", INT), ("name", TEXT)]);
    let ty = class_ty(&mut p, class);
    let name = || Place::Field(var(0, ty), class, 1);
    let body = vec![set(name(), var(1, TEXT)), set(name(), concat(vec![field(var(0, ty), class, 1, TEXT), text("!")]))];
    let _ = func(&mut p, "f", 2, &[("self", ty), ("to", TEXT)], VOID, body);
    expect(&p, 0, false, "field");
}

#[test]
fn for_over_texts() {
    let mut p = program();
    let texts = multi_ty(&mut p, TEXT);
    let body = vec![for_in(
        1,
        var(0, texts),
        vec![if_(bin(BinaryOp::TextEq, var(1, TEXT), text("")), vec![stmt(StmtKind::Continue)]), print(var(1, TEXT))],
    )];
    let _ = func(&mut p, "f", 1, &[("xs", texts), ("x", TEXT)], VOID, body);
    expect(&p, 0, false, "for");
    expect(&p, 0, true, "for-optimized");
}

#[test]
fn try_catch() {
    let mut p = program();
    let error = class_ty(&mut p, ERROR);
    let body = vec![
        let_(2, concat(vec![text("n"), var(0, INT)])),
        ret(try_(
            bin(BinaryOp::IntDiv, var(0, INT), var(1, INT)),
            3,
            vec![],
            Some(field(var(3, error), ERROR, 0, INT)),
            INT,
        )),
    ];
    let _ = func(&mut p, "f", 2, &[("a", INT), ("b", INT), ("t", TEXT), ("e", error)], INT, body);
    expect(&p, 0, false, "try");
}

#[test]
fn switch_on_variants() {
    let mut p = program();
    p.unions.push(Union {
        name: "Move".into(),
        span: Default::default(),
        variants: vec![
            Variant { name: "Stay".into(), fields: vec![] },
            Variant { name: "Say".into(), fields: vec![("what".into(), TEXT)] },
        ],
        has_payload: true,
    });
    let moves = p.types.intern(TyKind::Union(UnionId(0)));
    let arms = vec![
        arm(ArmTest::Variants(UnionId(0), vec![1], vec![LocalId(2)]), vec![], Some(var(2, TEXT))),
        arm(ArmTest::Variants(UnionId(0), vec![0], vec![]), vec![], Some(text("stay"))),
    ];
    let locals = [("m", moves), ("subject", moves), ("what", TEXT)];
    let _ = func(&mut p, "f", 1, &locals, TEXT, vec![ret(switch(var(0, moves), 1, arms, true, TEXT))]);
    expect(&p, 0, true, "switch");
}

#[test]
fn nullable_ints() {
    let mut p = program();
    let some = p.types.nullable(INT);
    let body = vec![
        if_(
            ex(ExprKind::IsNil { operand: bx(var(0, some)), negated: false }, BOOL),
            vec![ret(ex(ExprKind::Nil, some))],
        ),
        ret(ex(ExprKind::Wrap(bx(ex(ExprKind::Unwrap(bx(var(0, some)), OnNil::Zero), INT))), some)),
    ];
    let _ = func(&mut p, "f", 1, &[("n", some)], some, body);
    expect(&p, 0, false, "nullable");
}

#[test]
fn interface_adapter() {
    let mut p = program();
    let class = class(&mut p, "Loud", &[("word", TEXT)]);
    let ty = class_ty(&mut p, class);
    let name = func(&mut p, "Loud.name", 1, &[("self", ty)], TEXT, vec![ret(field(var(0, ty), class, 0, TEXT))]);
    p.interfaces.push(Interface {
        name: "Thing".into(),
        span: Default::default(),
        sigs: vec![Sig { name: "name".into(), params: vec![], ret: VOID }],
        impls: vec![(class, vec![name])],
    });
    expect(&p, 0, false, "method");
    expect(&p, 1, false, "adapter");
}

#[test]
fn folding_keeps_traps() {
    let mut p = program();
    let sum = bin(BinaryOp::IntAdd, int(i64::MAX), bin(BinaryOp::IntMul, int(2), int(3)));
    let body = vec![
        print_int(sum),
        print_int(bin(BinaryOp::IntDiv, int(i64::MIN), int(-1))),
        print_int(bin(BinaryOp::IntDiv, int(7), int(2))),
    ];
    let _ = func(&mut p, "f", 0, &[], VOID, body);
    expect(&p, 0, true, "folding");
}

#[test]
fn layouts() {
    let mut p = program();
    let some = p.types.nullable(INT);
    let back = p.types.intern(TyKind::Backlink(ERROR, 0));
    let _ = class(&mut p, "C", &[("a", some), ("back", back), ("t", TEXT)]);
    let program = mir::lower(&p, false);
    let class = &program.shapes.classes[3];
    let fields: Vec<_> = class.fields.iter().map(|f| (f.name.as_str(), f.offset)).collect();
    assert_eq!(fields, [("a", 8), ("t", 24)]);
    assert_eq!(class.size, 32);
    assert_eq!(program.shapes.types[..6], abi::desc::FIXED_TYPES);
}
