//! `woc fmt` (14): which files, how they are replaced, statuses. What the text becomes is in `tests/corpus/fmt`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::time::Duration;

use corpus::{command, finish, reports, root};

use crate::{Tree, assert_one_line, assert_status};

const UGLY: &[u8] = b"fn main(){print(\"x\");}\n";
const NICE: &str = "fn main() { print(\"x\"); }\n";
const BROKEN: &[u8] = b"fn main(){ let }\n";

/// Every source of the repository is in canonical form, but for the inputs of `fmt` cases and the cases of errors that
/// make the formatter refuse a file.
#[test]
fn the_repository_is_canonical() {
    let mut command = command(root()).expect("woc");
    let _ = command.args(["fmt", "--check", "--format", "short", "."]);
    let out = finish(&mut command, Duration::from_secs(60)).expect("woc runs");
    let (stdout, stderr) = (out.stdout_text(), out.stderr_text());
    let is_input = |file: &&str| file.starts_with("./tests/corpus/fmt/") && file.ends_with("/fixture.wo");
    let ugly: Vec<&str> = stdout.lines().filter(|file| !is_input(file)).collect();
    assert!(ugly.is_empty(), "run `woc fmt` on\n{}", ugly.join("\n"));
    let refused: Vec<&str> = stderr.lines().filter(|line| !is_wanted_refusal(line)).collect();
    assert!(!stderr.is_empty() && refused.is_empty(), "refused:\n{}", refused.join("\n"));
}

/// The short report is the very error that its case is about.
fn is_wanted_refusal(line: &str) -> bool {
    let file = line.split(':').next().unwrap_or_default();
    let code = root().join(file).parent().and_then(|dir| fs::read_to_string(dir.join("fixture.code")).ok());
    let found = reports(line);
    file.starts_with("./tests/corpus/compile-fail/")
        && found.len() == 1
        && code.is_some_and(|code| found.iter().all(|r| r.code == code.trim()))
}

#[test]
fn files_and_directories_are_rewritten() {
    let tree = Tree::new(&[
        ("a.wo", UGLY),
        ("m/b.wo", UGLY),
        ("m/c.wo", NICE.as_bytes()),
        ("m/target/d.wo", UGLY),
        ("m/.hidden/e.wo", UGLY),
        ("m/notes.txt", b"x   "),
    ]);
    let read = |path: &str| fs::read_to_string(tree.path(path)).expect("file");
    let untouched = fs::metadata(tree.path("m/c.wo")).expect("file").ino();
    let out = tree.woc(&["fmt", "a.wo", "m"]);
    assert_status(&out, 0);
    assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{}", out.stderr_text());
    for path in ["a.wo", "m/b.wo", "m/c.wo"] {
        assert_eq!(read(path), NICE, "{path}");
    }
    for path in ["m/target/d.wo", "m/.hidden/e.wo"] {
        assert_eq!(read(path).as_bytes(), UGLY, "{path}");
    }
    assert_eq!(fs::metadata(tree.path("m/c.wo")).expect("file").ino(), untouched, "a file that is canonical stays");
    let names = fs::read_dir(tree.path("m")).expect("directory").count();
    assert_eq!(names, 5, "a temporary file was left behind");
    assert_status(&tree.woc(&["fmt", "--check", "a.wo", "m"]), 0);
}

#[test]
fn check_lists_and_changes_nothing() {
    let tree = Tree::new(&[("a.wo", UGLY), ("b.wo", NICE.as_bytes()), ("m/c.wo", UGLY)]);
    let out = tree.woc(&["fmt", "--check", "a.wo", "."]);
    assert_status(&out, 1);
    // A file that is named twice is listed once, as it was named first.
    assert_eq!(out.stdout_text(), "a.wo\n./m/c.wo\n");
    assert!(out.stderr.is_empty());
    assert_eq!(fs::read(tree.path("a.wo")).expect("file"), UGLY);
}

#[test]
fn a_file_with_syntax_errors_is_left_alone() {
    let tree = Tree::new(&[("a.wo", BROKEN), ("b.wo", UGLY)]);
    for args in [&["fmt", "--format", "short", "."][..], &["fmt", "--check", "--format", "short", "."]] {
        let out = tree.woc(args);
        assert_status(&out, 1);
        assert!(out.stdout.is_empty(), "{}", out.stdout_text());
        assert!(out.stderr_text().starts_with("./a.wo:1:16: error WO-E101: "), "{}", out.stderr_text());
        assert_eq!(out.stderr_text().lines().count(), 1);
    }
    assert_eq!(fs::read(tree.path("a.wo")).expect("file"), BROKEN);
    assert_eq!(fs::read_to_string(tree.path("b.wo")).expect("file"), NICE);
}

/// Types and names are not its business.
#[test]
fn other_errors_do_not_matter() {
    let tree = Tree::new(&[("a.wo", b"fn main(){print(nothing)}\n")]);
    assert_status(&tree.woc(&["fmt", "a.wo"]), 0);
    assert_eq!(fs::read_to_string(tree.path("a.wo")).expect("file"), "fn main() { print(nothing) }\n");
}

#[test]
fn flags_choose_what_is_checked() {
    let source = b"#if A\nfn ()\n#end\nfn main(){}\n";
    let tree = Tree::new(&[("a.wo", source)]);
    assert_status(&tree.woc(&["fmt", "-D", "A", "a.wo"]), 1);
    assert_eq!(fs::read(tree.path("a.wo")).expect("file"), source);
    assert_status(&tree.woc(&["fmt", "a.wo"]), 0);
    let text = fs::read_to_string(tree.path("a.wo")).expect("file");
    assert_eq!(text, "#if A\nfn ()\n#end\nfn main() {}\n");
}

#[test]
fn mode_and_links_are_kept() {
    let tree = Tree::new(&[("real/a.wo", UGLY)]);
    let real = tree.path("real/a.wo");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("mode");
    symlink("real/a.wo", tree.path("link.wo")).expect("link");
    assert_status(&tree.woc(&["fmt", "link.wo"]), 0);
    assert!(fs::symlink_metadata(tree.path("link.wo")).expect("link").is_symlink());
    assert_eq!(fs::read_to_string(&real).expect("file"), NICE);
    assert_eq!(fs::metadata(&real).expect("file").mode() & 0o777, 0o640);
}

#[test]
fn unreadable_input_changes_nothing() {
    let tree = Tree::new(&[("a.wo", UGLY), ("empty/notes.txt", b"")]);
    assert_one_line(&tree.woc(&["fmt", "a.wo", "missing.wo"]), "missing.wo");
    assert_one_line(&tree.woc(&["fmt", "a.wo", "empty"]), "no .wo file");
    assert_eq!(fs::read(tree.path("a.wo")).expect("file"), UGLY);
}

/// What `woc new` writes needs no formatting.
#[test]
fn new_projects_are_canonical() {
    let tree = Tree::new(&[]);
    assert_status(&tree.woc(&["new", "app"]), 0);
    assert_status(&tree.woc(&["new", "--lib", "kit"]), 0);
    let out = tree.woc(&["fmt", "--check", "."]);
    assert_status(&out, 0);
    assert!(out.stdout.is_empty(), "{}", out.stdout_text());
}
