//! Git dependencies (4.4): local repositories, reached by `file://`. Faults are `WO-E106` in the manifest, status 2.

use std::path::Path;
use std::process::Command;

use corpus::Finished;

use crate::{Tree, assert_one_line, assert_status};

/// `git` with nothing of the user's configuration.
fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=trunk"])
        .args(["-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// Commits everything in the repository `dir`; the result is the commit.
fn commit(dir: &Path) -> String {
    let _ = git(dir, &["add", "-A"]);
    let _ = git(dir, &["commit", "-q", "-m", "x"]);
    git(dir, &["rev-parse", "HEAD"])
}

const LIB: &str = "pub fn greet() -> Text { return \"one\" }\nfn main() { }\n";

/// A project `p` with the dependency `kit`, the repository `lib` at tag `v0.1.0`.
fn chain() -> (Tree, String) {
    let tree = Tree::new(&[
        ("p/a.wo", b"use kit\nfn main() { print(kit.greet()) }\n"),
        ("lib/wo.toml", b"name = \"other-name\"\nkind = \"library\"\n"),
        ("lib/lib.wo", LIB.as_bytes()),
        ("lib/internal/x.wo", b"pub fn x() { }\n"),
    ]);
    let lib = tree.path("lib");
    let _ = git(&lib, &["init", "-q"]);
    let sha = commit(&lib);
    let _ = git(&lib, &["tag", "v0.1.0"]);
    depend(&tree, &url(&tree), "v0.1.0");
    (tree, sha)
}

fn url(tree: &Tree) -> String {
    format!("file://{}", tree.path("lib").display())
}

fn depend(tree: &Tree, url: &str, rev: &str) {
    let manifest = format!("name = \"p\"\n[deps]\nkit = {{ git = \"{url}\", rev = \"{rev}\" }}\n");
    tree.write("p/wo.toml", manifest.as_bytes());
}

fn run(tree: &Tree) -> Finished {
    tree.woc(&["run", "--format", "short", "p"])
}

#[track_caller]
fn assert_prints(tree: &Tree, text: &str) {
    let out = run(tree);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), text);
}

/// `WO-E106` at the dependency, in one line, with all of `parts`.
#[track_caller]
fn assert_refused(out: &Finished, parts: &[&str]) {
    assert_status(out, 2);
    let stderr = out.stderr_text();
    assert!(stderr.starts_with("p/wo.toml:3:7: error WO-E106: dependency `kit`"), "{stderr}");
    assert!(parts.iter().all(|p| stderr.contains(p)), "{stderr}\nwanted {parts:?}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(out.stdout.is_empty());
}

fn left_over(tree: &Tree) -> Vec<String> {
    let entries = std::fs::read_dir(tree.path("p/.wo-deps")).into_iter().flatten();
    let names = entries.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned());
    names.filter(|n| n.starts_with('.')).collect()
}

fn remove(tree: &Tree, path: &str) {
    std::fs::remove_dir_all(tree.path(path)).expect("removed");
}

fn lock(tree: &Tree) -> String {
    std::fs::read_to_string(tree.path("p/wo.lock")).unwrap_or_default()
}

/// Replaces what tag `v0.1.0` names; the result is the new commit.
fn move_tag(tree: &Tree) -> String {
    tree.write("lib/lib.wo", LIB.replace("one", "two").as_bytes());
    let sha = commit(&tree.path("lib"));
    let _ = git(&tree.path("lib"), &["tag", "-f", "v0.1.0"]);
    sha
}

#[test]
fn a_chain_is_fetched_locked_and_then_built_without_the_repository() {
    let (tree, sha) = chain();
    assert_prints(&tree, "one\n");
    let text = lock(&tree);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with('#'), "{text}");
    assert_eq!(lines[1], format!("kit {sha}"));
    assert!(left_over(&tree).is_empty());
    // Neither the repository nor the program `git` is needed from here on.
    remove(&tree, "lib");
    let out = tree.woc_env(&["run", "p"], &[("PATH", "/nonexistent")]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "one\n");
    assert_status(&tree.woc(&["p"]), 0);
    assert_status(&tree.woc(&["check", "p"]), 0);
    assert_eq!(lock(&tree), text);
}

