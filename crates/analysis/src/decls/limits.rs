//! How many tables a program may have, and how many columns and indexes a table (tables specification 11).

use crate::env::Env;
use crate::hir;
use crate::types::TyKind;
use diagnostics::Diagnostic;

pub const MAX_TABLES: usize = 65_535;
pub const MAX_COLUMNS: usize = 1024;
pub const MAX_INDEXES: usize = 64;

/// Refuses what is beyond them. After all bodies: classes without `@table` are tables once they are inserted.
pub fn check(env: &Env<'_>, diags: &mut Vec<Diagnostic>) {
    let tables = || env.program.classes.iter().filter(|class| class.is_table || class.storage.inserted);
    for class in tables() {
        let columns =
            class.fields.iter().filter(|field| !matches!(env.program.types.kind(field.ty), TyKind::Backlink(..)));
        let (columns, indexes) = (columns.count(), indexes(env, class));
        if columns > MAX_COLUMNS {
            let help = "move columns that belong together into a record, or into a table of their own";
            diags.push(too_many(class, format!("table `{}` has {columns} columns", class.name), MAX_COLUMNS, help));
        }
        if indexes > MAX_INDEXES {
            let help =
                "every `@unique` column has an index, and every `ref` column that no other one begins with: drop some";
            diags.push(too_many(class, format!("table `{}` has {indexes} indexes", class.name), MAX_INDEXES, help));
        }
    }
    if let Some(class) = tables().nth(MAX_TABLES) {
        let title = format!("the program has {} tables", tables().count());
        diags.push(too_many(
            class,
            title,
            MAX_TABLES,
            "keep several kinds of rows in one table, told apart by a column",
        ));
    }
}

/// Those of `index:`, of `@unique` columns, and of `ref` columns that no other one begins with.
fn indexes(env: &Env<'_>, class: &hir::Class) -> usize {
    let storage = &class.storage;
    let is_first = |column: u32| {
        storage.unique.contains(&column) || storage.indexes.iter().any(|index| index.first() == Some(&column))
    };
    let is_ref =
        |field: &hir::Field| matches!(env.program.types.kind(env.program.types.strip(field.ty)), TyKind::Row(_));
    let refs = (0..).zip(&class.fields).filter(|(column, field)| is_ref(field) && !is_first(*column));
    storage.indexes.len() + storage.unique.len() + refs.count()
}

fn too_many(class: &hir::Class, title: String, most: usize, help: &str) -> Diagnostic {
    Diagnostic::error(102, class.span, title).label(format!("{most} is the most")).help(help)
}
