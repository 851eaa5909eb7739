//! Values as `json.encode` writes them (language specification 10.1), by the types of a schema. Types may contain
//! themselves; nothing here recurses.

use crate::bytes::Reader;
use crate::schema::{Column, Field, NIL, Schema, Type, TypeNumber};
use crate::value::Cell;
use codec::{Sink, base64, float, json};

/// Appends the value of a column. `None`: it is no value of the column's type.
pub(super) fn column(schema: &Schema, column: &Column, cell: Cell<'_>, out: &mut Vec<u8>) -> Option<()> {
    let ty = schema.strip(column.ty);
    match cell {
        Cell::Nil => {
            out.put(b"null");
            column.nullable.then_some(())
        }
        Cell::Word(word) => scalar(schema.ty(ty), word, out),
        Cell::Bytes(bytes) => match schema.ty(ty) {
            Type::Text | Type::Bytes | Type::Json => text(schema.ty(ty), bytes, out),
            _ => {
                let mut writer = Writer { schema, from: Reader(bytes), out };
                writer.run(ty)?;
                writer.from.0.is_empty().then_some(())
            }
        },
    }
}

fn int(n: i64, out: &mut Vec<u8>) {
    out.put(n.to_string().as_bytes());
}

fn scalar(ty: &Type, word: u64, out: &mut Vec<u8>) -> Option<()> {
    match ty {
        Type::Int | Type::Ref(_) => int(word.cast_signed(), out),
        Type::Bool => out.put(match word {
            0 => b"false",
            1 => b"true",
            _ => return None,
        }),
        Type::Float => match f64::from_bits(word) {
            number if number.is_finite() => out.put(float::format(number).as_bytes()),
            _ => out.put(b"null"),
        },
        Type::Union { variants, .. } if word < variants.len() as u64 => int(word.cast_signed(), out),
        _ => return None,
    }
    Some(())
}

fn text(ty: &Type, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match ty {
        Type::Text => json::quote(out, bytes),
        Type::Bytes => {
            out.put(b"\"");
            base64::encode(bytes, out);
            out.put(b"\"");
        }
        Type::Json => {
            let mut reader = json::Reader::new(bytes, ());
            if reader.skip().is_some() && reader.at_end() {
                // Line ends stand only between tokens; the object that this is a part of takes one line.
                out.extend(bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
            } else {
                // Nobody has checked it, and it may not spoil what is around it.
                json::quote(out, bytes);
            }
        }
        _ => return None,
    }
    Some(())
}

/// A container whose beginning has been written.
enum Open<'a> {
    Multi { element: TypeNumber, left: u32, first: bool },
    Map { key: TypeNumber, value: TypeNumber, left: u32, first: bool },
    Fields { fields: &'a [Field], next: usize },
}

struct Writer<'a, 'b> {
    schema: &'a Schema,
    from: Reader<'b>,
    out: &'b mut Vec<u8>,
}

impl<'a> Writer<'a, '_> {
    fn run(&mut self, root: TypeNumber) -> Option<()> {
        let mut open: Vec<Open<'a>> = Vec::new();
        open.extend(self.begin(root)?);
        while let Some(top) = open.last_mut() {
            match self.member(top)? {
                Some(ty) => open.extend(self.begin(ty)?),
                None => drop(open.pop()),
            }
        }
        Some(())
    }

    fn separate(&mut self, first: &mut bool) {
        if !std::mem::take(first) {
            self.out.put(b",");
        }
    }

    /// The type of the next member of a container, with what precedes it written; the inner `None`: it is complete.
    #[allow(clippy::option_option, reason = "the outer one: malformed")]
    fn member(&mut self, top: &mut Open<'a>) -> Option<Option<TypeNumber>> {
        Some(match top {
            Open::Multi { left: 0, .. } => {
                self.out.put(b"]");
                None
            }
            Open::Multi { element, left, first } => {
                self.separate(first);
                *left -= 1;
                Some(*element)
            }
            Open::Map { left: 0, .. } => {
                self.out.put(b"}");
                None
            }
            Open::Map { key, value, left, first } => {
                self.separate(first);
                *left -= 1;
                self.key(self.schema.ty(*key))?;
                self.out.put(b":");
                Some(*value)
            }
            Open::Fields { fields, next } => match fields.get(*next) {
                None => {
                    self.out.put(b"}");
                    None
                }
                Some(field) => {
                    if *next > 0 {
                        self.out.put(b",");
                    }
                    *next += 1;
                    json::quote(self.out, field.name.as_bytes());
                    self.out.put(b":");
                    Some(field.ty)
                }
            },
        })
    }

    /// A key of a map, always in quotes.
    fn key(&mut self, ty: &Type) -> Option<()> {
        match ty {
            Type::Text | Type::Bytes => text(ty, self.from.bytes()?, self.out),
            Type::Float => {
                let number = f64::from_bits(self.from.u64()?);
                self.out.put(b"\"");
                self.out.put(float::format(number).as_bytes());
                self.out.put(b"\"");
                Some(())
            }
            _ => {
                self.out.put(b"\"");
                scalar(ty, self.from.u64()?, self.out)?;
                self.out.put(b"\"");
                Some(())
            }
        }
    }

    /// Writes a scalar or text, or the beginning of a container, which is returned.
    #[allow(clippy::option_option, reason = "the outer one: malformed")]
    fn begin(&mut self, ty: TypeNumber) -> Option<Option<Open<'a>>> {
        let inner = self.schema.strip(ty);
        let desc = self.schema.ty(inner);
        if desc.is_scalar() {
            if inner != ty && !self.from.flag()? {
                self.out.put(b"null");
            } else {
                scalar(desc, self.from.u64()?, self.out)?;
            }
            return Some(None);
        }
        let number = match desc {
            Type::Object { .. } => match self.from.flag()? {
                true => 0,
                false => NIL,
            },
            _ => self.from.u32()?,
        };
        if number == NIL {
            self.out.put(b"null");
            return Some(None);
        }
        Some(match desc {
            Type::Text | Type::Bytes | Type::Json => {
                text(desc, self.from.exactly(number as usize)?, self.out)?;
                None
            }
            Type::Multi(element) => {
                self.out.put(b"[");
                Some(Open::Multi { element: *element, left: number, first: true })
            }
            Type::Map(key, value) => {
                self.out.put(b"{");
                Some(Open::Map { key: *key, value: *value, left: number, first: true })
            }
            Type::Object { fields, .. } => {
                self.out.put(b"{");
                Some(Open::Fields { fields, next: 0 })
            }
            Type::Union { variants, .. } => {
                self.out.put(b"{");
                Some(Open::Fields { fields: &variants.get(number as usize)?.fields, next: 0 })
            }
            _ => return None,
        })
    }
}