#[test]
fn relative_repositories_and_commits_work() {
    let (tree, first) = chain();
    let _ = move_tag(&tree);
    depend(&tree, "../lib", &first);
    assert_prints(&tree, "one\n");
    let short = first.get(..10).expect("ten digits");
    depend(&tree, "../lib", short);
    assert_prints(&tree, "one\n");
    // From the directory itself, and through an annotated tag.
    let _ = git(&tree.path("lib"), &["tag", "-a", "-m", "t", "noted", &first]);
    depend(&tree, "../lib", "noted");
    let mut command = corpus::command(&tree.path("p")).expect("woc");
    let out = corpus::finish(command.args(["run", "."]), std::time::Duration::from_secs(60)).expect("woc runs");
    assert_status(&out, 0);
    assert!(lock(&tree).contains(&first));
}

#[test]
fn a_moved_tag_names_both_commits() {
    let (tree, first) = chain();
    assert_prints(&tree, "one\n");
    let second = move_tag(&tree);
    assert_prints(&tree, "one\n"); // locked and present: nobody looks
    remove(&tree, "p/.wo-deps");
    assert_refused(&run(&tree), &[&first, &second, "v0.1.0"]);
    let out = tree.woc(&["check", "p"]);
    assert_status(&out, 2);
    assert!(out.stderr_text().contains("woc --update-deps p"), "{}", out.stderr_text());
    assert!(left_over(&tree).is_empty());

    let out = tree.woc(&["--update-deps", "p"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), format!("kit {second}\n"));
    assert!(lock(&tree).ends_with(&format!("\nkit {second}\n")));
    assert_prints(&tree, "two\n");
}

#[test]
fn a_checkout_must_match_the_lock() {
    let (tree, first) = chain();
    assert_prints(&tree, "one\n");
    let second = move_tag(&tree);
    tree.write("p/wo.lock", format!("# c\nkit {second}\n").as_bytes());
    assert_refused(&run(&tree), &[&first, &second]);
    tree.write("p/wo.lock", format!("# c\nkit {first}\n").as_bytes());
    assert_prints(&tree, "one\n");
    // What is there but is no checkout is not trusted.
    remove(&tree, "p/.wo-deps/kit/.git");
    assert_refused(&run(&tree), &[&first, "no checkout"]);
    for bad in ["kit\n", "kit 0123\n", &format!("kit {first}\nkit {first}\n")] {
        tree.write("p/wo.lock", bad.as_bytes());
        assert_refused(&run(&tree), &["wo.lock line "]);
    }
    assert_status(&tree.woc(&["--update-deps", "p"]), 0);
    assert_prints(&tree, "two\n");
}

#[test]
fn another_revision_in_the_manifest_is_not_served_from_the_old_checkout() {
    let (tree, first) = chain();
    assert_prints(&tree, "one\n");
    let second = move_tag(&tree);
    let _ = git(&tree.path("lib"), &["tag", "v0.2.0"]);
    depend(&tree, &url(&tree), "v0.2.0");
    assert_refused(&run(&tree), &["v0.2.0", &first, &second]);
    assert_status(&tree.woc(&["--update-deps", "p"]), 0);
    assert_prints(&tree, "two\n");
}

#[test]
fn without_a_lock_a_checkout_is_fetched_again() {
    let (tree, _) = chain();
    assert_prints(&tree, "one\n");
    std::fs::remove_file(tree.path("p/wo.lock")).expect("removed");
    let second = move_tag(&tree);
    assert_prints(&tree, "two\n");
    assert!(lock(&tree).contains(&second));
}

#[test]
fn a_killed_clone_is_swept_away() {
    let (tree, _) = chain();
    // No process has this number.
    tree.write("p/.wo-deps/.tmp-kit-99999999/lib.wo", b"broken");
    assert_prints(&tree, "one\n");
    assert!(left_over(&tree).is_empty());
}

