//! Whether bytes are values of a type: what no length, number or checksum of a record says. A value that passes can be
//! read, converted and shown without another look. Types may contain themselves; nothing here recurses.

use super::{Column, Field, NIL, Type, TypeNumber};
use crate::bytes::Reader;
use crate::key;
use crate::value::Cell;
use abi::tables::ColumnKind;

/// The types of a schema, by their numbers, as far as the bytes of values depend on them.
#[derive(Debug, Default)]
pub(crate) struct Forms {
    forms: Vec<Form>,
    /// Types of the fields of objects and variants.
    fields: Vec<TypeNumber>,
    /// Where the fields of variants are.
    variants: Vec<Fields>,
}

/// A range of `Forms::fields`.
#[derive(Clone, Copy, Debug)]
struct Fields {
    next: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// Int, Float, ref.
    Word,
    Float,
    Bool,
    /// Numbers below this.
    Ordinal(u64),
    /// Text and Bytes.
    Bytes,
    Json,
    Multi(TypeNumber),
    Map(TypeNumber, TypeNumber),
    Object(Fields),
    /// So many of `Forms::variants`, from the first number on.
    Union(u32, u32),
    Nullable(TypeNumber),
}

/// A container whose beginning has been read.
enum Open<'b> {
    Multi { element: TypeNumber, left: u32 },
    Map { key: TypeNumber, value: TypeNumber, left: u32, keys: Vec<Key<'b>> },
    Fields(Fields),
}

/// A key of a map: equal ones are the same key.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key<'b> {
    Word(u64),
    Bytes(&'b [u8]),
}

impl Forms {
    pub fn new(types: &[Type]) -> Forms {
        let mut forms = Forms::default();
        for ty in types {
            let form = match ty {
                Type::Int | Type::Ref(_) => Form::Word,
                Type::Float => Form::Float,
                Type::Bool => Form::Bool,
                Type::Text | Type::Bytes => Form::Bytes,
                Type::Json => Form::Json,
                Type::Multi(element) => Form::Multi(*element),
                Type::Map(key, value) => Form::Map(*key, *value),
                Type::Nullable(inner) => Form::Nullable(*inner),
                Type::Object { fields, .. } => Form::Object(forms.add(fields)),
                Type::Union { variants, .. } if ty.is_bare() => Form::Ordinal(variants.len() as u64),
                Type::Union { variants, .. } => {
                    let start = forms.variants.len() as u32;
                    for variant in variants {
                        let fields = forms.add(&variant.fields);
                        forms.variants.push(fields);
                    }
                    Form::Union(start, variants.len() as u32)
                }
            };
            forms.forms.push(form);
        }
        forms
    }

    fn add(&mut self, fields: &[Field]) -> Fields {
        let next = self.fields.len() as u32;
        self.fields.extend(fields.iter().map(|field| field.ty));
        Fields { next, end: self.fields.len() as u32 }
    }

    /// The form of a type and whether it is nullable.
    fn form(&self, ty: TypeNumber) -> Option<(Form, bool)> {
        match self.forms.get(ty as usize)? {
            Form::Nullable(inner) => self.forms.get(*inner as usize).map(|form| (*form, true)),
            form => Some((*form, false)),
        }
    }

    /// How a column of this type keeps its values, and whether they may be nil.
    pub fn kind(&self, ty: TypeNumber) -> Option<(ColumnKind, bool)> {
        let (form, nullable) = self.form(ty)?;
        let kind = match form {
            Form::Word | Form::Bool | Form::Ordinal(_) => ColumnKind::Int,
            Form::Float => ColumnKind::Float,
            Form::Bytes => ColumnKind::Bytes,
            Form::Json | Form::Multi(_) | Form::Map(..) | Form::Object(_) | Form::Union(..) | Form::Nullable(_) => {
                ColumnKind::Value
            }
        };
        Some((kind, nullable))
    }

    /// Whether a map may have keys of this type.
    pub fn is_key(&self, ty: TypeNumber) -> bool {
        matches!(
            self.forms.get(ty as usize),
            Some(Form::Word | Form::Float | Form::Bool | Form::Ordinal(_) | Form::Bytes)
        )
    }

