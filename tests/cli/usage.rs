//! Forms and exit codes of the command (14).

use crate::{Tree, assert_one_line, assert_status, assert_usage, woc};

const HELLO: &[u8] = b"fn main() { print(\"hello\") }\n";

#[test]
fn version_names_release_and_platform() {
    for form in ["version", "--version"] {
        let out = woc(&[form]);
        assert_status(&out, 0);
        let text = out.stdout_text();
        let rest = text.strip_prefix("writeonce ").expect("name");
        let (version, platform) = rest.trim_end().split_once(' ').expect("two parts");
        assert_eq!(version.split('.').count(), 3, "{text}");
        assert_eq!(platform.split('/').count(), 2, "{text}");
    }
}

#[test]
fn help_is_no_error() {
    for form in ["--help", "help"] {
        let out = woc(&[form]);
        assert_status(&out, 0);
        assert!(out.stdout_text().starts_with("usage: woc "));
    }
}

#[test]
fn unknown_commands_are_no_paths() {
    let tree = Tree::new(&[("chekc", HELLO), ("a.wo", HELLO)]);
    for (args, line) in [
        (&["chek", "a.wo"][..], "woc: unknown command `chek`: did you mean `check`?\n"),
        (&["nwe"], "woc: unknown command `nwe`: did you mean `new`?\n"),
        (&["compile", "a.wo"], "woc: unknown command `compile`\n"),
    ] {
        let out = tree.woc(args);
        assert_usage(&out);
        assert!(out.stderr_text().starts_with(line), "{}", out.stderr_text());
    }
    // What is there is a path, and without a near command a single word is one too.
    assert!(!tree.woc(&["chekc"]).stderr_text().contains("unknown command"));
    assert_one_line(&tree.woc(&["nothing-near"]), "nothing-near: ");
}

#[test]
fn usage_errors() {
    for args in [
        &[][..],
        &["--bogus", "x"],
        &["check"],
        &["check", "a", "b"],
        &["run"],
        &["fmt"],
        &["fmt", "--check"],
        &["fmt", "--bogus", "x"],
        &["dump", "nope", "x"],
        &["dump", "ast"],
        &["check", "--format", "xml", "x"],
        &["-D"],
        &["check", "-D", "", "x"],
        &["check", "-D", "1x", "x"],
        &["check", "-D", "a b", "x"],
        &["a", "b"],
    ] {
        let out = woc(args);
        assert_eq!(out.status, Some(2), "{args:?}");
        assert_usage(&out);
    }
}

/// A reader that has enough is no fault, a full disk is one.
#[test]
fn output_that_is_lost() {
    let tree = Tree::new(&[("a.wo", HELLO)]);
    for (to, status, line) in
        [(">/dev/full", 2, "woc: standard output: No space left on device\n"), ("| head -c 1", 0, ""), (">&-", 0, "")]
    {
        let script = format!("set -o pipefail; \"$0\" dump asm a.wo {to}");
        let mut command = std::process::Command::new("bash");
        let _ = command.current_dir(tree.path("")).arg("-c").arg(script).arg(corpus::woc().expect("woc"));
        let out = corpus::finish(&mut command, std::time::Duration::from_secs(60)).expect("bash runs");
        assert_status(&out, status);
        assert_eq!(out.stderr_text(), line);
    }
}

#[test]
fn status_of_check() {
    let tree = Tree::new(&[("good.wo", HELLO), ("bad.wo", b"fn main() { print(nothing) }\n")]);
    for form in [&["check", "good.wo"][..], &["good.wo"]] {
        let out = tree.woc(form);
        assert_status(&out, 0);
        assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{}", out.stderr_text());
    }
    let out = tree.woc(&["check", "bad.wo"]);
    assert_status(&out, 1);
    assert!(out.stdout.is_empty());
    assert!(out.stderr_text().starts_with("bad.wo:1:19: error WO-E403: "), "{}", out.stderr_text());
    assert_status(&tree.woc(&["run", "bad.wo"]), 1);
}

#[test]
fn run_passes_the_status_and_arguments_on() {
    let source = b"fn main(args: multi Text) -> Int {\n  for a in args { print(a) }\n  return 7\n}\n";
    let tree = Tree::new(&[("a.wo", source)]);
    let out = tree.woc(&["run", "a.wo", "--", "one", "--two", "-D", "--", ""]);
    assert_status(&out, 7);
    assert_eq!(out.stdout_text(), "one\n--two\n-D\n--\n\n");
    for unmarked in ["one", "--two"] {
        let out = tree.woc(&["run", "a.wo", unmarked]);
        assert_status(&out, 2);
        let wanted =
            format!("woc: unexpected argument '{unmarked}' found: what the program shall get stands behind `--`\n");
        assert!(out.stderr_text().starts_with(&wanted), "{}", out.stderr_text());
    }
    let out = tree.woc_env(&["run", "a.wo"], &[("WO_OPT", "0")]);
    assert_status(&out, 7);
    assert!(out.stdout.is_empty() && out.stderr.is_empty());
    assert_status(&tree.woc_env(&["run", "a.wo"], &[("WO_OPT", "-counts,-checks")]), 7);
    let out = tree.woc_env(&["run", "a.wo"], &[("WO_OPT", "fast")]);
    assert_status(&out, 2);
    assert!(out.stderr_text().starts_with("woc: WO_OPT is 0, 1 or a list of "), "{}", out.stderr_text());
}