#[test]
fn failures_of_the_fetch() {
    let (tree, _) = chain();
    let there = url(&tree);
    let _ = git(&tree.path("lib"), &["branch", "other"]);
    for (url, rev, parts) in [
        ("file:///nonexistent/repository", "v0.1.0", &["git clone", "file:///nonexistent/repository"][..]),
        (there.as_str(), "v9", &["`v9`", "neither a tag nor a commit"]),
        (&there, "other", &["`other`", "neither a tag nor a commit"]),
        (&there, "0123456789012345678901234567890123456789", &["0123456789012345678901234567890123456789"]),
        (&there, "v0.1.0~0", &["v0.1.0~0"]),
        (&there, "--force", &["--force"]),
        ("--upload-pack=touch x", "v0.1.0", &["--upload-pack"]),
        ("ext::sh -c true", "v0.1.0", &["transport helper"]),
    ] {
        depend(&tree, url, rev);
        assert_refused(&run(&tree), parts);
        assert!(left_over(&tree).is_empty());
        assert!(!tree.path("p/wo.lock").exists());
    }
    depend(&tree, &there, "v0.1.0");
    assert_refused(&tree.woc_env(&["run", "--format", "short", "p"], &[("PATH", "/nonexistent")]), &["`git`"]);
}

#[test]
fn a_dependency_has_a_manifest_with_a_name_and_no_dependencies() {
    for (manifest, part) in [
        (None, "no wo.toml"),
        (Some(""), "`name`"),
        (Some("name = \"lib\"\nbogus = \"x\"\n"), "bogus"),
        (Some("name = \"lib\"\n[deps]\nx = { git = \"u\", rev = \"v\" }\n"), "`x`"),
    ] {
        let (tree, _) = chain();
        match manifest {
            Some(text) => tree.write("lib/wo.toml", text.as_bytes()),
            None => std::fs::remove_file(tree.path("lib/wo.toml")).expect("removed"),
        }
        let _ = commit(&tree.path("lib"));
        let _ = git(&tree.path("lib"), &["tag", "-f", "v0.1.0"]);
        assert_refused(&run(&tree), &[part]);
        assert!(!tree.path("p/wo.lock").exists());
    }
}

#[test]
fn a_key_that_is_a_directory_and_a_closed_module() {
    let (tree, _) = chain();
    tree.write("p/kit/k.wo", b"pub fn k() { }\n");
    let out = run(&tree);
    assert_status(&out, 2);
    assert!(out.stderr_text().starts_with("p/wo.toml:3:1: error WO-E107: "), "{}", out.stderr_text());
    assert!(!tree.path("p/.wo-deps").exists(), "refused before anything is fetched");
    remove(&tree, "p/kit");
    tree.write("p/a.wo", b"use kit/internal\nfn main() { internal.x() }\n");
    let out = run(&tree);
    assert_status(&out, 1);
    assert!(out.stderr_text().starts_with("p/a.wo:1:1: error WO-E108: "), "{}", out.stderr_text());
}

#[test]
fn the_main_of_a_dependency_is_no_entry() {
    let (tree, _) = chain();
    tree.write("p/a.wo", b"use kit\nfn other() { print(kit.greet()) }\n");
    assert_one_line(&tree.woc(&["run", "p"]), "`p` has no `main`");
}

#[test]
fn update_deps_changes_nothing_when_it_fails() {
    let (tree, first) = chain();
    assert_prints(&tree, "one\n");
    let text = lock(&tree);
    remove(&tree, "lib");
    assert_refused(&tree.woc(&["--format", "short", "--update-deps", "p"]), &["git clone"]);
    assert_eq!(lock(&tree), text);
    assert!(text.contains(&first));
    assert_prints(&tree, "one\n");
}

#[test]
fn update_deps_needs_a_manifest() {
    let tree = Tree::new(&[("d/a.wo", b""), ("e/wo.toml", b"name = \"e\"\n")]);
    assert_one_line(&tree.woc(&["--update-deps", "d"]), "d/wo.toml");
    assert_one_line(&tree.woc(&["--update-deps", "none"]), "none/wo.toml");
    let out = tree.woc(&["--update-deps", "e"]);
    assert_status(&out, 0);
    assert!(out.stdout.is_empty() && !tree.path("e/wo.lock").exists());
}

