//! Section 2 of the language: declarations, statements, expressions (checklist items 8, 10 to 13 and 15).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod common;
use common::{body, body_reports, expr, report, reports, tree};

#[test]
fn precedence() {
    for (source, wanted) in [
        ("not a == b", "(== (not a) b)"),
        ("a | b == c", "(== (| a b) c)"),
        ("-x % y", "(% (- x) y)"),
        ("a .. b == c", "(== (.. a b) c)"),
        ("-x as Int", "(- (as x Int))"),
        ("a or b and c", "(or a (and b c))"),
        ("a + b * c - d", "(- (+ a (* b c)) d)"),
        ("a .. b + 1 .. c", "(.. a (+ b 1) c)"),
        ("a << 1 >> 2", "(>> (<< a 1) 2)"),
        ("a >= b", "(>= a b)"),
        ("a > b", "(> a b)"),
        ("a ^ b & c", "(^ a (& b c))"),
        ("a.b[1](2).c", "(.c (call (index (.b a) 1) 2))"),
        ("a as multi Int", "(as a multi Int)"),
        ("x.extends.type", "(.type (.extends x))"),
        ("proc.spawn(a)", "(call (.spawn proc) a)"),
        ("- - 1", "(- (- 1))"),
        ("not not a", "(not (not a))"),
        ("a < b < c", "(< (< a b) c)"),
    ] {
        assert_eq!(expr(source), wanted, "{source}");
    }
    assert_eq!(body_reports("let x = 1 + try f() catch (e) 0"), ["1:22 WO-E101"]);
}

#[test]
fn primaries() {
    for (source, wanted) in [
        ("[1, 2,]", "(list 1 2)"),
        ("[1 2\n 3]", "(list 1 2 3)"),
        ("[\n]", "(list)"),
        ("{}", "{}"),
        ("{\n}", "{}"),
        ("C {}", "(new C)"),
        ("C {\n a: 1,\n type: 2,\n}", "(new C a: 1 type: 2)"),
        ("spawn C { a: 1 }", "(spawn C a: 1)"),
        ("insert\n C { a: 1 }", "(insert C a: 1)"),
        ("delete row.x", "(delete (.x row))"),
        ("f(\n1\n,\n2\n)", "(call f 1 2)"),
        ("try f() catch (e) nil", "(try (call f) catch e nil)"),
        ("try f()\n catch (e) {}", "(try (call f) catch e do)"),
        ("try a catch (e) try b catch (g) c", "(try a catch e (try b catch g c))"),
        ("(try a catch (e) 0) + 1", "(+ (try a catch e 0) 1)"),
        ("json.decode(t) as ?map<Text, R>", "(as (call (.decode json) t) ?map<Text, R>)"),
        ("from", "from"),
        ("where + group", "(+ where group)"),
    ] {
        assert_eq!(expr(source), wanted, "{source}");
    }
    assert_eq!(body("delete\ndelete; x"), "  delete\n  delete\n  x");
    for source in
        ["f(1,)", "f(1 2)", "(\n1)", "(1\n)", "C { a: 1 b: 2 }", "{ a: 1 }", "{ 1 }", "a[\n1]", "[,]", "[1,,2]"]
    {
        let found = body_reports(&format!("let x = {source}\n let y = 1"));
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert!(found[0].ends_with("WO-E101"), "{source}: {found:?}");
    }
    let map = report("fn f() { let m = { \"a\": 1 }\n }");
    assert!(map.help.unwrap().contains("set("), "map literal");
}

#[test]
fn braces_in_conditions() {
    assert_eq!(body("if (C { b: true }).b { x }"), "  (if (.b (new C b: true)) then\n    x)");
    assert_eq!(body("if f(C { b: true }) { x }"), "  (if (call f (new C b: true)) then\n    x)");
    assert_eq!(body("for x in [C {}] { x }"), "  (for x in (list (new C))\n    x)");
    assert_eq!(body_reports("if C { b: true }.b { x }\n let y = 1").len(), 1);
    assert_eq!(body("while a { x }"), "  (while a\n    x)");
    let wanted = "  (if (switch a\n      (case 1 :\n        (let c (new C))\n        true)\n      (default\n        false)) then\n    x)";
    let found = body("if switch a { case 1: let c = C {}\n true\n default: false } { x }");
    assert_eq!(found.replace(' ', ""), wanted.replace(' ', ""));
    assert_eq!(
        body("let q = from x in C where x.a == 1 select D { a: x }"),
        "  (let q (from x C where (== (.a x) 1) select (new D a: x)))"
    );
}

