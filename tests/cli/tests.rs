//! `woc test` (3.10, 14) and `woc new`.

use crate::{Tree, assert_one_line, assert_status, assert_usage};

const SOURCE: &[u8] = b"fn half(n: Int) -> Int { return 10 / n }
test \"halves\" { assert_eq(half(5), 2) }
test \"divides by zero\" {
  half(0)
}
test \"v1.2: compares\" { print(\"seen\"); assert_eq([1, 2], [1, 3]) }
test \"returns early\" { return 3 }
";

#[test]
fn one_line_for_each_test_and_the_counts() {
    let tree = Tree::new(&[("t.wo", SOURCE)]);
    let out = tree.woc(&["test", "t.wo"]);
    assert_status(&out, 1);
    let text = out.stdout_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "ok   halves");
    let trap = "trap 1 in half at line 1: division by zero";
    assert_eq!(lines[1], format!("FAIL divides by zero -- t.wo:1: {trap}"));
    assert_eq!(lines[2], format!("     {trap}"));
    assert_eq!(lines[3], "       at half (t.wo:1)");
    assert_eq!(lines[4], "       at test \"divides by zero\" (t.wo:4)");
    let trap = "trap 8 in test \"v1.2: compares\" at line 6: assertion failed: ";
    assert!(lines[5].starts_with(&format!("FAIL v1.2: compares -- t.wo:6: {trap}")), "{text}");
    assert_eq!(lines[6], "     seen");
    assert_eq!(lines[9..], ["ok   returns early", "2 passed, 2 failed"], "{text}");
    assert!(out.stderr.is_empty(), "{}", out.stderr_text());
}

