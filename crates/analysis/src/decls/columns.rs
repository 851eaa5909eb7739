//! Columns of `@table` classes: types that cannot be stored, and rows that would outlive what they refer to (tables
//! specification 2.2, 2.3).

use super::classes::distinct_fields;
use super::{ClassSource, Decls};
use crate::env::{Env, ModuleId};
use crate::gc::traced_by_structure;
use crate::hir::{self, ClassId, Storage, UnionId};
use crate::types::{Ty, TyKind};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use rustc_hash::{FxHashMap, FxHashSet};
use syntax::ast::{AnnotationArgs, Class, Field, Ident, TableValue};

pub(super) fn check(env: &Env<'_>, decls: &Decls<'_>, diags: &mut Vec<Diagnostic>) {
    let tables: Vec<(ClassId, &Class)> = decls
        .classes
        .iter()
        .filter_map(|decl| match decl.source {
            ClassSource::Class(class) if env.is_table(decl.class) => Some((decl.class, class)),
            _ => None,
        })
        .collect();
    if tables.is_empty() {
        return;
    }
    let traced = traced_by_structure(&env.program);
    let durable: FxHashSet<ClassId> = tables.iter().filter(|(_, c)| is_durable(c)).map(|(id, _)| *id).collect();
    let mut storable = Storable::default();
    for (id, class) in tables {
        let Some(decl) = env.program.classes.get(id.0 as usize) else { continue };
        for (field, source) in decl.fields.iter().zip(distinct_fields(ClassSource::Class(class))) {
            if let Some(why) = unstorable(env, &traced, &mut storable, field.ty) {
                diags.push(not_storable(env, decl, field, source.ty.span, why));
            }
            let TyKind::Row(target) = env.program.types.kind(env.program.types.strip(field.ty)) else { continue };
            if durable.contains(&id) && !durable.contains(&target) {
                let Some(other) = env.program.classes.get(target.0 as usize) else { continue };
                diags.push(
                    Diagnostic::error(
                        224,
                        source.ty.span,
                        format!(
                            "durable table `{}` refers to volatile rows of `{}` in `{}`",
                            decl.name, other.name, field.name
                        ),
                    )
                    .label(format!("rows of `{}` do not survive a restart", other.name))
                    .related(other.span, "the volatile class")
                    .note("after a restart the column would name rows that are gone")
                    .help(format!(
                        "make `{}` durable with `@table`, or `{}` volatile with `@table(durable: false)`",
                        other.name, decl.name
                    )),
                );
            }
        }
    }
}

fn is_durable(class: &Class) -> bool {
    !class.annotations.iter().any(|annotation| match &annotation.args {
        AnnotationArgs::Table(args) => args
            .iter()
            .any(|a| a.key.name == "durable" && matches!(&a.value, TableValue::Word(word) if word == "false")),
        AnnotationArgs::None => false,
    })
}

/// The same for classes without `@table` that are inserted, after all bodies.
pub(crate) fn check_inserted(env: &Env<'_>, diags: &mut Vec<Diagnostic>) {
    let inserted: Vec<&hir::Class> = env.program.classes.iter().filter(|c| c.storage.inserted && !c.is_table).collect();
    if inserted.is_empty() {
        return;
    }
    let traced = traced_by_structure(&env.program);
    let mut storable = Storable::default();
    for class in inserted {
        for field in &class.fields {
            if let Some(why) = unstorable(env, &traced, &mut storable, field.ty) {
                diags.push(not_storable(env, class, field, field.span, why));
            }
        }
    }
}

fn not_storable(env: &Env<'_>, class: &hir::Class, field: &hir::Field, span: Span, why: String) -> Diagnostic {
    let shown = env.show(field.ty);
    let title = format!("column `{}.{}` cannot be stored: it is `{shown}`", class.name, field.name);
    Diagnostic::error(251, span, title)
        .label(why)
        .note("rows are stored by value: scalars, texts, containers, records and untraced classes")
        .help("store a `ref` to another table, or a record of plain fields")
}

