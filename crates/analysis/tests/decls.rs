//! Declarations: sources in, diagnostics with positions out. Each case is a small program; a path `porch:http/a.wo`
//! means a file of the dependency `porch`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use analysis::env::{ConstLookup, Elsewhere, Env, FuncLookup, NamedType, QualifiedConst, QualifiedLookup};
use analysis::hir::{ClassId, Default_, IfaceId};
use analysis::types::{Ty, TyKind, Types};
use analysis::{Input, InputFile};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, LineIndex};

fn input(files: &[(&str, &str)]) -> Input {
    let files = files.iter().enumerate().map(|(i, (path, source))| {
        let id = FileId(u32::try_from(i).unwrap());
        let (package, inner) = match path.split_once(':') {
            Some((package, inner)) => (Some(package.to_owned()), inner),
            None => (None, *path),
        };
        let mut module: Vec<String> = inner.split('/').map(str::to_owned).collect();
        let _ = module.pop();
        let parsed = syntax::parse(id, source.as_bytes(), &[]);
        assert!(parsed.diagnostics.is_empty(), "{path}: {:#?}", parsed.diagnostics);
        InputFile { id, package, module, display: (*path).to_owned(), ast: parsed.file }
    });
    Input { files: files.collect(), is_library: false }
}

fn codes(files: &[(&str, &str)], diags: &[Diagnostic]) -> Vec<String> {
    let mut diags: Vec<&Diagnostic> = diags.iter().collect();
    diags.sort_by_key(|d| (d.span.file, d.span.start));
    for d in &diags {
        assert!(!d.label.is_empty(), "{} without label: {}", d.code, d.title);
        assert!(!d.notes.is_empty(), "{} without note: {}", d.code, d.title);
        assert!(d.help.is_some(), "{} without help: {}", d.code, d.title);
        for label in d.related.iter().map(|l| l.span).chain([d.span]) {
            assert!((label.file.0 as usize) < files.len(), "{} points outside of the program", d.code);
        }
    }
    diags
        .iter()
        .map(|d| {
            let (path, source) = files[d.span.file.0 as usize];
            let (line, col) = LineIndex::new(source.as_bytes()).line_col(d.span.start);
            format!("{} {path}:{line}:{col}", d.code)
        })
        .collect()
}

#[track_caller]
fn expect(files: &[(&str, &str)], expected: &[&str]) {
    let input = input(files);
    let mut diags = Vec::new();
    let _ = analysis::decls::collect(&input, &mut diags);
    assert_eq!(codes(files, &diags), expected, "{diags:#?}");
}

/// One root file.
#[track_caller]
fn expect_one(source: &str, expected: &[&str]) {
    let files = [("m.wo", source)];
    let input = input(&files);
    let mut diags = Vec::new();
    let _ = analysis::decls::collect(&input, &mut diags);
    let found: Vec<String> = codes(&files, &diags).iter().map(|c| c.replace("m.wo:", "")).collect();
    assert_eq!(found, expected, "{source}\n{diags:#?}");
}

