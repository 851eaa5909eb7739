//! The program's entry, the type of catch variables, and which classes are actors.

use crate::Input;
use crate::env::{Env, ModuleId, NamedType, PRELUDE};
use crate::hir::{self, ClassId, FuncId};
use crate::types::{TyKind, Types};
use diagnostics::Diagnostic;
use syntax::ast::Name;

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

/// A project's own `Error` takes the place of the predeclared one if it has all its fields, with the same types, and
/// every other field may be left out when the runtime makes one (5.1).
fn well_known(env: &mut Env<'_>) {
    let error = predeclared(env, "Error");
    env.program.well_known =
        hir::WellKnown { error, stat: predeclared(env, "Stat"), time_parts: predeclared(env, "TimeParts") };
    let own = env.type_names.get(&(0, Name::new_static("Error"))).map(|e| e.named);
    let Some(NamedType::Class(own)) = own else { return };
    let Some(wanted) = env.program.classes.get(error.0 as usize) else { return };
    let Some(found) = env.program.classes.get(own.0 as usize) else { return };
    let has_all = wanted.fields.iter().all(|w| env.field(own, &w.name).is_some_and(|(_, f)| f.ty == w.ty));
    let rest = found.fields.iter().filter(|f| env.field(error, &f.name).is_none()).all(|f| env.omittable(f));
    if has_all && rest && !found.is_table && !wanted.fields.is_empty() {
        env.program.well_known.error = own;
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
            for (_, other, _) in others {
                diags.push(
                    Diagnostic::error(
                        215,
                        span(*other),
                        format!("function `main` is declared in several modules: {files}"),
                    )
                    .label("another `main`")
                    .related(span(*first), "first declared here")
                    .note("a program has one entry; a `main` in the root module would win over those of other modules")
                    .help("keep one `main`, or move the program's entry to the root module"),
                );
            }
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