#[test]
fn statements() {
    assert_eq!(
        body("if a { b } else if c { d }\n else\n { e } f"),
        "  (if a then\n    b c then\n    d\n  else\n    e)\n  f"
    );
    assert_eq!(body("for k, v in m { break; continue }"), "  (for k, v in m\n    (break)\n    (continue))");
    assert_eq!(body("do { x }\n while a\n return"), "  (do-while a\n    x)\n  (return)");
    assert_eq!(body("a.b = c; a[1] += 2"), "  (= (.b a) c)\n  (+= (index a 1) 2)");
    assert_eq!(
        body("let extends: ?Int = nil; x *= 1; x /= 1; x %= 1"),
        "  (let extends: ?Int nil)\n  (*= x 1)\n  (/= x 1)\n  (%= x 1)"
    );
    assert_eq!(body("let m: map<Text, map<Text, Int>>= {}"), "  (let m: map<Text, map<Text, Int>> {})");
    assert_eq!(body("let m: map<Text, Int>= {}"), "  (let m: map<Text, Int> {})");
    assert_eq!(
        body("switch m {\n case Stay: 0\n case Step(n), X: n\n default:\n y\n }"),
        "  (switch m\n    (case Stay :\n      0)\n    (case (call Step n) X :\n      n)\n    (default\n      y))"
    );
    assert_eq!(
        body("let q = from v in V\n where v.d == d\n where e\n order by v.h desc, v.p\n skip a\n take 10\n select v.p"),
        "  (let q (from v V where (== (.d v) d) where e desc (.h v) asc (.p v) skip a take 10 select (.p v)))"
    );
    assert_eq!(body("let q = from v in V group v by v.x into g select g"), "  (let q (from v V group select g))");
    for source in [
        "let 1 = 2",
        "let x 1",
        "if { }",
        "while a b",
        "for in x { }",
        "return 1 2",
        "x y",
        "if a { } else x",
        "; x",
        "let type = 1",
        "do { } x",
    ] {
        let found = body_reports(&format!("{source}\n let y = 1"));
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert!(found[0].ends_with("WO-E101"), "{source}: {found:?}");
    }
}

#[test]
fn missing_query_words() {
    for (source, word) in [
        ("from x in C where x", "`select`"),
        ("from x in C order x select x", "`by`"),
        ("from x in C group x into g select g", "`by`"),
        ("from x in C group x by y select g", "`into`"),
    ] {
        let found = report(&format!("fn f() {{ let q = {source}\n }}"));
        assert!(found.title.contains(word) && found.code.number == 101, "{source}: {found:?}");
    }
}

#[test]
fn declarations() {
    let source = "use fs; using a/b-c\nconst A = -1\npub const B = 'x'\nconst C = -2.5 const D = true\n\
                  typedef R = { a: Int, ?b: Text\n type: ?Int = nil }\n\
                  type U = A | B(n: Int, m: ?Text) |\n C()\n\
                  pub interface I { fn a(take x: Int) -> Text\n fn b()\n}\n\
                  test \"it\\n\" { x }\n\
                  fn f(\n a: Int,\n mut b: multi ?Text\n) ?-> map<Text, Int> { }";
    let wanted = "(use fs)\n(using a/b-c)\n(const A -1)\n(pub const B \"x\")\n(const C -2.5)\n(const D true)\n\
                  (typedef R\n  (field a: Int)\n  (field b: ?Text)\n  (field type: ?Int = nil))\n\
                  (union U (A) (B n: Int m: ?Text) (C))\n\
                  (pub interface I\n  (sig a (take x: Int) -> Text)\n  (sig b ()))\n\
                  (test \"it\\n\"\n  x)\n\
                  (fn f (a: Int, mut b: multi ?Text) -> ?map<Text, Int>)\n";
    assert_eq!(tree(&source.replace("const C = -2.5 const", "const C = -2.5; const")), wanted);
}

