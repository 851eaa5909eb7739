//! Files to modules, and what each `use` means (language specification 4.1).

use crate::env::{Env, FileScope, Module, ModuleId, NAMESPACES, Package, UseEntry, UseTarget};
use crate::scope::nearest;
use crate::{Input, InputFile};
use diagnostics::Diagnostic;
use rustc_hash::FxHashMap;
use std::cell::Cell;
use syntax::ast::{self, Decl, Name};

pub(super) fn collect(env: &mut Env<'_>, input: &Input, diags: &mut Vec<Diagnostic>) {
    env.packages.push(Package::default());
    let mut package_ids: FxHashMap<&str, u32> = FxHashMap::default();
    for file in &input.files {
        let package = match file.package.as_deref() {
            None => 0,
            Some(key) => *package_ids.entry(key).or_insert_with(|| {
                env.packages.push(Package { key: Some(key.to_owned()), modules: FxHashMap::default() });
                u32::try_from(env.packages.len() - 1).unwrap_or(u32::MAX)
            }),
        };
        // The root of a dependency is a module even where all its files are in directories.
        if package != 0 {
            let _ = module_for(env, package, "");
        }
        let module = module_for(env, package, &file.module.join("/"));
        if let Some(m) = env.modules.get_mut(module.0 as usize) {
            m.files.push(file.id);
        }
        let _ = env.file_index.insert(file.id, env.files.len());
        env.files.push(FileScope {
            id: file.id,
            package,
            module,
            display: file.display.clone(),
            is_broken: file.ast.is_broken,
            unwanted: file.ast.unwanted.iter().cloned().collect(),
            uses: Vec::new(),
            used_modules: FxHashMap::default(),
            aliases: FxHashMap::default(),
        });
    }
    for (i, file) in input.files.iter().enumerate() {
        let uses = resolve_uses(env, file, diags);
        if let Some(scope) = env.files.get_mut(i) {
            for (i, entry) in uses.iter().enumerate() {
                scope.aliases.entry(entry.alias.clone()).or_default().push(i);
                if let Some(near) = &entry.near {
                    scope.aliases.entry(near.clone()).or_default().push(i);
                }
                if let UseTarget::Module(module) = entry.target
                    && module != scope.module
                {
                    scope.used_modules.entry(module).or_default().push(i);
                }
            }
            scope.uses = uses;
        }
    }
}

fn module_for(env: &mut Env<'_>, package: u32, inner: &str) -> ModuleId {
    let Some(entry) = env.packages.get_mut(package as usize) else { return ModuleId(0) };
    if let Some(found) = entry.modules.get(inner) {
        return *found;
    }
    let id = ModuleId(u32::try_from(env.modules.len()).unwrap_or(u32::MAX));
    let path = match (&entry.key, inner) {
        (None, "") => ".".to_owned(),
        (None, inner) => inner.to_owned(),
        (Some(key), "") => key.clone(),
        (Some(key), inner) => format!("{key}/{inner}"),
    };
    let _ = entry.modules.insert(inner.to_owned(), id);
    env.modules.push(Module {
        package,
        path,
        inner: inner.to_owned(),
        funcs: FxHashMap::default(),
        consts: FxHashMap::default(),
        files: Vec::new(),
    });
    id
}

fn resolve_uses(env: &Env<'_>, file: &InputFile, diags: &mut Vec<Diagnostic>) -> Vec<UseEntry> {
    let package = env.file(file.id).package;
    let mut uses = Vec::new();
    for decl in &file.ast.decls {
        let Decl::Use(stmt) = decl else { continue };
        let Some(last) = stmt.path.last() else { continue };
        let path = stmt.path.iter().map(|p| p.name.as_str()).collect::<Vec<_>>().join("/");
        let mut near = None;
        let target = match resolve_path(env, package, stmt, &path) {
            Ok(target) => target,
            Err(diagnostic) => {
                diags.push(*diagnostic);
                near = near_module(env, package, &path).and_then(|path| path.rsplit('/').next().map(Name::new));
                UseTarget::Unknown
            }
        };
        uses.push(UseEntry {
            alias: last.name.clone(),
            path,
            near,
            target,
            extensions: stmt.extensions,
            span: stmt.span,
            used: Cell::new(false),
        });
    }
    uses
}

fn resolve_path(env: &Env<'_>, package: u32, stmt: &ast::Use, path: &str) -> Result<UseTarget, Box<Diagnostic>> {
    if NAMESPACES.contains(&path) {
        return Ok(UseTarget::Namespace(Name::new(path)));
    }
    let own = env.packages.get(package as usize);
    if package == 0
        && let Some(first) = stmt.path.first()
        && let Some(dependency) = env.packages.iter().skip(1).find(|p| p.key.as_deref() == Some(first.name.as_str()))
    {
        let inner = path.split_once('/').map_or("", |(_, rest)| rest);
        if let Some(module) = dependency.modules.get(inner) {
            if inner.split('/').any(|segment| segment == "internal") {
                return Err(Box::new(
                    Diagnostic::error(
                        108,
                        stmt.span,
                        format!("`{path}` is internal to the dependency `{}`", first.name),
                    )
                    .label("not reachable from outside of the dependency")
                    .note("a directory `internal` holds what a library may change at any time")
                    .help(format!("use what `{}` exports from its other modules", first.name)),
                ));
            }
            return Ok(UseTarget::Module(*module));
        }
    } else if let Some(module) = own.and_then(|p| p.modules.get(path)) {
        return Ok(UseTarget::Module(*module));
    }
    Err(Box::new(unknown_module(env, package, stmt, path)))
}

fn unknown_module(env: &Env<'_>, package: u32, stmt: &ast::Use, path: &str) -> Diagnostic {
    let diagnostic = Diagnostic::error(216, stmt.span, format!("unknown module `{path}`"))
        .label("no directory of this path has `.wo` files")
        .note(
            "a module is a directory, named by its path from the root; dependencies are named by their key in `[deps]`",
        );
    match near_module(env, package, path) {
        Some(near) => diagnostic.help(format!("did you mean `use {near}`?")),
        None if package != 0 => diagnostic.help(
            "dependencies are flat, a library has only its own modules: copy the code into it, or make one library of both",
        ),
        None => diagnostic.help("correct the path, or add the dependency to `[deps]` in `wo.toml`"),
    }
}

fn near_module(env: &Env<'_>, package: u32, path: &str) -> Option<String> {
    let candidates = env
        .modules
        .iter()
        .filter(|m| m.package == package || package == 0)
        .map(|m| if m.package == package { m.inner.as_str() } else { m.path.as_str() })
        .filter(|p| !p.is_empty());
    nearest(path, candidates.chain(NAMESPACES))
}

/// `WO-W202` for every `use` through which nothing was reached; after all bodies. What was not read of a file may have
/// used any of them, and a test that was left out those whose alias is a word in it.
pub(crate) fn report_unused(env: &Env<'_>, diags: &mut Vec<Diagnostic>) {
    for scope in env.files.iter().filter(|f| !f.is_broken) {
        for entry in &scope.uses {
            // Extension functions are called without the alias.
            let wanted_by_tests =
                if entry.extensions { !scope.unwanted.is_empty() } else { scope.unwanted.contains(&entry.alias) };
            if !entry.used.get() && !wanted_by_tests && entry.target != UseTarget::Unknown {
                diags.push(
                    Diagnostic::warning(202, entry.span, format!("unused `use {}`", entry.path))
                        .label("nothing in this file refers to it")
                        .note("type names need no `use` inside a project; functions, constants and namespaces do")
                        .help("remove the line"),
                );
            }
        }
    }
}
