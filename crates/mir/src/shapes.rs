//! Layouts: how a HIR type is held in locals (`Shape`) and how classes, unions and types look in memory
//! (`abi::desc::Shapes`).
//!
//! Class ids of the HIR are class indices; the variants of payload unions follow as classes of their own.

use crate::ir::Rep;
use abi::desc::{
    ClassDesc, ClassIdx, ClassKind, Default as FieldDefault, FIXED_TYPES, FieldDesc, Reply, Shapes, TYPE_BOOL,
    TYPE_BYTES, TYPE_FLOAT, TYPE_INT, TYPE_JSON, TYPE_TEXT, TypeDesc, TypeIdx, UnionDesc,
};
use abi::layout;
use abi::tables::TableIdx;
use analysis::hir::{self, ClassId, Default_, Ty, TyKind, Types, UnionId};
use rustc_hash::FxHashMap;

/// How a value is held in locals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// No value.
    None,
    One(Rep),
    /// A nullable scalar: Int tag, then the value (zero for nil).
    Pair(Rep),
}

impl Shape {
    pub fn is_managed(self) -> bool {
        matches!(self, Shape::One(Rep::Obj | Rep::Actor))
    }

    /// Reps of the locals, in order.
    pub fn reps(self) -> Vec<Rep> {
        match self {
            Shape::None => Vec::new(),
            Shape::One(rep) => vec![rep],
            Shape::Pair(rep) => vec![Rep::Int, rep],
        }
    }

    /// Words in an object or container.
    pub fn words(self) -> u32 {
        match self {
            Shape::Pair(_) => 2,
            Shape::None | Shape::One(_) => 1,
        }
    }
}

/// Shape of `ty`.
pub fn shape(program: &hir::Program, ty: Ty) -> Shape {
    match program.types.kind(ty) {
        TyKind::Error | TyKind::Void | TyKind::Never => Shape::None,
        TyKind::Int | TyKind::Bool | TyKind::Row(_) => Shape::One(Rep::Int),
        TyKind::Float => Shape::One(Rep::Float),
        TyKind::Actor(_) => Shape::One(Rep::Actor),
        TyKind::Union(union) => {
            let payload = program.unions.get(union.0 as usize).is_some_and(|u| u.has_payload);
            Shape::One(if payload { Rep::Obj } else { Rep::Int })
        }
        TyKind::Nil
        | TyKind::EmptyMulti
        | TyKind::EmptyMap
        | TyKind::Text
        | TyKind::Bytes
        | TyKind::Json
        | TyKind::Class(_)
        | TyKind::Backlink(..)
        | TyKind::Iface(_)
        | TyKind::Multi(_)
        | TyKind::Map(..) => Shape::One(Rep::Obj),
        TyKind::Nullable(inner) | TyKind::Maybe { inner, .. } => match shape(program, inner) {
            Shape::One(rep @ (Rep::Int | Rep::Float)) => Shape::Pair(rep),
            other => other,
        },
    }
}

/// Whether values of this managed type are never null.
pub fn never_null(program: &hir::Program, ty: Ty) -> bool {
    matches!(
        program.types.kind(ty),
        TyKind::Text
            | TyKind::Bytes
            | TyKind::Json
            | TyKind::Class(_)
            | TyKind::Iface(_)
            | TyKind::Multi(_)
            | TyKind::Map(..)
            | TyKind::Union(_)
    )
}

/// The type table while it grows, and the finished classes.
pub struct Layouts<'a> {
    program: &'a hir::Program,
    pub shapes: Shapes,
    index: FxHashMap<TypeDesc, TypeIdx>,
    /// First variant class of each payload union.
    variants: Vec<ClassIdx>,
    /// Per class and field: stored fields before it.
    stored: Vec<Vec<usize>>,
    /// Classes with a table.
    pub tables: FxHashMap<ClassId, TableIdx>,
    /// Classes that the compiler made, by the types of their fields.
    made: FxHashMap<Vec<TypeIdx>, ClassIdx>,
    /// Classes of the objects that bare unions are sent in.
    boxes: FxHashMap<UnionId, ClassIdx>,
}