#[test]
fn classes() {
    let source = "pub @table(name: \"visits\", index: [day, page], durable: true, resident: all,)\n\
                  @foo(bar(baz), {[()]})\n\
                  class Visit {\n\
                  page: Text, day: Int = 0\n pub(read) hits: Int @unique = 1\n\
                  a: ?Int = nil\n b: Int = now\n c: Int = now()\n d: multi Int = [1, -2]\n e: map<Text, map<Text, Int>>= {}\n\
                  f: P = P {}\n g: Text = `x`\n h: Int = LIMIT\n i: Int = f(1)\n j: Text = \"a${b}\"\n k: Float = -1.5\n\
                  service: Int\n on: ref Visit\n x: backlink Visit.on\n y: actor M\n z: net.Conn\n type: Int\n fn: Int }";
    // `fn` is no field name.
    assert_eq!(reports(source).len(), 1);
    let source = source.replace(
        "\n fn: Int }",
        "\n static fn make() -> Visit { }\n fn go() { self.x }\n static const N = 1\n const M = 2\n }",
    );
    let wanted = "(pub class Visit @table(name: \"visits\", index: [day/page], durable: true, resident: all) @foo\n  \
                  (field page: Text)\n  (field day: Int = 0)\n  (pub(read) field hits: Int @unique = 1)\n  \
                  (field a: ?Int = nil)\n  (field b: Int = now)\n  (field c: Int = now)\n  (field d: multi Int = [1, -2])\n  \
                  (field e: map<Text, map<Text, Int>> = {})\n  (field f: P = P {})\n  (field g: Text = \"x\")\n  \
                  (field h: Int = LIMIT)\n  (field i: Int = <invalid>)\n  (field j: Text = <invalid>)\n  (field k: Float = -1.5)\n  \
                  (field service: Int)\n  (field on: ref Visit)\n  (field x: backlink Visit.on)\n  (field y: actor M)\n  \
                  (field z: net.Conn)\n  (field type: Int)\n  \
                  (static const N 1)\n  (const M 2)\n  (static fn make () -> Visit)\n  (fn go ()\n    (.x self)))\n";
    assert_eq!(tree(&source), wanted);
    assert_eq!(tree("@table(\n)\npub type V { }"), "(pub class V @table())\n");
    assert_eq!(
        tree("@table(mode: ram, index: x, name: 1 + 2, index: [], index: [1])\nclass V { }"),
        "(class V @table(mode: ram, index: x, name: ?, index: [], index: ?))\n"
    );
}

#[test]
fn types() {
    assert_eq!(body("let x: multi ?Text = []"), "  (let x: multi ?Text (list))");
    assert_eq!(body("let x: map<K, map<K, map<K, ?V>>> = {}"), "  (let x: map<K, map<K, map<K, ?V>>> {})");
    assert_eq!(body("let x: multi multi actor M = []"), "  (let x: multi multi actor M (list))");
    for source in ["??Int", "?", "map<Int>", "map Int", "multi", "ref 1", "backlink A", "Int.", "map<A, B"] {
        let found = body_reports(&format!("let x: {source} = 1\n let y = 1"));
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert!(found[0].ends_with("WO-E101"), "{source}: {found:?}");
    }
    assert_eq!(reports("fn f() ? { }").len(), 1);
    assert_eq!(reports("fn f() ?-> ?Int { }").len(), 1);
}

#[test]
fn broken_declarations() {
    for source in [
        "use 1",
        "use a/",
        "const A = x",
        "const A = \"a${b}\"",
        "const = 1",
        "fn (a: Int) { }",
        "fn f(a) { }",
        "fn f(a: Int,) { }",
        "fn f(a: Int b: Int) { }",
        "fn f()",
        "fn f() Int { }",
        "class { }",
        "class A { a }",
        "class A { a: Int b: Int }",
        "class A { pub a: Int }",
        "class A { a: Int = 1 @unique }",
        "typedef A { }",
        "typedef A = { ?a: ?Int }",
        "type A = ",
        "type A = B | | C",
        "type A = B(n)",
        "interface I { fn a() { } }",
        "interface I { a: Int }",
        "test \"a${b}\" { }",
        "test x { }",
        "pub pub fn f() { }",
        "pub use a",
        "@table(name) class A { }",
        "@a fn f() { }",
        "let x = 1",
        "x = 1",
        "}",
    ] {
        let found = reports(&format!("{source}\nconst Z = 1\n"));
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert!(found[0].ends_with("WO-E101"), "{source}: {found:?}");
        let parsed = syntax::parse(diagnostics::span::FileId(0), format!("{source}\nconst Z = 1\n").as_bytes(), &[]);
        assert!(syntax::dump_ast(&parsed.file).ends_with("(const Z 1)\n"), "{source}");
    }
    let late = report("class A { a: Int = 1 @unique }");
    assert!(late.help.unwrap().contains("= default"));
}