    /// Whether a column may have this value.
    pub fn is_value(&self, column: &Column, cell: Cell<'_>) -> bool {
        let Some((form, nullable)) = self.form(column.ty) else { return false };
        match cell {
            Cell::Nil => nullable,
            Cell::Word(word) => is_word(form, word),
            Cell::Bytes(_) if matches!(form, Form::Bytes | Form::Json) => true,
            Cell::Bytes(bytes) => {
                let mut from = Reader(bytes);
                self.read(&mut from, column.ty).is_some() && from.0.is_empty()
            }
        }
    }

    /// Steps over a value as containers hold it; `None`: it is none.
    fn read(&self, from: &mut Reader<'_>, ty: TypeNumber) -> Option<()> {
        let mut open = Vec::new();
        let mut due = Some(ty);
        while let Some(ty) = due {
            open.extend(self.begin(from, ty)?);
            due = self.member(&mut open, from)?;
        }
        Some(())
    }

    /// The type of the value that comes next; the inner `None`: all containers are complete.
    #[allow(clippy::option_option, reason = "the outer one: malformed")]
    fn member<'b>(&self, open: &mut Vec<Open<'b>>, from: &mut Reader<'b>) -> Option<Option<TypeNumber>> {
        while let Some(top) = open.last_mut() {
            let (ty, left) = match top {
                Open::Multi { left: 0, .. } | Open::Map { left: 0, .. } => (None, 0),
                Open::Multi { element, left } => {
                    *left -= 1;
                    (Some(*element), *left)
                }
                Open::Map { key, value, left, keys } => {
                    keys.push(self.key(from, *key)?);
                    *left -= 1;
                    if *left == 0 && has_equal(keys) {
                        return None;
                    }
                    (Some(*value), *left)
                }
                Open::Fields(fields) => {
                    let ty = self.fields.get(fields.next as usize..fields.end as usize)?.first().copied();
                    fields.next += u32::from(ty.is_some());
                    (ty, fields.end - fields.next)
                }
            };
            if left == 0 {
                // Before its last member is read, so that a long chain takes no memory.
                let _ = open.pop();
            }
            if ty.is_some() {
                return Some(ty);
            }
        }
        Some(None)
    }

    fn key<'b>(&self, from: &mut Reader<'b>, ty: TypeNumber) -> Option<Key<'b>> {
        match self.forms.get(ty as usize)? {
            Form::Bytes => from.bytes().map(Key::Bytes),
            Form::Float => from.u64().map(|word| Key::Word(key::ordered(ColumnKind::Float, word))),
            form => from.u64().filter(|word| is_word(*form, *word)).map(Key::Word),
        }
    }

    /// Steps over a scalar or text, or over the beginning of a container, which is returned.
    #[allow(clippy::option_option, reason = "the outer one: malformed")]
    fn begin<'b>(&self, from: &mut Reader<'b>, ty: TypeNumber) -> Option<Option<Open<'b>>> {
        let (form, nullable) = self.form(ty)?;
        let number = match form {
            Form::Word | Form::Float | Form::Bool | Form::Ordinal(_) => {
                let present = !nullable || from.flag()?;
                return (!present || is_word(form, from.u64()?)).then_some(None);
            }
            Form::Object(_) => {
                if from.flag()? {
                    0
                } else {
                    NIL
                }
            }
            Form::Bytes | Form::Json | Form::Multi(_) | Form::Map(..) | Form::Union(..) => from.u32()?,
            Form::Nullable(_) => return None,
        };
        if number == NIL {
            return nullable.then_some(None);
        }
        Some(match form {
            Form::Multi(element) => Some(Open::Multi { element, left: number }),
            Form::Map(key, value) => Some(Open::Map { key, value, left: number, keys: Vec::new() }),
            Form::Object(fields) => Some(Open::Fields(fields)),
            Form::Union(start, count) => {
                let variants = self.variants.get(start as usize..)?.get(..count as usize)?;
                Some(Open::Fields(*variants.get(number as usize)?))
            }
            _ => {
                let _ = from.exactly(number as usize)?;
                None
            }
        })
    }
}

/// Whether a scalar of this form may have the value.
fn is_word(form: Form, word: u64) -> bool {
    match form {
        Form::Word | Form::Float => true,
        Form::Bool => word <= 1,
        Form::Ordinal(variants) => word < variants,
        _ => false,
    }
}

fn has_equal(keys: &mut [Key<'_>]) -> bool {
    keys.sort_unstable();
    keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b))
}
