//! `[deps]`: directories of the same repository are used where they lie. Repositories are refused for now.

use std::path::{Path, PathBuf};

use diagnostics::Diagnostic;

use crate::manifest::{self, DEPENDENCY, DepEntry, DepSource, MANIFEST, Manifest};
use crate::{Dep, Error, ProjectFile, discover};

const CLASH: u16 = 107;

#[derive(Debug, Default)]
pub struct Resolved {
    pub deps: Vec<Dep>,
    /// Their canonical directories, which are not part of the project even where they lie inside it.
    pub roots: Vec<PathBuf>,
    pub files: Vec<ProjectFile>,
}

/// The dependencies of `manifest` and their files.
///
/// # Errors
/// `WO-E106` for each dependency that cannot be used.
pub fn resolve(root: &Path, manifest: &Manifest, woc_version: &str) -> Result<Resolved, Vec<Diagnostic>> {
    let mut resolved = Resolved::default();
    let mut diagnostics = Vec::new();
    for entry in &manifest.deps {
        match one(root, entry, woc_version) {
            Ok((dep, canonical, files)) => {
                resolved.deps.push(dep);
                resolved.roots.push(canonical);
                resolved.files.extend(files);
            }
            Err(d) => diagnostics.push(*d),
        }
    }
    if diagnostics.is_empty() { Ok(resolved) } else { Err(diagnostics) }
}

fn one(root: &Path, entry: &DepEntry, woc_version: &str) -> Result<(Dep, PathBuf, Vec<ProjectFile>), Box<Diagnostic>> {
    let key = &entry.key;
    let path = match &entry.source {
        DepSource::Path(path) => path,
        DepSource::Git { git, rev } => {
            let title = format!("dependency `{key}`: git dependencies are not supported yet ({git} at {rev})");
            return Err(refuse(entry, &title, Some("check the repository out and write `{ path = \"…\" }`")));
        }
    };
    let dir = root.join(path);
    let told = |what: &str| format!("dependency `{key}` at {}: {what}", dir.display());
    let fail = |what: &str| refuse(entry, &told(what), None);
    let canonical = dir.canonicalize().map_err(|e| fail(&crate::system_text(&e)))?;
    if !canonical.is_dir() {
        return Err(fail("not a directory"));
    }
    if root.canonicalize().is_ok_and(|own| own.starts_with(&canonical)) {
        return Err(fail("the directory holds the project itself"));
    }
    let manifest_path = dir.join(MANIFEST);
    if !manifest_path.is_file() {
        return Err(refuse(entry, &told("no wo.toml"), Some("a dependency has a manifest with a `name`")));
    }
    let bytes = discover::read(&manifest_path).map_err(|e| match e {
        Error::Unreadable(text) => fail(&text),
        Error::Manifest { .. } => fail("its wo.toml is unreadable"),
    })?;
    let theirs = manifest::parse(&bytes, woc_version).map_err(|faults| {
        let first = faults.first().map_or("unreadable", |d| d.title.as_str());
        fail(&format!("its wo.toml is faulty: {first}"))
    })?;
    if let Some(nested) = theirs.deps.first() {
        let what = format!("it has dependencies of its own (`{}`)", nested.key);
        let help = "dependencies are flat: list what it needs in this manifest";
        return Err(refuse(entry, &told(&what), Some(help)));
    }
    let found = discover::files(&dir, Some(key), &[]).map_err(|e| match e {
        Error::Unreadable(text) => fail(&text),
        Error::Manifest { .. } => fail("unreadable"),
    })?;
    if found.is_empty() {
        return Err(fail("no .wo file in it"));
    }
    Ok((Dep { key: key.clone(), name: theirs.name, root: dir.clone() }, canonical, found))
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
