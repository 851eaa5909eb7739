//! `[deps]`: directories of the same repository are used where they lie; git repositories are checked out under
//! `.wo-deps` at the commit that `wo.lock` pins.

use std::path::{Path, PathBuf};

use diagnostics::Diagnostic;

use crate::git::{self, CHECKOUTS, Staged};
use crate::lock::{self, Pins};
use crate::manifest::{self, DEPENDENCY, DepEntry, DepSource, MANIFEST, Manifest};
use crate::{Dep, Error, ProjectFile, discover};

const CLASH: u16 = 107;

#[derive(Debug, Default)]
pub struct Resolved {
    pub deps: Vec<Dep>,
    pub files: Vec<ProjectFile>,
}

/// What `wo.lock` is to a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Commits must be those of the lock; what is locked and present is not fetched.
    Locked,
    /// Everything is fetched, whatever the lock says.
    Update,
}

/// Directories inside the project that are dependencies by `path`, canonical: their files are not the project's own.
pub fn inner_roots(root: &Path, manifest: &Manifest) -> Vec<PathBuf> {
    let paths = manifest.deps.iter().filter_map(|entry| match &entry.source {
        DepSource::Path(path) => root.join(path).canonicalize().ok(),
        DepSource::Git { .. } => None,
    });
    paths.collect()
}

/// The dependencies of `manifest` and their files.
///
/// # Errors
/// `WO-E106` for each dependency that cannot be used.
pub fn resolve(root: &Path, manifest: &Manifest, woc_version: &str) -> Result<Resolved, Vec<Diagnostic>> {
    let _ = checkouts(root, manifest, woc_version, Policy::Locked)?;
    let mut resolved = Resolved::default();
    let mut diagnostics = Vec::new();
    for entry in &manifest.deps {
        let dir = match &entry.source {
            DepSource::Path(path) => root.join(path),
            DepSource::Git { .. } => root.join(CHECKOUTS).join(&entry.key),
        };
        match one(root, entry, dir, woc_version) {
            Ok((dep, files)) => {
                resolved.deps.push(dep);
                resolved.files.extend(files);
            }
            Err(d) => diagnostics.push(*d),
        }
    }
    if diagnostics.is_empty() { Ok(resolved) } else { Err(diagnostics) }
}

/// Makes every git dependency present at its commit. Fetched ones are put in their places, and written to `wo.lock`,
/// only when all are complete and usable. The result is what is pinned.
///
/// # Errors
/// `WO-E106` for each dependency that cannot be had.
pub fn checkouts(root: &Path, manifest: &Manifest, woc_version: &str, policy: Policy) -> Result<Pins, Vec<Diagnostic>> {
    let git = manifest.deps.iter().filter_map(|entry| match &entry.source {
        DepSource::Git { git, rev } => Some((entry, git.as_str(), rev.as_str())),
        DepSource::Path(_) => None,
    });
    let git: Vec<_> = git.collect();
    let Some((first, _, _)) = git.first().copied() else {
        return Ok(Pins::new());
    };
    let locked = match policy {
        Policy::Locked => lock::read(root).map_err(|text| {
            let help = format!("run `woc --update-deps {}` to write it anew", shown(root));
            vec![*refuse(first, &format!("dependency `{}`: {text}", first.key), Some(&help))]
        })?,
        Policy::Update => Pins::new(),
    };
    let mut pins = Pins::new();
    let mut fetched = Vec::new();
    let mut diagnostics = Vec::new();
    for (entry, url, rev) in git {
        match checkout(root, entry, (url, rev), locked.get(&entry.key), woc_version) {
            Ok((commit, staged)) => {
                let _ = pins.insert(entry.key.clone(), commit);
                fetched.extend(staged.map(|s| (entry, s)));
            }
            Err(d) => diagnostics.push(*d),
        }
    }
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    let changed = !fetched.is_empty();
    for (entry, staged) in fetched {
        git::place(staged, root, &entry.key, policy == Policy::Update)
            .map_err(|text| vec![*refuse(entry, &told(entry, &text), None)])?;
    }
    if changed && (policy == Policy::Update || pins != locked) {
        lock::write(root, &pins).map_err(|text| vec![*refuse(first, &told(first, &text), None)])?;
    }
    Ok(pins)
}

fn told(entry: &DepEntry, what: &str) -> String {
    format!("dependency `{}`: {what}", entry.key)
}

fn shown(root: &Path) -> String {
    if root.as_os_str().is_empty() { ".".to_owned() } else { root.display().to_string() }
}

