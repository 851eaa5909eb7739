//! Hand-built programs run on the counting interpreter: meaning, and that no path leaks or releases twice.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

#[path = "support/machine.rs"]
mod machine;
mod support;

use analysis::hir::*;
use machine::check_some;
use support::*;

/// Output and status, checked with a trap at every place.
fn check(p: &Program) -> (Vec<String>, Result<i64, i64>) {
    check_some(p, usize::MAX).expect("the program ends")
}

fn lines(p: &Program) -> Vec<String> {
    let (out, status) = check(p);
    assert_eq!(status, Ok(0));
    out
}

#[test]
fn fib() {
    let mut p = program();
    let f = FuncId(0);
    let n = || var(0, INT);
    let rec = |k| call(f, vec![bin(BinaryOp::IntSub, n(), int(k))], INT);
    let body = vec![if_(bin(BinaryOp::IntLt, n(), int(2)), vec![ret(n())]), ret(bin(BinaryOp::IntAdd, rec(1), rec(2)))];
    let _ = func(&mut p, "fib", 1, &[("n", INT)], INT, body);
    let m = func(&mut p, "main", 0, &[], VOID, vec![print_int(call(f, vec![int(10)], INT))]);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["55"]);
}

#[test]
fn loops_and_append() {
    let mut p = program();
    let body = vec![
        let_(0, text("")),
        let_(1, int(0)),
        while_(
            bin(BinaryOp::IntLt, var(1, INT), int(6)),
            vec![
                stmt(StmtKind::OpAssign(Place::Local(LocalId(1)), BinaryOp::IntAdd, int(1))),
                if_(bin(BinaryOp::WordEq, var(1, INT), int(2)), vec![stmt(StmtKind::Continue)]),
                if_(bin(BinaryOp::WordEq, var(1, INT), int(5)), vec![stmt(StmtKind::Break)]),
                let_(2, concat(vec![text("<"), var(1, INT), text(">")])),
                set_var(0, concat(vec![var(0, TEXT), var(2, TEXT), var(0, TEXT)])),
            ],
        ),
        print(var(0, TEXT)),
    ];
    let m = func(&mut p, "main", 0, &[("s", TEXT), ("i", INT), ("t", TEXT)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["<1><3><1><4><1><3><1>"]);
}

/// `class Box { name: Text, next: ?Box }` and a function that replaces the name.
fn boxes(p: &mut Program) -> (ClassId, Ty, Ty, FuncId) {
    let class = class(p, "Box", &[("name", TEXT)]);
    let ty = class_ty(p, class);
    let next = p.types.nullable(ty);
    p.classes[class.0 as usize].fields.push(Field {
        name: "next".into(),
        ty: next,
        span: Default::default(),
        read_only: false,
        default: Some(Default_::Nil),
    });
    let body = vec![
        set(Place::Field(var(0, ty), class, 0), concat(vec![var(1, TEXT), text("!")])),
        ret(field(var(0, ty), class, 0, TEXT)),
    ];
    let f = func(p, "rename", 2, &[("b", ty), ("to", TEXT)], TEXT, body);
    (class, ty, next, f)
}

fn new_box(class: ClassId, ty: Ty, name: Expr) -> Expr {
    ex(ExprKind::New { class, fields: vec![(0, name)], defaults: vec![1] }, ty)
}

#[test]
fn fields_and_projections() {
    let mut p = program();
    let (class, ty, next, rename) = boxes(&mut p);
    let name = |e| field(e, class, 0, TEXT);
    let b = || var(0, ty);
    let body = vec![
        let_(0, new_box(class, ty, concat(vec![text("a"), int(1)]))),
        // The argument is the field that the callee replaces; the left operand is one that a later operand replaces.
        print(call(rename, vec![b(), name(b())], TEXT)),
        print(concat(vec![name(b()), call(rename, vec![b(), text("z")], TEXT), name(b())])),
        set(Place::Field(b(), class, 0), concat(vec![name(b()), name(b()), text("+")])),
        print(name(b())),
        set(Place::Field(b(), class, 1), ex(ExprKind::Wrap(bx(new_box(class, ty, text("n")))), next)),
        let_(1, field(b(), class, 1, next)),
        set(Place::Field(b(), class, 1), ex(ExprKind::Nil, next)),
        print(name(ex(ExprKind::Unwrap(bx(var(1, next)), OnNil::Proved), ty))),
        print(name(new_box(class, ty, concat(vec![text("t"), int(2)])))),
        if_(
            ex(ExprKind::IsNil { operand: bx(field(b(), class, 1, next)), negated: false }, BOOL),
            vec![print(text("nil"))],
        ),
        print(name(ex(ExprKind::Unwrap(bx(field(b(), class, 1, next)), OnNil::TrapReceiver), ty))),
    ];
    let m = func(&mut p, "main", 0, &[("b", ty), ("n", next)], VOID, body);
    set_main(&mut p, m);
    let (out, status) = check(&p);
    assert_eq!(out, ["a1!", "a1!z!z!", "z!z!+", "n", "t2", "nil"]);
    assert_eq!(status, Err(6));
}

#[test]
fn parameters_and_returns() {
    let mut p = program();
    let s = || var(0, TEXT);
    let body = vec![
        if_(bin(BinaryOp::TextEq, s(), text("same")), vec![ret(s())]),
        set_var(0, concat(vec![s(), text("x")])),
        let_(1, s()),
        set_var(0, concat(vec![s(), s()])),
        if_(bin(BinaryOp::TextLt, s(), text("b")), vec![ret(var(1, TEXT))]),
        ret(s()),
    ];
    let f = func(&mut p, "f", 1, &[("s", TEXT), ("t", TEXT)], TEXT, body);
    let g = func(&mut p, "g", 1, &[("s", TEXT), ("t", TEXT)], TEXT, vec![let_(1, s()), ret(var(1, TEXT))]);
    let body = vec![
        let_(0, concat(vec![text("a"), int(7)])),
        print(call(f, vec![var(0, TEXT)], TEXT)),
        print(call(f, vec![text("same")], TEXT)),
        print(call(f, vec![text("q")], TEXT)),
        print(call(g, vec![call(g, vec![var(0, TEXT)], TEXT)], TEXT)),
        set_var(0, var(0, TEXT)),
        print(var(0, TEXT)),
    ];
    let m = func(&mut p, "main", 0, &[("a", TEXT)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["a7x", "same", "qxqx", "a7", "a7"]);
}

#[test]
fn lists_and_for() {
    let mut p = program();
    let texts = multi_ty(&mut p, TEXT);
    let maybe_int = p.types.nullable(INT);
    let ints = multi_ty(&mut p, maybe_int);
    let xs = || var(0, texts);
    let at = |i| ex(ExprKind::Element(bx(xs()), bx(int(i))), TEXT);
    let body = vec![
        let_(0, list(vec![text("a"), concat(vec![text("b"), int(1)]), text("c")], texts)),
        run(builtin(Builtin::Push, vec![xs(), at(1)], VOID)),
        for_in(
            1,
            xs(),
            vec![
                if_(bin(BinaryOp::TextEq, var(1, TEXT), text("c")), vec![stmt(StmtKind::Continue)]),
                print(var(1, TEXT)),
                run(builtin(Builtin::Push, vec![xs(), var(1, TEXT)], VOID)),
                set_var(1, concat(vec![var(1, TEXT), text("!")])),
                if_(
                    bin(BinaryOp::IntGt, builtin(Builtin::LenMulti, vec![xs()], INT), int(6)),
                    vec![stmt(StmtKind::Break)],
                ),
            ],
        ),
        set(Place::Element(xs(), int(0)), concat(vec![at(0), at(1)])),
        print(at(0)),
        print(builtin(Builtin::Latest, vec![xs()], TEXT)),
        print(builtin(Builtin::Pop, vec![xs()], TEXT)),
        print(builtin(Builtin::Shift, vec![xs()], TEXT)),
        let_(2, list(vec![ex(ExprKind::Nil, maybe_int), ex(ExprKind::Wrap(bx(int(4))), maybe_int)], ints)),
        for_in(3, var(2, ints), vec![print_int(ex(ExprKind::Unwrap(bx(var(3, maybe_int)), OnNil::Zero), INT))]),
        print_int(ex(ExprKind::Unwrap(bx(builtin(Builtin::Pop, vec![var(2, ints)], maybe_int)), OnNil::Zero), INT)),
        for_in(1, list(vec![text("x"), text("y")], texts), vec![run(builtin(Builtin::Pop, vec![xs()], TEXT))]),
        for_in(1, xs(), vec![run(builtin(Builtin::Pop, vec![xs()], TEXT)), print(var(1, TEXT))]),
    ];
    let locals = [("xs", texts), ("x", TEXT), ("ys", ints), ("y", maybe_int)];
    let m = func(&mut p, "main", 0, &locals, VOID, body);
    set_main(&mut p, m);
    let (out, status) = check(&p);
    assert_eq!(out, ["a", "b1", "b1", "ab1", "b1", "b1", "ab1", "0", "4", "4", "b1", "c"]);
    assert_eq!(status, Err(6));
}

#[test]
fn maps() {
    let mut p = program();
    let map = map_ty(&mut p, TEXT, TEXT);
    let counts = map_ty(&mut p, TEXT, INT);
    let (maybe_text, maybe_int) = (maybe(&mut p, TEXT), maybe(&mut p, INT));
    let m = || var(0, map);
    let c = || var(1, counts);
    let key = |i| concat(vec![text("k"), int(i), builtin(Builtin::LenMap, vec![m()], INT)]);
    let body = vec![
        let_(0, ex(ExprKind::EmptyMap, map)),
        let_(1, builtin(Builtin::MapNew, vec![], counts)),
        set(Place::Entry(m(), text("a")), key(1)),
        set(Place::Entry(m(), key(2)), text("two")),
        run(builtin(Builtin::SetMap, vec![m(), text("a"), key(3)], VOID)),
        print(ex(ExprKind::Unwrap(bx(ex(ExprKind::Entry(bx(m()), bx(text("a"))), maybe_text)), OnNil::TrapText), TEXT)),
        let_(2, ex(ExprKind::Entry(bx(m()), bx(text("none"))), maybe_text)),
        if_(ex(ExprKind::IsNil { operand: bx(var(2, maybe_text)), negated: false }, BOOL), vec![print(text("none"))]),
        stmt(StmtKind::OpAssign(Place::Entry(c(), text("n")), BinaryOp::IntAdd, int(5))),
        stmt(StmtKind::OpAssign(Place::Entry(c(), text("n")), BinaryOp::IntMul, int(3))),
        print_int(ex(ExprKind::Unwrap(bx(ex(ExprKind::Entry(bx(c()), bx(text("n"))), maybe_int)), OnNil::Zero), INT)),
        print_int(ex(ExprKind::Unwrap(bx(ex(ExprKind::Entry(bx(c()), bx(text("q"))), maybe_int)), OnNil::Zero), INT)),
        stmt(StmtKind::ForMap {
            key: LocalId(3),
            value: LocalId(4),
            iter: m(),
            body: block(vec![print(concat(vec![var(3, TEXT), text("="), var(4, TEXT)]))]),
        }),
        run(builtin(Builtin::RemoveMap, vec![m(), key(1)], BOOL)),
        print_int(builtin(Builtin::HasMap, vec![m(), text("a")], BOOL)),
        print(builtin(Builtin::KeyAt, vec![m(), int(0)], TEXT)),
        print(builtin(Builtin::ValAt, vec![m(), int(1)], TEXT)),
        print(builtin(Builtin::GetMap, vec![m(), text("nope")], TEXT)),
    ];
    let locals = [("m", map), ("c", counts), ("t", maybe_text), ("k", TEXT), ("v", TEXT)];
    let f = func(&mut p, "main", 0, &locals, VOID, body);
    set_main(&mut p, f);
    let (out, status) = check(&p);
    assert_eq!(out, ["k32", "none", "15", "0", "a=k32", "k21=two", "1", "a", "two"]);
    assert_eq!(status, Err(7));
}

#[test]
fn try_and_catch() {
    let mut p = program();
    let error = class_ty(&mut p, ERROR);
    let maybe_int = maybe(&mut p, INT);
    let half = func(
        &mut p,
        "half",
        2,
        &[("a", INT), ("b", INT), ("s", TEXT)],
        INT,
        vec![let_(2, concat(vec![text("held"), var(0, INT)])), ret(bin(BinaryOp::IntDiv, var(0, INT), var(1, INT)))],
    );
    let body = vec![
        let_(0, concat(vec![text("s"), int(1)])),
        let_(
            1,
            try_(
                call(half, vec![int(1), int(0)], INT),
                2,
                vec![print(field(var(2, error), ERROR, 3, TEXT)), set_var(0, concat(vec![var(0, TEXT), text("?")]))],
                Some(int(-1)),
                INT,
            ),
        ),
        print_int(var(1, INT)),
        print(try_(
            concat(vec![var(0, TEXT), call(half, vec![int(8), int(2)], INT)]),
            2,
            vec![],
            Some(text("no")),
            TEXT,
        )),
        // Nested: the inner arm traps again, the outer arm returns from the function.
        run(try_(
            try_(
                concat(vec![var(0, TEXT), call(half, vec![int(8), int(0)], INT)]),
                2,
                vec![
                    let_(3, concat(vec![var(0, TEXT), text("inner")])),
                    print_int(call(half, vec![int(1), int(0)], INT)),
                ],
                Some(var(3, TEXT)),
                TEXT,
            ),
            4,
            vec![
                print_int(field(var(4, error), ERROR, 0, INT)),
                if_(bin(BinaryOp::TextEq, var(0, TEXT), text("s1?")), vec![ret(int(0))]),
            ],
            None,
            VOID,
        )),
        ret(int(9)),
    ];
    let locals = [("s", TEXT), ("q", INT), ("e", error), ("t", TEXT), ("f", error), ("m", maybe_int)];
    let m = func(&mut p, "main", 0, &locals, INT, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["arithmetic", "-1", "s1?4", "1"]);
}

#[test]
fn switches() {
    let mut p = program();
    let variant = |name: &str, fields: &[(&str, Ty)]| Variant {
        name: name.into(),
        fields: fields.iter().map(|(n, t)| ((*n).into(), *t)).collect(),
    };
    p.unions.push(Union {
        name: "Move".into(),
        span: Default::default(),
        variants: vec![variant("Stay", &[]), variant("Say", &[("n", INT), ("what", TEXT)])],
        has_payload: true,
    });
    p.unions.push(Union {
        name: "Color".into(),
        span: Default::default(),
        variants: vec![variant("Red", &[]), variant("Green", &[]), variant("Blue", &[])],
        has_payload: false,
    });
    let moves = p.types.intern(TyKind::Union(UnionId(0)));
    let color = p.types.intern(TyKind::Union(UnionId(1)));
    let arms = vec![
        arm(ArmTest::Variants(UnionId(0), vec![1], vec![LocalId(2), LocalId(3)]), vec![], Some(var(3, TEXT))),
        arm(ArmTest::Variants(UnionId(0), vec![0], vec![]), vec![], Some(concat(vec![text("stay"), int(0)]))),
    ];
    let locals = [("m", moves), ("subject", moves), ("n", INT), ("what", TEXT)];
    let say = func(&mut p, "say", 1, &locals, TEXT, vec![ret(switch(var(0, moves), 1, arms, true, TEXT))]);
    let arms = vec![
        arm(ArmTest::Ordinals(vec![0, 2]), vec![], Some(int(10))),
        arm(ArmTest::Default, vec![print(text("default"))], Some(int(20))),
    ];
    let locals = [("c", color), ("subject", color)];
    let rate = func(&mut p, "rate", 1, &locals, INT, vec![ret(switch(var(0, color), 1, arms, false, INT))]);
    let s = || var(1, TEXT);
    let arms = vec![
        arm(
            ArmTest::Any(vec![bin(BinaryOp::TextEq, s(), text("a")), bin(BinaryOp::TextEq, s(), text("b1"))]),
            vec![set_var(0, concat(vec![var(0, TEXT), text("hit")])), if_(boolean(false), vec![ret(int(3))])],
            None,
        ),
        arm(ArmTest::Default, vec![stmt(StmtKind::Break)], None),
    ];
    let new_variant = |v, args| ex(ExprKind::NewVariant { union: UnionId(0), variant: v, args }, moves);
    let body = vec![
        print(call(say, vec![new_variant(1, vec![int(4), concat(vec![text("w"), int(4)])])], TEXT)),
        print(call(say, vec![new_variant(0, vec![])], TEXT)),
        print_int(call(rate, vec![ex(ExprKind::Ordinal { union: UnionId(1), variant: 2 }, color)], INT)),
        print_int(call(rate, vec![ex(ExprKind::Ordinal { union: UnionId(1), variant: 1 }, color)], INT)),
        let_(0, concat(vec![text("b"), int(1)])),
        while_(boolean(true), vec![run(switch(var(0, TEXT), 1, arms, false, VOID))]),
        print(var(0, TEXT)),
        // An earlier operand is a local that the switch assigns.
        print(concat(vec![
            var(0, TEXT),
            switch(int(1), 2, vec![arm(ArmTest::Default, vec![set_var(0, text("new"))], Some(text("|")))], false, TEXT),
            var(0, TEXT),
        ])),
    ];
    let m = func(&mut p, "main", 0, &[("s", TEXT), ("subject", TEXT), ("i", INT)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["w4", "stay0", "10", "default", "20", "b1hit", "b1hit|new"]);
}

#[test]
fn nullable_ints() {
    let mut p = program();
    let some = p.types.nullable(INT);
    let parsed = |t: &str| plain("parse_int", vec![concat(vec![text(t), text("")])], some);
    let eq = |l, r, negated| ex(ExprKind::NullableEq { eq: BinaryOp::WordEq, negated, lhs: bx(l), rhs: bx(r) }, BOOL);
    let pick = func(
        &mut p,
        "pick",
        1,
        &[("n", some)],
        some,
        vec![if_(
            ex(ExprKind::IsNil { operand: bx(var(0, some)), negated: true }, BOOL),
            vec![ret(ex(
                ExprKind::Wrap(bx(bin(
                    BinaryOp::IntAdd,
                    ex(ExprKind::Unwrap(bx(var(0, some)), OnNil::Proved), INT),
                    int(1),
                ))),
                some,
            ))],
        )],
    );
    let body = vec![
        let_(0, parsed("41")),
        set_var(0, call(pick, vec![var(0, some)], some)),
        print_int(ex(ExprKind::Unwrap(bx(var(0, some)), OnNil::Zero), INT)),
        let_(1, parsed("x")),
        print_int(ex(ExprKind::Unwrap(bx(var(1, some)), OnNil::Zero), INT)),
        print_int(eq(var(0, some), parsed("42"), false)),
        print_int(eq(var(1, some), call(pick, vec![var(1, some)], some), false)),
        print_int(eq(var(0, some), var(1, some), true)),
        print_int(eq(var(1, some), ex(ExprKind::Nil, some), false)),
    ];
    let m = func(&mut p, "main", 0, &[("a", some), ("b", some)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["42", "0", "1", "1", "1", "1"]);
}

#[test]
fn interface_adapters() {
    let mut p = program();
    let some = p.types.nullable(INT);
    let class = class(&mut p, "Loud", &[("word", TEXT)]);
    let ty = class_ty(&mut p, class);
    let name = func(&mut p, "Loud.name", 1, &[("self", ty)], TEXT, vec![ret(field(var(0, ty), class, 0, TEXT))]);
    let size = func(
        &mut p,
        "Loud.size",
        2,
        &[("self", ty), ("n", some)],
        INT,
        vec![ret(ex(ExprKind::Unwrap(bx(var(1, some)), OnNil::Zero), INT))],
    );
    let sig = |name: &str, params: Vec<Ty>, ret| Sig {
        name: name.into(),
        params: params.into_iter().map(|t| (syntax::ast::Mode::Borrow, t)).collect(),
        ret,
    };
    p.interfaces.push(Interface {
        name: "Thing".into(),
        span: Default::default(),
        sigs: vec![sig("name", vec![], TEXT), sig("touch", vec![], VOID), sig("size", vec![INT], some)],
        impls: vec![(class, vec![name, name, size])],
    });
    let thing = p.types.intern(TyKind::Iface(IfaceId(0)));
    let dispatch =
        |slot, args, ty| ex(ExprKind::CallIface { iface: IfaceId(0), slot, recv: bx(var(0, thing)), args }, ty);
    let body = vec![
        let_(0, ex(ExprKind::Convert(bx(new(class, ty, vec![concat(vec![text("w"), int(1)])]))), thing)),
        print(dispatch(0, vec![], TEXT)),
        run(dispatch(1, vec![], VOID)),
        print_int(ex(ExprKind::Unwrap(bx(dispatch(2, vec![int(5)], some)), OnNil::Zero), INT)),
    ];
    let m = func(&mut p, "main", 0, &[("t", thing)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["w1", "5"]);
}

#[test]
fn defaults() {
    let mut p = program();
    let inner = class(&mut p, "Inner", &[("t", TEXT), ("at", INT)]);
    p.classes[inner.0 as usize].fields[0].default = Some(Default_::Text(b"in".to_vec()));
    p.classes[inner.0 as usize].fields[1].default = Some(Default_::Now);
    let inner_ty = class_ty(&mut p, inner);
    let (some, texts) = (p.types.nullable(INT), multi_ty(&mut p, TEXT));
    let map = map_ty(&mut p, TEXT, INT);
    let fields = [("a", INT), ("n", some), ("f", FLOAT), ("xs", texts), ("m", map), ("i", inner_ty), ("z", some)];
    let outer = class(&mut p, "Outer", &fields);
    let defaults = [
        Default_::Int(3),
        Default_::Int(0),
        Default_::Float(0.5),
        Default_::List(vec![Default_::Text(b"x".to_vec()), Default_::Text(b"y".to_vec())]),
        Default_::EmptyMap,
        Default_::New(inner),
        Default_::Nil,
    ];
    for (field, default) in p.classes[outer.0 as usize].fields.iter_mut().zip(defaults) {
        field.default = Some(default);
    }
    let ty = class_ty(&mut p, outer);
    let o = |f, t| field(var(0, ty), outer, f, t);
    let is_nil = |e| ex(ExprKind::IsNil { operand: bx(e), negated: false }, BOOL);
    let body = vec![
        // A repeated key keeps its last value.
        let_(
            0,
            ex(
                ExprKind::New {
                    class: outer,
                    fields: vec![(0, int(1)), (0, int(2))],
                    defaults: vec![1, 2, 3, 4, 5, 6],
                },
                ty,
            ),
        ),
        print_int(o(0, INT)),
        print_int(is_nil(o(1, some))),
        print_int(is_nil(o(6, some))),
        print(concat(vec![o(2, FLOAT), text(" "), ex(ExprKind::Element(bx(o(3, texts)), bx(int(1))), TEXT)])),
        print_int(builtin(Builtin::LenMap, vec![o(4, map)], INT)),
        print(field(o(5, inner_ty), inner, 0, TEXT)),
        print_int(field(o(5, inner_ty), inner, 1, INT)),
    ];
    let m = func(&mut p, "main", 0, &[("o", ty)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["2", "0", "1", "0.5 y", "0", "in", "1000"]);
}

#[test]
fn endless_defaults_overflow_the_stack() {
    let mut p = program();
    let class = class(&mut p, "Loop", &[("a", INT)]);
    let ty = class_ty(&mut p, class);
    for _ in 0..2 {
        let default = Some(Default_::New(class));
        let span = Default::default();
        p.classes[class.0 as usize].fields.push(Field { name: "l".into(), ty, span, read_only: false, default });
    }
    let body = vec![let_(0, ex(ExprKind::New { class, fields: vec![(0, int(1))], defaults: vec![1, 2] }, ty))];
    let m = func(&mut p, "main", 0, &[("l", ty)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(check(&p).1, Err(3));
    assert!(mir::lower(&p, true).funcs[1].recursive);
}

#[test]
fn actors() {
    let mut p = program();
    let msg = class(&mut p, "Add", &[("t", TEXT)]);
    let msg_ty = class_ty(&mut p, msg);
    let state = class(&mut p, "Sum", &[("last", TEXT)]);
    let state_ty = class_ty(&mut p, state);
    let receive = func(
        &mut p,
        "Sum.receive",
        2,
        &[("self", state_ty), ("msg", msg_ty)],
        TEXT,
        vec![
            set(Place::Field(var(0, state_ty), state, 0), field(var(1, msg_ty), msg, 0, TEXT)),
            ret(field(var(0, state_ty), state, 0, TEXT)),
        ],
    );
    p.classes[state.0 as usize].receive = Some(receive);
    let actor = p.types.intern(TyKind::Actor(msg_ty));
    let some = p.types.nullable(INT);
    let a = || var(0, actor);
    let fresh = || new(msg, msg_ty, vec![concat(vec![text("m"), int(1)])]);
    let body = vec![
        let_(
            0,
            ex(
                ExprKind::Spawn { class: state, fields: vec![(0, concat(vec![text("s"), int(1)]))], defaults: vec![] },
                actor,
            ),
        ),
        let_(1, fresh()),
        run(builtin(Builtin::Send, vec![a(), var(1, msg_ty)], VOID)),
        run(builtin(Builtin::Send, vec![a(), fresh()], VOID)),
        run(builtin(Builtin::Monitor, vec![a(), a(), fresh()], VOID)),
        run(builtin(Builtin::After, vec![int(5), a(), fresh()], VOID)),
        print_int(builtin(Builtin::Call, vec![a(), fresh()], INT)),
        print_int(ex(
            ExprKind::Unwrap(bx(builtin(Builtin::CallDl, vec![a(), fresh(), int(9)], some)), OnNil::Zero),
            INT,
        )),
        if_(bin(BinaryOp::RefEq, a(), a()), vec![print(text("same"))]),
    ];
    let m = func(&mut p, "main", 0, &[("a", actor), ("m", msg_ty)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["5", "5", "same"]);
    let program = mir::lower(&p, false);
    // The Text result is no reply: a made function releases it.
    assert_eq!(program.shapes.classes[state.0 as usize].reply, Some(abi::desc::Reply::None));
    assert!(program.funcs[program.receives[0].1.0 as usize].results.is_empty());
}

/// Every trap on the way releases the box, and `receive` gets an ordinal out of it.
#[test]
fn spn_1_bare_unions_are_sent_in_objects() {
    let mut p = program();
    let variant = |name: &str| Variant { name: name.into(), fields: vec![] };
    p.unions.push(Union {
        name: "Note".into(),
        span: Default::default(),
        variants: vec![variant("Came"), variant("Went")],
        has_payload: false,
    });
    let note = p.types.intern(TyKind::Union(UnionId(0)));
    let state = class(&mut p, "Tally", &[("n", INT)]);
    let state_ty = class_ty(&mut p, state);
    let params = [("self", state_ty), ("msg", note)];
    let receive = func(&mut p, "Tally.receive", 2, &params, INT, vec![ret(int(1))]);
    p.classes[state.0 as usize].receive = Some(receive);
    let actor = p.types.intern(TyKind::Actor(note));
    let (maybe, some) = (p.types.nullable(note), p.types.nullable(INT));
    let a = || var(0, actor);
    let went = || ex(ExprKind::Ordinal { union: UnionId(0), variant: 1 }, note);
    let given = |local| ex(ExprKind::Unwrap(bx(var(local, maybe)), OnNil::Message), note);
    let body = vec![
        let_(0, ex(ExprKind::Spawn { class: state, fields: vec![(0, int(0))], defaults: vec![] }, actor)),
        let_(1, went()),
        let_(2, ex(ExprKind::Wrap(bx(went())), maybe)),
        let_(3, ex(ExprKind::Nil, maybe)),
        run(builtin(Builtin::Send, vec![a(), went()], VOID)),
        run(builtin(Builtin::Send, vec![a(), var(1, note)], VOID)),
        run(builtin(Builtin::Monitor, vec![a(), a(), given(2)], VOID)),
        run(builtin(Builtin::After, vec![int(5), a(), given(3)], VOID)),
        print_int(builtin(Builtin::Call, vec![a(), var(1, note)], INT)),
        print_int(ex(
            ExprKind::Unwrap(bx(builtin(Builtin::CallDl, vec![a(), given(2), int(9)], some)), OnNil::Zero),
            INT,
        )),
    ];
    let m = func(&mut p, "main", 0, &[("a", actor), ("n", note), ("some", maybe), ("none", maybe)], VOID, body);
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["5", "5"]);
    let program = mir::lower(&p, false);
    let boxes: Vec<_> = program.shapes.classes.iter().filter(|c| c.name == "Note").collect();
    assert_eq!(boxes.len(), 1, "one class for all messages of the union");
    let entry = &program.funcs[program.receives[0].1.0 as usize];
    assert_eq!(entry.locals[1].rep, mir::ir::Rep::Obj, "the runtime gives `receive` an object");
}

#[test]
fn the_interpreter_notices_a_missing_release() {
    let mut p = program();
    let m = func(&mut p, "main", 0, &[("t", TEXT)], VOID, vec![let_(0, concat(vec![text("a"), int(1)]))]);
    p.funcs[m.0 as usize].locals.push(Local { name: "n".into(), ty: INT, span: Default::default() });
    p.funcs[m.0 as usize].body.stmts = vec![let_(1, int(4)), let_(0, concat(vec![text("a"), var(1, INT)]))];
    set_main(&mut p, m);
    let mut program = mir::lower(&p, false);
    let _ = check(&p);
    for block in &mut program.funcs[0].blocks {
        block.insts.retain(|i| !matches!(i.kind, mir::ir::InstKind::Release { .. }));
    }
    let mut machine = machine::Machine::new(&program, None);
    assert_eq!(machine.main(), Ok(0));
    assert_eq!(machine.leaks().len(), 1);
}

#[test]
fn main_with_arguments() {
    let mut p = program();
    let texts = multi_ty(&mut p, TEXT);
    let body = vec![ret(builtin(Builtin::LenMulti, vec![var(0, texts)], INT))];
    let m = func(&mut p, "main", 1, &[("args", texts)], INT, body);
    p.main = Some(Main { func: m, takes_args: true });
    assert_eq!(check(&p).1, Ok(0));
}

#[test]
fn endless_loops_and_dead_code() {
    let mut p = program();
    let never = func(
        &mut p,
        "never",
        0,
        &[],
        TEXT,
        vec![run(builtin(Builtin::Trap, vec![concat(vec![text("t"), int(1)])], Types::NEVER))],
    );
    p.funcs[never.0 as usize].never_returns = true;
    let body = vec![
        let_(0, text("")),
        while_(
            boolean(true),
            vec![
                set_var(0, concat(vec![var(0, TEXT), text("x")])),
                if_else(
                    ex(
                        ExprKind::Or(
                            bx(bin(BinaryOp::TextEq, var(0, TEXT), text("xxx"))),
                            bx(ex(ExprKind::And(bx(boolean(false)), bx(boolean(true))), BOOL)),
                        ),
                        BOOL,
                    ),
                    vec![print(concat(vec![var(0, TEXT), call(never, vec![], TEXT)])), print(text("dead"))],
                    vec![stmt(StmtKind::Continue), print(text("dead"))],
                ),
            ],
        ),
        print(text("dead")),
    ];
    let m = func(&mut p, "main", 0, &[("s", TEXT)], INT, body);
    set_main(&mut p, m);
    assert_eq!(check(&p), (Vec::new(), Err(8)));
}

#[test]
fn many_variables_and_exits() {
    let mut p = program();
    let mut body = Vec::new();
    let names: Vec<String> = (0..12).map(|i| format!("t{i}")).collect();
    let mut locals = vec![("n", INT)];
    locals.extend(names.iter().map(|n| (n.as_str(), TEXT)));
    locals.push(("i", INT));
    for i in 1..=12 {
        body.push(let_(i, concat(vec![text("t"), bin(BinaryOp::IntAdd, int(i64::from(i)), var(0, INT))])));
        body.push(if_(bin(BinaryOp::WordEq, var(0, INT), int(i64::from(i))), vec![ret(var(i, TEXT))]));
    }
    let inner: Vec<u32> = (0..12).map(|i| 14 + i).collect();
    locals.extend(inner.iter().map(|_| ("u", TEXT)));
    let lets = inner.into_iter().map(|i| let_(i, concat(vec![text("u"), var(0, INT)])));
    let mut turn: Vec<Stmt> = lets.collect();
    turn.push(stmt(StmtKind::OpAssign(Place::Local(LocalId(13)), BinaryOp::IntAdd, int(1))));
    turn.push(if_(bin(BinaryOp::IntLt, var(13, INT), int(3)), vec![stmt(StmtKind::Continue)]));
    turn.push(if_(bin(BinaryOp::IntLt, var(13, INT), int(5)), vec![stmt(StmtKind::Break)]));
    body.push(let_(13, int(0)));
    body.push(while_(boolean(true), turn));
    body.push(ret(concat(vec![var(12, TEXT), var(1, TEXT)])));
    let f = func(&mut p, "f", 1, &locals, TEXT, body);
    let calls = [1, 11, 12, 40].map(|n| print(call(f, vec![int(n)], TEXT)));
    let m = func(&mut p, "main", 0, &[], VOID, calls.to_vec());
    set_main(&mut p, m);
    assert_eq!(lines(&p), ["t2", "t22", "t24", "t52t41"]);
}

#[test]
fn large_programs_stay_linear() {
    let worker = std::thread::Builder::new().stack_size(1 << 30).spawn(|| {
        let mut p = program();
        let mut chain = var(0, INT);
        for _ in 0..100_000 {
            chain = bin(BinaryOp::IntAdd, chain, int(1));
        }
        let f = func(&mut p, "f", 1, &[("n", INT)], INT, vec![ret(chain)]);
        let parts = (0..100_000).map(|_| call(f, vec![int(1)], INT)).collect();
        let mut body = vec![print(concat(parts))];
        let mut locals = Vec::new();
        for i in 0..3000u32 {
            locals.push(("t", TEXT));
            body.push(let_(i, concat(vec![text("t"), call(f, vec![int(1)], INT)])));
            let cond = bin(BinaryOp::IntLt, call(f, vec![int(2)], INT), int(1));
            body.push(if_(cond, vec![stmt(StmtKind::Return(None))]));
        }
        let m = func(&mut p, "main", 0, &locals, VOID, body);
        set_main(&mut p, m);
        let blocks: usize = mir::lower(&p, false).funcs.iter().map(|f| f.blocks.len()).sum();
        // The expression trees are deep: they are not dropped on a small stack.
        std::mem::forget(p);
        blocks
    });
    let blocks = worker.unwrap().join().unwrap();
    assert!(blocks < 100_000, "{blocks} blocks");
}