#[test]
fn a_filter_is_a_part_of_the_name() {
    let tree = Tree::new(&[("t.wo", SOURCE)]);
    let out = tree.woc(&["test", "t.wo", "--filter", "halves"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "ok   halves\n1 passed, 0 failed\n");
    let out = tree.woc(&["test", "--filter", "by zero", "t.wo"]);
    assert_status(&out, 1);
    assert!(out.stdout_text().ends_with("0 passed, 1 failed\n"));
    let out = tree.woc(&["test", "t.wo", "--filter", "nothing"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "0 passed, 0 failed\n");
    assert_eq!(out.stderr_text(), "woc: no test has `nothing` in its name\n");
    assert_usage(&tree.woc(&["test", "t.wo", "--filter"]));
    assert_usage(&tree.woc(&["test", "t.wo", "u.wo"]));
}

#[test]
fn the_path_is_here_by_default_and_modules_are_shown() {
    let tree = Tree::new(&[
        ("a.wo", b"test \"same\" { assert(true) }\nfn main() -> Int { return 9 }\n"),
        ("sub/deep/b.wo", b"test \"same\" { assert(true) }\n"),
    ]);
    let out = tree.woc(&["test"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "ok   same\nok   sub/deep: same\n2 passed, 0 failed\n");
}

#[test]
fn each_test_is_a_fresh_program() {
    let source = b"use env\ntest \"one\" { assert(env.get(\"WO_EPHEMERAL\") == \"1\") }
test \"two\" { assert(env.get(\"WO_DATA\") == nil) }\n";
    let tree = Tree::new(&[("t.wo", source)]);
    assert_status(&tree.woc_env(&["test", "t.wo"], &[("WO_DATA", "/nonexistent"), ("WO_OPT", "0")]), 0);
}

#[test]
fn a_test_without_end_is_ended_at_the_limit() {
    let source = b"use time
test \"turns\" { while true { } }

test \"parks\" { print(\"seen\"); time.sleep(600000) }
test \"ends\" { assert(true) }
";
    let tree = Tree::new(&[("t.wo", source)]);
    let started = std::time::Instant::now();
    let out = tree.woc_env(&["test", "t.wo"], &[("WO_TEST_MS", "2000")]);
    assert_status(&out, 1);
    let late = "no end within 2000 ms (WO_TEST_MS)";
    let wanted = format!(
        "FAIL turns -- t.wo:2: {late}\nFAIL parks -- t.wo:4: {late}\n     seen\nok   ends\n1 passed, 2 failed\n"
    );
    assert_eq!(out.stdout_text(), wanted);
    assert!(started.elapsed() < std::time::Duration::from_secs(30), "{:?}", started.elapsed());
    for odd in ["0", "x", "-1", "4294967296"] {
        let out = tree.woc_env(&["test", "t.wo", "--filter", "ends"], &[("WO_TEST_MS", odd)]);
        assert_status(&out, 0);
        let stderr = out.stderr_text();
        let notice = format!("woc: WO_TEST_MS={odd} is not a number from 1 to 4294967295; ignored\n");
        assert_eq!(stderr, notice);
    }
}

#[test]
fn flags_reach_the_tests() {
    let tree =
        Tree::new(&[("t.wo", b"#if LOUD\ntest \"loud\" { assert(true) }\n#end\ntest \"other\" { assert(true) }\n")]);
    assert_eq!(tree.woc(&["test", "t.wo"]).stdout_text(), "ok   other\n1 passed, 0 failed\n");
    let out = tree.woc(&["-DLOUD", "test", "t.wo"]);
    assert_eq!(out.stdout_text(), "ok   loud\nok   other\n2 passed, 0 failed\n");
}

#[test]
fn errors_come_before_tests() {
    let tree = Tree::new(&[("t.wo", b"test \"a\" { nothing() }\ntest \"a\" { }\n")]);
    let out = tree.woc(&["test", "--format", "short", "t.wo"]);
    assert_status(&out, 1);
    assert!(out.stdout.is_empty());
    let stderr = out.stderr_text();
    assert!(stderr.contains("t.wo:1:12: error WO-E403: ") && stderr.contains("t.wo:2:6: error WO-E215: "), "{stderr}");
    assert_one_line(&tree.woc(&["test", "none"]), "none");
    // Other commands drop test bodies; check does not.
    tree.write("t.wo", b"fn main() { }\ntest \"a\" { nothing() }\n");
    assert_status(&tree.woc(&["run", "t.wo"]), 0);
    assert_status(&tree.woc(&["check", "t.wo"]), 1);
}

#[test]
fn what_only_tests_use_is_not_unused_where_they_are_left_out() {
    let library = b"use time\npub fn one() -> Int { return 1 }\ntest \"clock\" { assert(time.ticks() > 0) }\n";
    let tree = Tree::new(&[
        ("lib/wo.toml", b"name = \"lib\"\n"),
        ("lib/one.wo", library),
        ("p/wo.toml", b"name = \"p\"\n[deps]\nlib = { path = \"../lib\" }\n"),
        (
            "p/main.wo",
            b"use lib\nuse time\nfn main() { print_int(lib.one()) }\ntest \"clock\" { assert(time.ticks() > 0) }\n",
        ),
    ]);
    for command in ["run", "check", "test"] {
        let out = tree.woc(&[command, "p"]);
        assert_status(&out, 0);
        assert!(out.stderr.is_empty(), "{command}: {}", out.stderr_text());
    }
}

#[test]
fn new_makes_projects_that_work() {
    let tree = Tree::new(&[]);
    let out = tree.woc(&["new", "app"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "made the program `app`: run it with `woc run app`\n");
    assert!(out.stderr.is_empty());
    let out = tree.woc(&["new", "--lib", "my-lib"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "made the library `my-lib`: test it with `woc test my-lib`\n");
    for (name, main) in [("app", true), ("my-lib", false)] {
        let out = tree.woc(&["test", name]);
        assert_status(&out, 0);
        assert!(out.stdout_text().ends_with("\n1 passed, 0 failed\n"), "{}", out.stdout_text());
        let out = tree.woc(&[name]);
        assert_status(&out, 0);
        assert!(out.stdout.is_empty() && out.stderr.is_empty());
        assert_eq!(tree.path(&format!("{name}/target/{name}")).exists(), main);
        let ignored = std::fs::read_to_string(tree.path(&format!("{name}/.gitignore"))).expect("written");
        assert_eq!(ignored, "target/\n.wo-data/\n.wo-deps/\n");
    }
    assert_eq!(tree.woc(&["run", "app"]).stdout_text(), "hello, world\n");
}

#[test]
fn new_refuses_what_exists_and_bad_names() {
    let tree = Tree::new(&[("file", b"x"), ("dir/a", b"x")]);
    for name in ["file", "dir"] {
        assert_one_line(&tree.woc(&["new", name]), "exists already");
    }
    assert_eq!(std::fs::read(tree.path("file")).expect("still there"), b"x");
    assert!(!tree.path("dir/wo.toml").exists());
    for name in ["", "a b", "..", "1x", "a\"b", "missing/x"] {
        assert_one_line(&tree.woc(&["new", name]), "woc: ");
    }
    for (name, why) in [("fn", "a reserved word"), ("json", "the standard library")] {
        assert_one_line(&tree.woc(&["new", name]), why);
        assert!(!tree.path(name).exists());
    }
    assert_usage(&tree.woc(&["new"]));
    assert_usage(&tree.woc(&["new", "--bin", "x"]));
}

#[test]
fn the_tests_of_porch() {
    let porch = corpus::root().join("docs/examples/porch");
    let out = Tree::new(&[]).woc(&["test", porch.to_str().unwrap()]);
    assert_status(&out, 0);
    let text = out.stdout_text();
    for rule in ["3.9", "W01", "W05"] {
        assert!(text.contains(rule), "{rule}: {text}");
    }
}
