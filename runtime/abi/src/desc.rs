//! Shapes of the program's classes and types at run time: what the runtime needs to free, copy, compare, encode and
//! decode values without knowing the compiler.

use crate::tables::{QueryDesc, TableDesc};
use serde::{Deserialize, Serialize};

/// Index into `Shapes::types`.
pub type TypeIdx = u32;
/// Index into `Shapes::classes`; an object's kind is `layout::FIRST_CLASS + ClassIdx`.
pub type ClassIdx = u32;
/// Index into `Shapes::unions`.
pub type UnionIdx = u32;

/// The first entries of `Shapes::types` are fixed, so that the runtime can make containers of them on its own.
pub const TYPE_INT: TypeIdx = 0;
pub const TYPE_BOOL: TypeIdx = 1;
pub const TYPE_FLOAT: TypeIdx = 2;
pub const TYPE_TEXT: TypeIdx = 3;
pub const TYPE_BYTES: TypeIdx = 4;
pub const TYPE_JSON: TypeIdx = 5;
/// `[Int, Bool, Float, Text, Bytes, Json]`, in the order of the constants.
pub const FIXED_TYPES: [TypeDesc; 6] =
    [TypeDesc::Int, TypeDesc::Bool, TypeDesc::Float, TypeDesc::Text, TypeDesc::Bytes, TypeDesc::Json];

/// A type as stored in a field, an element or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TypeDesc {
    /// `Int` and its other names.
    Int,
    Bool,
    Float,
    Text,
    Bytes,
    /// `json.Value`: a text.
    Json,
    /// A union of bare variants: an ordinal.
    Ordinal(UnionIdx),
    /// `ref C`: a row id.
    Row(ClassIdx),
    /// An actor's address.
    Actor,
    Multi(TypeIdx),
    Map(TypeIdx, TypeIdx),
    Object(ClassIdx),
    /// A union with payloads: an object of one of the union's variant classes.
    Union(UnionIdx),
    /// An object of any class.
    Interface,
    /// A scalar (Int, Bool, Float, Ordinal, Row) takes two words, tag (0 or 1) then value; anything else is one word
    /// that may be null.
    Nullable(TypeIdx),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldDesc {
    pub name: String,
    pub ty: TypeIdx,
    /// Byte offset in the object.
    pub offset: u32,
    /// What `json.decode` puts in place of an absent key; `None`: the rule for the type.
    pub default: Option<Default>,
}

/// A field default that is not the zero value of its type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Default {
    Nil,
    Now,
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(Vec<u8>),
    EmptyMulti,
    EmptyMap,
    List(Vec<Default>),
    /// An object all of whose fields take their defaults.
    New(ClassIdx),
}

/// How many words `receive` of an actor class replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    None,
    /// A plain scalar.
    One,
    /// An actor's address or null: whoever drops the reply gives it up.
    Actor,
    /// A nullable scalar: tag, value.
    Pair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClassKind {
    Class,
    Record,
    /// A variant of a payload union.
    Variant {
        union: UnionIdx,
        ordinal: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassDesc {
    pub name: String,
    /// Key in `[deps]` of the dependency that declares it; `None` for the project's own classes and for those that no
    /// source declares.
    pub package: Option<String>,
    pub kind: ClassKind,
    /// Whole object in bytes, header included; a multiple of 8.
    pub size: u32,
    pub fields: Vec<FieldDesc>,
    /// Set for actor classes.
    pub reply: Option<Reply>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnionDesc {
    pub name: String,
    pub variants: Vec<String>,
    /// The variant classes of a payload union, in order; empty for bare unions.
    pub classes: Vec<ClassIdx>,
}

/// All shapes of a program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shapes {
    pub types: Vec<TypeDesc>,
    pub classes: Vec<ClassDesc>,
    pub unions: Vec<UnionDesc>,
    /// What the program stores, and the queries it asks.
    pub tables: Vec<TableDesc>,
    pub queries: Vec<QueryDesc>,
}

impl Shapes {
    /// The type at `idx`; an index outside the table reads as `Int` (the compiler never makes one).
    #[must_use]
    pub fn ty(&self, idx: TypeIdx) -> TypeDesc {
        self.types.get(idx as usize).copied().unwrap_or(TypeDesc::Int)
    }

    /// Words a value of this type takes in an object or container: 2 for nullable scalars, else 1.
    #[must_use]
    pub fn words(&self, idx: TypeIdx) -> u32 {
        match self.ty(idx) {
            TypeDesc::Nullable(inner) => match self.ty(inner) {
                TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => 2,
                _ => 1,
            },
            _ => 1,
        }
    }
}