#[test]
fn refused_words() {
    for (source, number, help) in [
        ("fn f() { INSERT C { } }", 101, "insert"),
        ("fn f() { let x = SELECT a }", 101, "from"),
        ("fn f() { let x = select a }", 101, "from"),
        ("class A { service { } }", 101, "receive"),
        ("class A { policy read { } }", 101, "function"),
        ("class A { on insert { } }", 101, "method"),
        ("fn f() { super.f() }", 105, "field"),
        ("fn f() { let x = cast(a) }", 105, "switch"),
        ("macro m { }", 105, "function"),
        ("extern fn f()", 105, "namespaces"),
        ("class A extends B { }", 105, "interface"),
        ("class A implements B { }", 105, "interface"),
        ("operator + { }", 105, "method"),
        ("inline fn f() { }", 103, "fn f"),
        ("class A { override fn f() { } }", 105, "field"),
        ("const INSERT = 1", 101, "insert"),
        ("class A { inline fn f() { } }", 103, "fn f"),
        ("@gc class A { }", 104, "dump gc"),
    ] {
        let found = report(source);
        assert_eq!(found.code.number, number, "{source}");
        assert!(found.help.as_deref().unwrap_or_default().contains(help), "{source}: {found:?}");
    }
    assert_eq!(expr("x.extends"), "(.extends x)");
    assert_eq!(tree("class A { extends: Int }"), "(class A\n  (field extends: Int))\n");
    assert_eq!(tree("@gc2(a) class A { }"), "(class A @gc2)\n");
}

#[test]
fn messages_name_what_was_expected_and_found() {
    for (source, title) in [
        ("fn f() { let x = \n}", "expected an expression, found end of line"),
        ("fn f() { let x = 1", "expected `}`, found end of file"),
        ("fn f() { let x = 1 2\n}", "expected the end of the statement, found `2`"),
        ("fn f() { g(1 2)\n}", "expected `,` or `)`, found `2`"),
        ("const A", "expected `=` and a literal, found end of file"),
        ("fn f(a Int) { }", "expected `:` and the parameter's type, found `Int`"),
        ("fn f(a: Int b: Int) { }", "expected `,` or `)`, found `b`"),
        ("use a b", "expected `/` or the end of the line, found `b`"),
        ("class A { a: Int = 1 2 }", "expected `,`, the end of the line or `}`, found `2`"),
        ("x", "expected a declaration, found `x`"),
    ] {
        assert_eq!(report(source).title, title, "{source}");
    }
}

/// Habits from other languages: the help names the idiom.
#[test]
fn foreign_forms_are_told_the_idiom() {
    for (source, help) in [
        ("union A = B | C", "a union is `type"),
        ("struct A { n: Int }", "a class is `class"),
        ("import a", "`use path/to/module`"),
        ("func f() { }", "a function is `fn"),
        ("var x = 1", "a constant is `const"),
        ("x", "move statements into a function"),
        ("fn f(n: Int) { switch n {\n case A { return\n }\n default: 1 } }", "`case value:`"),
        ("fn f(n: Int) { switch n {\n case 1: { return\n }\n default: 1 } }", "leave the braces out"),
        ("fn f() { let m = { 1: 2 }\n}", "fill it with `set(m, key, value)`"),
    ] {
        let found = report(source).help.unwrap_or_default();
        assert!(found.contains(help), "{source}\n{found}");
    }
}

/// A block from which something was left out says so, and so do the blocks around it.
#[test]
fn broken_blocks_are_marked() {
    for (source, broken) in [
        ("fn f() { if a { b( } }", true),
        ("fn f() { switch a { default: let } }", true),
        ("fn f() { let s = \"${}\" }", true),
        ("fn f() {", true),
        ("fn f() { if a { b() } }", false),
        ("fn g() { b( }\nfn f() { }", false),
    ] {
        let file = syntax::parse(diagnostics::span::FileId(0), source.as_bytes(), &[]).file;
        let Some(syntax::ast::Decl::Fn(f)) = file.decls.last() else { panic!("{source}") };
        assert_eq!(f.body.is_broken, broken, "{source}");
    }
}
