//! Section 1 of the language: words, numbers, texts, build flags (checklist items 1 to 9 and 14).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod common;
use common::{body, body_reports, expr, report, reports, reports_of, tree};

#[test]
fn dashes_belong_to_identifiers() {
    for (source, wanted) in [
        ("a-b", "a-b"),
        ("i-1", "i-1"),
        ("x--note", "x--note"),
        ("a - b", "(- a b)"),
        ("a -b", "(- a b)"),
        ("a -1", "(- a 1)"),
        ("5-3", "(- 5 3)"),
        ("f()-1", "(- (call f) 1)"),
        ("xs[0]-1", "(- (index xs 0) 1)"),
    ] {
        assert_eq!(expr(source), wanted, "{source}");
    }
    assert_eq!(body("x-=1"), "  (= x- 1)");
    assert_eq!(body("x -= 1"), "  (-= x 1)");
}

#[test]
fn integers() {
    for (source, wanted) in [
        ("0x10", "16"),
        ("0X1f", "31"),
        ("0b11", "3"),
        ("1_000", "1000"),
        ("0xFFFF_FFFF_FFFF_FFFF", "-1"),
        ("0x0000000000000000001", "1"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1 - -9223372036854775808", "(- 1 -9223372036854775808)"),
        ("-5", "(- 5)"),
        ("0..3", "(.. 0 3)"),
    ] {
        assert_eq!(expr(source), wanted, "{source}");
    }
    for source in ["9223372036854775808", "-9223372036854775809", "0x1_0000_0000_0000_0000", "1 -9223372036854775808"] {
        let found = body_reports(&format!("let x = {source}"));
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert!(found[0].ends_with("WO-E006"), "{source}: {found:?}");
    }
    for source in ["0xg", "0b2", "5_", "1__0", "0x_1", "2eggs", "1."] {
        let found = body_reports(&format!("let x = {source}"));
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert!(found[0].ends_with("WO-E101"), "{source}: {found:?}");
    }
}

#[test]
fn floats() {
    for (source, wanted) in [
        ("2e3", "2000.0"),
        ("1.5", "1.5"),
        ("1_0.5e-1", "1.05"),
        ("1e999", "inf"),
        ("1.5E+2", "150.0"),
        ("2e10", "2e10"),
    ] {
        let wanted = if source == "2e10" { "20000000000.0" } else { wanted };
        assert_eq!(expr(source), wanted, "{source}");
    }
}

#[test]
fn quoted_texts() {
    for (source, wanted) in [
        (r#""a\nb\t\r\0\\\"\'""#, r#""a\nb\t\r\x00\\\"\'""#),
        (r"'it\'s \q'", r#""it\'s q""#),
        (r#""\${x}""#, r#""${x}""#),
        (r#""$x $ {y}""#, r#""$x $ {y}""#),
        (r#""{{ x }}""#, r#""{{ x }}""#),
        (r#""""#, r#""""#),
        (r#""${n}""#, "(text n)"),
        (r#""a${n}b${m}""#, r#"(text "a" n "b" m)"#),
        (r#""${f("a}")}""#, r#"(text (call f "a}"))"#),
        (r#""${f("${g("}")}")}""#, r#"(text (call f (text (call g "}"))))"#),
        (r#""${f({})}""#, "(text (call f {}))"),
        (r#""${C { a: 1 }}""#, "(text (new C a: 1))"),
        ("\"${[1,\n2]}\"", "(text (list 1 2))"),
        ("'${`x}`}'", r#"(text "x}")"#),
    ] {
        assert_eq!(expr(source), wanted, "{source}");
    }
}

#[test]
fn broken_texts() {
    assert_eq!(body_reports("let x = \"abc\n let y = 1"), ["1:18 WO-E005"]);
    assert_eq!(body_reports("print(\"abc\n let y = 1"), ["1:16 WO-E005"]);
    assert_eq!(body_reports("print(\"${f(\"abc)}\n print(1)"), ["1:16 WO-E005"]);
    assert_eq!(body_reports("let x = \"abc\\\n let y = 1"), ["1:18 WO-E005"]);
    assert_eq!(reports("fn f() { print(\"abc"), ["1:16 WO-E002"]);
    assert_eq!(reports("fn f() { print(\"a ${b"), ["1:16 WO-E002"]);
    assert_eq!(reports("fn f() { print(`abc\n}"), ["1:16 WO-E004"]);
    assert_eq!(body_reports("print(`abc {{ x } `)"), ["1:16 WO-E004"]);
    assert_eq!(body_reports("print(`abc ${ x `)"), ["1:16 WO-E004"]);
    assert_eq!(body_reports("print(`abc {{ x `)\n let y = )"), ["1:16 WO-E004", "2:10 WO-E101"]);
    // The statement after the line survives.
    let parsed = syntax::parse(diagnostics::span::FileId(0), b"fn f() {\n let x = \"abc\n let y = 1\n}", &[]);
    assert_eq!(syntax::dump_ast(&parsed.file), "(fn f ()\n  (let x (unread))\n  (let y 1))\n");
}

#[test]
fn holes_hold_one_expression() {
    for source in
        ["\"${}\"", "\"a ${1 2} b\"", "\"${\nx}\"", "\"${x\n}\"", "\"${ }\"", "`${x y}`", "`{{ }}`", "\"${let}\""]
    {
        let found = report(&format!("fn f() {{ let x = {source}\n}}"));
        assert_eq!(found.code.number, 101, "{source}");
        let start = 17 + source.find(['$', '{']).unwrap() as u32;
        assert_eq!(found.span.start, start, "{source}");
    }
    assert_eq!(body_reports("print(\"${a b} ${c d}\")\n print()"), ["1:17 WO-E101", "1:24 WO-E101"]);
    // Other codes keep their own place.
    assert_eq!(body_reports("let x = \"${99999999999999999999}\""), ["1:21 WO-E006"]);
    assert_eq!(body_reports("let x = \"${super}\""), ["1:21 WO-E105"]);
    // Positions inside holes are true.
    let parsed = syntax::parse(diagnostics::span::FileId(0), b"fn f() { return \"ab${ name }\" }", &[]);
    let syntax::ast::Decl::Fn(f) = &parsed.file.decls[0] else { panic!() };
    let syntax::ast::StmtKind::Return(Some(e)) = &f.body.stmts[0].kind else { panic!() };
    let syntax::ast::ExprKind::Text(pieces) = &e.kind else { panic!() };
    let syntax::ast::Piece::Hole(hole) = &pieces[1] else { panic!() };
    assert_eq!((hole.span.start, hole.span.end), (22, 26));
}

#[test]
fn raw_texts() {
    for (source, wanted) in [
        ("`a\\n\"'`", r#""a\\n\"\'""#),
        ("``", r#""""#),
        ("`  one line  `", r#""  one line  ""#),
        ("`\n    a\n      b\n    c\n  `", r#""a\n  b\nc\n""#),
        ("`\n\ta\n\t\tb`", r#""a\n\tb""#),
        ("`\r\n    a\r\n\r\n    b\r\n  `", r#""a\r\n\r\nb\r\n""#),
        ("`\n    a\n\n   b`", r#"" a\n\nb""#),
        ("`x\n  y`", r#""x\n  y""#),
        ("`\n    <li>${x}</li>\n      ${y}\n  `", r#"(text "<li>" x "</li>\n  " y "\n")"#),
        ("`{{ e }}`", "(text (esc e))"),
        ("`a{{ f({}) }}b`", r#"(text "a" (esc (call f {})) "b")"#),
        ("`${[\n1]}  `", r#"(text (list 1) "  ")"#),
        ("`\n  `", r#""""#),
        ("`$x {y} }}`", r#""$x {y} }}""#),
    ] {
        assert_eq!(expr(source), wanted, "{source:?}");
    }
}

#[test]
fn lines_continue_after_dots_only() {
    assert_eq!(body("let x = a .. -- note\n\n  -- more\n  b"), "  (let x (.. a b))");
    assert_eq!(body("a\n-1"), "  a\n  (- 1)");
    assert_eq!(body_reports("a\n.f"), ["2:1 WO-E101"]);
    assert_eq!(body("a\n(b)"), "  a\n  b");
    assert_eq!(body("a\n[b]"), "  a\n  (list b)");
    assert_eq!(body_reports("let x = 1 +\n 2"), ["1:21 WO-E101"]);
}

#[test]
fn build_flags() {
    let source = "#if A\n#if B\nconst x = 1\n#else\nconst x = 2\n#end\n#else\nconst x = 3\n#end\nfn f() { let y = #if A 1 #else 2 #end\n }";
    let dump = |flags: &[&str]| {
        assert_eq!(reports_of(source.as_bytes(), flags), Vec::<String>::new());
        let flags: Vec<String> = flags.iter().map(|f| (*f).to_owned()).collect();
        let parsed = syntax::parse(diagnostics::span::FileId(0), source.as_bytes(), &flags);
        syntax::dump_ast(&parsed.file)
    };
    assert_eq!(dump(&[]), "(const x 3)\n(fn f ()\n  (let y 2))\n");
    assert_eq!(dump(&["A"]), "(const x 2)\n(fn f ()\n  (let y 1))\n");
    assert_eq!(dump(&["A", "B"]), "(const x 1)\n(fn f ()\n  (let y 1))\n");
    assert_eq!(expr("\"${#if A a #else b #end}\""), "(text b)");
    for (source, wanted) in [
        ("#if\nconst a = 1\n#end", "1:1"),
        ("const a = 1\n#if A\n", "2:1"),
        ("#if A\n#else\n#else\n#end", "3:1"),
        ("#else", "1:1"),
        ("#end", "1:1"),
        ("#wat", "1:1"),
        ("fn f() { let x = \"${#if A a}\" }", "1:21"),
    ] {
        assert_eq!(reports(source), [format!("{wanted} WO-E003")], "{source}");
    }
    assert_eq!(reports("#if A\nconst x = ~\n let y = \"a\n#end"), ["2:11 WO-E001", "3:10 WO-E005"]);
    assert_eq!(reports("#if A\nthis is ( no program\n#end\nconst a = 1"), Vec::<String>::new());
}

#[test]
fn bytes_that_start_no_token() {
    for source in ["!", "~", "\\", "$", "é", "\0"] {
        assert_eq!(body_reports(&format!("let x = a {source} b\n let y = 1")), ["1:20 WO-E001"], "{source:?}");
    }
    assert_eq!(
        reports_of(b"fn f() { let x = \xff\xfe\xfd 1\n let y = \xff 1 }", &[]),
        ["1:18 WO-E001", "2:10 WO-E001"]
    );
    // Inside texts and comments any byte is fine.
    assert_eq!(reports_of(b"fn f() { let x = \"\xff\0\" -- \xff\xfe\n }", &[]), Vec::<String>::new());
    assert_eq!(body_reports("let x = a => b"), ["1:20 WO-E101"]);
}

#[test]
fn line_ends_and_byte_order_mark() {
    assert_eq!(tree("\u{feff}const a = 1\r\nconst b = 2\r\n"), "(const a 1)\n(const b 2)\n");
    assert_eq!(tree(""), "");
    assert_eq!(tree("\n\n  -- only a comment"), "");
    assert_eq!(reports("\u{feff}const a ="), ["1:10 WO-E101"]);
}

#[test]
fn token_dump_is_readable() {
    let dump = syntax::dump_tokens(b"fn f() -- c\n\n\"a${x}\"", &[]);
    let wanted = "1:1 Fn fn\n1:4 Ident f\n1:5 LParen (\n1:6 RParen )\n1:12 Nl\n3:1 StrOpen \\\"\n3:2 StrPart a\n\
                  3:3 HoleOpen ${\n3:5 Ident x\n3:6 HoleClose }\n3:7 StrClose \\\"\n3:8 Eof\n";
    assert_eq!(dump, wanted);
}
