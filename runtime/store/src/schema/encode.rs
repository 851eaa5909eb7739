//! Schemas as bytes (`docs/store-format.md`, Schema).

use super::{ClassName, Column, Field, Forms, Schema, Table, Type, TypeNumber, Variant};
use crate::bytes::{Reader, put_bytes, put_len};
use crate::value::Cell;
use abi::tables::{ColumnKind, IndexDesc, MAX_COLUMNS, MAX_INDEXES, MAX_TABLES};
use std::collections::HashSet;

const INT: u8 = 0;
const BOOL: u8 = 1;
const FLOAT: u8 = 2;
const TEXT: u8 = 3;
const BYTES: u8 = 4;
const JSON: u8 = 5;
const REF: u8 = 6;
const MULTI: u8 = 7;
const MAP: u8 = 8;
const OBJECT: u8 = 9;
const UNION: u8 = 10;
const NULLABLE: u8 = 11;

impl Schema {
    /// Appends the schema.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_len(self.types.len(), out);
        for ty in &self.types {
            put_type(ty, out);
        }
        put_len(self.tables.len(), out);
        for table in &self.tables {
            put_table(table, out);
        }
    }

    /// Reads a schema from the beginning of `bytes`, and steps over it. `None`: there is none.
    #[must_use]
    pub fn decode(bytes: &mut &[u8]) -> Option<Schema> {
        let mut reader = Reader(bytes);
        let mut schema = Schema { types: reader.list(take_type)?, tables: Vec::new() };
        let forms = Forms::new(&schema.types);
        if !schema.types_are_sound(&forms) {
            return None;
        }
        schema.tables = reader.list(|reader| take_table(&forms, reader))?;
        if schema.tables.len() > MAX_TABLES || !distinct(schema.tables.iter().map(|table| &table.name)) {
            return None;
        }
        *bytes = reader.0;
        Some(schema)
    }

    fn types_are_sound(&self, forms: &Forms) -> bool {
        let exists = |number: &TypeNumber| (*number as usize) < self.types.len();
        // Others take more bytes: no schema is much larger in memory than in the file.
        let simple = self.types.iter().filter(|ty| ty.is_simple());
        if !distinct(simple.map(std::mem::discriminant)) {
            return false;
        }
        (0..).zip(&self.types).all(|(number, ty)| match ty {
            Type::Multi(element) => *element < number,
            Type::Map(key, value) => *key < number && *value < number && forms.is_key(*key),
            Type::Nullable(inner) => *inner < number && !matches!(self.ty(*inner), Type::Nullable(_)),
            Type::Object { fields, .. } => fields.iter().all(|f| exists(&f.ty)),
            Type::Union { variants, .. } => {
                distinct(variants.iter().map(|v| &v.name))
                    && variants.iter().flat_map(|v| &v.fields).all(|f| exists(&f.ty))
            }
            Type::Int | Type::Bool | Type::Float | Type::Text | Type::Bytes | Type::Json | Type::Ref(_) => true,
        })
    }
}

fn distinct<T: Eq + std::hash::Hash>(mut items: impl Iterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    items.all(|item| seen.insert(item))
}

fn put_name(name: &ClassName, out: &mut Vec<u8>) {
    out.push(u8::from(name.package.is_some()));
    if let Some(package) = &name.package {
        put_bytes(package.as_bytes(), out);
    }
    put_bytes(name.class.as_bytes(), out);
}

fn take_name(from: &mut Reader<'_>) -> Option<ClassName> {
    let package = if from.flag()? { Some(from.text()?) } else { None };
    Some(ClassName { package, class: from.text()? })
}

fn put_fields(fields: &[Field], out: &mut Vec<u8>) {
    put_len(fields.len(), out);
    for field in fields {
        put_bytes(field.name.as_bytes(), out);
        out.extend_from_slice(&field.ty.to_le_bytes());
    }
}

fn take_fields(from: &mut Reader<'_>) -> Option<Vec<Field>> {
    from.list(|from| Some(Field { name: from.text()?, ty: from.u32()? }))
}

