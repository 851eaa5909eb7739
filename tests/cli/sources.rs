//! Discovery of sources and hostile sources (1.1, 2.4, 4.1, 14): every outcome is a status, never a crash or a hang.

use corpus::reports;

use crate::{Tree, assert_one_line, assert_status, woc};

#[test]
fn bad_paths() {
    assert_one_line(&woc(&["check", "missing"]), "missing");
    assert_one_line(&woc(&["missing/a.wo"]), "missing/a.wo");
    let tree = Tree::new(&[("plain.txt", b"")]);
    assert_one_line(&tree.woc(&["check", "plain.txt/below"]), "plain.txt/below");
    assert_one_line(&tree.woc(&["check", &"x".repeat(5000)]), "");
    assert_one_line(&tree.woc(&["check", "a\nb"]), "");
}

#[test]
fn a_directory_without_sources_is_unreadable_an_empty_file_is_a_program() {
    let tree = Tree::new(&[("empty/readme.txt", b"x"), ("file/a.wo", b"")]);
    assert_one_line(&tree.woc(&["check", "empty"]), "no .wo file");
    let out = tree.woc(&["check", "file"]);
    assert_status(&out, 0);
    assert!(out.stderr.is_empty());
    assert_status(&tree.woc(&["check", "file/a.wo"]), 0);
}

#[test]
fn hidden_and_generated_directories_are_skipped() {
    let bad: &[u8] = b"fn broken( {\n";
    let tree = Tree::new(&[
        ("p/a.wo", b"fn main() { }\n"),
        ("p/.git/b.wo", bad),
        ("p/.hidden.wo", bad),
        ("p/target/c.wo", bad),
        ("p/data/d.wo", bad),
        ("p/node_modules/e.wo", bad),
        ("p/sub/target/f.wo", bad),
        ("p/notes.txt", bad),
    ]);
    let out = tree.woc(&["check", "p"]);
    assert_status(&out, 0);
    assert!(out.stderr.is_empty(), "{}", out.stderr_text());
}

#[test]
fn files_come_in_bytewise_path_order() {
    let bad: &[u8] = b"fn main() { print(x) }\n";
    let tree = Tree::new(&[
        ("p/b/x.wo", b"fn f() { print(y) }\n"),
        ("p/a.wo", bad),
        ("p/b-c/x.wo", b"fn g() { print(z) }\n"),
        ("p/B.wo", b"fn h() { print(w) }\n"),
    ]);
    let out = tree.woc(&["check", "--format", "short", "p"]);
    assert_status(&out, 1);
    let stderr = out.stderr_text();
    let files: Vec<&str> = stderr.lines().map(|l| l.split(':').next().expect("file")).collect();
    assert_eq!(files, ["p/B.wo", "p/a.wo", "p/b-c/x.wo", "p/b/x.wo"]);
}

#[cfg(unix)]
#[test]
fn links_do_not_loop() {
    let tree = Tree::new(&[("p/a.wo", b"fn main() { }\n")]);
    std::os::unix::fs::symlink(tree.path("p"), tree.path("p/again")).expect("link");
    std::os::unix::fs::symlink("nowhere.wo", tree.path("p/dangling.wo")).expect("link");
    assert_status(&tree.woc(&["check", "p"]), 0);
}

