//! Where traced objects may not be: actor state and messages (language specification 8.9, `WO-E222`), columns
//! (`WO-E251`).

use super::classes::{Facts, Why};
use super::walk::Crossing;
use crate::hir::{ClassId, Program};
use crate::show::show;
use crate::types::{Ty, TyKind};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// One report for each actor class, at its first `spawn`; a message type that no `spawn` was reported for is reported
/// where it is first sent.
pub(super) fn check(program: &Program, facts: &Facts, crossings: &[Crossing], diags: &mut Vec<Diagnostic>) {
    let mut spawned: FxHashSet<ClassId> = FxHashSet::default();
    let mut messages: FxHashSet<Ty> = FxHashSet::default();
    for crossing in crossings {
        let Crossing::Spawn { class, message, span } = *crossing else { continue };
        if !spawned.insert(class) {
            continue;
        }
        let in_message = path(program, facts, &[(message, show(program, message))]);
        let name = program.classes.get(class.0 as usize).map(|c| c.name.to_string()).unwrap_or_default();
        let found = match (in_message, state(program, facts, class)) {
            (Some(found), _) => Some(("message", show(program, message), found)),
            (None, Some(found)) => Some(("state", name, found)),
            (None, None) => None,
        };
        if let Some((role, ty, found)) = found {
            if role == "message" {
                let _ = messages.insert(message);
            }
            diags.push(report(program, facts, span, role, &ty, &found));
        }
    }
    for crossing in crossings {
        let Crossing::Send { message, span, builtin } = *crossing else { continue };
        if !messages.insert(message) {
            continue;
        }
        let shown = show(program, message);
        if let Some(found) = path(program, facts, &[(message, shown.clone())]) {
            let role = format!("message of `{builtin}`");
            diags.push(report(program, facts, span, &role, &shown, &found));
        }
    }
}

/// Columns of classes that are traced by demand; what structure makes traced is refused with the declarations.
pub(super) fn check_columns(program: &Program, facts: &Facts, diags: &mut Vec<Diagnostic>) {
    for class in program.classes.iter().filter(|c| c.is_table || c.storage.inserted) {
        for field in &class.fields {
            let Some((_, traced)) = path(program, facts, &[(field.ty, String::new())]) else { continue };
            let Some(Why::Demand(at)) = facts.why(traced) else { continue };
            let name = program.classes.get(traced.0 as usize).map(|c| c.name.to_string()).unwrap_or_default();
            let shown = show(program, field.ty);
            diags.push(
                Diagnostic::error(
                    251,
                    field.span,
                    format!("column `{}.{}` cannot be stored: it is `{shown}`", class.name, field.name),
                )
                .label(format!("`{name}` is traced"))
                .related(*at, format!("a borrowed `{name}` escapes here, so its objects are shared"))
                .note("rows are stored by value: scalars, texts, containers, records and untraced classes")
                .help(format!("build a fresh `{name}` there, or store a record of plain fields")),
            );
        }
    }
}

/// A traced class and how it is reached.
type Found = (String, ClassId);

/// The state of an actor is the actor's object itself, so its class counts too.
fn state(program: &Program, facts: &Facts, class: ClassId) -> Option<Found> {
    let decl = program.classes.get(class.0 as usize)?;
    if facts.why(class).is_some() {
        return Some((decl.name.to_string(), class));
    }
    let fields: Vec<(Ty, String)> = decl.fields.iter().map(|f| (f.ty, format!("{}.{}", decl.name, f.name))).collect();
    path(program, facts, &fields)
}

/// The nearest traced class in what values of these types hold, interfaces left out.
fn path(program: &Program, facts: &Facts, start: &[(Ty, String)]) -> Option<Found> {
    let mut queue: VecDeque<(Ty, String)> = start.iter().cloned().collect();
    let mut seen = FxHashSet::default();
    while let Some((ty, path)) = queue.pop_front() {
        if !seen.insert(ty) {
            continue;
        }
        match program.types.kind(ty) {
            TyKind::Nullable(inner) | TyKind::Maybe { inner, .. } | TyKind::Multi(inner) => {
                queue.push_back((inner, path));
            }
            TyKind::Map(key, value) => {
                queue.push_back((key, path.clone()));
                queue.push_back((value, path));
            }
            TyKind::Class(class) => {
                if facts.why(class).is_some() {
                    return Some((path, class));
                }
                let decl = program.classes.get(class.0 as usize);
                for field in decl.into_iter().flat_map(|c| &c.fields) {
                    queue.push_back((field.ty, format!("{path}.{}", field.name)));
                }
            }
            TyKind::Union(union) => {
                let decl = program.unions.get(union.0 as usize);
                for variant in decl.into_iter().flat_map(|u| &u.variants) {
                    for (field, ty) in &variant.fields {
                        queue.push_back((*ty, format!("{path}.{}.{field}", variant.name)));
                    }
                }
            }
            _ => {}
        }
    }
    None
}

fn report(program: &Program, facts: &Facts, span: Span, role: &str, ty: &str, found: &Found) -> Diagnostic {
    let (path, class) = found;
    let name = program.classes.get(class.0 as usize).map(|c| c.name.to_string()).unwrap_or_default();
    let place = if path == ty { String::new() } else { format!(": `{path}` is `{name}`") };
    let title = if path == ty {
        format!("the {role}, `{ty}`, is traced")
    } else {
        format!("the {role}, `{ty}`, holds traced objects{place}")
    };
    let report = Diagnostic::error(222, span, title).label("traced objects stay within one actor");
    match facts.why(*class) {
        Some(Why::Demand(at)) => report
            .related(*at, format!("a borrowed `{name}` escapes here, so its objects are shared"))
            .note(format!(
                "`{name}` is traced because a borrowed object of it is kept, returned or sent (alias escape)"
            ))
            .help(if role.starts_with("message") {
                format!(
                    "build a fresh `{name}` there; a `receive`, which only borrows its message, can also `shift` out \
                     of a list in it, or yield the payload of a union from a `switch`"
                )
            } else {
                format!("build a fresh `{name}` there, or take it over with a `take` parameter, `pop` or `shift`")
            }),
        _ => {
            let cycle = crate::gc::shortest_cycle(program, *class).join(" -> ");
            report
                .note(format!("`{name}` is traced because it lies on a cycle of fields ({cycle})"))
                .help(format!("break the cycle at `{name}`: hold an index or a key instead of the object"))
        }
    }
}