#[track_caller]
fn with_env(files: &[(&str, &str)], test: impl FnOnce(&mut Env<'_>)) {
    let input = input(files);
    let mut diags = Vec::new();
    let mut env = analysis::decls::collect(&input, &mut diags);
    assert!(diags.is_empty(), "{diags:#?}");
    test(&mut env);
}

fn class(env: &Env<'_>, name: &str) -> ClassId {
    match env.named_type(FileId(0), name) {
        Some(NamedType::Class(id)) => id,
        other => panic!("{name}: {other:?}"),
    }
}

fn iface(env: &Env<'_>, name: &str) -> IfaceId {
    match env.named_type(FileId(0), name) {
        Some(NamedType::Iface(id)) => id,
        other => panic!("{name}: {other:?}"),
    }
}

fn field_ty(env: &Env<'_>, owner: &str, field: &str) -> Ty {
    env.field(class(env, owner), field).unwrap().1.ty
}

#[test]
fn single_files() {
    let cases: &[(&str, &[&str])] = &[
        ("class A { n: Int, t: ?Text, m: multi A }", &[]),
        ("type A { n: Int }\ntype B { a: A }", &[]),
        // types
        ("class A { n: Integer }", &["WO-E225 1:14"]),
        ("fn f(x: Dynamic) { }", &["WO-E225 1:9"]),
        ("fn f(x: ref Nope, y: actor Nope) -> multi Nope { }", &["WO-E225 1:13", "WO-E225 1:28", "WO-E225 1:43"]),
        ("class A { n: Int }\nfn f(x: m.A) { }", &["WO-E225 2:9"]),
        ("fn f(x: net.Conn, y: json.Value) { }", &[]),
        ("class A { n: Int }\nfn f(m: map<A, Int>) { }", &["WO-E201 2:13"]),
        ("type U = A | B(n: Int)\nfn f(m: map<U, Int>) { }", &["WO-E201 2:13"]),
        ("type U = A | B\nfn f(m: map<U, Int>, n: map<Float, Bool>) { }", &[]),
        ("typedef R = { n: Int }\nfn f(x: ref R) { }", &["WO-E225 2:13"]),
        ("interface I { fn f() }\nfn f(x: actor I) { }", &["WO-E225 2:15"]),
        ("class A { n: Int }\nfn f(x: backlink A.n) { }", &["WO-E101 2:9"]),
        // duplicates
        ("class A { }\nclass A { }", &["WO-E215 2:7"]),
        ("class A { }\ntype A = X | Y", &["WO-E215 2:6"]),
        ("class Text { }", &["WO-E215 1:7"]),
        ("fn f() { }\nfn f() { }", &["WO-E215 2:4"]),
        ("const A = 1\nconst A = 2", &["WO-E215 2:7"]),
        ("class A {\n  n: Int\n  fn n() { }\n  const n = 1\n}", &["WO-E215 3:6", "WO-E215 4:9"]),
        ("typedef R = { a: Int, a: Text }", &["WO-E215 1:23"]),
        ("type U = A | A", &["WO-E215 1:14"]),
        ("type U = A\ntype V = A", &["WO-E215 2:10"]),
        ("interface I {\n  fn f()\n  fn f()\n}", &["WO-E215 3:6"]),
        ("test \"x\" { }\ntest \"x\" { }", &["WO-E215 2:6"]),
        // defaults
        (
            "const MAX = 9\nclass A { a: Int = MAX, b: Int = now, c: Float = 1.5, d: Text = \"x\", e: ?Int = nil, f: Bool = true }",
            &[],
        ),
        (
            "class A { a: Int = true, b: json.Value = \"{}\", c: ?Text = \"x\", d: multi Int = [1, true], e: map<Text, Int> = {} }",
            &[],
        ),
        ("class A { a: Int = NOPE }", &["WO-E403 1:11"]),
        ("class A { a: Int = nil }", &["WO-E212 1:20"]),
        ("class A { a: Int = \"x\" }", &["WO-E201 1:20"]),
        ("class A { a: Float = 1 }", &["WO-E201 1:22"]),
        ("class A { a: Bool = 1 }", &["WO-E201 1:21"]),
        ("class A { a: multi Int = [1, \"x\"] }", &["WO-E201 1:30"]),
        ("class A { a: multi Int = {} }", &["WO-E201 1:26"]),
        ("class A { a: map<Text, Int> = [] }", &["WO-E201 1:31"]),
        ("class A { b: B = B {} }\nclass B { n: Int = 1, m: ?A }", &[]),
        ("class A { b: B = B {} }\nclass B { n: Int }", &["WO-E403 1:11"]),
        ("class A { b: B = B {} }\nclass B { a: A = A {} }", &["WO-E403 1:18", "WO-E403 2:18"]),
        ("class A { a: ?A = A {} }", &["WO-E403 1:19"]),
        ("class A { b: B = Bb {} }\nclass B { }", &["WO-E207 1:18"]),
        ("class A { b: B = C {} }\nclass B { }\nclass C { }", &["WO-E201 1:18"]),
        ("@table class T { }\nclass A { b: ?T = T {} }", &["WO-E250 2:19"]),
        ("interface I { fn f() -> Int }\nclass B { }\nclass A { b: I = B {} }", &["WO-E205 3:18"]),
        ("interface I { fn f() -> Int }\nclass B { fn f() -> Int { return 1 } }\nclass A { b: I = B {} }", &[]),
        // annotations
        (
            "@table(name: \"a\", index: [x], index: [x, y], durable: false, resident: all,)\nclass A { x: Int, y: Text @unique }",
            &[],
        ),
        ("@table(name: \"a\", name: \"b\")\nclass A { }", &["WO-E102 1:19"]),
        ("@table(index: [])\nclass A { }", &["WO-E102 1:8"]),
        ("@table(mode: ram)\nclass A { }", &["WO-E102 1:8"]),
        ("@table(resident: keys)\nclass A { }", &["WO-E102 1:8"]),
        ("@table(resident: some)\nclass A { }", &["WO-E102 1:8"]),
        ("@table(durable: 1)\nclass A { }", &["WO-E101 1:8"]),
        ("@table(index: [y])\nclass A { x: Int }", &["WO-E202 1:16"]),
        ("@table(index: [x])\nclass A { x: multi Int }", &["WO-E102 1:16"]),
        ("class A { x: multi Int @unique }", &["WO-E102 1:11"]),
        ("@fancy class A { x: Int @odd }", &["WO-W205 1:1", "WO-W205 1:25"]),
        // backlinks
        ("@table class A { bs: backlink B.a }\n@table class B { a: ref A }", &[]),
        ("@table class A { bs: backlink B.a }\n@table class B { a: A }", &[]),
        ("@table class A { bs: backlink B.a }\n@table class B { a: Int }", &["WO-E252 1:31"]),
        ("@table class A { bs: backlink B.aa }\n@table class B { a: A }", &["WO-E202 1:33"]),
        ("@table class A { bs: backlink C.a }", &["WO-E225 1:31"]),
        // columns
        ("interface I { fn f() }\n@table class A { x: I }", &["WO-E251 2:21"]),
        ("class M { }\n@table class A { x: ?multi actor M }", &["WO-E251 2:21"]),
        ("class N { next: ?N }\nclass H { n: N }\n@table class A { x: map<Text, H> }", &["WO-E251 3:21"]),
        ("type U = E | V(u: ?U)\nclass H { n: ?U }\n@table class A { x: H, y: U, z: json.Value }", &[]),
        (
            "class V { }\n@table(durable: false) class W { }\n@table class A { x: ref V, y: ?W, z: A }",
            &["WO-E224 3:21", "WO-E224 3:31"],
        ),
        ("class V { }\n@table(durable: false) class W { x: ref V, a: A }\n@table class A { }", &[]),
        // entry
        ("fn main() { }", &[]),
        ("fn main(args: multi Text) -> Int { return 0 }", &[]),
        ("fn main() -> Text { return \"\" }", &["WO-E405 1:4"]),
        ("fn main(n: Int) -> Text { return \"\" }", &[]),
    ];
    for (source, expected) in cases {
        expect_one(source, expected);
    }
}

#[test]
fn lim_2_columns_and_indexes() {
    let check = |source: &str| {
        let files = [("m.wo", source)];
        let input = input(&files);
        let mut diags = Vec::new();
        let env = analysis::decls::collect(&input, &mut diags);
        analysis::decls::limits::check(&env, &mut diags);
        diags.iter().map(|diag| diag.title.clone()).collect::<Vec<_>>()
    };
    let columns = |count: usize, column: &str| (0..count).map(|n| format!("c{n}: {column}\n")).collect::<String>();
    let index = |n: usize| format!("index: [c{n}, c0], ");
    let class = |indexes: std::ops::Range<usize>, columns: &str| {
        let indexes: String = indexes.map(index).collect();
        format!("@table({indexes}) class A {{\n{columns}}}\n@table class B {{ a: A, n: Int }}")
    };
    for (source, expected) in [
        (class(0..1, &(columns(1024, "Int") + "bs: backlink B.a\n")), &[][..]),
        (class(0..0, &columns(1025, "Int")), &["table `A` has 1025 columns"]),
        (class(0..0, &columns(64, "Int @unique")), &[]),
        (class(0..0, &columns(65, "Int @unique")), &["table `A` has 65 indexes"]),
        (class(0..0, &columns(64, "?ref B")), &[]),
        (class(0..0, &columns(65, "?ref B")), &["table `A` has 65 indexes"]),
        // One that begins with a `ref` column serves for it.
        (class(0..64, &columns(64, "ref B")), &[]),
        (class(0..65, &columns(65, "Int")), &["table `A` has 65 indexes"]),
    ] {
        assert_eq!(check(&source), expected);
    }
    let many = (0..65_536).map(|n| format!("@table class T{n} {{ n: Int }}\n")).collect::<String>();
    assert_eq!(check(&many), ["the program has 65536 tables"]);
}

#[test]
fn several_files() {
    expect(&[("a.wo", "class A { }"), ("b/b.wo", ""), ("c.wo", "class A { }")], &["WO-E214 c.wo:1:7"]);
    expect(&[("a.wo", "class A { }"), ("porch:b.wo", "class A { }")], &[]);
    expect(&[("a.wo", "fn f() { }"), ("b.wo", "fn f() { }")], &["WO-E215 b.wo:1:4"]);
    expect(&[("a.wo", "fn f() { }"), ("b/b.wo", "fn f() { }")], &[]);
    expect(&[("a.wo", "const N = 1"), ("b.wo", "const N = 2")], &[]);
    expect(&[("a/a.wo", "fn main() { }"), ("b/b.wo", "fn main() { }")], &["WO-E215 b/b.wo:1:4"]);
    expect(&[("a/a.wo", "fn main() { }"), ("b.wo", "fn main() { }")], &[]);
    expect(&[("a.wo", "test \"x\" { }"), ("b/b.wo", "test \"x\" { }")], &[]);
}

#[test]
fn uses() {
    expect(&[("m.wo", "use fs\nuse a/b\nusing c\n"), ("a/b/x.wo", ""), ("c/y.wo", "")], &[]);
    expect(&[("m.wo", "use a/c"), ("a/b/x.wo", "")], &["WO-E216 m.wo:1:1"]);
    expect(
        &[("m.wo", "use porch\nuse porch/http"), ("porch:http/a.wo", "use http\nuse util"), ("porch:util/u.wo", "")],
        &[],
    );
    expect(&[("m.wo", "use porch/internal/x"), ("porch:internal/x/a.wo", "")], &["WO-E108 m.wo:1:1"]);
    expect(
        &[("porch:m.wo", "use internal/x\nuse app"), ("porch:internal/x/a.wo", ""), ("app/a.wo", "")],
        &["WO-E216 porch:m.wo:2:1"],
    );
    expect(&[("m.wo", "use internal"), ("internal/a.wo", "")], &[]);
}

#[test]
fn types_across_packages() {
    expect(
        &[
            ("m.wo", "fn f(a: Open, b: Closed, c: Both) { }"),
            ("p:a.wo", "pub class Open { }\nclass Closed { }\npub class Both { }"),
            ("q:b.wo", "pub class Both { }\nclass Own { x: App }"),
            ("x/app.wo", "pub class App { }"),
        ],
        &["WO-E217 m.wo:1:18", "WO-E218 m.wo:1:29", "WO-E225 q:b.wo:2:16"],
    );
    expect(
        &[
            ("m.wo", "class Both { }\nfn f(c: Both) { }"),
            ("p:a.wo", "pub class Both { }"),
            ("q:b.wo", "pub class Both { }"),
        ],
        &[],
    );
}

#[test]
fn classes_know_their_package() {
    with_env(&[("a.wo", "class A { }"), ("porch:http/b.wo", "@table class B { }\ntypedef R = { x: Int }")], |env| {
        let package = |name: &str| {
            let class = env.program.classes.iter().find(|c| c.name == name).unwrap();
            class.package.as_deref().map(str::to_owned)
        };
        let porch = Some("porch".to_owned());
        assert_eq!([package("A"), package("B"), package("R"), package("Stat")], [None, porch.clone(), porch, None]);
    });
}

#[test]
fn functions_in_scope() {
    let files = [
        ("m.wo", "use a\nuse b\nuse a/deep\nfn own() { }\nfn both() { }"),
        ("a/a.wo", "pub fn shared() { }\npub fn both() { }\npub fn only() { }\nfn hidden() { }"),
        ("b/b.wo", "pub fn shared() { }"),
        ("c/c.wo", "pub fn far() { }"),
        ("a/deep/d.wo", ""),
    ];
    with_env(&files, |env| {
        let main = FileId(0);
        assert!(matches!(env.func_in_scope(main, "own"), FuncLookup::Found(_)));
        assert!(matches!(env.func_in_scope(main, "both"), FuncLookup::Found(_)));
        assert!(env.file(main).uses.iter().all(|u| !u.used.get()));
        let FuncLookup::Ambiguous(paths) = env.func_in_scope(main, "shared") else { panic!() };
        assert_eq!(paths, ["a", "b"]);
        assert!(matches!(env.func_in_scope(main, "only"), FuncLookup::Found(_)));
        assert!(matches!(env.func_in_scope(main, "hidden"), FuncLookup::None));
        assert!(matches!(env.func_elsewhere(main, "hidden"), Elsewhere::NotExported { module, .. } if module == "a"));
        assert_eq!(env.func_elsewhere(main, "far"), Elsewhere::UnusedModule { module: "c".to_owned() });
        assert_eq!(env.func_elsewhere(main, "nope"), Elsewhere::Nowhere);
        assert!(matches!(env.func_qualified(main, "a", "only"), Some(QualifiedLookup::Found(_))));
        assert!(matches!(env.func_qualified(main, "a", "hidden"), Some(QualifiedLookup::NotExported { .. })));
        assert!(matches!(env.func_qualified(main, "b", "x"), Some(QualifiedLookup::Unknown { .. })));
        assert!(env.func_qualified(main, "c", "far").is_none());
        assert_eq!(env.file(main).uses.iter().map(|u| u.used.get()).collect::<Vec<_>>(), [true, true, false]);
        assert!(env.namespace(main, "net").is_none());
    });
}

#[test]
fn constants_in_order() {
    let files = [
        ("m.wo", "use a\nconst N = 1\nclass C { const N = 7\n static const S = 8 }"),
        ("o.wo", "const N = 2\nconst M = 3\nconst K = 4"),
        ("p.wo", "const K = 5"),
        ("a/a.wo", "pub const U = 6\nconst M = 9"),
        ("b/b.wo", "const FAR = 10\nconst U = 11"),
    ];
    with_env(&files, |env| {
        let int = |n| ConstLookup::Found(syntax::ast::Literal::Int(n));
        let (main, c) = (FileId(0), class(env, "C"));
        assert_eq!(env.const_in_scope(main, Some(c), "N"), int(7));
        assert_eq!(env.const_in_scope(main, None, "N"), int(1));
        assert_eq!(env.const_in_scope(main, None, "M"), int(3));
        assert_eq!(env.const_in_scope(main, None, "K"), ConstLookup::Ambiguous(vec!["o.wo".into(), "p.wo".into()]));
        assert_eq!(env.const_in_scope(main, None, "U"), int(6));
        assert_eq!(env.const_in_scope(main, None, "FAR"), int(10));
        assert_eq!(env.const_in_scope(main, None, "NOPE"), ConstLookup::None);
        let six = QualifiedConst::Found(syntax::ast::Literal::Int(6));
        assert_eq!(env.const_qualified(main, "a", "U"), six);
        let hidden = env.const_qualified(main, "a", "M");
        assert!(matches!(hidden, QualifiedConst::NotExported { module, .. } if module == "a"));
        assert_eq!(env.const_qualified(main, "a", "NOPE"), QualifiedConst::Unknown);
        assert!(env.class_const(c, "N", true).is_none());
        assert!(env.class_const(c, "S", true).is_some());
    });
}

#[test]
fn types_normalise() {
    let source = "@table class T { self_: ?T, id: Id }\nclass A { t: T, r: ref T, c: ref A, o: A, m: map<Text, multi ?T>, at: Timestamp }";
    with_env(&[("m.wo", source)], |env| {
        assert_eq!(field_ty(env, "A", "t"), field_ty(env, "A", "r"));
        assert_ne!(field_ty(env, "A", "c"), field_ty(env, "A", "o"));
        assert_eq!(field_ty(env, "A", "at"), Types::INT);
        assert_eq!(env.show(field_ty(env, "A", "m")), "map<Text, multi ?ref T>");
    });
}

#[test]
fn records_of_one_shape_are_one_type() {
    let source = "typedef P = { x: Int, y: ?Text }\ntypedef Q = { x: Timestamp, ?y: Text }\ntypedef R = { y: ?Text, x: Int }\n\
                  typedef A = { b: ?B }\ntypedef B = { b: ?A }\ntypedef L = { n: Int, next: ?L }\ntypedef M = { n: Int, next: ?M }\ntypedef N = { n: Int, next: ?A }\n\
                  typedef W = { p: P }\ntypedef V = { p: Q }\ntypedef E = { code: Int, line: Int, method: Text, msg: Text }";
    with_env(&[("m.wo", source)], |env| {
        assert_eq!(class(env, "P"), class(env, "Q"));
        assert_ne!(class(env, "P"), class(env, "R"));
        assert_eq!(class(env, "A"), class(env, "B"));
        assert_eq!(class(env, "L"), class(env, "M"));
        assert_ne!(class(env, "L"), class(env, "N"));
        assert_eq!(class(env, "W"), class(env, "V"));
        assert_eq!(class(env, "E"), class(env, "Error"));
        assert_eq!(env.program.well_known.error, class(env, "Error"));
    });
}

#[test]
fn aliases_keep_their_defaults() {
    let source =
        "typedef P = { x: Int = 1, y: ?Int }\ntypedef Q = { x: Int = 2, y: ?Int }\ntypedef R = { x: Int = 1, ?y: Int }";
    with_env(&[("m.wo", source)], |env| {
        let file = FileId(0);
        assert_eq!(env.field(class(env, "P"), "x").unwrap().1.default, Some(Default_::Int(1)));
        assert_eq!(env.field(class(env, "P"), "y").unwrap().1.default, Some(Default_::Nil));
        assert_eq!(env.record_defaults(file, "P"), None);
        assert_eq!(env.record_defaults(file, "R"), None);
        assert_eq!(env.record_defaults(file, "Q"), Some(&[Some(Default_::Int(2)), Some(Default_::Nil)][..]));
    });
    expect_one(
        "typedef P = { x: Int = 1 }\ntypedef Q = { x: Int = 2 }\nclass A { q: Q = Q {}, p: P = P {} }",
        &["WO-E403 3:18"],
    );
}

#[test]
fn own_error_class() {
    let own = "class Error { code: Int, line: Int, method: Text, msg: Text, more: ?Int }";
    with_env(&[("m.wo", own)], |env| assert_eq!(env.program.well_known.error, class(env, "Error")));
    let files = [("m.wo", own), ("dep:d.wo", "pub fn f(e: Error) { }\nclass Holds { e: Error }")];
    with_env(&files, |env| {
        let FuncLookup::Found(f) = env.func_in_scope(FileId(1), "f") else { panic!() };
        let error = env.program.types.intern(TyKind::Class(class(env, "Error")));
        assert_eq!(env.program.funcs[f.0 as usize].locals[0].ty, error);
    });
    let other = "class Error { code: Text }";
    with_env(&[("m.wo", other)], |env| assert_ne!(env.program.well_known.error, class(env, "Error")));
}

#[test]
fn interfaces() {
    let source = "interface Shape { fn area() -> Int\n fn scale(by: Int) }\ninterface Named { fn name() -> Text }\n\
        interface Both { fn area() -> Int\n fn scale(by: Int) }\ninterface Wide { fn area() -> ?Int }\n\
        interface Maybe { fn text(by: Text) -> ?Text }\nclass Text1 { fn text(by: ?Text) -> Text { return \"\" } }\nclass Sq { fn area() -> Int { return 1 }\n fn scale(by: Int) { } }\n\
        class Loose { fn area() -> Bool { return true }\n fn scale(by: ?Int) -> Text { return \"\" } }\n\
        class Bad { fn area() -> Text { return \"\" }\n fn scale(by: Int) { } }\n\
        class Static { static fn area() -> Int { return 1 }\n fn scale(by: Int) { } }\n\
        class Count { fn area(x: Int) -> Int { return 1 }\n fn scale(by: Int) { } }\n\
        class Taker { fn area() -> Int { return 1 }\n fn scale(take by: Int) { } }\n\
        class Muter { fn area() -> Int { return 1 }\n fn scale(mut by: Int) { } }";
    with_env(&[("m.wo", source)], |env| {
        let shape = iface(env, "Shape");
        let (sq, loose) = (class(env, "Sq"), class(env, "Loose"));
        let direct = env.satisfies(sq, shape).unwrap();
        assert_eq!(direct, [env.method(sq, "area").unwrap(), env.method(sq, "scale").unwrap()]);
        assert_eq!(env.satisfies(sq, shape).unwrap(), direct);
        let adapted = env.satisfies(loose, shape).unwrap();
        for (slot, func) in adapted.iter().enumerate() {
            assert!(env.bodies[func.0 as usize].is_none());
            assert_eq!(env.program.funcs[func.0 as usize].ret, env.program.interfaces[shape.0 as usize].sigs[slot].ret);
        }
        for (name, word) in
            [("Bad", "returns `Text`"), ("Static", "static"), ("Count", "1 parameter"), ("Taker", "`take`")]
        {
            let why = env.satisfies(class(env, name), shape).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
        assert!(env.satisfies(class(env, "Muter"), shape).is_ok());
        assert!(env.satisfies(sq, iface(env, "Named")).unwrap_err().contains("`name`"));

        // Conversions between interfaces reach classes recorded before and after.
        let (both, wide) = (iface(env, "Both"), iface(env, "Wide"));
        assert!(env.covers(shape, iface(env, "Named")).is_err());
        env.covers(shape, both).unwrap();
        env.covers(both, wide).unwrap();
        assert!(env.covers(wide, both).is_err());
        let has =
            |env: &Env<'_>, i: IfaceId, c| env.program.interfaces[i.0 as usize].impls.iter().any(|(x, _)| *x == c);
        assert!(has(env, both, sq) && has(env, wide, sq) && has(env, wide, loose));
        let late = class(env, "Muter");
        assert!(has(env, wide, late));
    });
}

#[test]
fn mutual_interfaces_terminate() {
    let source = "interface I { fn next() -> J }\ninterface J { fn back() -> I }\n\
        class A { fn next() -> B { return B {} } }\nclass B { fn back() -> A { return A {} } }\n\
        class C { fn next() -> D { return D {} } }\nclass D { fn back() -> Int { return 1 } }";
    with_env(&[("m.wo", source)], |env| {
        let i = iface(env, "I");
        assert!(env.satisfies(class(env, "A"), i).is_ok());
        assert_eq!(env.program.interfaces[iface(env, "J").0 as usize].impls.len(), 1);
        let why = env.satisfies(class(env, "C"), i).unwrap_err();
        assert!(why.contains("next") && why.contains("back"), "{why}");
    });
}

#[test]
fn assignability() {
    let source = "@table class T { n: Int }\nclass A { t: T, i: Int, b: Bool, f: Float, s: Text, j: json.Value, oi: ?Int, ob: ?Bool, mi: multi Int, mb: multi Bool }";
    with_env(&[("m.wo", source)], |env| {
        let ty = |n: &str| field_ty(env, "A", n);
        for (from, to, expected) in [
            ("b", "i", true),
            ("i", "b", false),
            ("t", "i", true),
            ("i", "t", true),
            ("s", "j", true),
            ("j", "s", true),
            ("i", "f", false),
            ("i", "oi", true),
            ("oi", "i", false),
            ("ob", "oi", true),
            ("oi", "ob", false),
            ("mb", "mi", false),
        ] {
            assert_eq!(env.assignable_static(ty(from), ty(to)), expected, "{from} to {to}");
        }
        assert!(env.assignable_static(Types::NIL, ty("oi")));
        assert!(!env.assignable_static(Types::NIL, ty("i")));
        assert!(env.assignable_static(Types::EMPTY_MULTI, ty("mi")));
        assert!(env.assignable_static(Types::VOID, Types::INT));
        assert!(!env.assignable_static(Types::INT, Types::VOID));
    });
}

#[test]
fn actors_and_decoding() {
    let source = "class Msg { n: Int }\ntype Ev = On | Off(n: Int)\ninterface I { fn f() }\n@table class T { fn receive(m: Msg) { } }\n\
        class Ok { fn receive(mut m: Msg) -> Int { return 1 } }\nclass Ok2 { fn receive(m: Msg) { } }\nclass Un { fn receive(e: Ev) { } }\n\
        class No { }\nclass Two { fn receive(a: Msg, b: Msg) { } }\nclass Sc { fn receive(a: Int) { } }\nclass Tk { fn receive(take a: Msg) { } }\n\
        class Deep { a: ?multi Inner, t: T, m: map<Text, Int> }\nclass Inner { d: ?Deep, e: Ev }\nclass Fine { d: ?Fine, t: ?T, k: Kind }\ntype Kind = K1 | K2\nclass Keys { m: map<Int, Int> }";
    with_env(&[("m.wo", source)], |env| {
        for name in ["Ok", "Ok2", "Un"] {
            assert!(env.receive_of(class(env, name)).is_ok(), "{name}");
        }
        for name in ["T", "No", "Two", "Sc", "Tk"] {
            assert!(env.receive_of(class(env, name)).is_err(), "{name}");
        }
        let msg = env.program.types.intern(TyKind::Class(class(env, "Msg")));
        assert_eq!(env.receivers_of(msg).len(), 2);
        let mut ty = |name: &str| {
            let class = class(env, name);
            env.program.types.intern(TyKind::Class(class))
        };
        let (fine, deep, keys) = (ty("Fine"), ty("Deep"), ty("Keys"));
        assert_eq!(env.decodable(fine), Ok(()));
        assert_eq!(env.decodable(deep), Err("`Deep.a.e: Ev`".to_owned()));
        assert!(env.decodable(keys).is_err());
        assert!(env.decodable(Types::INT).is_err());
        assert_eq!(env.decodable(Types::JSON), Ok(()));
    });
}

#[test]
fn extensions_and_variants() {
    let files = [
        ("m.wo", "using pad\nuse other\ntype Own = Idle | Busy"),
        ("pad/p.wo", "pub fn quoted(t: Text) -> Text { return t }\nfn hidden(t: Text) { }"),
        ("other/o.wo", "pub fn quoted(t: Text) -> Text { return t }\ntype Other = Idle"),
        ("dep:d.wo", "pub type Theirs = Idle\ntype Secret = Gone"),
    ];
    with_env(&files, |env| {
        assert_eq!(env.extensions(FileId(0), "quoted").len(), 1);
        assert!(env.extensions(FileId(0), "hidden").is_empty());
        assert_eq!(env.variant(FileId(0), "Idle").len(), 3);
        assert!(env.variant(FileId(0), "Gone").is_empty());
        assert_eq!(env.variant(FileId(3), "Idle").len(), 1);
    });
}

#[test]
fn stdlib_is_complete() {
    with_env(&[("m.wo", "class Stat { own: Int }")], |env| {
        let sig = |ns: &str, name: &str| env.builtins.sigs.get(&(ns.into(), name.into())).cloned().unwrap_or_default();
        assert_eq!(sig("builtins", "len").len(), 3);
        assert_eq!(sig("net", "read_dl").len(), 1);
        assert!(sig("net", "read_dl")[0].available);
        assert!(!sig("net", "connect_tls")[0].available);
        // A program's class does not change what builtins return.
        assert_ne!(env.program.well_known.stat, class(env, "Stat"));
        for sig in env.builtins.sigs.values().flatten() {
            let text = format!("{:?}", sig);
            assert!(!text.contains("Ty(Ty(0))"), "{text}");
        }
    });
}

#[test]
fn dump_gc_prints_structure() {
    let source = "class Leaf { n: Int }\nclass Tree { top: Leaf, kids: multi Tree = [] }\nclass C { a: ?A }\nclass A { b: map<Text, ?B> }\nclass B { c: C, a: multi multi A }\n@table class T { t: ?T }\ntypedef P = { x: Int }\ntypedef Q = { x: Int }";
    with_env(&[("m.wo", source)], |env| {
        let expected = "A          gc     (cycle A -> B -> A)\nB          gc     (cycle B -> A -> B)\nC          gc     (cycle C -> A -> B -> C)\n\
            Leaf       owned\nP          owned\nQ          owned\nT          owned\nTree       gc     (cycle Tree -> Tree)\n";
        assert_eq!(analysis::dump_gc(&env.program), expected);
    });
}

#[test]
fn unused_uses() {
    let files = [
        (
            "m.wo",
            "use a\nuse b\nuse c\nuse d\nuse net\nuse fs\nuse a\nfn main() {\n  af()\n  let n = CONST\n  let k: ?Kind = nil\n}\nfn g(c: net.Conn) { }",
        ),
        ("a/a.wo", "pub fn af() { }"),
        ("b/b.wo", "pub const CONST = 1"),
        ("c/c.wo", "type Kind = Red | Blue"),
        ("d/d.wo", "pub fn unused() { }"),
    ];
    let output = analysis::check(&input(&files));
    assert_eq!(codes(&files, &output.diagnostics), ["WO-W202 m.wo:4:1", "WO-W202 m.wo:6:1"]);
    assert!(output.program.is_some());
}

#[test]
fn a_name_that_is_not_exported_uses_its_module() {
    let files = [("m.wo", "use kit\nfn f(p: Pen) { }\nfn main() { }"), ("kit:k.wo", "class Pen { }")];
    let output = analysis::check(&input(&files));
    assert_eq!(codes(&files, &output.diagnostics), ["WO-E217 m.wo:2:9"]);
}

#[test]
fn several_entries_are_one_report() {
    let files = [("a/a.wo", "fn main() { }"), ("b/b.wo", "fn main() { }"), ("c/c.wo", "fn main(a: multi Text) { }")];
    let output = analysis::check(&input(&files));
    assert_eq!(codes(&files, &output.diagnostics), ["WO-E215 b/b.wo:1:4"]);
    assert!(files.iter().all(|(path, _)| output.diagnostics[0].title.contains(path)));
}

#[test]
fn long_chains_of_interfaces_need_no_stack() {
    let n = 3_000;
    let mut source = String::new();
    for i in 0..n {
        source.push_str(&format!(
            "interface I{i} {{ fn f() -> I{} }}\nclass C{i} {{ fn f() -> C{} {{ return self.f() }} }}\n",
            (i + 1) % n,
            (i + 1) % n
        ));
        source.push_str(&format!("interface J{i} {{ fn g() }}\n"));
    }
    source.push_str("class G { fn g() { } }");
    with_env(&[("m.wo", source.as_str())], |env| {
        let root = iface(env, "I0");
        assert!(env.satisfies(class(env, "C0"), root).is_ok());
        for i in 0..n - 1 {
            let (from, to) = (iface(env, &format!("J{i}")), iface(env, &format!("J{}", i + 1)));
            env.covers(from, to).unwrap();
        }
        let first = iface(env, "J0");
        let last = iface(env, &format!("J{}", n - 1));
        assert!(env.satisfies(class(env, "G"), first).is_ok());
        assert_eq!(env.program.interfaces[last.0 as usize].impls.len(), 1);
    });
}

#[test]
fn dump_hir_prints_everything() {
    let source = "typedef P = { x: Int = 1, ?y: Text }\ntype S = Idle | Failed(why: Text)\ninterface N { fn name() -> ?Text }\n\
        class A { pub(read) n: Int = 2\n fn name() -> Text { return \"a\" } }\n\
        fn show(n: N) -> Text { let t = n.name()\n if t == nil { return \"-\" }\n return t }\n\
        fn main() -> Int { let s: S = Failed(\"x\")\n let k = switch s { case Idle: 0\n case Failed(w): len(w) }\n\
        let r = try k / 0 catch (e) -1\n while r < 3 { r += 1 }\n print(show(A {}))\n return r }";
    let output = analysis::check(&input(&[("m.wo", source)]));
    assert!(output.diagnostics.is_empty(), "{:#?}", output.diagnostics);
    let text = analysis::dump_hir(&output.program.unwrap());
    for wanted in [
        "record P {\n  x: Int = 1\n  y: ?Text = nil\n}",
        "class A {\n  pub(read) n: Int = 2\n}",
        "union S = Idle | Failed(why: Text)",
        "interface N {\n  fn name() -> ?Text\n  impl A: f2",
        "show(n#0: N) -> Text {",
        "switch #1 = s#0 exhaustive {",
        "case S.Failed(w#",
        "try k#",
        "IntAdd= 1",
        "(A { n: default } to N)",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn broken_programs_are_reported_in_linear_time() {
    let mut source = String::new();
    for i in 0..20_000 {
        source.push_str(&format!("class Known{i} {{ a: Unknown{i} = NOPE{i} }}\n"));
    }
    let files = [("m.wo", source.as_str())];
    let input = input(&files);
    let start = std::time::Instant::now();
    let mut diags = Vec::new();
    let _ = analysis::decls::collect(&input, &mut diags);
    assert_eq!(diags.len(), 40_000);
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn large_programs_are_read_in_linear_time() {
    let mut source = String::new();
    for i in 0..20_000 {
        source.push_str(&format!(
            "typedef R{i} = {{ next: ?R{}, n{i}: Int }}\nfn f{i}(a: R{i}) -> R{i} {{ return a }}\n",
            i + 1
        ));
    }
    source.push_str("typedef R20000 = { n: Int }\n");
    let start = std::time::Instant::now();
    expect_one(&source, &[]);
    assert!(start.elapsed().as_secs() < 20);
}
