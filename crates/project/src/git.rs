//! The `git` program: a repository at one revision, in a directory that appears only when it is complete.
//!
//! Urls and revisions come from manifests that others wrote. They reach `git` behind `--`, never begin with `-`, and
//! name neither a transport helper nor an expression; hooks, templates and submodules are off.

use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::lock::is_commit;
use crate::system_text;

/// Directory of the checkouts, in the project.
pub const CHECKOUTS: &str = ".wo-deps";

/// Transports that may be used where the user's environment says nothing about it.
const PROTOCOLS: &str = "file:git:http:https:ssh";
/// What a repository is when `git` is told by environment; a `woc` started by a hook has these set.
const REPOSITORY_VARIABLES: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
];
/// What a checkout must not depend on: the user's configuration is for the way to the repository.
const SETTINGS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "core.eol=lf",
    "clone.defaultRemoteName=origin",
    "advice.detachedHead=false",
    "submodule.recurse=false",
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
];
/// In `.git` of a checkout: the url and the revision that it was made from.
const SOURCE: &str = "woc-source";

/// A complete checkout under a temporary name; removed unless it is put in its place.
#[derive(Debug)]
pub struct Staged {
    pub dir: PathBuf,
    /// Full id of the commit.
    pub commit: String,
}

impl Drop for Staged {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

/// Why a url or a revision is not handed to `git`.
pub fn refusal(url: &str, rev: &str) -> Option<String> {
    if url.starts_with('-') || url.chars().any(char::is_control) {
        return Some(format!("`{}` is not the url of a repository", url.escape_debug()));
    }
    let helper = |(head, rest): (&str, &str)| {
        rest.starts_with(':') && head.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    if url.split_once(':').is_some_and(helper) {
        return Some(format!("`{url}` names a transport helper; only {PROTOCOLS} are used"));
    }
    let odd = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    if rev.starts_with('-') || rev.contains(odd) || rev.contains("..") || rev.contains("@{") {
        return Some(format!("`{}` is neither a tag nor a commit", rev.escape_debug()));
    }
    None
}

/// Clones `url`, relative paths from `root`, and checks `rev` out. The error is one line.
pub fn fetch(root: &Path, key: &str, url: &str, rev: &str) -> Result<Staged, String> {
    let checkouts = root.join(CHECKOUTS);
    let cannot = |e: std::io::Error| format!("cannot make {}: {}", checkouts.display(), system_text(&e));
    if fs::symlink_metadata(&checkouts).is_ok_and(|m| !m.is_dir()) {
        return Err(format!("{} is not a directory", checkouts.display()));
    }
    fs::create_dir_all(&checkouts).map_err(cannot)?;
    sweep(&checkouts);
    let name = format!(".tmp-{key}-{}", std::process::id());
    let mut staged = Staged { dir: checkouts.join(&name), commit: String::new() };
    remove(&staged.dir);
    let into = format!("{CHECKOUTS}/{name}");
    let git = Git { root, dir: into.clone() };
    let _ =
        git.plain(&["clone", "--quiet", "--no-checkout", "--template=", "--", url, &into], &format!("clone {url}"))?;
    staged.commit = git.commit(url, rev)?;
    let _ = git.inside(&["checkout", "--quiet", "--detach", &staged.commit], &format!("checkout {rev}"))?;
    let note = staged.dir.join(".git").join(SOURCE);
    fs::write(&note, source_note(url, rev)).map_err(|e| format!("{}: {}", note.display(), system_text(&e)))?;
    Ok(staged)
}

/// Puts a checkout in its place, instead of what is there. A checkout of the same commit stays unless `renew` is set:
/// another woc may have been faster, and may be reading it.
pub fn place(staged: Staged, root: &Path, key: &str, renew: bool) -> Result<(), String> {
    let checkouts = root.join(CHECKOUTS);
    let (target, aside) = (checkouts.join(key), checkouts.join(format!(".old-{key}-{}", std::process::id())));
    let same = || head(&target).as_deref() == Some(&staged.commit);
    let note = |dir: &Path| short_file(&dir.join(".git").join(SOURCE));
    if !renew && same() && note(&target) == note(&staged.dir) {
        return Ok(());
    }
    remove(&aside);
    let _ = fs::rename(&target, &aside);
    let placed = fs::rename(&staged.dir, &target);
    remove(&aside);
    match placed {
        Err(_) if same() => Ok(()),
        Err(e) => Err(format!("{}: {}", target.display(), system_text(&e))),
        Ok(()) => Ok(()),
    }
}

/// The commit that a checkout of `place` is at, without `git`.
pub fn head(checkout: &Path) -> Option<String> {
    let text = short_file(&checkout.join(".git/HEAD"))?;
    let commit = text.trim_end();
    is_commit(commit).then(|| commit.to_owned())
}

/// False if the checkout was made from another url or revision.
pub fn made_from(checkout: &Path, url: &str, rev: &str) -> bool {
    short_file(&checkout.join(".git").join(SOURCE)).is_none_or(|note| note == source_note(url, rev))
}

fn source_note(url: &str, rev: &str) -> String {
    format!("{url}\n{rev}\n")
}

fn short_file(path: &Path) -> Option<String> {
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    let _ = file.take(64 << 10).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Removes what killed processes left behind.
fn sweep(checkouts: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(checkouts).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|n| n.starts_with(".tmp-") || n.starts_with(".old-")) else { continue };
        let process = name.rsplit('-').next().filter(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
        if process.is_some_and(|p| !Path::new("/proc").join(p).exists()) {
            remove(&entry.path());
        }
    }
}

fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

struct Git<'a> {
    root: &'a Path,
    /// The repository, relative to `root`.
    dir: String,
}

impl Git<'_> {
    /// The commit that `rev` names: a tag first, then a commit.
    fn commit(&self, url: &str, rev: &str) -> Result<String, String> {
        let tag = self.resolve(&format!("refs/tags/{rev}^{{commit}}"));
        if let Some(commit) = tag {
            return Ok(commit);
        }
        let id = rev.to_ascii_lowercase();
        if (7..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_hexdigit()) {
            let wanted = format!("{id}^{{commit}}");
            let mut found = self.resolve(&wanted);
            if found.is_none() && is_commit(&id) {
                // A commit that no branch or tag leads to.
                let _ = self.inside(&["fetch", "--quiet", "origin", &id], &format!("fetch {id}"))?;
                found = self.resolve(&wanted);
            }
            // A branch may be spelt like an abbreviated commit.
            if let Some(commit) = found.filter(|c| c.starts_with(&id)) {
                return Ok(commit);
            }
        }
        Err(format!("`{rev}` is neither a tag nor a commit of {url}"))
    }