fn put_type(ty: &Type, out: &mut Vec<u8>) {
    match ty {
        Type::Int => out.push(INT),
        Type::Bool => out.push(BOOL),
        Type::Float => out.push(FLOAT),
        Type::Text => out.push(TEXT),
        Type::Bytes => out.push(BYTES),
        Type::Json => out.push(JSON),
        Type::Ref(class) => {
            out.push(REF);
            put_name(class, out);
        }
        Type::Multi(element) => {
            out.push(MULTI);
            out.extend_from_slice(&element.to_le_bytes());
        }
        Type::Map(key, value) => {
            out.push(MAP);
            out.extend_from_slice(&key.to_le_bytes());
            out.extend_from_slice(&value.to_le_bytes());
        }
        Type::Object { name, fields } => {
            out.push(OBJECT);
            put_bytes(name.as_bytes(), out);
            put_fields(fields, out);
        }
        Type::Union { name, variants } => {
            out.push(UNION);
            put_bytes(name.as_bytes(), out);
            put_len(variants.len(), out);
            for variant in variants {
                put_bytes(variant.name.as_bytes(), out);
                put_fields(&variant.fields, out);
            }
        }
        Type::Nullable(inner) => {
            out.push(NULLABLE);
            out.extend_from_slice(&inner.to_le_bytes());
        }
    }
}

fn take_type(from: &mut Reader<'_>) -> Option<Type> {
    Some(match from.u8()? {
        INT => Type::Int,
        BOOL => Type::Bool,
        FLOAT => Type::Float,
        TEXT => Type::Text,
        BYTES => Type::Bytes,
        JSON => Type::Json,
        REF => Type::Ref(take_name(from)?),
        MULTI => Type::Multi(from.u32()?),
        MAP => Type::Map(from.u32()?, from.u32()?),
        OBJECT => Type::Object { name: from.text()?, fields: take_fields(from)? },
        UNION => {
            let name = from.text()?;
            let variants = from.list(|from| Some(Variant { name: from.text()?, fields: take_fields(from)? }))?;
            Type::Union { name, variants }
        }
        NULLABLE => Type::Nullable(from.u32()?),
        _ => return None,
    })
}

fn put_table(table: &Table, out: &mut Vec<u8>) {
    put_name(&table.name, out);
    put_bytes(table.label.as_bytes(), out);
    out.push(u8::from(table.retired));
    put_len(table.columns.len(), out);
    for column in &table.columns {
        put_bytes(column.name.as_bytes(), out);
        out.extend_from_slice(&column.ty.to_le_bytes());
        out.push(u8::from(column.fill.is_some()));
        if let Some(fill) = &column.fill {
            fill.cell().put(column.nullable, out);
        }
    }
    put_len(table.indexes.len(), out);
    for index in &table.indexes {
        out.push(u8::from(index.unique));
        put_len(index.columns.len(), out);
        index.columns.iter().for_each(|column| out.extend_from_slice(&column.to_le_bytes()));
    }
}

fn take_table(forms: &Forms, from: &mut Reader<'_>) -> Option<Table> {
    let table = Table {
        name: take_name(from)?,
        label: from.text()?,
        retired: from.flag()?,
        columns: from.list(|from| take_column(forms, from))?,
        indexes: from.list(|from| Some(IndexDesc { unique: from.flag()?, columns: from.list(Reader::u32)? }))?,
    };
    let is_key = |c: &u32| table.columns.get(*c as usize).is_some_and(|column| column.kind != ColumnKind::Value);
    let is_index = |index: &IndexDesc| {
        !index.columns.is_empty() && (!index.unique || index.columns.len() == 1) && index.columns.iter().all(is_key)
    };
    let sound = table.columns.len() <= MAX_COLUMNS
        && table.indexes.len() <= MAX_INDEXES
        && distinct(table.columns.iter().map(|c| &c.name))
        && table.indexes.iter().all(is_index)
        && (!table.retired || table.columns.is_empty());
    sound.then_some(table)
}

fn take_column(forms: &Forms, from: &mut Reader<'_>) -> Option<Column> {
    let (name, ty) = (from.text()?, from.u32()?);
    let (kind, nullable) = forms.kind(ty)?;
    let fill = if from.flag()? { Some(Cell::take(kind, nullable, from)?.to_value()) } else { None };
    let column = Column { name, ty, kind, nullable, fill };
    let sound = column.fill.as_ref().is_none_or(|fill| forms.is_value(&column, fill.cell()));
    sound.then_some(column)
}
