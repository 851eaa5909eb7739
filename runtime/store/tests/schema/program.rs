//! Shapes of programs, as the compiler would make them of declarations.

use abi::desc::{
    ClassDesc, ClassIdx, ClassKind, Default as Declared, FIXED_TYPES, FieldDesc, Shapes, TypeDesc, TypeIdx, UnionDesc,
    UnionIdx,
};
use abi::tables::{ColumnDesc, ColumnKind, IndexDesc, TableDesc};

/// Name, type, default.
pub type Declaration<'a> = (&'a str, TypeIdx, Option<Declared>);

/// Indexes by their columns, and whether they are unique.
pub fn indexes(indexes: &[(&[u32], bool)]) -> Vec<IndexDesc> {
    indexes.iter().map(|(columns, unique)| IndexDesc { columns: columns.to_vec(), unique: *unique }).collect()
}

#[derive(Clone)]
pub struct Program(pub Shapes);

impl Program {
    pub fn new() -> Program {
        Program(Shapes { types: FIXED_TYPES.to_vec(), ..Shapes::default() })
    }

    pub fn ty(&mut self, desc: TypeDesc) -> TypeIdx {
        let types = &mut self.0.types;
        let known = types.iter().position(|ty| *ty == desc);
        known.unwrap_or_else(|| {
            types.push(desc);
            types.len() - 1
        }) as TypeIdx
    }

    pub fn nullable(&mut self, ty: TypeIdx) -> TypeIdx {
        self.ty(TypeDesc::Nullable(ty))
    }

    pub fn multi(&mut self, ty: TypeIdx) -> TypeIdx {
        self.ty(TypeDesc::Multi(ty))
    }

    pub fn class(&mut self, name: &str, kind: ClassKind, fields: &[Declaration<'_>]) -> ClassIdx {
        let mut size = 8;
        let mut field = |(name, ty, default): &Declaration<'_>| {
            size += 8 * self.0.words(*ty);
            FieldDesc { name: (*name).to_owned(), ty: *ty, offset: size, default: default.clone() }
        };
        let fields = fields.iter().map(&mut field).collect();
        self.0.classes.push(ClassDesc { name: name.to_owned(), package: None, kind, size, fields, reply: None });
        self.0.classes.len() as ClassIdx - 1
    }

    pub fn record(&mut self, name: &str, fields: &[Declaration<'_>]) -> TypeIdx {
        let class = self.class(name, ClassKind::Record, fields);
        self.ty(TypeDesc::Object(class))
    }

    pub fn bare(&mut self, name: &str, variants: &[&str]) -> TypeIdx {
        let variants = variants.iter().map(|v| (*v).to_owned()).collect();
        self.0.unions.push(UnionDesc { name: name.to_owned(), variants, classes: Vec::new() });
        let union = self.0.unions.len() as UnionIdx - 1;
        self.ty(TypeDesc::Ordinal(union))
    }

    /// A union with payloads that `variants` declares; it is given the union's own type.
    pub fn union<'v>(
        &mut self,
        name: &str,
        variants: impl FnOnce(TypeIdx) -> Vec<(&'v str, Vec<(&'v str, TypeIdx)>)>,
    ) -> TypeIdx {
        let union = self.0.unions.len() as UnionIdx;
        self.0.unions.push(UnionDesc { name: name.to_owned(), variants: Vec::new(), classes: Vec::new() });
        let ty = self.ty(TypeDesc::Union(union));
        for (ordinal, (name, fields)) in (0..).zip(variants(ty)) {
            let fields: Vec<Declaration<'_>> = fields.into_iter().map(|(name, ty)| (name, ty, None)).collect();
            let class = self.class(name, ClassKind::Variant { union, ordinal }, &fields);
            self.0.unions[union as usize].variants.push(name.to_owned());
            self.0.unions[union as usize].classes.push(class);
        }
        ty
    }

    /// A durable table; the type of its rows.
    pub fn table(&mut self, name: &str, columns: &[Declaration<'_>]) -> TypeIdx {
        let class = self.class(name, ClassKind::Class, columns);
        let columns = columns.iter().map(|(name, ty, _)| self.column(class, name, *ty)).collect();
        self.0.tables.push(TableDesc {
            class,
            name: name.to_owned(),
            label: name.to_owned(),
            durable: true,
            declared: true,
            columns,
            indexes: Vec::new(),
        });
        self.ty(TypeDesc::Row(class))
    }

    pub fn last(&mut self) -> &mut TableDesc {
        self.0.tables.last_mut().unwrap()
    }

    pub fn unique(&mut self, column: u32) {
        self.last().indexes.push(IndexDesc { columns: vec![column], unique: true });
    }

    /// A column of the table of `class`, which comes next.
    fn column(&self, class: ClassIdx, name: &str, ty: TypeIdx) -> ColumnDesc {
        let (inner, nullable) = match self.0.ty(ty) {
            TypeDesc::Nullable(inner) => (self.0.ty(inner), true),
            desc => (desc, false),
        };
        let kind = match inner {
            TypeDesc::Int | TypeDesc::Bool | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => ColumnKind::Int,
            TypeDesc::Float => ColumnKind::Float,
            TypeDesc::Text | TypeDesc::Bytes => ColumnKind::Bytes,
            _ => ColumnKind::Value,
        };
        let refers = match inner {
            TypeDesc::Row(target) => {
                let mut classes = self.0.tables.iter().map(|t| t.class).chain([class]);
                classes.position(|class| class == target).map(|t| t as u32)
            }
            _ => None,
        };
        ColumnDesc { name: name.to_owned(), kind, nullable, refers }
    }
}