    fn resolve(&self, name: &str) -> Option<String> {
        let out = self.inside(&["rev-parse", "--verify", "--quiet", "--end-of-options", name], "rev-parse").ok()?;
        // Some versions print the option itself.
        out.lines().map(str::trim).find(|l| is_commit(l)).map(str::to_owned)
    }

    fn inside(&self, args: &[&str], what: &str) -> Result<String, String> {
        let (git_dir, tree) = (format!("--git-dir={}/.git", self.dir), format!("--work-tree={}", self.dir));
        let mut all = vec![git_dir.as_str(), tree.as_str()];
        all.extend(args);
        self.plain(&all, what)
    }

    /// Standard output of `git`; else one line that says what failed and `git`'s reason.
    fn plain(&self, args: &[&str], what: &str) -> Result<String, String> {
        let mut command = Command::new("git");
        let _ = command.args(SETTINGS.iter().flat_map(|s| ["-c", s])).args(args);
        let root = if self.root.as_os_str().is_empty() { Path::new(".") } else { self.root };
        let _ = command.current_dir(root).stdin(Stdio::null());
        let _ = command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0");
        if std::env::var_os("GIT_ALLOW_PROTOCOL").is_none() {
            let _ = command.env("GIT_ALLOW_PROTOCOL", PROTOCOLS);
        }
        for name in REPOSITORY_VARIABLES {
            let _ = command.env_remove(name);
        }
        let out = command.output().map_err(|e| match e.kind() {
            ErrorKind::NotFound => format!("`git {what}` cannot run: there is no program `git`"),
            _ => format!("`git {what}` cannot run: {}", system_text(&e)),
        })?;
        if out.status.success() {
            return Ok(String::from_utf8_lossy(&out.stdout).into_owned());
        }
        Err(format!("`git {what}` failed: {}", reason(&String::from_utf8_lossy(&out.stderr))))
    }
}

/// The line of `git`'s messages that says why.
fn reason(messages: &str) -> String {
    let lines = || messages.lines().map(str::trim).filter(|l| !l.is_empty());
    let line = lines().find(|l| l.starts_with("fatal: ") || l.starts_with("error: ")).or_else(|| lines().next_back());
    let line = line.unwrap_or("it did not say why");
    let line = line.trim_start_matches("fatal: ").trim_start_matches("error: ");
    line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(400).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn options_and_expressions_are_refused() {
        for url in ["--upload-pack=x", "-u", "ext::sh -c x", "a\nb", "fd::17"] {
            assert!(refusal(url, "v1").is_some(), "{url}");
        }
        for url in ["https://h/x", "file:///a::b/c", "git@h:x.git", "../lib", "ssh://[::1]/x", "user@[::1]:x"] {
            assert_eq!(refusal(url, "v1"), None);
        }
        for rev in ["-f", "v1~1", "v1^", "a:b", "a..b", "x@{1}", "a b", "*"] {
            assert!(refusal("u", rev).is_some(), "{rev}");
        }
        for rev in ["v0.1.0", "release/1.0", "0123abc", "v1+build"] {
            assert_eq!(refusal("u", rev), None);
        }
    }

    #[test]
    fn the_reason_is_one_clean_line() {
        assert_eq!(reason("warning: x\nfatal: no\u{1b}[31m such\n"), "no\u{fffd}[31m such");
        assert_eq!(reason("one\ntwo\n"), "two");
        assert_eq!(reason(""), "it did not say why");
    }
}
