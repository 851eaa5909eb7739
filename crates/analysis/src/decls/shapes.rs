//! Which records are the same type: those with the same ordered list of field names and types (language specification
//! 3.5). Field types may name records again, also in cycles. Records that reach no cycle are grouped bottom-up by their
//! shape; the rest starts out as one group per outline and is split until nothing distinguishes two members of a group.

use super::names::{PROVISIONAL, new_class};
use super::types::builtin_type;
use super::{ClassSource, Decls};
use crate::env::{Env, NamedType, STDLIB_FILE, TypeLookup};
use crate::hir::ClassId;
use crate::types::{Ty, Types};
use diagnostics::span::FileId;
use rustc_hash::FxHashMap;
use syntax::ast::{self, Name, TypeKind};

/// Splitting rounds before the remaining records are taken as distinct; only a chain of that many records that ends in
/// a cycle needs more.
const ROUNDS: usize = 256;

/// A shape is a list of these; type constructors stand before what they apply to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Field(Name),
    Nullable,
    Multi,
    Map,
    Row,
    Actor,
    Backlink(Name, Name),
    Builtin(Ty),
    Named(u8, u32),
    /// A record by its index, or, once grouped, by its group.
    Record(usize),
    Unknown(Name),
}

/// Gives every group of equal records one class and puts its id wherever a provisional one stands.
pub(super) fn unify(env: &mut Env<'_>, decls: &mut Decls<'_>) {
    let records: Vec<usize> = decls
        .classes
        .iter()
        .enumerate()
        .filter(|(_, d)| matches!(d.source, ClassSource::Record(_)))
        .map(|(i, _)| i)
        .collect();
    let shapes: Vec<Vec<Part>> = records
        .iter()
        .filter_map(|i| decls.classes.get(*i))
        .map(|decl| {
            let mut out = Vec::new();
            for field in decl.source.fields() {
                out.push(Part::Field(field.name.name.clone()));
                outline(env, decl.file, &field.ty, &mut out);
            }
            out
        })
        .collect();
    let groups = group(&shapes);

    // The first record of the program in a group names it; a predeclared one only where there is none.
    let mut naming: FxHashMap<usize, usize> = FxHashMap::default();
    for (record, group) in groups.iter().enumerate() {
        let predeclared =
            |r: usize| records.get(r).and_then(|i| decls.classes.get(*i)).is_none_or(|d| d.file == STDLIB_FILE);
        let slot = naming.entry(*group).or_insert(record);
        if predeclared(*slot) && !predeclared(record) {
            *slot = record;
        }
    }
    let mut ids: FxHashMap<usize, ClassId> = FxHashMap::default();
    let mut finals = Vec::with_capacity(records.len());
    for (record, group) in groups.iter().enumerate() {
        let known = ids.get(group).copied();
        let namer = naming.get(group).copied().unwrap_or(record);
        let decl = |r: usize| records.get(r).and_then(|i| decls.classes.get(*i));
        let (Some(own), Some(source)) = (decl(record), decl(namer)) else { continue };
        let id = match known {
            Some(id) => id,
            None => {
                let is_pub = matches!(source.source, ClassSource::Record(r) if r.is_pub);
                let origin = (source.file != STDLIB_FILE).then(|| env.origin(source.file, is_pub));
                new_class(env, source.source.name(), true, false, origin)
            }
        };
        let _ = ids.insert(*group, id);
        if record != namer && own.file != STDLIB_FILE {
            env.program.aliases.push((own.source.name().name.clone(), id));
        }
        finals.push(id);
    }
    for (record, id) in records.iter().zip(&finals) {
        if let Some(decl) = decls.classes.get_mut(*record) {
            decl.class = *id;
        }
    }
    for entry in env.type_names.values_mut() {
        if let NamedType::Class(class) = &mut entry.named
            && class.0 >= PROVISIONAL
            && let Some(id) = finals.get((class.0 - PROVISIONAL) as usize)
        {
            *class = *id;
        }
    }
}

