//! Variants of unions and signatures of interfaces.

use super::{Decls, duplicate};
use crate::env::{Env, NamedType};
use crate::hir::{self, UnionId};
use crate::types::Types;
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use rustc_hash::FxHashMap;
use syntax::ast::{self, Name};

pub(super) fn members(env: &mut Env<'_>, decls: &Decls<'_>, diags: &mut Vec<Diagnostic>) {
    let mut in_file: FxHashMap<(FileId, &Name), Span> = FxHashMap::default();
    for (file, id, union) in &decls.unions {
        let mut variants = Vec::with_capacity(union.variants.len());
        for variant in &union.variants {
            let name = &variant.name;
            match in_file.get(&(*file, &name.name)) {
                Some(first) => diags.push(duplicate("variant", &name.name, name.span, *first, "one file")),
                None => {
                    let _ = in_file.insert((*file, &name.name), name.span);
                }
            }
            let mut seen: FxHashMap<&Name, Span> = FxHashMap::default();
            let mut fields = Vec::with_capacity(variant.fields.len());
            for (field, ty) in &variant.fields {
                if let Some(first) = seen.insert(&field.name, field.span) {
                    diags.push(duplicate("payload field", &field.name, field.span, first, "one variant"));
                }
                fields.push((field.name.clone(), env.resolve_type(*file, ty, diags)));
            }
            variants.push(hir::Variant { name: name.name.clone(), fields });
        }
        if let Some(slot) = env.program.unions.get_mut(id.0 as usize) {
            slot.variants = variants;
        }
    }
    // A package's own variants come before those that dependencies export to it.
    for (file, id, union) in &decls.unions {
        let package = env.file(*file).package;
        declare_variants(env, package, package, *id, union);
    }
    for (file, id, union) in &decls.unions {
        let package = env.file(*file).package;
        if package != 0 && union.is_pub {
            declare_variants(env, package, 0, *id, union);
        }
    }
    for (file, id, iface) in &decls.ifaces {
        let mut seen: FxHashMap<&Name, Span> = FxHashMap::default();
        let mut sigs = Vec::with_capacity(iface.sigs.len());
        for sig in &iface.sigs {
            let params = sig.params.iter().map(|p| (p.mode, env.resolve_type(*file, &p.ty, diags))).collect();
            let ret = sig.ret.as_ref().map_or(Types::VOID, |ty| env.resolve_type(*file, ty, diags));
            if let Some(first) = seen.get(&sig.name.name) {
                diags.push(duplicate("method", &sig.name.name, sig.name.span, *first, "one interface"));
                continue;
            }
            let _ = seen.insert(&sig.name.name, sig.name.span);
            sigs.push(hir::Sig { name: sig.name.name.clone(), params, ret });
        }
        if let Some(slot) = env.program.interfaces.get_mut(id.0 as usize) {
            slot.sigs = sigs;
        }
    }
}

/// Makes the variants of a union of package `home` nameable in package `seen_from`. A union that lost its name to an
/// earlier one is left out, so that the duplicate raises no follow-ups.
fn declare_variants(env: &mut Env<'_>, home: u32, seen_from: u32, id: UnionId, union: &ast::Union) {
    let entry = env.type_names.get(&(home, union.name.name.clone()));
    if entry.is_none_or(|e| e.named != NamedType::Union(id)) {
        return;
    }
    for (i, variant) in union.variants.iter().enumerate() {
        let slot = env.variants.entry((seen_from, variant.name.name.clone())).or_default();
        // A repeat within the union is reported already.
        if !slot.iter().any(|(u, _)| *u == id) {
            slot.push((id, u32::try_from(i).unwrap_or(u32::MAX)));
        }
    }
}