impl<'a> Layouts<'a> {
    pub fn new(program: &'a hir::Program) -> Layouts<'a> {
        let mut layouts = Layouts {
            program,
            shapes: Shapes::default(),
            index: FxHashMap::default(),
            variants: Vec::new(),
            stored: Vec::with_capacity(program.classes.len()),
            tables: FxHashMap::default(),
            made: FxHashMap::default(),
            boxes: FxHashMap::default(),
        };
        for class in &program.classes {
            let mut stored = 0;
            let before = |f: &hir::Field| {
                let before = stored;
                stored += usize::from(!is_backlink(&program.types, f.ty));
                before
            };
            layouts.stored.push(class.fields.iter().map(before).collect());
        }
        for desc in FIXED_TYPES {
            let _ = layouts.intern(desc);
        }
        let mut next = count(program.classes.len());
        for union in &program.unions {
            layouts.variants.push(next);
            if union.has_payload {
                next += count(union.variants.len());
            }
        }
        for class in &program.classes {
            let desc = layouts.class(class);
            layouts.shapes.classes.push(desc);
        }
        for (i, union) in program.unions.iter().enumerate() {
            let first = layouts.variants.get(i).copied().unwrap_or(0);
            let mut classes = Vec::new();
            if union.has_payload {
                for (ordinal, variant) in union.variants.iter().enumerate() {
                    classes.push(first + count(ordinal));
                    let desc = layouts.variant(count(i), count(ordinal), variant);
                    layouts.shapes.classes.push(desc);
                }
            }
            let variants = union.variants.iter().map(|v| v.name.to_string()).collect();
            layouts.shapes.unions.push(UnionDesc { name: union.name.to_string(), variants, classes });
        }
        for (i, class) in program.classes.iter().enumerate() {
            if class.is_table {
                let _ = layouts.table(ClassId(count(i)));
            }
        }
        layouts
    }

    /// A class with fields of these types, for objects that carry several values to or from the runtime.
    pub fn made_class(&mut self, fields: Vec<TypeIdx>) -> ClassIdx {
        if let Some(class) = self.made.get(&fields) {
            return *class;
        }
        let class = self.carrier(String::new(), &fields);
        let _ = self.made.insert(fields, class);
        class
    }

    /// The class of the objects that values of a bare union are sent in: its one field, at `layout::FIELDS`, is the
    /// ordinal. Reports name the class of a message, so it has the union's name.
    pub fn box_class(&mut self, union: UnionId) -> ClassIdx {
        if let Some(class) = self.boxes.get(&union) {
            return *class;
        }
        let name = self.program.unions.get(union.0 as usize).map(|u| u.name.to_string()).unwrap_or_default();
        let ordinal = self.intern(TypeDesc::Ordinal(union.0));
        let class = self.carrier(name, &[ordinal]);
        let _ = self.boxes.insert(union, class);
        class
    }

    fn carrier(&mut self, name: String, fields: &[TypeIdx]) -> ClassIdx {
        let mut size = u32::try_from(layout::FIELDS).unwrap_or(8);
        let mut descs = Vec::with_capacity(fields.len());
        for ty in fields {
            descs.push(FieldDesc { name: String::new(), ty: *ty, offset: size, default: None });
            size += 8 * self.shapes.words(*ty);
        }
        let class = count(self.shapes.classes.len());
        self.shapes.classes.push(ClassDesc {
            name,
            package: None,
            kind: ClassKind::Record,
            size,
            fields: descs,
            reply: None,
        });
        class
    }

    /// The type of rows of a class.
    pub fn row_type(&mut self, class: ClassIdx) -> TypeIdx {
        self.intern(TypeDesc::Row(class))
    }

    /// The type of lists of `element`.
    pub fn list_of(&mut self, element: TypeIdx) -> TypeIdx {
        self.intern(TypeDesc::Multi(element))
    }

    /// The number of a stored field among the stored ones.
    pub fn column(&self, class: ClassId, field: u32) -> u32 {
        self.stored.get(class.0 as usize).and_then(|s| s.get(field as usize)).map_or(0, |n| count(*n))
    }

    pub fn program(&self) -> &'a hir::Program {
        self.program
    }

    fn intern(&mut self, desc: TypeDesc) -> TypeIdx {
        if let Some(idx) = self.index.get(&desc) {
            return *idx;
        }
        let idx = count(self.shapes.types.len());
        self.shapes.types.push(desc);
        let _ = self.index.insert(desc, idx);
        idx
    }

    /// The run-time type of `ty`.
    pub fn ty(&mut self, ty: Ty) -> TypeIdx {
        let desc = match self.program.types.kind(ty) {
            TyKind::Int | TyKind::Error | TyKind::Void | TyKind::Never => return TYPE_INT,
            TyKind::Bool => return TYPE_BOOL,
            TyKind::Float => return TYPE_FLOAT,
            TyKind::Text => return TYPE_TEXT,
            TyKind::Bytes => return TYPE_BYTES,
            TyKind::Json => return TYPE_JSON,
            TyKind::Nil => TypeDesc::Nullable(TYPE_TEXT),
            TyKind::EmptyMulti => TypeDesc::Multi(TYPE_INT),
            TyKind::EmptyMap => TypeDesc::Map(TYPE_TEXT, TYPE_INT),
            TyKind::Class(class) => TypeDesc::Object(class.0),
            TyKind::Row(class) => TypeDesc::Row(class.0),
            TyKind::Backlink(class, _) => {
                let row = self.intern(TypeDesc::Row(class.0));
                TypeDesc::Multi(row)
            }
            TyKind::Union(union) => {
                if self.program.unions.get(union.0 as usize).is_some_and(|u| u.has_payload) {
                    TypeDesc::Union(union.0)
                } else {
                    TypeDesc::Ordinal(union.0)
                }
            }
            TyKind::Iface(_) => TypeDesc::Interface,
            TyKind::Actor(_) => TypeDesc::Actor,
            TyKind::Multi(elem) => TypeDesc::Multi(self.ty(elem)),
            TyKind::Map(key, value) => {
                let key = self.ty(key);
                TypeDesc::Map(key, self.ty(value))
            }
            TyKind::Nullable(inner) | TyKind::Maybe { inner, .. } => TypeDesc::Nullable(self.ty(inner)),
        };
        self.intern(desc)
    }

