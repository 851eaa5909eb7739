//! The program's entry, the type of catch variables, and which classes are actors.

use super::Decls;
use super::classes::distinct_fields;
use super::types::builtin_type;
use crate::Input;
use crate::env::{Env, ModuleId, NamedType, PRELUDE};
use crate::hir::{self, ClassId, FuncId};
use crate::types::{TyKind, Types};
use diagnostics::Diagnostic;
use syntax::ast::{self, Name, TypeKind};

pub(super) fn find(env: &mut Env<'_>, input: &Input, diags: &mut Vec<Diagnostic>) {
    well_known(env);
    for class in 0..env.program.classes.len() {
        let class = ClassId(u32::try_from(class).unwrap_or(u32::MAX));
        if let Ok((func, message, _)) = env.receive_of(class) {
            env.receivers.entry(message).or_default().push((class, func));
        }
    }
    if !input.is_library {
        entry(env, diags);
    }
}

fn predeclared(env: &Env<'_>, name: &str) -> ClassId {
    match env.type_names.get(&(PRELUDE, Name::new(name))).map(|e| e.named) {
        Some(NamedType::Class(class)) => class,
        _ => ClassId::default(),
    }
}

fn well_known(env: &mut Env<'_>) {
    env.program.well_known = hir::WellKnown {
        error: predeclared(env, "Error"),
        stat: predeclared(env, "Stat"),
        time_parts: predeclared(env, "TimeParts"),
        proc: predeclared(env, "Proc"),
        child: predeclared(env, "Child"),
    };
}

/// A project's own `Error` takes the place of the predeclared one, in dependencies too, if it has all its fields with
/// the same types, and every other field may be left out when the runtime makes one (5.1). Decided from the source,
/// before any type is resolved that may name it.
pub(super) fn adopt_error(env: &mut Env<'_>, decls: &Decls<'_>) {
    let Some(own) = env.type_names.get(&(0, Name::new_static("Error"))) else { return };
    let (named, span) = (own.named, own.span);
    let Some(decl) = decls.classes.iter().find(|d| d.source.name().span == span) else { return };
    if env.is_table(decl.class) {
        return;
    }
    let wanted = [("code", Types::INT), ("line", Types::INT), ("method", Types::TEXT), ("msg", Types::TEXT)];
    let fields = distinct_fields(decl.source);
    let builtin = |field: &ast::Field| match &field.ty.kind {
        TypeKind::Named(name) => builtin_type(&name.name),
        _ => None,
    };
    let has_all =
        wanted.iter().all(|(name, ty)| fields.iter().any(|f| f.name.name == *name && builtin(f) == Some(*ty)));
    let rest_omittable = fields
        .iter()
        .filter(|f| !wanted.iter().any(|(name, _)| f.name.name == *name))
        .all(|f| f.default.is_some() || matches!(f.ty.kind, TypeKind::Nullable(_) | TypeKind::Backlink(..)));
    if has_all
        && rest_omittable
        && let Some(entry) = env.type_names.get_mut(&(PRELUDE, Name::new_static("Error")))
    {
        entry.named = named;
    }
}

fn entry(env: &mut Env<'_>, diags: &mut Vec<Diagnostic>) {
    let mut candidates: Vec<(ModuleId, FuncId, bool)> = Vec::new();
    for (i, module) in env.modules.iter().enumerate().filter(|(_, m)| m.package == 0) {
        let Some(found) = module.funcs.get("main") else { continue };
        let Some(func) = env.program.funcs.get(found.func.0 as usize) else { continue };
        let takes_args = match func.locals.as_slice() {
            [] => false,
            [only] if matches!(env.program.types.kind(only.ty), TyKind::Multi(item) if item == Types::TEXT) => true,
            _ => continue,
        };
        candidates.push((ModuleId(u32::try_from(i).unwrap_or(u32::MAX)), found.func, takes_args));
    }
    let is_root = |m: ModuleId| env.modules.get(m.0 as usize).is_some_and(|m| m.inner.is_empty());
    let chosen = candidates.iter().find(|(m, ..)| is_root(*m));
    let chosen = match (chosen, candidates.as_slice()) {
        (Some(root), _) => *root,
        (None, []) => return,
        (None, [only]) => *only,
        (None, [(_, first, _), others @ ..]) => {
            let span = |f: FuncId| env.program.funcs.get(f.0 as usize).map(|f| f.span).unwrap_or_default();
            let files = candidates.iter().map(|(_, f, _)| format!("`{}`", env.file(span(*f).file).display));
            let files = files.collect::<Vec<_>>().join(", ");
            let mut spans = others.iter().map(|(_, f, _)| span(*f));
            let mut report = Diagnostic::error(
                215,
                spans.next().unwrap_or_default(),
                format!("function `main` is declared in several modules: {files}"),
            )
            .label("another `main`")
            .related(span(*first), "first declared here")
            .note("a program has one entry; a `main` in the root module would win over those of other modules")
            .help("keep one `main`, or move the program's entry to the root module");
            for other in spans {
                report = report.related(other, "and here");
            }
            diags.push(report);
            return;
        }
    };
    let (_, func, takes_args) = chosen;
    env.program.main = Some(hir::Main { func, takes_args });
    let Some(decl) = env.program.funcs.get(func.0 as usize) else { return };
    if !matches!(decl.ret, Types::VOID | Types::INT | Types::ERROR) {
        diags.push(
            Diagnostic::error(405, decl.span, format!("`main` returns `{}`", env.show(decl.ret)))
                .label("the result of `main` is the exit status")
                .note("an exit status is a number: `main` has no result, or `Int`")
                .help("write `fn main() -> Int`, or leave the result out"),
        );
    }
}
