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
fn folding_goes_through_calls() {
    let mut p = program();
    let area = bin(BinaryOp::IntMul, int(6), int(7));
    let six = func(&mut p, "answer", 0, &[], INT, vec![ret(area)]);
    let test = bin(BinaryOp::IntLt, call(six, vec![], INT), int(42));
    let _ = func(&mut p, "f", 0, &[], INT, vec![if_(test, vec![ret(int(1))]), ret(call(six, vec![], INT))]);
    // One way is left, without a call, a comparison or a branch.
    expect(&p, 1, true, "folding-inlined");
}

#[test]
fn interpolation_is_one_allocation() {
    let mut p = program();
    let parts = vec![text("<"), var(0, INT), text("|"), var(1, TEXT), text("-"), text(">")];
    let _ = func(&mut p, "f", 2, &[("n", INT), ("t", TEXT)], TEXT, vec![ret(concat(parts))]);
    expect(&p, 0, true, "interpolation");
}

#[test]
fn small_methods_that_push() {
    let mut p = program();
    let ints = multi_ty(&mut p, INT);
    let class = class(&mut p, "Bag", &[("n", INT)]);
    p.classes[class.0 as usize].fields.push(Field {
        name: "items".into(),
        ty: ints,
        span: Default::default(),
        read_only: false,
        default: Some(Default_::EmptyMulti),
    });
    let ty = class_ty(&mut p, class);
    let items = || field(var(0, ty), class, 1, ints);
    let last =
        func(&mut p, "Bag.size", 1, &[("self", ty)], INT, vec![ret(builtin(Builtin::LenMulti, vec![items()], INT))]);
    let push = run(builtin(Builtin::Push, vec![items(), call(last, vec![var(0, ty)], INT)], VOID));
    let _ = func(&mut p, "Bag.grow", 1, &[("self", ty)], VOID, vec![push]);
    // `size` is inlined; a push is an instruction, not a call, and the container is loaded once.
    expect(&p, 1, true, "push-inlined");
}

/// `fn use(b: Box) -> Int`, which leaves the program's objects in their places, or does not.
fn user(p: &mut Program, class: ClassId, replaces: bool) -> FuncId {
    let ty = class_ty(p, class);
    let name = Place::Field(var(0, ty), class, 0);
    let mut body = vec![ret(builtin(Builtin::LenText, vec![field(var(0, ty), class, 0, TEXT)], INT))];
    if replaces {
        body.insert(0, set(name, text("new")));
    }
    func(p, if replaces { "replace" } else { "use" }, 1, &[("b", ty)], INT, body)
}

#[test]
fn counts_around_calls() {
    let mut p = program();
    let class = class(&mut p, "Box", &[("name", TEXT)]);
    let ty = class_ty(&mut p, class);
    let boxes = multi_ty(&mut p, ty);
    for replaces in [false, true] {
        let callee = user(&mut p, class, replaces);
        let looked_up = ex(ExprKind::Element(bx(var(0, boxes)), bx(int(0))), ty);
        let sum = bin(BinaryOp::IntAdd, call(callee, vec![looked_up], INT), int(1));
        let _ = func(&mut p, "f", 1, &[("bs", boxes)], INT, vec![ret(sum)]);
    }
    // The caller of `f` holds the list, and nothing takes the element out of it.
    expect(&p, 1, true, "counts-quiet");
    expect(&p, 3, true, "counts-replacing");
}

#[test]
fn counts_of_moves() {
    let mut p = program();
    let texts = multi_ty(&mut p, TEXT);
    let t = || var(2, TEXT);
    let push = || run(builtin(Builtin::Push, vec![var(0, texts), t()], VOID));
    let made = let_(2, concat(vec![text("t"), var(1, INT)]));
    let locals = [("ts", texts), ("n", INT), ("t", TEXT)];
    let print_len = print_int(builtin(Builtin::LenText, vec![t()], INT));
    // Two reads, the last of which hands the text over; traps before and after it release what is held then.
    let body = vec![made.clone(), print_len.clone(), push(), print(text("done"))];
    let _ = func(&mut p, "last", 2, &locals, VOID, body);
    let _ = func(&mut p, "not_last", 2, &locals, VOID, vec![made, push(), print_len]);
    expect(&p, 0, true, "move-at-last-use");
    expect(&p, 1, true, "no-move");
}

#[test]
fn null_checks() {
    let mut p = program();
    let class = class(&mut p, "Node", &[("n", INT)]);
    let ty = class_ty(&mut p, class);
    let some = maybe(&mut p, ty);
    let n = || field(ex(ExprKind::Unwrap(bx(var(0, some)), OnNil::TrapReceiver), ty), class, 0, INT);
    let is_nil = ex(ExprKind::IsNil { operand: bx(var(0, some)), negated: false }, BOOL);
    // The first check decides the second and the comparison.
    let body = vec![print_int(n()), print_int(n()), if_(is_nil.clone(), vec![ret(int(1))]), ret(int(0))];
    let _ = func(&mut p, "checked", 1, &[("x", some)], INT, body);
    // The comparison decides the check.
    let _ = func(&mut p, "tested", 1, &[("x", some)], INT, vec![if_(is_nil, vec![ret(int(1))]), ret(n())]);
    expect(&p, 0, true, "null-checks");
    expect(&p, 1, true, "null-tested");
}

#[test]
fn bounds_checks() {
    let mut p = program();
    let ints = multi_ty(&mut p, INT);
    let (xs, i) = (|| var(0, ints), || var(1, INT));
    let at = |index: Expr| print_int(ex(ExprKind::Element(bx(xs()), bx(index)), INT));
    let step = stmt(StmtKind::OpAssign(Place::Local(LocalId(1)), BinaryOp::IntAdd, int(1)));
    let walk = |body: Vec<Stmt>| {
        let more = bin(BinaryOp::IntLt, i(), builtin(Builtin::LenMulti, vec![xs()], INT));
        vec![let_(1, int(0)), while_(more, body)]
    };
    let locals = [("xs", ints), ("i", INT)];
    let _ = func(&mut p, "walk", 1, &locals, VOID, walk(vec![at(i()), step.clone()]));
    let pop = run(builtin(Builtin::Pop, vec![xs()], INT));
    let _ = func(&mut p, "shrink", 1, &locals, VOID, walk(vec![pop, at(i()), at(i()), step.clone()]));
    let next = bin(BinaryOp::IntAdd, i(), int(1));
    let _ = func(&mut p, "next", 1, &locals, VOID, walk(vec![at(next), step]));
    expect(&p, 0, true, "bounds-walk");
    // Another length: the first access is checked, the second one is as good as the first.
    expect(&p, 1, true, "bounds-shrink");
    expect(&p, 2, true, "bounds-next");
}

#[test]
fn passes_can_be_left_out() {
    let mut p = program();
    let ints = multi_ty(&mut p, INT);
    let body = vec![for_in(1, var(0, ints), vec![print_int(var(1, INT))])];
    let _ = func(&mut p, "f", 1, &[("xs", ints), ("x", INT)], VOID, body);
    let has = |passes: &str, what: &str| {
        mir::dump(&mir::lower(&p, mir::Passes::parse(passes).expect("passes"))).contains(what)
    };
    assert!(has("1", "element unchecked") && !has("-checks", "element unchecked"));
    assert!(has("-checks", " !b") && has("0", "element %"));
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
