//! The schema of a program.

use super::{ClassName, Column, Field, NIL, Schema, Table, Type, TypeNumber, Variant};
use crate::MAX_ROW;
use crate::bytes::{put_bytes, put_len};
use crate::value::Value;
use abi::desc::{ClassIdx, Default as Declared, FieldDesc, Shapes, TypeDesc, TypeIdx, UnionIdx};
use abi::tables::TableDesc;
use std::collections::{HashMap, HashSet};

/// Deepest nesting of objects in a default.
const DEFAULT_DEPTH: u32 = 24;

/// Whether a table of the program has its rows in the store.
#[must_use]
pub fn is_stored(table: &TableDesc) -> bool {
    table.durable && table.declared
}

/// Whether the program's table of this name is volatile.
pub(crate) fn is_volatile(program: &Shapes, name: &ClassName) -> bool {
    program.tables.iter().any(|table| !table.durable && ClassName::of(program, table.class) == *name)
}

impl ClassName {
    /// The name of a class of the program.
    pub(crate) fn of(shapes: &Shapes, class: ClassIdx) -> ClassName {
        let desc = shapes.classes.get(class as usize);
        ClassName {
            package: desc.and_then(|c| c.package.clone()),
            class: desc.map(|c| c.name.clone()).unwrap_or_default(),
        }
    }
}

impl Schema {
    /// The schema of a program's stored tables, in their order. `now`, in milliseconds, is what new columns are filled
    /// with whose default is the time.
    #[must_use]
    pub fn of(shapes: &Shapes, now: i64) -> Schema {
        let mut builder =
            Builder { shapes, now, schema: Schema::default(), numbers: HashMap::new(), pending: Vec::new() };
        for table in shapes.tables.iter().filter(|table| is_stored(table)) {
            builder.table(table);
        }
        builder.schema
    }

    /// This schema with what the store has to remember beyond it: tables of `stored` that the program lacks, without
    /// their rows.
    #[must_use]
    pub fn remembering(mut self, stored: &Schema) -> Schema {
        let own: HashSet<ClassName> = self.tables.iter().map(|table| table.name.clone()).collect();
        for table in &stored.tables {
            if !own.contains(&table.name) {
                self.tables.push(Table {
                    retired: true,
                    columns: Vec::new(),
                    indexes: Vec::new(),
                    name: table.name.clone(),
                    label: table.label.clone(),
                });
            }
        }
        self
    }
}

struct Builder<'a> {
    shapes: &'a Shapes,
    now: i64,
    schema: Schema,
    numbers: HashMap<TypeIdx, TypeNumber>,
    /// Objects and unions whose fields are missing yet: they may lead back to themselves.
    pending: Vec<(TypeNumber, TypeDesc)>,
}

impl<'a> Builder<'a> {
    fn table(&mut self, table: &TableDesc) {
        let mut columns = Vec::with_capacity(table.columns.len());
        for field in fields(self.shapes, table.class) {
            let ty = self.ty(field.ty);
            // Whether a union is bare shows once it is complete.
            self.complete();
            let (kind, nullable) = self.schema.kind(ty);
            let fill = Fill { shapes: self.shapes, now: self.now }.column(field);
            columns.push(Column { name: field.name.clone(), ty, kind, nullable, fill });
        }
        debug_assert!(
            columns.iter().map(|c| (c.kind, c.nullable)).eq(table.columns.iter().map(|c| (c.kind, c.nullable)))
        );
        self.schema.tables.push(Table {
            name: ClassName::of(self.shapes, table.class),
            label: table.label.clone(),
            retired: false,
            columns,
            indexes: table.indexes.clone(),
        });
    }

    /// The number of a type. What it contains gets a lower one, but for the fields of objects and unions.
    fn ty(&mut self, idx: TypeIdx) -> TypeNumber {
        if let Some(number) = self.numbers.get(&idx) {
            return *number;
        }
        let desc = self.shapes.ty(idx);
        let ty = match desc {
            // The checker lets no actor and no interface into a column.
            TypeDesc::Int | TypeDesc::Actor | TypeDesc::Interface => Type::Int,
            TypeDesc::Bool => Type::Bool,
            TypeDesc::Float => Type::Float,
            TypeDesc::Text => Type::Text,
            TypeDesc::Bytes => Type::Bytes,
            TypeDesc::Json => Type::Json,
            TypeDesc::Row(class) => Type::Ref(ClassName::of(self.shapes, class)),
            TypeDesc::Multi(element) => Type::Multi(self.ty(element)),
            TypeDesc::Map(key, value) => Type::Map(self.ty(key), self.ty(value)),
            TypeDesc::Nullable(inner) => Type::Nullable(self.ty(inner)),
            TypeDesc::Object(class) => {
                let name = self.shapes.classes.get(class as usize).map(|c| c.name.clone());
                Type::Object { name: name.unwrap_or_default(), fields: Vec::new() }
            }
            TypeDesc::Ordinal(union) | TypeDesc::Union(union) => {
                let name = self.shapes.unions.get(union as usize).map(|u| u.name.clone());
                Type::Union { name: name.unwrap_or_default(), variants: Vec::new() }
            }
        };
        let known = self.schema.types.iter().position(|known| ty.is_simple() && *known == ty);
        let number = u32::try_from(known.unwrap_or(self.schema.types.len())).unwrap_or(u32::MAX);
        if known.is_some() {
            let _ = self.numbers.insert(idx, number);
            return number;
        }
        if matches!(ty, Type::Object { .. } | Type::Union { .. }) {
            self.pending.push((number, desc));
        }
        self.schema.types.push(ty);
        let _ = self.numbers.insert(idx, number);
        number
    }