/// Notes how the rows of each class are kept.
pub(super) fn record(env: &mut Env<'_>, decls: &Decls<'_>) {
    for decl in &decls.classes {
        let ClassSource::Class(class) = decl.source else { continue };
        let column = |name: &Ident| env.field(decl.class, &name.name).map(|(index, _)| index);
        let is_unique = |field: &&Field| field.annotations.iter().any(|a| a.name.name == "unique");
        let mut storage = Storage {
            durable: env.is_table(decl.class) && is_durable(class),
            unique: class.fields.iter().filter(is_unique).filter_map(|f| column(&f.name)).collect(),
            ..Storage::default()
        };
        let args = class.annotations.iter().filter_map(|annotation| match &annotation.args {
            AnnotationArgs::Table(args) => Some(args),
            AnnotationArgs::None => None,
        });
        for arg in args.flatten() {
            match &arg.value {
                TableValue::Text(label) if arg.key.name == "name" => {
                    storage.label = Some(String::from_utf8_lossy(label).into_owned());
                }
                TableValue::Names(names) if arg.key.name == "index" => {
                    storage.indexes.push(names.iter().filter_map(column).collect());
                }
                _ => {}
            }
        }
        if let Some(class) = env.program.classes.get_mut(decl.class.0 as usize) {
            class.storage = storage;
        }
    }
}

/// Notes which classes stand in modules of the project or in modules that those reach, by `use` or by naming something
/// in them (tables specification 2.1). After all bodies.
pub(crate) fn mark_declared(env: &mut Env<'_>) {
    let mut reached: Vec<bool> = env.modules.iter().map(|m| m.package == 0).collect();
    let used = env.files.iter().flat_map(|file| file.used_modules.keys().map(|module| (file.module, *module)));
    let edges: Vec<(ModuleId, ModuleId)> = used.chain(env.reached.borrow().iter().copied()).collect();
    let mut work: Vec<ModuleId> =
        (0..).map(ModuleId).zip(&reached).filter(|(_, reached)| **reached).map(|(id, _)| id).collect();
    let mut targets: FxHashMap<ModuleId, Vec<ModuleId>> = FxHashMap::default();
    for (from, to) in edges {
        targets.entry(from).or_default().push(to);
    }
    while let Some(module) = work.pop() {
        for to in targets.get(&module).into_iter().flatten() {
            if reached.get_mut(to.0 as usize).is_some_and(|slot| !std::mem::replace(slot, true)) {
                work.push(*to);
            }
        }
    }
    for (class, info) in env.program.classes.iter_mut().zip(&env.classes) {
        let module = info.origin.map(|origin| origin.module);
        class.storage.declared = module.and_then(|m| reached.get(m.0 as usize)).is_some_and(|reached| *reached);
    }
}

/// Classes and unions all of whose contents are known to be storable.
#[derive(Default)]
struct Storable {
    classes: FxHashSet<ClassId>,
    unions: FxHashSet<UnionId>,
}

/// Why values of the type cannot be stored in a row; everything they hold is looked at, once for all columns.
fn unstorable(env: &Env<'_>, traced: &[bool], known: &mut Storable, ty: Ty) -> Option<String> {
    let program = &env.program;
    let mut seen = Storable::default();
    let mut work = vec![ty];
    while let Some(ty) = work.pop() {
        match program.types.kind(ty) {
            TyKind::Nullable(inner) | TyKind::Multi(inner) => work.push(inner),
            TyKind::Map(key, value) => work.extend([key, value]),
            TyKind::Iface(_) => return Some(format!("`{}` is an interface", env.show(ty))),
            TyKind::Actor(_) => return Some(format!("`{}` is the address of a running actor", env.show(ty))),
            TyKind::Class(class) if traced.get(class.0 as usize) == Some(&true) => {
                return Some(format!("`{}` lies on a cycle of classes and is traced", env.show(ty)));
            }
            TyKind::Class(class) if !known.classes.contains(&class) && seen.classes.insert(class) => {
                let decl = program.classes.get(class.0 as usize);
                work.extend(decl.into_iter().flat_map(|c| &c.fields).map(|f| f.ty));
            }
            TyKind::Union(union) if !known.unions.contains(&union) && seen.unions.insert(union) => {
                let decl = program.unions.get(union.0 as usize);
                work.extend(decl.into_iter().flat_map(|u| &u.variants).flat_map(|v| &v.fields).map(|(_, ty)| *ty));
            }
            _ => {}
        }
    }
    known.classes.extend(seen.classes);
    known.unions.extend(seen.unions);
    None
}
