//! Members of classes and records: names, field types, constants. Methods get their signatures in `functions`.

use super::{ClassDecl, ClassSource, Decls, duplicate};
use crate::env::{ClassConst, Env, NamedType};
use crate::hir::{self, ClassId};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use rustc_hash::{FxHashMap, FxHashSet};
use syntax::ast::{self, Ident, Name, TypeKind};

/// A `backlink C.f` field whose `f` is looked up when all fields are known.
struct PendingBacklink<'a> {
    file: FileId,
    owner: ClassId,
    field: u32,
    nullable: bool,
    class: &'a Ident,
    target: &'a Ident,
}

/// The fields of a declaration without repeated names; the index here is the field's index in the class.
pub(super) fn distinct_fields(source: ClassSource<'_>) -> Vec<&ast::Field> {
    let mut seen: FxHashSet<&Name> = FxHashSet::default();
    source.fields().iter().filter(|f| seen.insert(&f.name.name)).collect()
}

pub(super) fn members(env: &mut Env<'_>, decls: &Decls<'_>, diags: &mut Vec<Diagnostic>) {
    let mut backlinks = Vec::new();
    for decl in &decls.classes {
        report_duplicates(decl.source, diags);
        let mut fields = Vec::new();
        for (i, field) in distinct_fields(decl.source).into_iter().enumerate() {
            let index = u32::try_from(i).unwrap_or(u32::MAX);
            let ty = field_type(env, decl, index, field, &mut backlinks, diags);
            fields.push(hir::Field {
                name: field.name.name.clone(),
                ty,
                span: field.span,
                read_only: field.read_only,
                default: None,
            });
        }
        // Further records of this shape are checked for their own mistakes only; the one that names the class fills it.
        let named_by = env.program.classes.get(decl.class.0 as usize).map(|c| c.span);
        if named_by != Some(decl.source.name().span) {
            continue;
        }
        if let Some(info) = env.classes.get_mut(decl.class.0 as usize) {
            info.fields = (0..).zip(&fields).map(|(i, f)| (f.name.clone(), i)).collect();
            if let ClassSource::Class(class) = decl.source {
                for item in &class.consts {
                    let value =
                        ClassConst { is_static: item.is_static, value: item.value.clone(), span: item.name.span };
                    let _ = info.consts.entry(item.name.name.clone()).or_insert(value);
                }
            }
        }
        if let Some(class) = env.program.classes.get_mut(decl.class.0 as usize) {
            class.fields = fields;
        }
    }
    for pending in backlinks {
        resolve_backlink(env, &pending, diags);
    }
}

fn report_duplicates(source: ClassSource<'_>, diags: &mut Vec<Diagnostic>) {
    let mut names: Vec<&Ident> = source.fields().iter().map(|f| &f.name).collect();
    if let ClassSource::Class(class) = source {
        names.extend(class.consts.iter().map(|c| &c.name));
        names.extend(class.methods.iter().map(|m| &m.sig.name));
    }
    names.sort_by_key(|name| name.span.start);
    let mut seen: FxHashMap<&Name, Span> = FxHashMap::default();
    for name in names {
        match seen.get(&name.name) {
            Some(first) => {
                let place = format!("`{}`", source.name().name);
                diags.push(duplicate("member", &name.name, name.span, *first, &place));
            }
            None => {
                let _ = seen.insert(&name.name, name.span);
            }
        }
    }
}

fn field_type<'a>(
    env: &mut Env<'_>,
    decl: &ClassDecl<'a>,
    index: u32,
    field: &'a ast::Field,
    backlinks: &mut Vec<PendingBacklink<'a>>,
    diags: &mut Vec<Diagnostic>,
) -> Ty {
    let (kind, nullable) = match &field.ty.kind {
        TypeKind::Nullable(inner) => (&inner.kind, true),
        kind => (kind, false),
    };
    if let (TypeKind::Backlink(class, target), ClassSource::Class(_)) = (kind, decl.source) {
        backlinks.push(PendingBacklink { file: decl.file, owner: decl.class, field: index, nullable, class, target });
        return Types::ERROR;
    }
    env.resolve_type(decl.file, &field.ty, diags)
}

fn resolve_backlink(env: &mut Env<'_>, pending: &PendingBacklink<'_>, diags: &mut Vec<Diagnostic>) {
    let PendingBacklink { file, owner, field, nullable, class: name, target } = *pending;
    let Some(named) = env.resolve_name(file, name, diags) else { return };
    let span = name.span.to(target.span);
    let NamedType::Class(class) = named else {
        diags.push(
            Diagnostic::error(
                225,
                name.span,
                format!("`backlink {}.{}` does not name a class", name.name, target.name),
            )
            .label(format!("`{}` is {}", name.name, env.describe(named)))
            .note("a backlink lists the rows of a class whose `ref` field points here")
            .help("name the class that has the `ref` field"),
        );
        return;
    };
    let Some((index, found)) = env.field(class, &target.name) else {
        let candidates = env.program.classes.get(class.0 as usize).map(|c| c.fields.as_slice()).unwrap_or_default();
        let near = env.near(&target.name, candidates.iter().map(|f| f.name.as_str()));
        diags.push(unknown_field(&name.name, target, near));
        return;
    };
    let owner_name = env.program.classes.get(owner.0 as usize).map(|c| c.name.clone()).unwrap_or_default();
    let found_ty = env.program.types.strip(found.ty);
    if nullable || !matches!(env.program.types.kind(found_ty), TyKind::Row(c) if c == owner) {
        let shown = env.show(found.ty);
        let there = found.span;
        if found_ty != Types::ERROR || nullable {
            let own = env.program.classes.get(owner.0 as usize).and_then(|c| c.fields.get(field as usize));
            let own_name = own.map(|f| f.name.clone()).unwrap_or_default();
            diags.push(
                Diagnostic::error(
                    252,
                    span,
                    format!("`{owner_name}.{own_name}` cannot be the backlink of `{}.{}`", name.name, target.name),
                )
                .label(if nullable {
                    "a backlink is a list and never nil".to_owned()
                } else {
                    format!("`{}.{}` is `{shown}`, not `ref {owner_name}`", name.name, target.name)
                })
                .related(there, "the other end")
                .note("a backlink lists the rows whose `ref` field points to this row")
                .help(format!("declare `{}: ref {owner_name}` in `{}`, without `?` here", target.name, name.name)),
            );
        }
        return;
    }
    let ty = env.program.types.intern(TyKind::Backlink(class, index));
    let slot = env.program.classes.get_mut(owner.0 as usize).and_then(|c| c.fields.get_mut(field as usize));
    if let Some(slot) = slot {
        slot.ty = ty;
    }
}

/// `WO-E202`.
pub(crate) fn unknown_field(class: &str, field: &Ident, near: Option<String>) -> Diagnostic {
    let diagnostic = Diagnostic::error(202, field.span, format!("`{class}` has no field `{}`", field.name))
        .label("unknown field")
        .note("fields are those that the class declares; there are no others at run time");
    match near {
        Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
        None => diagnostic.help(format!("declare `{}` in `{class}`, or correct the name", field.name)),
    }
}
