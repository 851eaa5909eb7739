//! What a store remembers of the tables in it, so that a later program can be compared with the one that wrote it, and
//! so that tools can read the store without a program (tables specification 10 and 12; `docs/store-format.md`, Schema).
//!
//! `program` makes the schema of a program, `encode` turns schemas into bytes and back, `migration` compares two of them
//! and converts rows, `matching` does so for types and single values. Rows themselves are not looked at here: what
//! depends on them is asked for, or left to the caller as a `Check`.

mod encode;
mod matching;
mod migration;
mod program;
mod refusal;
mod values;

pub use matching::Malformed;
pub use migration::{Check, Migration};
pub use program::is_stored;
pub(crate) use program::is_volatile;
pub use refusal::Refusal;
pub(crate) use values::Forms;

use crate::value::{Cell, Value};
use abi::tables::{ColumnKind, IndexDesc};
use std::fmt::{self, Write};

/// Types by number: what columns, fields and elements are of. Containers come after what they contain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    pub types: Vec<Type>,
    pub tables: Vec<Table>,
}

/// Number of a type in its schema.
pub type TypeNumber = u32;

/// A type as declared, with what its values look like inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `Int` and its other names, `Timestamp`, `Id` and `net.Conn`.
    Int,
    Bool,
    Float,
    Text,
    Bytes,
    /// `json.Value`: a text.
    Json,
    /// The id of a row.
    Ref(ClassName),
    Multi(TypeNumber),
    Map(TypeNumber, TypeNumber),
    /// A record or class, by value.
    Object {
        name: String,
        fields: Vec<Field>,
    },
    /// Bare if no variant has fields.
    Union {
        name: String,
        variants: Vec<Variant>,
    },
    /// Never of a `Nullable`.
    Nullable(TypeNumber),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    pub ty: TypeNumber,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    pub name: String,
    pub fields: Vec<Field>,
}

/// By this rows are matched to classes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClassName {
    /// Key of the dependency that declares the class; `None` for the project's own.
    pub package: Option<String>,
    pub class: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub name: ClassName,
    /// `name:` of `@table`, else the name of the class.
    pub label: String,
    /// The program has no such durable table any longer. There are no rows and no columns, but the number of the next id
    /// is kept in case the class comes back.
    pub retired: bool,
    pub columns: Vec<Column>,
    pub indexes: Vec<IndexDesc>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    pub ty: TypeNumber,
    /// How values are kept; follows from the type.
    pub kind: ColumnKind,
    pub nullable: bool,
    /// The value in rows that are older than the column; `None`: there is none that the program would have meant.
    pub fill: Option<Value>,
}

impl Table {
    /// The `@unique` columns.
    pub(crate) fn unique(&self) -> impl Iterator<Item = usize> {
        let unique = self.indexes.iter().filter(|index| index.unique);
        unique.filter_map(|index| index.columns.first()).map(|column| *column as usize)
    }
}

impl Schema {
    /// The type at `number`. Schemas are checked when they are read, and refer to no other numbers.
    pub(crate) fn ty(&self, number: TypeNumber) -> &Type {
        self.types.get(number as usize).unwrap_or(&Type::Int)
    }

    /// `T` of `?T`, else the type itself.
    pub(crate) fn strip(&self, number: TypeNumber) -> TypeNumber {
        match self.ty(number) {
            Type::Nullable(inner) => *inner,
            _ => number,
        }
    }

    /// How a column of this type keeps its values, and whether they may be nil.
    fn kind(&self, number: TypeNumber) -> (ColumnKind, bool) {
        let inner = self.strip(number);
        let kind = match self.ty(inner) {
            ty if ty.is_bare() => ColumnKind::Int,
            Type::Int | Type::Bool | Type::Ref(_) => ColumnKind::Int,
            Type::Float => ColumnKind::Float,
            Type::Text | Type::Bytes => ColumnKind::Bytes,
            Type::Json | Type::Multi(_) | Type::Map(..) => ColumnKind::Value,
            Type::Object { .. } | Type::Union { .. } | Type::Nullable(_) => ColumnKind::Value,
        };
        (kind, inner != number)
    }

    /// The number of a class's table.
    #[must_use]
    pub fn table(&self, name: &ClassName) -> Option<usize> {
        self.tables.iter().position(|table| table.name == *name)
    }

