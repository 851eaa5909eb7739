//! `wo.toml` and `[deps]` (4.4): faults are positioned in the manifest and end with status 2.

use corpus::Finished;

use crate::{Tree, assert_status};

const MAIN: &[u8] = b"fn main() { print(\"main\") }\n";

fn check(manifest: &str) -> Finished {
    Tree::new(&[("p/wo.toml", manifest.as_bytes()), ("p/a.wo", MAIN), ("p/sub/b.wo", b"pub fn b() { }\n")])
        .woc(&["check", "--format", "short", "p"])
}

#[track_caller]
fn assert_fault(manifest: &str, start: &str, parts: &[&str]) {
    let out = check(manifest);
    assert_status(&out, 2);
    let stderr = out.stderr_text();
    assert!(stderr.starts_with(start), "{stderr}");
    assert!(parts.iter().all(|p| stderr.contains(p)), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn good_manifests() {
    let full = "name = \"p\"\nversion = \"1.0\"\ndescription = \"d\"\nkind = \"program\"\n[runtime]\nwo = \">= 0.1\"\n\
                [build]\ntarget = \"linux\"\nruntime = \"x\"\n[share]\na = 1\n[[share.clients]]\nb = 2\n";
    for manifest in ["name = \"p\"\n", full, "name = \"p\"\nkind = \"library\"\n", "\u{feff}name = \"p\"\r\n"] {
        let out = check(manifest);
        assert_status(&out, 0);
        assert!(out.stderr.is_empty() && out.stdout.is_empty(), "{}", out.stderr_text());
    }
}

#[test]
fn faults_of_the_manifest() {
    assert_fault("", "p/wo.toml:1:1: error ", &["name"]);
    assert_fault("name = \"p\"\nbogus = \"x\"\n", "p/wo.toml:2:1: error ", &["bogus"]);
    assert_fault("name = \"p\"\nname = \"q\"\n", "p/wo.toml:2:1: error ", &["duplicate"]);
    assert_fault("name = \"p\"\n[bogus]\n", "p/wo.toml:2:2: error ", &["bogus"]);
    assert_fault("name = p\n", "p/wo.toml:1:8: error ", &[]);
    assert_fault("name = 'p'\n", "p/wo.toml:1:8: error ", &["double-quoted"]);
    assert_fault("name = 5\n", "p/wo.toml:1:8: error ", &["double-quoted"]);
    assert_fault("name = \"a/b\"\n", "p/wo.toml:1:8: error ", &["a/b"]);
    assert_fault("name = \"p\"\n[runtime]\nwo = \">= 99.0\"\n", "p/wo.toml:3:6: error ", &["99.0"]);
    assert_fault("name = \"p\"\n[runtime]\nwo = \"new\"\n", "p/wo.toml:3:6: error ", &["new"]);
    assert_fault(
        "name = \"p\"\nkind = \"tool\"\n",
        "p/wo.toml:2:8: error WO-E109: ",
        &["`tool`", "`program`", "`library`"],
    );
}

#[test]
fn faults_of_dependencies() {
    let with = |dep: &str| format!("name = \"p\"\n[deps]\n{dep}\n");
    for (dep, part) in [
        ("d = { git = \"https://example.invalid/d\" }", "rev"),
        ("d = { path = \"../missing\" }", "missing"),
        ("d = { path = \"sub\" }", "wo.toml"),
        ("d = { path = \".\" }", "project itself"),
        ("d = \"1.0\"", "inline table"),
        ("d = { path = \"\" }", "path"),
        ("d = { path = \"x\", branch = \"y\" }", "branch"),
    ] {
        assert_fault(&with(dep), "p/wo.toml:3:", &["error WO-E106: ", "d", part]);
    }
}

fn with_dep(key: &str, dep_manifest: &str) -> Tree {
    let manifest = format!("name = \"p\"\n[deps]\n{key} = {{ path = \"../lib\" }}\n");
    let main = format!("use {key}\nuse {key}/deep\nfn main() {{ print({key}.greet() .. deep.more()) }}\n");
    Tree::new(&[
        ("p/wo.toml", manifest.as_bytes()),
        ("p/a.wo", main.as_bytes()),
        ("p/sub/b.wo", b"pub fn b() { }\n"),
        ("lib/wo.toml", dep_manifest.as_bytes()),
        ("lib/lib.wo", b"pub fn greet() -> Text { return \"hi\" }\nfn main() { }\n"),
        ("lib/deep/deep.wo", b"pub fn more() -> Text { return \"!\" }\n"),
    ])
}

#[test]
fn path_dependencies_work() {
    let tree = with_dep("kit", "name = \"lib\"\nkind = \"library\"\n");
    let out = tree.woc(&["run", "p"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "hi!\n");
    assert!(!tree.path("p/wo.lock").exists(), "a path dependency is not locked");
}

#[test]
fn dependencies_are_whole_and_flat() {
    for (manifest, part) in [
        ("", "name"),
        ("name = \"lib\"\n[deps]\nx = { path = \"../x\" }\n", "`x`"),
        ("name = \"lib\"\nbogus = \"x\"\n", "bogus"),
    ] {
        let out = with_dep("kit", manifest).woc(&["check", "--format", "short", "p"]);
        assert_status(&out, 2);
        let stderr = out.stderr_text();
        assert!(stderr.starts_with("p/wo.toml:3:7: error WO-E106: ") && stderr.contains(part), "{stderr}");
    }
}

/// What a library needs cannot come from its user's manifest: both reports say what to do instead.
#[test]
fn dependencies_of_dependencies_are_refused_with_a_way_out() {
    let tree = with_dep("kit", "name = \"lib\"\n[deps]\nx = { path = \"../x\" }\n");
    let out = tree.woc(&["check", "p"]);
    assert!(out.stderr_text().contains("dependencies are flat: copy what it needs"), "{}", out.stderr_text());
    tree.write("lib/wo.toml", b"name = \"lib\"\n");
    tree.write("lib/own.wo", b"use other\npub fn own() {}\n");
    let out = tree.woc(&["check", "p"]);
    assert_status(&out, 1);
    assert!(out.stderr_text().contains("WO-E216"), "{}", out.stderr_text());
    assert!(out.stderr_text().contains("dependencies are flat, a library has only"), "{}", out.stderr_text());
}

#[test]
fn a_key_is_no_module_directory() {
    let out = with_dep("sub", "name = \"lib\"\n").woc(&["check", "--format", "short", "p"]);
    assert_status(&out, 2);
    assert!(out.stderr_text().starts_with("p/wo.toml:3:1: error WO-E107: "), "{}", out.stderr_text());
}

#[test]
fn internal_modules_of_a_dependency_are_closed() {
    let tree = with_dep("kit", "name = \"lib\"\n");
    tree.write("lib/internal/x.wo", b"pub fn x() { }\n");
    tree.write("p/a.wo", b"use kit/internal\nfn main() { internal.x() }\n");
    let out = tree.woc(&["check", "--format", "short", "p"]);
    assert_status(&out, 1);
    assert!(out.stderr_text().contains("error WO-E108: "), "{}", out.stderr_text());
}

#[test]
fn dependencies_exist_on_the_manifest_path_only() {
    let tree = with_dep("kit", "name = \"lib\"\n");
    std::fs::remove_file(tree.path("p/wo.toml")).expect("removed");
    let out = tree.woc(&["check", "--format", "short", "p"]);
    assert_status(&out, 1);
    assert!(out.stderr_text().contains("WO-E216"), "{}", out.stderr_text());
}

/// What crosses the border of a dependency and what does not (4.2; checklist 19, 22).
#[test]
fn the_border_of_a_dependency() {
    let tree = with_dep("kit", "name = \"lib\"\nkind = \"library\"\n");
    let library = b"use internal/x
pub class Open { n: Int\n fn twice() -> Int { return x.double(self.n) } }
class Shut { n: Int }
pub fn greet() -> Text { let s = Shut { n: 1 }\n return \"hi ${s.n}\" }
fn hidden() { }
fn main() -> Text { return \"no entry\" }\n";
    tree.write("lib/lib.wo", library);
    tree.write("lib/internal/x/x.wo", b"pub fn double(n: Int) -> Int { return n * 2 }\n");
    tree.write("p/a.wo", b"use kit\nfn main() { let o = Open { n: 4 }\n print(kit.greet() .. \" ${o.twice()}\") }\n");
    let out = tree.woc(&["run", "p"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "hi 1 8\n");
    assert_status(&tree.woc(&["lib"]), 0);

    for (source, report) in [
        ("fn main() { let s = Shut { n: 1 } }\n", "p/a.wo:1:21: error WO-E217: "),
        ("use kit\nfn main() { kit.hidden() }\n", "p/a.wo:2:17: error WO-E217: "),
        ("use kit/internal/x\nfn main() { x.double(1) }\n", "p/a.wo:1:1: error WO-E108: "),
        (
            "use kit\nfn helper() { print(kit.greet()) }\nfn main() -> Text { return \"\" }\n",
            "p/a.wo:3:4: error WO-E405: ",
        ),
    ] {
        tree.write("p/a.wo", source.as_bytes());
        let out = tree.woc(&["check", "--format", "short", "p"]);
        assert_status(&out, 1);
        let stderr = out.stderr_text();
        let errors: Vec<&str> = stderr.lines().filter(|l| l.contains(": error ")).collect();
        assert!(errors.len() == 1 && errors[0].starts_with(report), "{source}: {stderr}");
    }
}
