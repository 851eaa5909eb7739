//! Tables as the store sees them: columns, indexes, which tables their `ref` columns lead to.

use crate::shapes::{Layouts, count, is_backlink};
use abi::tables::{
    ColumnDesc, ColumnKind, IndexDesc, MAX_COLUMNS, MAX_INDEXES, MAX_TABLES, Path, PathEnd, TableDesc, TableIdx,
};
use analysis::decls::limits;
use analysis::hir::{self, ClassId, Ty, TyKind};

// What the checker lets through, the store takes.
const _: () = assert!(
    limits::MAX_TABLES == MAX_TABLES && limits::MAX_COLUMNS == MAX_COLUMNS && limits::MAX_INDEXES == MAX_INDEXES
);

impl Layouts<'_> {
    /// The table of a class, made where it is met first.
    pub fn table(&mut self, class: ClassId) -> TableIdx {
        if let Some(table) = self.tables.get(&class) {
            return *table;
        }
        let number = count(self.shapes.tables.len());
        let _ = self.tables.insert(class, number);
        let program = self.program();
        let Some(decl) = program.classes.get(class.0 as usize) else { return number };
        let name = decl.name.to_string();
        self.shapes.tables.push(TableDesc {
            class: class.0,
            label: decl.storage.label.clone().unwrap_or_else(|| name.clone()),
            name,
            durable: decl.storage.durable,
            declared: decl.storage.declared,
            columns: Vec::new(),
            indexes: Vec::new(),
        });
        let stored = |f: &&hir::Field| !is_backlink(&program.types, f.ty);
        let columns: Vec<ColumnDesc> = decl.fields.iter().filter(stored).map(|f| self.column_desc(f)).collect();
        let numbers = |fields: &[u32], layouts: &Self| fields.iter().map(|f| layouts.column(class, *f)).collect();
        let mut indexes: Vec<IndexDesc> = Vec::new();
        for fields in &decl.storage.indexes {
            indexes.push(IndexDesc { columns: numbers(fields, self), unique: false });
        }
        for field in &decl.storage.unique {
            indexes.push(IndexDesc { columns: numbers(&[*field], self), unique: true });
        }
        for (column, _) in (0..).zip(&columns).filter(|(_, c)| c.refers.is_some()) {
            // Any index that starts with the column finds the rows that refer to one.
            if !indexes.iter().any(|index| index.columns.first() == Some(&column)) {
                indexes.push(IndexDesc { columns: vec![column], unique: false });
            }
        }
        if let Some(table) = self.shapes.tables.get_mut(number as usize) {
            table.columns = columns;
            table.indexes = indexes;
        }
        number
    }

    fn column_desc(&mut self, field: &hir::Field) -> ColumnDesc {
        let (kind, nullable, target) = column_kind(self.program(), field.ty);
        ColumnDesc { name: field.name.to_string(), kind, nullable, refers: target.map(|class| self.table(class)) }
    }

    /// The index by which the rows are found that refer to a row by `field`.
    pub fn ref_index(&mut self, class: ClassId, field: u32) -> (TableIdx, u32) {
        let table = self.table(class);
        let column = self.column(class, field);
        let desc = self.shapes.tables.get(table as usize);
        let index = desc.and_then(|d| d.indexes.iter().position(|index| index.columns.first() == Some(&column)));
        (table, index.map_or(0, count))
    }

    /// The table that the first column of an index refers to.
    pub fn index_target(&self, table: TableIdx, index: u32) -> Option<TableIdx> {
        let desc = self.shapes.tables.get(table as usize)?;
        let column = *desc.indexes.get(index as usize)?.columns.first()?;
        desc.columns.get(column as usize)?.refers
    }

    /// Adds the tables that a path from a row of `table` reads.
    pub fn tables_of(&self, table: TableIdx, path: &Path, out: &mut Vec<TableIdx>) {
        let mut at = Some(table);
        for step in &path.steps {
            let columns = at.and_then(|t| self.shapes.tables.get(t as usize)).map(|desc| &desc.columns);
            at = columns.and_then(|c| c.get(*step as usize)).and_then(|c| c.refers);
            out.extend(at);
        }
        if let PathEnd::Referrers { table, .. } = path.end {
            out.push(table);
        }
    }
}

/// How a column of this type is kept, whether it may be nil, and the class whose rows it names.
fn column_kind(program: &hir::Program, ty: Ty) -> (ColumnKind, bool, Option<ClassId>) {
    let inner = program.types.strip(ty);
    let kind = match program.types.kind(inner) {
        TyKind::Int | TyKind::Bool | TyKind::Row(_) => ColumnKind::Int,
        TyKind::Union(union) if program.unions.get(union.0 as usize).is_some_and(|u| !u.has_payload) => ColumnKind::Int,
        TyKind::Float => ColumnKind::Float,
        TyKind::Text | TyKind::Bytes => ColumnKind::Bytes,
        _ => ColumnKind::Value,
    };
    let target = match program.types.kind(inner) {
        TyKind::Row(class) => Some(class),
        _ => None,
    };
    (kind, inner != ty, target)
}
