//! From a path to the files of a program: discovery of sources (language specification 4.1), the manifest `wo.toml`
//! and its `[deps]` (4.4). Reads files, prints nothing: what is wrong with a manifest is a diagnostic in it.

mod deps;
mod discover;
mod git;
mod lock;
mod manifest;

use std::path::{Path, PathBuf};

use diagnostics::Diagnostic;
use diagnostics::render::SourceFile;

pub use manifest::{Kind, MANIFEST};

/// What `woc` was pointed at, with every source file read.
#[derive(Clone, Debug)]
pub struct Project {
    /// The root argument as given.
    pub root: PathBuf,
    /// `name` of the manifest; without one, the last component of the root.
    pub name: String,
    pub kind: Kind,
    /// The project's own files in byte-wise order of their relative paths, then those of each dependency.
    pub files: Vec<ProjectFile>,
    pub deps: Vec<Dep>,
}

#[derive(Clone, Debug)]
pub struct ProjectFile {
    /// FILE of diagnostics: the root argument joined with the relative path.
    pub display: String,
    /// The key in `[deps]` of the dependency that holds the file; none for the project's own files.
    pub package: Option<String>,
    /// Directory relative to the package's root; empty for the root itself.
    pub module: Vec<String>,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Dep {
    /// The module name, whatever the dependency calls itself.
    pub key: String,
    /// The dependency's own `name`.
    pub name: String,
    pub root: PathBuf,
}

/// Why there is no project. Both end with exit status 2.
#[derive(Debug)]
pub enum Error {
    /// One line for the user: a path that cannot be read, a directory without sources.
    Unreadable(String),
    /// Faults of the manifest, positioned in it (`FileId(0)` is `files[0]`).
    Manifest { files: Vec<SourceFile>, diagnostics: Vec<Diagnostic> },
}

/// Reads the program at `path`, a directory or a single file. `woc_version` (`MAJOR.MINOR.PATCH`) is compared with the
/// manifest's `[runtime] wo`.
///
/// # Errors
/// `Error::Unreadable` for paths, `Error::Manifest` for anything wrong in `wo.toml` or in what it refers to.
pub fn load(path: &Path, woc_version: &str) -> Result<Project, Error> {
    let meta = std::fs::metadata(path).map_err(|e| unreadable(path, &e))?;
    let fallback = path.canonicalize().ok().and_then(|p| p.file_stem().map(|n| n.to_string_lossy().into_owned()));
    let fallback = fallback.unwrap_or_else(|| "program".to_owned());
    if !meta.is_dir() {
        let bytes = discover::read(path)?;
        let file =
            ProjectFile { display: path.to_string_lossy().into_owned(), package: None, module: Vec::new(), bytes };
        let root = path.to_path_buf();
        return Ok(Project { root, name: fallback, kind: Kind::File, files: vec![file], deps: Vec::new() });
    }

    let manifest_path = path.join(MANIFEST);
    if !manifest_path.is_file() {
        let files = discover::files(path, None, &[])?;
        return finish(path, fallback, Kind::Flat, files, Vec::new());
    }
    let bytes = discover::read(&manifest_path)?;
    let fail = |diagnostics: Vec<Diagnostic>| Error::Manifest {
        files: vec![SourceFile { display: manifest_path.to_string_lossy().into_owned(), bytes: bytes.clone() }],
        diagnostics,
    };
    let manifest = manifest::parse(&bytes, woc_version).map_err(&fail)?;
    let mut files = discover::files(path, None, &deps::inner_roots(path, &manifest))?;
    let clashes = deps::clashes(&manifest, &files);
    if !clashes.is_empty() {
        return Err(fail(clashes));
    }
    let resolved = deps::resolve(path, &manifest, woc_version).map_err(&fail)?;
    files.extend(resolved.files);
    finish(path, manifest.name, manifest.kind, files, resolved.deps)
}

/// The source files `path` stands for, as `load` finds them but without its manifest: the file itself, or all `.wo`
/// files of the directory, dependencies inside it included.
///
/// # Errors
/// `Error::Unreadable` for a path that cannot be read and a directory without sources.
pub fn source_paths(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let meta = std::fs::metadata(path).map_err(|e| unreadable(path, &e))?;
    if !meta.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let found = discover::paths(path, &[])?;
    if found.is_empty() {
        return Err(Error::Unreadable(format!("{}: no .wo file in this directory", path.display())));
    }
    Ok(found.into_iter().map(|relative| path.join(relative)).collect())
}

/// The bytes of one source file.
///
/// # Errors
/// `Error::Unreadable` for a path that cannot be read and a file that is too large.
pub fn read_source(path: &Path) -> Result<Vec<u8>, Error> {
    discover::read(path)
}

fn finish(path: &Path, name: String, kind: Kind, files: Vec<ProjectFile>, deps: Vec<Dep>) -> Result<Project, Error> {
    if !files.iter().any(|f| f.package.is_none()) {
        return Err(Error::Unreadable(format!("{}: no .wo file in this directory", path.display())));
    }
    Ok(Project { root: path.to_path_buf(), name, kind, files, deps })
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::Unreadable(format!("{}: {}", path.display(), system_text(error)))
}

/// The system's text without Rust's ` (os error N)`.
pub fn system_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Fetches the git dependencies of the project in `dir` again and rewrites `wo.lock`; the result is what it pins now,
/// keys with full commit ids.
///
/// # Errors
/// `Error::Unreadable` without a manifest, `Error::Manifest` for anything wrong in it or in a dependency; then neither
/// checkouts nor lock are changed.
pub fn update_deps(dir: &Path, woc_version: &str) -> Result<Vec<(String, String)>, Error> {
    let manifest_path = dir.join(MANIFEST);
    let bytes = discover::read(&manifest_path)?;
    let pinned = manifest::parse(&bytes, woc_version)
        .and_then(|manifest| deps::checkouts(dir, &manifest, woc_version, deps::Policy::Update));
    match pinned {
        Ok(pins) => Ok(pins.into_iter().collect()),
        Err(diagnostics) => {
            let display = manifest_path.to_string_lossy().into_owned();
            Err(Error::Manifest { files: vec![SourceFile { display, bytes }], diagnostics })
        }
    }
}