/// The commit of one git dependency, and its checkout if it had to be fetched.
fn checkout(
    root: &Path,
    entry: &DepEntry,
    (url, rev): (&str, &str),
    pinned: Option<&String>,
    woc_version: &str,
) -> Result<(String, Option<Staged>), Box<Diagnostic>> {
    if let Some(text) = git::refusal(url, rev) {
        return Err(refuse(entry, &told(entry, &text), None));
    }
    let update = format!("if the other commit is wanted, run `woc --update-deps {}`", shown(root));
    let present = root.join(CHECKOUTS).join(&entry.key);
    if let Some(pinned) = pinned
        && std::fs::symlink_metadata(&present).is_ok()
        && git::made_from(&present, url, rev)
    {
        return match git::head(&present) {
            Some(head) if head == *pinned => Ok((head, None)),
            Some(head) => {
                let what = format!("{} is at commit {head}, but wo.lock pins {pinned}", present.display());
                Err(refuse(entry, &told(entry, &what), Some(&update)))
            }
            None => {
                let what = format!("{} is no checkout of commit {pinned}, which wo.lock pins", present.display());
                Err(refuse(entry, &told(entry, &what), Some("remove that directory; woc fetches it again")))
            }
        };
    }
    let staged = git::fetch(root, &entry.key, url, rev).map_err(|text| refuse(entry, &told(entry, &text), None))?;
    if let Some(pinned) = pinned
        && staged.commit != *pinned
    {
        let what = format!("`{rev}` of {url} is commit {}, but wo.lock pins {pinned}", staged.commit);
        return Err(refuse(entry, &told(entry, &what), Some(&update)));
    }
    let _ = shape(entry, &staged.dir, woc_version).map_err(|what| refuse(entry, &told(entry, &what.0), what.1))?;
    Ok((staged.commit.clone(), Some(staged)))
}

/// What a dependency's directory must be: it has a manifest with a name and no dependencies of its own. The error is
/// the fault and a help.
fn shape(entry: &DepEntry, dir: &Path, woc_version: &str) -> Result<Manifest, (String, Option<&'static str>)> {
    let whose = match &entry.source {
        DepSource::Path(_) => dir.display().to_string(),
        DepSource::Git { git, rev } => format!("{git} at {rev}"),
    };
    let fault = |what: &str, help| Err((format!("{whose}: {what}"), help));
    let manifest_path = dir.join(MANIFEST);
    if !manifest_path.is_file() {
        return fault("no wo.toml", Some("a dependency has a manifest with a `name`"));
    }
    let bytes = match discover::read(&manifest_path) {
        Ok(bytes) => bytes,
        Err(Error::Unreadable(text)) => return fault(&text, None),
        Err(Error::Manifest { .. }) => return fault("its wo.toml is unreadable", None),
    };
    let theirs = match manifest::parse(&bytes, woc_version) {
        Ok(theirs) => theirs,
        Err(faults) => {
            let first = faults.first().map_or("unreadable", |d| d.title.as_str());
            return fault(&format!("its wo.toml is faulty: {first}"), None);
        }
    };
    match theirs.deps.first() {
        Some(nested) => fault(
            &format!("it has dependencies of its own (`{}`)", nested.key),
            Some("dependencies are flat: copy what it needs into it as a module, or make one library of both"),
        ),
        None => Ok(theirs),
    }
}

fn one(
    root: &Path,
    entry: &DepEntry,
    dir: PathBuf,
    woc_version: &str,
) -> Result<(Dep, Vec<ProjectFile>), Box<Diagnostic>> {
    let key = &entry.key;
    let fail = |what: &str| refuse(entry, &told(entry, &format!("{}: {what}", dir.display())), None);
    let canonical = dir.canonicalize().map_err(|e| fail(&crate::system_text(&e)))?;
    if !canonical.is_dir() {
        return Err(fail("not a directory"));
    }
    if root.canonicalize().is_ok_and(|own| own.starts_with(&canonical)) {
        return Err(fail("the directory holds the project itself"));
    }
    let theirs = shape(entry, &dir, woc_version).map_err(|what| refuse(entry, &told(entry, &what.0), what.1))?;
    let found = discover::files(&dir, Some(key), &[]).map_err(|e| match e {
        Error::Unreadable(text) => fail(&text),
        Error::Manifest { .. } => fail("unreadable"),
    })?;
    if found.is_empty() {
        return Err(fail("no .wo file in it"));
    }
    Ok((Dep { key: key.clone(), name: theirs.name, root: dir }, found))
}

fn refuse(entry: &DepEntry, title: &str, help: Option<&str>) -> Box<Diagnostic> {
    let mut d = Diagnostic::error(DEPENDENCY, entry.span, title)
        .label("this dependency")
        .note("every dependency must be usable before the program is compiled");
    d.help = help.map(str::to_owned);
    Box::new(d)
}

/// `WO-E107` for each key that is also a directory of modules in the project: a `use` of it would mean both.
pub fn clashes(manifest: &Manifest, own: &[ProjectFile]) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for entry in &manifest.deps {
        if own.iter().any(|f| f.module.first() == Some(&entry.key)) {
            let key = &entry.key;
            let title = format!("dependency key `{key}` is also the module directory `{key}/` of this project");
            diagnostics.push(
                Diagnostic::error(CLASH, entry.key_span, title)
                    .label("this key")
                    .note(format!("`use {key}` would mean both"))
                    .help("rename the key or the directory"),
            );
        }
    }
    diagnostics
}