    /// The table whose rows a `ref` column names.
    #[must_use]
    pub fn target(&self, column: &Column) -> Option<usize> {
        match self.ty(self.strip(column.ty)) {
            Type::Ref(class) => self.table(class),
            _ => None,
        }
    }

    /// Whether the column's values name rows.
    pub(crate) fn is_ref(&self, column: &Column) -> bool {
        matches!(self.ty(self.strip(column.ty)), Type::Ref(_))
    }

    /// A type as a program writes it.
    #[must_use]
    pub fn show(&self, number: TypeNumber) -> String {
        enum Part<'a> {
            Type(TypeNumber),
            Text(&'a str),
        }
        let mut out = String::new();
        let mut parts = vec![Part::Type(number)];
        while let Some(part) = parts.pop() {
            let ty = match part {
                Part::Type(number) => self.ty(number),
                Part::Text(text) => {
                    out.push_str(text);
                    continue;
                }
            };
            match ty {
                Type::Int => out.push_str("Int"),
                Type::Bool => out.push_str("Bool"),
                Type::Float => out.push_str("Float"),
                Type::Text => out.push_str("Text"),
                Type::Bytes => out.push_str("Bytes"),
                Type::Json => out.push_str("json.Value"),
                Type::Object { name, .. } | Type::Union { name, .. } => out.push_str(name),
                Type::Ref(class) => {
                    let _ = write!(out, "ref {class}");
                }
                Type::Multi(element) => parts.extend([Part::Type(*element), Part::Text("multi ")]),
                Type::Nullable(inner) => parts.extend([Part::Type(*inner), Part::Text("?")]),
                Type::Map(key, value) => parts.extend([
                    Part::Text(">"),
                    Part::Type(*value),
                    Part::Text(", "),
                    Part::Type(*key),
                    Part::Text("map<"),
                ]),
            }
        }
        out
    }

    /// A value of a column that can be a key, as a program would write or print it.
    fn show_value(&self, column: &Column, cell: Cell<'_>) -> String {
        match (self.ty(self.strip(column.ty)), cell) {
            (_, Cell::Nil) => "nil".to_owned(),
            (Type::Bool, Cell::Word(word)) => (word != 0).to_string(),
            (Type::Float, Cell::Word(bits)) => f64::from_bits(bits).to_string(),
            (Type::Union { variants, .. }, Cell::Word(word)) => {
                let variant = usize::try_from(word).ok().and_then(|n| variants.get(n));
                variant.map_or_else(|| word.to_string(), |v| v.name.clone())
            }
            (_, Cell::Word(word)) => word.cast_signed().to_string(),
            (Type::Bytes, Cell::Bytes(bytes)) => {
                let hex = bytes.iter().take(SHOWN).fold(String::from("0x"), |mut out, byte| {
                    let _ = write!(out, "{byte:02x}");
                    out
                });
                if bytes.len() > SHOWN { hex + "…" } else { hex }
            }
            (_, Cell::Bytes(bytes)) => {
                let text = String::from_utf8_lossy(bytes.get(..SHOWN).unwrap_or(bytes));
                format!("\"{}{}\"", text.escape_debug(), if bytes.len() > SHOWN { "…" } else { "" })
            }
        }
    }
}

/// In place of a length or of a variant's number within a value: nil.
pub(crate) const NIL: u32 = u32::MAX;

/// Most bytes of a value that a message shows.
const SHOWN: usize = 64;

impl Type {
    /// A union whose values are the numbers of their variants.
    fn is_bare(&self) -> bool {
        matches!(self, Type::Union { variants, .. } if variants.iter().all(|v| v.fields.is_empty()))
    }

    /// Without a name and without parts: a schema has it once.
    fn is_simple(&self) -> bool {
        matches!(self, Type::Int | Type::Bool | Type::Float | Type::Text | Type::Bytes | Type::Json)
    }

    /// Kept as a word, before which goes a byte where it is nullable.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self, Type::Int | Type::Bool | Type::Float | Type::Ref(_)) || self.is_bare()
    }
}

impl fmt::Display for ClassName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(package) = &self.package {
            write!(f, "{package}.")?;
        }
        f.write_str(&self.class)
    }
}