fn outline(env: &Env<'_>, file: FileId, ty: &ast::Type, out: &mut Vec<Part>) {
    match &ty.kind {
        TypeKind::Nullable(inner) => {
            if out.last() != Some(&Part::Nullable) {
                out.push(Part::Nullable);
            }
            outline(env, file, inner, out);
        }
        TypeKind::Multi(item) => {
            out.push(Part::Multi);
            outline(env, file, item, out);
        }
        TypeKind::Map(key, value) => {
            out.push(Part::Map);
            outline(env, file, key, out);
            outline(env, file, value, out);
        }
        TypeKind::Ref(name) => {
            out.push(Part::Row);
            named(env, file, &name.name, true, out);
        }
        TypeKind::Actor(name) => {
            out.push(Part::Actor);
            named(env, file, &name.name, true, out);
        }
        TypeKind::Backlink(class, field) => out.push(Part::Backlink(class.name.clone(), field.name.clone())),
        TypeKind::Named(name) => match builtin_type(&name.name) {
            Some(ty) => out.push(Part::Builtin(ty)),
            None => named(env, file, &name.name, false, out),
        },
        TypeKind::Qualified(module, name) => match (module.name.as_str(), name.name.as_str()) {
            ("net", "Conn") => out.push(Part::Builtin(Types::INT)),
            ("json", "Value") => out.push(Part::Builtin(Types::JSON)),
            _ => out.push(Part::Unknown(name.name.clone())),
        },
    }
}

fn named(env: &Env<'_>, file: FileId, name: &Name, bare: bool, out: &mut Vec<Part>) {
    let TypeLookup::Found(entry) = env.type_lookup(file, name) else {
        out.push(Part::Unknown(name.clone()));
        return;
    };
    match entry.named {
        NamedType::Class(class) if class.0 >= PROVISIONAL => out.push(Part::Record((class.0 - PROVISIONAL) as usize)),
        NamedType::Class(class) => {
            if env.is_table(class) && !bare {
                out.push(Part::Row);
            }
            out.push(Part::Named(0, class.0));
        }
        NamedType::Union(union) => out.push(Part::Named(1, union.0)),
        NamedType::Iface(iface) => out.push(Part::Named(2, iface.0)),
    }
}

/// A group number for each record.
fn group(shapes: &[Vec<Part>]) -> Vec<usize> {
    let n = shapes.len();
    // Until a record is grouped its number is `n + index`, which is no group.
    let mut groups: Vec<usize> = (n..n + n).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut waiting = vec![0_usize; n];
    for (i, shape) in shapes.iter().enumerate() {
        for part in shape {
            if let Part::Record(needed) = part
                && let (Some(list), Some(count)) = (users.get_mut(*needed), waiting.get_mut(i))
            {
                list.push(i);
                *count += 1;
            }
        }
    }
    let mut ready: Vec<usize> = (0..n).filter(|i| waiting.get(*i) == Some(&0)).collect();
    let mut by_shape: FxHashMap<Vec<Part>, usize> = FxHashMap::default();
    let mut settled = vec![false; n];
    while let Some(i) = ready.pop() {
        let Some(shape) = shapes.get(i) else { continue };
        let next = by_shape.len();
        let id = *by_shape.entry(regroup(shape, &groups)).or_insert(next);
        set(&mut groups, i, id);
        if let Some(done) = settled.get_mut(i) {
            *done = true;
        }
        for user in users.get(i).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(*user) {
                *count -= 1;
                if *count == 0 {
                    ready.push(*user);
                }
            }
        }
    }
    let rest: Vec<usize> = (0..n).filter(|i| settled.get(*i) == Some(&false)).collect();
    split(shapes, &rest, &mut groups);
    groups
}

fn split(shapes: &[Vec<Part>], rest: &[usize], groups: &mut [usize]) {
    let n = shapes.len();
    for i in rest {
        set(groups, *i, n);
    }
    let mut count = 0;
    for _ in 0..ROUNDS {
        let mut by_shape: FxHashMap<Vec<Part>, usize> = FxHashMap::default();
        let mut next_groups = Vec::with_capacity(rest.len());
        for i in rest {
            let Some(shape) = shapes.get(*i) else { continue };
            let next = n + by_shape.len();
            next_groups.push(*by_shape.entry(regroup(shape, groups)).or_insert(next));
        }
        for (i, group) in rest.iter().zip(&next_groups) {
            set(groups, *i, *group);
        }
        // A round only ever splits groups, so an equal count means an equal partition.
        if by_shape.len() == count {
            return;
        }
        count = by_shape.len();
    }
    for (k, i) in rest.iter().enumerate() {
        set(groups, *i, n + k);
    }
}

fn regroup(shape: &[Part], groups: &[usize]) -> Vec<Part> {
    shape
        .iter()
        .map(|part| match part {
            Part::Record(i) => Part::Record(groups.get(*i).copied().unwrap_or(usize::MAX)),
            other => other.clone(),
        })
        .collect()
}

fn set(groups: &mut [usize], i: usize, group: usize) {
    if let Some(slot) = groups.get_mut(i) {
        *slot = group;
    }
}