    fn fields(&mut self, fields: impl Iterator<Item = (String, Ty, Option<FieldDefault>)>) -> (Vec<FieldDesc>, u32) {
        let mut offset = u32::try_from(layout::FIELDS).unwrap_or(8);
        let mut out = Vec::new();
        for (name, ty, default) in fields {
            let words = shape(self.program, ty).words();
            out.push(FieldDesc { name, ty: self.ty(ty), offset, default });
            offset += 8 * words;
        }
        (out, offset)
    }

    fn class(&mut self, class: &hir::Class) -> ClassDesc {
        let kept: Vec<_> = class
            .fields
            .iter()
            .filter(|f| !is_backlink(&self.program.types, f.ty))
            .map(|f| (f.name.to_string(), f.ty, f.default.as_ref().map(default)))
            .collect();
        let (fields, size) = self.fields(kept.into_iter());
        let reply = class.receive.map(|f| {
            let ret = self.program.funcs.get(f.0 as usize).map_or(Types::VOID, |f| f.ret);
            reply_of(shape(self.program, ret))
        });
        let kind = if class.is_record { ClassKind::Record } else { ClassKind::Class };
        ClassDesc {
            name: class.name.to_string(),
            package: class.package.as_ref().map(ToString::to_string),
            kind,
            size,
            fields,
            reply,
        }
    }

    fn variant(&mut self, union: u32, ordinal: u32, variant: &hir::Variant) -> ClassDesc {
        let fields: Vec<_> = variant.fields.iter().map(|(name, ty)| (name.to_string(), *ty, None)).collect();
        let (fields, size) = self.fields(fields.into_iter());
        let kind = ClassKind::Variant { union, ordinal };
        ClassDesc { name: variant.name.to_string(), package: None, kind, size, fields, reply: None }
    }

    /// Byte offset of field `field` of `class`, counted as in the HIR.
    pub fn field_offset(&self, class: ClassId, field: u32) -> i32 {
        let stored = self.stored.get(class.0 as usize).and_then(|s| s.get(field as usize)).copied().unwrap_or(0);
        self.offset(class.0, stored)
    }

    /// Class index of a variant of a payload union.
    pub fn variant_class(&self, union: UnionId, variant: u32) -> ClassIdx {
        self.variants.get(union.0 as usize).copied().unwrap_or(0) + variant
    }

    /// Byte offset of the `i`-th stored field of a class index.
    pub fn offset(&self, class: ClassIdx, i: usize) -> i32 {
        let field = self.shapes.classes.get(class as usize).and_then(|c| c.fields.get(i));
        field.map_or(layout::FIELDS, |f| i32::try_from(f.offset).unwrap_or(i32::MAX))
    }
}

/// How many words a receive with this result replies. Objects are not replied: such a result is released.
pub fn reply_of(result: Shape) -> Reply {
    match result {
        Shape::One(Rep::Int | Rep::Float) => Reply::One,
        Shape::One(Rep::Actor) => Reply::Actor,
        Shape::Pair(_) => Reply::Pair,
        Shape::None | Shape::One(Rep::Obj) => Reply::None,
    }
}

pub fn is_backlink(types: &Types, ty: Ty) -> bool {
    matches!(types.kind(ty), TyKind::Backlink(..))
}

fn default(d: &Default_) -> FieldDefault {
    match d {
        Default_::Nil => FieldDefault::Nil,
        Default_::Now => FieldDefault::Now,
        Default_::Int(v) => FieldDefault::Int(*v),
        Default_::Float(v) => FieldDefault::Float(*v),
        Default_::Bool(v) => FieldDefault::Bool(*v),
        Default_::Text(v) => FieldDefault::Text(v.clone()),
        Default_::EmptyMulti => FieldDefault::EmptyMulti,
        Default_::EmptyMap => FieldDefault::EmptyMap,
        Default_::List(items) => FieldDefault::List(items.iter().map(default).collect()),
        Default_::New(class) => FieldDefault::New(class.0),
    }
}

pub fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