    fn complete(&mut self) {
        while let Some((number, desc)) = self.pending.pop() {
            let (own_fields, own_variants) = match desc {
                TypeDesc::Object(class) => (self.fields(class), Vec::new()),
                TypeDesc::Ordinal(union) | TypeDesc::Union(union) => (Vec::new(), self.variants(union)),
                _ => continue,
            };
            match self.schema.types.get_mut(number as usize) {
                Some(Type::Object { fields, .. }) => *fields = own_fields,
                Some(Type::Union { variants, .. }) => *variants = own_variants,
                _ => {}
            }
        }
    }

    fn fields(&mut self, class: ClassIdx) -> Vec<Field> {
        let fields: &'a [FieldDesc] = fields(self.shapes, class);
        fields.iter().map(|f| Field { name: f.name.clone(), ty: self.ty(f.ty) }).collect()
    }

    fn variants(&mut self, union: UnionIdx) -> Vec<Variant> {
        let shapes = self.shapes;
        let Some(desc) = shapes.unions.get(union as usize) else { return Vec::new() };
        let mut classes = desc.classes.iter();
        let mut variant = |name: &String| Variant {
            name: name.clone(),
            fields: classes.next().map(|class| self.fields(*class)).unwrap_or_default(),
        };
        desc.variants.iter().map(&mut variant).collect()
    }
}

fn fields(shapes: &Shapes, class: ClassIdx) -> &[FieldDesc] {
    shapes.classes.get(class as usize).map_or(&[], |class| &class.fields)
}

/// Values that new columns are filled with: declared defaults, else nil or the zero of the type.
struct Fill<'a> {
    shapes: &'a Shapes,
    now: i64,
}

impl Fill<'_> {
    fn column(&self, field: &FieldDesc) -> Option<Value> {
        let (ty, default) = (self.shapes.ty(field.ty), field.default.as_ref());
        let inner = match ty {
            TypeDesc::Nullable(_) if default.is_none_or(|d| *d == Declared::Nil) => return Some(Value::Nil),
            TypeDesc::Nullable(inner) => inner,
            _ => field.ty,
        };
        Some(match (self.shapes.ty(inner), default) {
            (TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json, Some(Declared::Text(text))) => {
                Value::Bytes(text.as_slice().into())
            }
            (TypeDesc::Text | TypeDesc::Bytes, None) => Value::Bytes(Box::default()),
            (TypeDesc::Json, None) => Value::Bytes(b"null".as_slice().into()),
            (desc, default) => {
                let mut bytes = Vec::new();
                self.put(inner, default, 0, &mut bytes)?;
                if is_word(desc) {
                    Value::Word(u64::from_le_bytes(bytes.try_into().ok()?))
                } else {
                    Value::Bytes(bytes.into())
                }
            }
        })
    }

    /// Appends a default as a value of type `ty` within a container; `None`: there is no value that is meant, or it is
    /// larger than a row may be.
    fn put(&self, ty: TypeIdx, default: Option<&Declared>, depth: u32, out: &mut Vec<u8>) -> Option<()> {
        let mut desc = self.shapes.ty(ty);
        if let TypeDesc::Nullable(inner) = desc {
            desc = self.shapes.ty(inner);
            let is_nil = default.is_none_or(|d| *d == Declared::Nil);
            match desc {
                _ if is_word(desc) => out.push(u8::from(!is_nil)),
                TypeDesc::Object(_) if is_nil => out.push(0),
                _ if is_nil => out.extend_from_slice(&NIL.to_le_bytes()),
                _ => {}
            }
            if is_nil {
                return Some(());
            }
        }
        let mut word = |word: u64| out.extend_from_slice(&word.to_le_bytes());
        match (desc, default) {
            (TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float, None) => word(0),
            (_, Some(Declared::Int(n))) => word(n.cast_unsigned()),
            (_, Some(Declared::Now)) => word(self.now.cast_unsigned()),
            (_, Some(Declared::Float(f))) => word(f.to_bits()),
            (_, Some(Declared::Bool(b))) => word(u64::from(*b)),
            (_, Some(Declared::Text(text))) => put_bytes(text, out),
            (TypeDesc::Text | TypeDesc::Bytes, None) => put_len(0, out),
            (TypeDesc::Json, None) => put_bytes(b"null", out),
            (TypeDesc::Multi(_) | TypeDesc::Map(..), None | Some(Declared::EmptyMulti | Declared::EmptyMap)) => {
                put_len(0, out);
            }
            (TypeDesc::Multi(element), Some(Declared::List(items))) => {
                put_len(items.len(), out);
                for item in items {
                    self.put(element, Some(item), depth, out)?;
                }
            }
            (TypeDesc::Object(_), Some(Declared::New(class))) if depth < DEFAULT_DEPTH => {
                out.push(1);
                for field in fields(self.shapes, *class) {
                    self.put(field.ty, field.default.as_ref(), depth + 1, out)?;
                }
            }
            _ => return None,
        }
        (out.len() <= MAX_ROW).then_some(())
    }
}

/// Whether a column of this type is a word; within a container such a value has a byte for nil before it.
fn is_word(desc: TypeDesc) -> bool {
    matches!(desc, TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float | TypeDesc::Ordinal(_) | TypeDesc::Row(_))
}