/// A `woc` that is killed while `git` writes leaves nothing that a later one trusts.
#[test]
fn a_clone_that_is_killed_is_made_again() {
    let (tree, sha) = chain();
    // `woc` passes the directory last.
    let fake =
        b"#!/bin/sh\nfor last; do :; done\nmkdir -p \"$last/.git\"\necho broken >\"$last/lib.wo\"\nexec sleep 3\n";
    tree.write("bin/git", fake);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(tree.path("bin/git"), mode).expect("executable");
    let mut command = corpus::command(&tree.path("")).expect("woc");
    let path = format!("{}:/usr/bin:/bin", tree.path("bin").display());
    let mut woc = command.args(["check", "p"]).env("PATH", path).spawn().expect("started");
    let started = std::time::Instant::now();
    while left_over(&tree).is_empty() && started.elapsed() < std::time::Duration::from_secs(20) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    woc.kill().expect("killed");
    let _ = woc.wait().expect("ended");
    assert_eq!(left_over(&tree).len(), 1, "half a clone, under another name");
    assert_prints(&tree, "one\n");
    assert!(left_over(&tree).is_empty() && lock(&tree).contains(&sha));
}

/// Whoever is first puts the checkout in its place; the others find it there or make the same.
#[test]
fn several_at_a_time_agree() {
    let (tree, sha) = chain();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&tree))).collect();
        for out in runs {
            let out = out.join().expect("woc ran");
            assert_status(&out, 0);
            assert_eq!(out.stdout_text(), "one\n");
        }
    });
    assert!(left_over(&tree).is_empty() && lock(&tree).ends_with(&format!("\nkit {sha}\n")));
}

#[test]
fn a_history_that_was_rewritten_needs_an_update() {
    let (tree, first) = chain();
    assert_prints(&tree, "one\n");
    let lib = tree.path("lib");
    tree.write("lib/lib.wo", LIB.replace("one", "two").as_bytes());
    let _ = git(&lib, &["add", "-A"]);
    let _ = git(&lib, &["commit", "-q", "--amend", "-m", "y"]);
    let _ = git(&lib, &["tag", "-f", "v0.1.0"]);
    let _ = git(&lib, &["reflog", "expire", "--expire=now", "--all"]);
    let _ = git(&lib, &["gc", "-q", "--prune=now"]);
    assert_prints(&tree, "one\n");
    remove(&tree, "p/.wo-deps");
    assert_refused(&run(&tree), &[&first, "wo.lock pins"]);
    depend(&tree, &url(&tree), &first);
    assert_refused(&run(&tree), &[&format!("git fetch {first}")]);
    depend(&tree, &url(&tree), "v0.1.0");
    assert_status(&tree.woc(&["--update-deps", "p"]), 0);
    assert_prints(&tree, "two\n");
}

#[test]
fn submodules_are_not_fetched() {
    let (tree, _) = chain();
    tree.write("more/more.wo", b"pub fn more() { }\n");
    let _ = git(&tree.path("more"), &["init", "-q"]);
    let _ = commit(&tree.path("more"));
    let lib = tree.path("lib");
    let _ = git(&lib, &["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../more", "more"]);
    let _ = commit(&lib);
    let _ = git(&lib, &["tag", "-f", "v0.1.0"]);
    assert_prints(&tree, "one\n");
    assert!(!tree.path("p/.wo-deps/kit/more/more.wo").exists());
    tree.write("p/a.wo", b"use kit/more\nfn main() { more.more() }\n");
    let out = run(&tree);
    assert_status(&out, 1);
    assert!(out.stderr_text().starts_with("p/a.wo:1:1: error WO-E216: "), "{}", out.stderr_text());
}

#[test]
fn the_users_configuration_does_not_change_a_checkout() {
    let (tree, first) = chain();
    let lib = tree.path("lib");
    tree.write("lib/.gitattributes", b"* text=auto\n");
    tree.write("lib/lib.wo", b"pub fn greet() -> Text { return `a\nb` }\n");
    let hidden = commit(&lib);
    // No branch or tag leads to it.
    let _ = git(&lib, &["reset", "-q", "--hard", &first]);
    let _ = git(&lib, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    tree.write("attributes", b"*.wo text eol=crlf\n");
    let attributes = tree.path("attributes");
    let config = format!(
        "[core]\n eol = crlf\n autocrlf = true\n attributesFile = {}\n[clone]\n defaultRemoteName = up\n",
        attributes.display()
    );
    tree.write("config", config.as_bytes());
    depend(&tree, &url(&tree), &hidden);
    let config = tree.path("config").display().to_string();
    let out = tree.woc_env(&["run", "p"], &[("GIT_CONFIG_GLOBAL", &config)]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "a\nb\n");
}
