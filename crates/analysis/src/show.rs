//! Types as diagnostics print them: as in source, `T~` as `?T`, no value as `no value`.

use crate::hir::Program;
use crate::types::{Ty, TyKind};

/// The text of a type as diagnostics print it.
#[must_use]
pub fn show(program: &Program, ty: Ty) -> String {
    let mut out = String::new();
    write(program, ty, &mut out);
    out
}

fn write(program: &Program, ty: Ty, out: &mut String) {
    let class_name = |id: crate::types::ClassId| program.classes.get(id.0 as usize).map_or("?", |c| c.name.as_str());
    match program.types.kind(ty) {
        TyKind::Error => out.push_str("unknown type"),
        TyKind::Void | TyKind::Never => out.push_str("no value"),
        TyKind::Nil => out.push_str("nil"),
        TyKind::EmptyMulti => out.push_str("[]"),
        TyKind::EmptyMap => out.push_str("{}"),
        TyKind::Int => out.push_str("Int"),
        TyKind::Bool => out.push_str("Bool"),
        TyKind::Float => out.push_str("Float"),
        TyKind::Text => out.push_str("Text"),
        TyKind::Bytes => out.push_str("Bytes"),
        TyKind::Json => out.push_str("json.Value"),
        TyKind::Class(id) => out.push_str(class_name(id)),
        TyKind::Row(id) => {
            out.push_str("ref ");
            out.push_str(class_name(id));
        }
        TyKind::Backlink(id, field) => {
            out.push_str("backlink ");
            out.push_str(class_name(id));
            out.push('.');
            let name = program.classes.get(id.0 as usize).and_then(|c| c.fields.get(field as usize));
            out.push_str(name.map_or("?", |f| f.name.as_str()));
        }
        TyKind::Union(id) => out.push_str(program.unions.get(id.0 as usize).map_or("?", |u| u.name.as_str())),
        TyKind::Iface(id) => out.push_str(program.interfaces.get(id.0 as usize).map_or("?", |i| i.name.as_str())),
        TyKind::Actor(message) => {
            out.push_str("actor ");
            write(program, message, out);
        }
        TyKind::Multi(item) => {
            out.push_str("multi ");
            write(program, item, out);
        }
        TyKind::Map(key, value) => {
            out.push_str("map<");
            write(program, key, out);
            out.push_str(", ");
            write(program, value, out);
            out.push('>');
        }
        TyKind::Nullable(inner) | TyKind::Maybe { inner, .. } => {
            out.push('?');
            write(program, inner, out);
        }
    }
}
