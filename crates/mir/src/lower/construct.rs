//! Making objects: constructors with their defaults, union variants, lists and maps.

use super::FnLower;
use super::value::{Own, Value};
use crate::ir::{InstKind, Local, Rep};
use crate::shapes::Shape;
use analysis::hir::{ClassId, Default_, Expr, Ty, TyKind, UnionId};
use rustc_hash::FxHashMap;

impl<'a> FnLower<'_, 'a> {
    /// `C { … }`: the given fields in written order, then the object, then the defaults.
    pub fn new_object(&mut self, class: ClassId, fields: &'a [(u32, Expr)], defaults: &[u32]) -> Value {
        let exprs: Vec<&Expr> = fields.iter().map(|(_, e)| e).collect();
        let values = self.operands(&exprs);
        let mut stores = Vec::with_capacity(values.len());
        let last: FxHashMap<u32, usize> = fields.iter().enumerate().map(|(i, (field, _))| (*field, i)).collect();
        for (i, ((field, _), value)) in fields.iter().zip(values).enumerate() {
            // A repeated key keeps its last value.
            if last.get(field) != Some(&i) {
                self.drop_value(value);
                continue;
            }
            let offset = self.cx.layouts.field_offset(class, *field);
            let shape = self.field_ty(class, *field).map_or(value.shape, |ty| self.shape(ty));
            stores.push((offset, self.coerce(value, shape)));
        }
        let object = self.allocate(class.0, &stores);
        self.defaults(object, class, defaults);
        object
    }

    /// A variant of a payload union as an object.
    pub fn new_variant(&mut self, union: UnionId, variant: u32, args: &'a [Expr]) -> Value {
        let exprs: Vec<&Expr> = args.iter().collect();
        let values = self.operands(&exprs);
        let class = self.cx.layouts.variant_class(union, variant);
        let stores: Vec<_> =
            values.into_iter().enumerate().map(|(i, v)| (self.cx.layouts.offset(class, i), v)).collect();
        self.allocate(class, &stores)
    }

    /// An object of the class index with these operands moved in, each at its offset.
    pub fn allocate(&mut self, class: u32, stores: &[(i32, Value)]) -> Value {
        let index = self.b.int(i64::from(class));
        let object = self.b.runtime1("rt.new", vec![index], Rep::Obj);
        for (offset, value) in stores.iter().rev() {
            self.consume(*value);
            self.init_words(object, *offset, *value);
        }
        self.owned(Value::one(Rep::Obj, object, Own::Owned))
    }

    fn field_ty(&self, class: ClassId, field: u32) -> Option<Ty> {
        let class = self.program.classes.get(class.0 as usize)?;
        class.fields.get(field as usize).map(|f| f.ty)
    }

    /// Stores the defaults of these fields into a fresh object.
    pub fn defaults(&mut self, object: Value, class: ClassId, fields: &[u32]) {
        let program = self.program;
        let Some(decl) = program.classes.get(class.0 as usize) else { return };
        for field in fields {
            let Some(f) = decl.fields.get(*field as usize) else { continue };
            if matches!(self.kind(f.ty), TyKind::Backlink(..)) {
                continue;
            }
            let offset = self.cx.layouts.field_offset(class, *field);
            let value = match &f.default {
                // Objects start out as zeroes.
                Some(Default_::Nil | Default_::Int(0) | Default_::Bool(false))
                    if self.shape(f.ty).words() == 1 || matches!(f.default, Some(Default_::Nil)) =>
                {
                    continue;
                }
                Some(default) => self.default_value(default, f.ty),
                None => self.zero_value(f.ty),
            };
            let value = self.coerce(value, self.shape(f.ty));
            self.consume(value);
            self.init_words(object.a, offset, value);
        }
    }

    /// The zero value of a type (5.2), for fields that the language gives none to (the program's own `Error`).
    fn zero_value(&mut self, ty: Ty) -> Value {
        match self.kind(ty) {
            TyKind::Text | TyKind::Bytes | TyKind::Json => self.literal(b""),
            TyKind::Multi(_) => self.default_value(&Default_::EmptyMulti, ty),
            TyKind::Map(..) => self.default_value(&Default_::EmptyMap, ty),
            _ => self.zero(self.shape(ty)),
        }
    }

    fn default_value(&mut self, default: &Default_, ty: Ty) -> Value {
        match default {
            Default_::Nil => self.zero(self.shape(ty)),
            Default_::Now => Value::int(self.b.runtime1("now", Vec::new(), Rep::Int)),
            Default_::Int(v) => self.int_value(*v),
            Default_::Bool(v) => self.int_value(i64::from(*v)),
            Default_::Float(v) => {
                let dst = self.b.temp(Rep::Float);
                self.b.emit(InstKind::Float(dst, *v));
                Value::one(Rep::Float, dst, Own::Owned)
            }
            Default_::Text(bytes) => self.literal(bytes),
            Default_::EmptyMulti => self.new_multi(ty, 0),
            Default_::EmptyMap => self.new_map(ty),
            Default_::List(items) => {
                let multi = self.new_multi(ty, items.len());
                let elem = self.elem(ty);
                for (at, item) in (0..).zip(items) {
                    let value = self.default_value(item, elem);
                    let value = self.coerce(value, self.shape(elem));
                    self.init_element(multi.a, at, value);
                }
                multi
            }
            Default_::New(class) => {
                let func = self.cx.default_func(*class);
                let object = self.b.local(Rep::Obj, "", true);
                self.b.call(func, Vec::new(), vec![object]);
                self.owned(Value::one(Rep::Obj, object, Own::Owned))
            }
        }
    }

    /// An object all of whose fields take their defaults.
    pub fn default_object(&mut self, class: ClassId) -> Value {
        let count = self.program.classes.get(class.0 as usize).map_or(0, |c| c.fields.len());
        let fields: Vec<u32> = (0..u32::try_from(count).unwrap_or(0)).collect();
        let object = self.allocate(class.0, &[]);
        self.defaults(object, class, &fields);
        object
    }

    // -- containers --------------------------------------------------------------------------------------------

    pub fn list(&mut self, items: &'a [Expr], ty: Ty) -> Value {
        let multi = self.new_multi(ty, items.len());
        let shape = self.shape(self.elem(ty));
        for (at, item) in (0..).zip(items) {
            let value = self.expr(item);
            let value = self.coerce(value, shape);
            self.init_element(multi.a, at, value);
        }
        multi
    }

    pub fn new_multi(&mut self, ty: Ty, capacity: usize) -> Value {
        let elem = self.elem(ty);
        let index = self.cx.layouts.ty(elem);
        let index = self.b.int(i64::from(index));
        let capacity = self.b.int(i64::try_from(capacity).unwrap_or(0));
        let dst = self.b.runtime1("multi.new", vec![index, capacity], Rep::Obj);
        self.owned(Value::one(Rep::Obj, dst, Own::Owned))
    }

    pub fn new_map(&mut self, ty: Ty) -> Value {
        let (key, value) = self.entry_types(ty);
        let (key, value) = (self.cx.layouts.ty(key), self.cx.layouts.ty(value));
        let (key, value) = (self.b.int(i64::from(key)), self.b.int(i64::from(value)));
        let dst = self.b.runtime1("map.new", vec![key, value], Rep::Obj);
        self.owned(Value::one(Rep::Obj, dst, Own::Owned))
    }

    /// `multi.push`, which consumes the element even where it traps.
    pub fn push_value(&mut self, multi: Local, value: Value) {
        let (first, second) = self.element_words(value);
        self.consume(value);
        let unwind = self.b.unwind();
        self.b.emit(InstKind::Push { multi, first, second, unwind });
    }

    /// Moves element `at` into a fresh multi that was made with room for it.
    fn init_element(&mut self, multi: Local, at: u32, value: Value) {
        let (first, second) = self.element_words(value);
        self.consume(value);
        self.b.emit(InstKind::Init { multi, at, first, second });
    }

    fn element_words(&mut self, value: Value) -> (Local, Option<Local>) {
        match value.shape {
            Shape::Pair(_) => (value.a, Some(self.word(value.b))),
            Shape::One(_) => (self.word(value.a), None),
            Shape::None => (self.b.int(0), None),
        }
    }
}