/// Status 1 and nothing but reports of `code`; the source is checked in every format.
#[track_caller]
fn assert_only(source: &[u8], code: &str) {
    let tree = Tree::new(&[("a.wo", source)]);
    for format in ["short", "human", "json"] {
        let out = tree.woc(&["check", "--format", format, "a.wo"]);
        assert_status(&out, 1);
        if format == "short" {
            let found = reports(&out.stderr_text());
            assert!(!found.is_empty() && found.iter().all(|r| r.code == code), "{found:?}");
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_reported() {
    assert_only(b"fn main() { \xff }\n", "WO-E001");
    assert_only(b"fn main() { print(\"a\xff\x00\") \x01 }\n", "WO-E001");
}

#[test]
fn strings_hold_any_bytes() {
    let tree = Tree::new(&[("a.wo", b"fn main() { print(\"\xff\xfe\") }\n")]);
    let out = tree.woc(&["run", "a.wo"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout, b"\xff\xfe\n");
}

#[test]
fn byte_order_mark_and_crlf_are_harmless() {
    let tree = Tree::new(&[("a.wo", b"\xEF\xBB\xBFfn main() {\r\n  print(\"x\" ..\r\n\r\n    \"y\")\r\n}\r\n")]);
    assert_eq!(tree.woc(&["run", "a.wo"]).stdout_text(), "xy\n");
    tree.write("b.wo", b"\xEF\xBB\xBFfn main() { print(x) }\r\n");
    let out = tree.woc(&["check", "b.wo"]);
    assert!(out.stderr_text().starts_with("b.wo:1:19: error WO-E403"), "{}", out.stderr_text());
}

/// Blanks that the formatter would add or take away mean nothing, and neither do most `;` (1.2, 1.7, 2.1).
#[test]
fn blanks_between_tokens_are_free() {
    let source = b"fn main(){
  let a-b=5;let a=10;let b=3
  let xs=[4]
  print_int(a-b);print_int(a -b);print_int(5-3);print_int(xs[0]-1);
  let m:map<Text,map<Text,multi Int>>={}
  m[\"k\"]={ };set(get(m,\"k\"),\"i\",[1>>0]);
  if a<b{print(\"lt\")}print_int(len(m)\t);
}";
    let tree = Tree::new(&[("a.wo", source)]);
    assert_eq!(tree.woc(&["run", "a.wo"]).stdout_text(), "5\n7\n2\n3\n1\n");
    // Not a `0.` and a `.3`: there are no such numbers (1.4).
    tree.write("b.wo", b"fn main() { for i in 0..3 { print_int(i) } }\n");
    let out = tree.woc(&["check", "--format", "short", "b.wo"]);
    let found: Vec<String> = reports(&out.stderr_text()).iter().map(|r| format!("{} {}", r.col, r.code)).collect();
    assert_eq!(found, ["22 WO-E201"]);
}

#[test]
fn deep_nesting_is_refused() {
    let deep = 100_000;
    for (open, close) in [("(", ")"), ("[", "]"), ("f(", ")"), ("not ", ""), ("- ", ""), ("C { a: ", " }"), ("x[", "]")]
    {
        let source = format!("fn main() {{ let a = {}1{} }}\n", open.repeat(deep), close.repeat(deep));
        assert_only(source.as_bytes(), "WO-E101");
    }
    let blocks = format!("fn main() {{ {}{} }}\n", "if true { ".repeat(deep), "} ".repeat(deep));
    assert_only(blocks.as_bytes(), "WO-E101");
    let types = format!("fn main(a: {}Int) {{ }}\n", "multi ".repeat(deep));
    assert_only(types.as_bytes(), "WO-E101");
    let unclosed = "fn main() { let a = ".to_owned() + &"(".repeat(deep);
    assert_only(unclosed.as_bytes(), "WO-E101");
}

#[test]
fn long_chains_compile() {
    let source = format!("fn main() {{ let a = \"x\"{}\n  print_int(len(a)) }}\n", " .. \"x\"".repeat(100_000));
    let tree = Tree::new(&[("a.wo", source.as_bytes())]);
    let out = tree.woc(&["run", "a.wo"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "100001\n");
}

#[test]
fn long_chains_of_every_operator_are_checked() {
    for (first, more) in [("1", " + 1"), ("x", " - x"), ("t", " or t"), ("t", " and t"), ("t", " == t"), ("x", " & 3")]
    {
        let chain = more.repeat(100_000);
        let source = format!("fn main() {{\n  let t = true\n  let x = 2\n  let a = {first}{chain}\n}}\n");
        let tree = Tree::new(&[("a.wo", source.as_bytes())]);
        assert_status(&tree.woc(&["check", "a.wo"]), 0);
    }
    let items = format!("fn main() {{ let xs = [{}] }}\n", "1, ".repeat(300_000));
    assert_status(&Tree::new(&[("a.wo", items.as_bytes())]).woc(&["check", "a.wo"]), 0);
}

#[test]
fn long_lines_and_files_take_no_time() {
    let mut source = b"fn main() { print(\"".to_vec();
    source.resize(source.len() + 10_000_000, b'x');
    source.extend_from_slice(b"\") }\n");
    let tree = Tree::new(&[("a.wo", &source)]);
    assert_status(&tree.woc(&["check", "a.wo"]), 0);
    source.extend_from_slice(b"fn f() { print(y) }\n");
    source.retain(|b| *b != b'\n');
    assert_only(&source, "WO-E403");
    let mut name = b"fn main() { print(".to_vec();
    name.resize(name.len() + 10_000_000, b'n');
    name.extend_from_slice(b") }\n");
    assert_only(&name, "WO-E403");
}

#[test]
fn many_errors_end() {
    let source = format!("fn main() {{\n{}}}\n", "  print(y)\n".repeat(20_000));
    assert_only(source.as_bytes(), "WO-E403");
    let bytes = vec![b'$'; 50_000];
    assert_only(&bytes, "WO-E001");
}