/// Who names a file of a project where the directory is meant, and so misses what the other files declare, is told.
#[test]
fn a_file_of_a_project_is_read_alone() {
    let tree = Tree::new(&[
        ("p/wo.toml", b"name = \"p\"\n"),
        ("p/main.wo", b"use kit\nfn main() { print(greeting()) }\n"),
        ("p/kit/a.wo", b"pub fn greeting() -> Text { return \"hi\" }\nfn broken() -> Int { return \"\" }\n"),
        ("q/main.wo", b"fn main() { print(greeting()) }\n"),
    ]);
    let hint = |form: &[&str]| {
        let out = tree.woc(form);
        assert_status(&out, 1);
        out.stderr_text().lines().last().filter(|line| line.starts_with("woc: ")).map(str::to_owned)
    };
    let wanted = "woc: p/main.wo was read alone; to read its project, name the directory p instead".to_owned();
    assert_eq!(hint(&["run", "p/main.wo"]), Some(wanted.clone()));
    assert_eq!(hint(&["check", "p/main.wo"]), Some(wanted));
    // What is wrong is not outside of the file; another form of reports; no project.
    assert_eq!(hint(&["check", "p/kit/a.wo"]), None);
    assert_eq!(hint(&["check", "--format", "short", "p/main.wo"]), None);
    assert_eq!(hint(&["check", "q/main.wo"]), None);
}

#[test]
fn run_needs_a_main() {
    let tree = Tree::new(&[("a.wo", b"fn helper() { }\n")]);
    assert_status(&tree.woc(&["check", "a.wo"]), 0);
    assert_one_line(&tree.woc(&["run", "a.wo"]), "main");
}

#[test]
fn flags_define_build_flags_anywhere() {
    let source = b"fn main() {\n#if LOUD\n  print(\"loud\")\n#else\n  print(\"quiet\")\n#end\n}\n";
    let tree = Tree::new(&[("a.wo", source)]);
    assert_eq!(tree.woc(&["run", "a.wo"]).stdout_text(), "quiet\n");
    assert_eq!(tree.woc(&["run", "-D", "LOUD", "a.wo"]).stdout_text(), "loud\n");
    assert_eq!(tree.woc(&["-D", "LOUD", "run", "a.wo"]).stdout_text(), "loud\n");
    assert_eq!(tree.woc(&["run", "-D", "OTHER", "-DLOUD", "a.wo"]).stdout_text(), "loud\n");
}

#[test]
fn warnings_keep_status_zero() {
    let tree = Tree::new(&[("a.wo", b"use time\nfn main() { print(\"x\") }\n")]);
    let out = tree.woc(&["check", "a.wo"]);
    assert_status(&out, 0);
    assert!(out.stderr_text().starts_with("a.wo:1:1: warning WO-W202: "), "{}", out.stderr_text());
}

#[test]
fn dumps_are_stable_text() {
    let tree = Tree::new(&[("a.wo", HELLO)]);
    for stage in ["tokens", "ast", "hir", "mir", "clif", "asm"] {
        let first = tree.woc(&["dump", stage, "a.wo"]);
        assert_status(&first, 0);
        assert!(!first.stdout.is_empty(), "{stage}");
        let second = tree.woc(&[&format!("--dump-{stage}"), "a.wo"]);
        assert_eq!(first.stdout_text(), second.stdout_text(), "{stage}");
    }
}

/// Every form gives 0 for what is right, also with warnings, 1 for errors in the program and 2 for what is no program.
#[test]
fn status_of_every_form() {
    let broken: &[u8] = b"fn main() { print(nothing) }\ntest \"t\" { assert(true) }\n";
    let warned: &[u8] = b"use time\nfn main() { }\ntest \"t\" { assert(true) }\n";
    let tree = Tree::new(&[
        ("good/wo.toml", b"name = \"good\"\n"),
        ("good/a.wo", b"fn main() { }\ntest \"t\" { assert(true) }\n"),
        ("warned/wo.toml", b"name = \"warned\"\n"),
        ("warned/a.wo", warned),
        ("bad/wo.toml", b"name = \"bad\"\n"),
        ("bad/a.wo", broken),
        ("no/wo.toml", b"name = \"no\"\nkind = \"tool\"\n"),
        ("no/a.wo", b"fn main() { }\n"),
        ("empty/readme", b""),
    ]);
    for form in [&[][..], &["check"], &["run"], &["build", "-o", "out"], &["test"], &["dump", "mir"], &["dump", "gc"]] {
        for (path, status) in [("good", 0), ("warned", 0), ("bad", 1), ("no", 2), ("empty", 2), ("missing", 2)] {
            let args: Vec<&str> = form.iter().copied().chain([path]).collect();
            let out = tree.woc(&args);
            assert_eq!(out.status, Some(status), "{args:?}: {}", out.stderr_text());
            let warned = out.stderr_text().contains("WO-W202");
            assert_eq!(warned, path == "warned", "{args:?}: {}", out.stderr_text());
            if path == "empty" || path == "missing" {
                assert_one_line(&out, path);
            }
        }
    }
    for (args, status) in [
        (&["new", "fresh"][..], 0),
        (&["new", "fresh"], 2),
        (&["--update-deps", "good"], 0),
        (&["--update-deps", "no"], 2),
        (&["version"], 0),
        (&["version", "x"], 2),
        (&["test", "good", "--filter", "none"], 0),
    ] {
        assert_eq!(tree.woc(args).status, Some(status), "{args:?}");
    }
}
