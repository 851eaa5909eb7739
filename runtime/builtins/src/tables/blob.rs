//! Containers, records, classes and payload unions by value, as bytes: what a column of such a type holds.
//!
//! Everything is little-endian. A scalar takes 8 bytes, before it one byte (0: nil) where it is nullable. A text is its
//! length (4 bytes) and its bytes; a `multi` the number of its elements (4) and the elements; a `map` the number of its
//! entries (4) and of each the key and the value; an object of a class one byte (0: nil) and its fields; a value of a
//! payload union the number of its variant (4) and the fields. `NIL` as length or number stands for nil.
//!
//! Both directions keep a list of the open containers: a fiber's stack leaves the runtime too little room to recurse.

use abi::desc::{ClassKind, FieldDesc, Shapes, TypeDesc, TypeIdx};
use abi::layout::FIRST_CLASS;
use abi::trap;
use values::ctx::Ctx;
use values::object::{self, Obj, Plans};
use values::{map, multi, text};

const NIL: u32 = u32::MAX;

/// A container whose first members have been written.
enum Open<'a> {
    Multi { element: TypeIdx, words: &'a [u64] },
    Map { key: TypeIdx, value: TypeIdx, obj: *mut Obj, position: u32 },
    Object { fields: &'a [FieldDesc], obj: *mut Obj },
}

/// The bytes of an object of type `ty`. Once they are more than a row may have, the rest is left out: the store refuses
/// the value by its length.
///
/// # Safety
/// `word` is a live object of type `ty` on this shard.
pub unsafe fn encode(ctx: &Ctx, ty: TypeIdx, word: u64) -> Vec<u8> {
    let mut writer = Writer { shapes: object::shapes(ctx), plans: object::plans(ctx), out: Vec::new() };
    let mut open = Vec::new();
    // SAFETY: the caller's promise holds for all that the object leads to.
    unsafe {
        open.extend(writer.begin(ty, word, 0));
        while writer.out.len() <= store::MAX_ROW
            && let Some(top) = open.last_mut()
        {
            match writer.member(top) {
                Some(inner) => open.extend(inner),
                None => drop(open.pop()),
            }
        }
    }
    writer.out
}

struct Writer<'a> {
    shapes: &'a Shapes,
    plans: &'a Plans,
    out: Vec<u8>,
}

impl<'a> Writer<'a> {
    fn number(&mut self, n: usize) {
        self.out.extend_from_slice(&u32::try_from(n).unwrap_or(NIL).to_le_bytes());
    }

    /// Writes a scalar or text, or the start of a container, which is returned.
    ///
    /// # Safety
    /// The words are a live value of type `ty`.
    unsafe fn begin(&mut self, ty: TypeIdx, first: u64, second: u64) -> Option<Open<'a>> {
        let (mut desc, mut word) = (self.shapes.ty(ty), first);
        if let TypeDesc::Nullable(inner) = desc {
            if self.plans.words(ty) == 2 {
                self.out.push(u8::from(first != 0));
                if first == 0 {
                    return None;
                }
                word = second;
            }
            desc = self.shapes.ty(inner);
        }
        let obj = word as *mut Obj;
        // SAFETY: the type says what the word is.
        unsafe {
            match desc {
                TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => {
                    self.out.extend_from_slice(&word.to_le_bytes());
                    None
                }
                TypeDesc::Object(class) => {
                    self.out.push(u8::from(word != 0));
                    (word != 0).then(|| Open::Object { fields: fields(self.shapes, class), obj })
                }
                _ if word == 0 => {
                    self.out.extend_from_slice(&NIL.to_le_bytes());
                    None
                }
                TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => {
                    let bytes = text::bytes(obj);
                    self.number(bytes.len());
                    self.out.extend_from_slice(bytes);
                    None
                }
                TypeDesc::Multi(element) => {
                    let words = &*multi::words_with(self.plans, obj);
                    self.number(words.len() / self.plans.words(element));
                    Some(Open::Multi { element, words })
                }
                TypeDesc::Map(key, value) => {
                    self.number((*obj.cast::<map::Map>()).len as usize);
                    Some(Open::Map { key, value, obj, position: 0 })
                }
                TypeDesc::Union(_) => {
                    let class = (*obj).kind.wrapping_sub(FIRST_CLASS);
                    match self.shapes.classes.get(class as usize).map(|c| c.kind) {
                        Some(ClassKind::Variant { ordinal, .. }) => self.number(ordinal as usize),
                        _ => self.number(0),
                    }
                    Some(Open::Object { fields: fields(self.shapes, class), obj })
                }
                // The checker lets no such column through.
                TypeDesc::Actor | TypeDesc::Interface | TypeDesc::Nullable(_) => {
                    debug_assert!(false, "{desc:?} in a column");
                    self.out.extend_from_slice(&NIL.to_le_bytes());
                    None
                }
            }
        }
    }

    /// Writes the next member; the inner option is a container that begins with it. `None`: there is none left.
    ///
    /// # Safety
    /// The container is live and nothing changes it meanwhile.
    unsafe fn member(&mut self, open: &mut Open<'a>) -> Option<Option<Open<'a>>> {
        // SAFETY: members of a live container are of the types that it names.
        unsafe {
            match open {
                Open::Multi { element, words } => {
                    let size = self.plans.words(*element);
                    let (member, rest) = words.split_at_checked(size)?;
                    *words = rest;
                    let word = |i: usize| member.get(i).copied().unwrap_or(0);
                    Some(self.begin(*element, word(0), word(1)))
                }
                Open::Map { key, value, obj, position } => {
                    let entry = map::next_entry(*obj, position)?;
                    let _ = self.begin(*key, *entry, 0);
                    let second = if self.plans.words(*value) == 2 { *entry.add(2) } else { 0 };
                    Some(self.begin(*value, *entry.add(1), second))
                }
                Open::Object { fields, obj } => {
                    let (field, rest) = fields.split_first()?;
                    *fields = rest;
                    let at = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
                    let second = if self.plans.words(field.ty) == 2 { *at.add(1) } else { 0 };
                    Some(self.begin(field.ty, *at, second))
                }
            }
        }
    }
}

fn fields(shapes: &Shapes, class: u32) -> &[FieldDesc] {
    shapes.classes.get(class as usize).map_or(&[], |class| &class.fields)
}

/// A container that is being filled; what it holds already is complete or open itself.
enum Filling<'a> {
    Multi { obj: *mut Obj, element: TypeIdx, left: u32 },
    Map { obj: *mut Obj, key: TypeIdx, value: TypeIdx, left: u32 },
    Object { obj: *mut Obj, fields: &'a [FieldDesc] },
}

/// A fresh object of type `ty` from its bytes; null with a pending trap when memory is short.
pub fn decode(ctx: &mut Ctx, ty: TypeIdx, bytes: &[u8]) -> *mut Obj {
    let mut reader = Reader { shapes: object::shapes(ctx), plans: object::plans(ctx), bytes };
    let Some((root, _, first)) = reader.begin(ctx, ty) else {
        reader.report(ctx);
        return std::ptr::null_mut();
    };
    let root = root as *mut Obj;
    let mut open: Vec<Filling<'_>> = first.into_iter().collect();
    while let Some(top) = open.last_mut() {
        // SAFETY: open containers belong to the graph behind `root`, which is this function's own.
        match unsafe { reader.fill(ctx, top) } {
            Some(Some(inner)) => open.extend(inner),
            Some(None) => drop(open.pop()),
            None => {
                // SAFETY: the only reference; the graph is complete at all times, with null where nothing was filled in.
                unsafe { object::release(ctx, root) };
                reader.report(ctx);
                return std::ptr::null_mut();
            }
        }
    }
    root
}

struct Reader<'a, 'b> {
    shapes: &'a Shapes,
    plans: &'a Plans,
    bytes: &'b [u8],
}

impl<'a> Reader<'a, '_> {
    /// Where memory was not the reason, the bytes are not those of a value: a defect.
    fn report(&self, ctx: &mut Ctx) {
        ctx.raise(trap::EXPLICIT, "internal error: a stored value cannot be read");
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.bytes.split_first_chunk::<N>()?;
        self.bytes = rest;
        Some(*head)
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// A scalar or text, or an empty container and how it is to be filled. `None`: malformed, or a trap is pending.
    fn begin(&mut self, ctx: &mut Ctx, ty: TypeIdx) -> Option<(u64, u64, Option<Filling<'a>>)> {
        let mut desc = self.shapes.ty(ty);
        let mut tagged = false;
        if let TypeDesc::Nullable(inner) = desc {
            tagged = self.plans.words(ty) == 2;
            if tagged && self.take::<1>()? == [0] {
                return Some((0, 0, None));
            }
            desc = self.shapes.ty(inner);
        }
        let made = |obj: *mut Obj, filling: Filling<'a>| (!obj.is_null()).then_some((obj as u64, 0, Some(filling)));
        match desc {
            TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => {
                let word = u64::from_le_bytes(self.take()?);
                Some(if tagged { (1, word, None) } else { (word, 0, None) })
            }
            TypeDesc::Object(class) => {
                if self.take::<1>()? == [0] {
                    return Some((0, 0, None));
                }
                let obj = object::new(ctx, class);
                made(obj, Filling::Object { obj, fields: fields(self.shapes, class) })
            }
            _ => {
                let number = self.number()?;
                if number == NIL {
                    return Some((0, 0, None));
                }
                match desc {
                    TypeDesc::Text | TypeDesc::Bytes | TypeDesc::Json => {
                        let (bytes, rest) = self.bytes.split_at_checked(number as usize)?;
                        self.bytes = rest;
                        let obj =
                            if desc == TypeDesc::Bytes { text::new_bytes(ctx, bytes) } else { text::new(ctx, bytes) };
                        (!obj.is_null()).then_some((obj as u64, 0, None))
                    }
                    TypeDesc::Multi(element) => {
                        // An element takes a byte at least.
                        let hint = self.bytes.len().min(number as usize);
                        let obj = multi::new(ctx, element, i64::try_from(hint).unwrap_or(0));
                        made(obj, Filling::Multi { obj, element, left: number })
                    }
                    TypeDesc::Map(key, value) => {
                        let obj = map::new(ctx, key, value);
                        made(obj, Filling::Map { obj, key, value, left: number })
                    }
                    TypeDesc::Union(union) => {
                        let classes = self.shapes.unions.get(union as usize).map(|u| &u.classes)?;
                        let class = *classes.get(number as usize)?;
                        let obj = object::new(ctx, class);
                        made(obj, Filling::Object { obj, fields: fields(self.shapes, class) })
                    }
                    _ => None,
                }
            }
        }
    }

    /// Adds the next member; the inner option is it, as a container to be filled, or no container. `Some(None)`: the
    /// container is full. `None`: malformed, or a trap is pending.
    ///
    /// # Safety
    /// The container is live and nothing else uses it.
    #[allow(clippy::option_option, reason = "three answers, said above")]
    unsafe fn fill(&mut self, ctx: &mut Ctx, top: &mut Filling<'a>) -> Option<Option<Option<Filling<'a>>>> {
        // SAFETY: the caller's promise; every member goes into the container at once, which owns it from then on.
        unsafe {
            match top {
                Filling::Multi { obj, element, left } => {
                    if *left == 0 {
                        return Some(None);
                    }
                    *left -= 1;
                    let (first, second, inner) = self.begin(ctx, *element)?;
                    multi::push(ctx, *obj, first, second).then_some(Some(inner))
                }
                Filling::Map { obj, key, value, left } => {
                    if *left == 0 {
                        return Some(None);
                    }
                    *left -= 1;
                    let (k, ..) = self.begin(ctx, *key)?;
                    let slot = map::slot(ctx, *obj, k);
                    // The map has a reference of its own.
                    object::release_slot(ctx, self.plans.slot(*key), k);
                    if slot.is_null() {
                        return None;
                    }
                    let (first, second, inner) = self.begin(ctx, *value)?;
                    slot.write(first);
                    if self.plans.words(*value) == 2 {
                        slot.add(1).write(second);
                    }
                    Some(Some(inner))
                }
                Filling::Object { obj, fields } => {
                    let Some((field, rest)) = fields.split_first() else { return Some(None) };
                    *fields = rest;
                    let (first, second, inner) = self.begin(ctx, field.ty)?;
                    let at = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
                    at.write(first);
                    if self.plans.words(field.ty) == 2 {
                        at.add(1).write(second);
                    }
                    Some(Some(inner))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use abi::desc::{ClassDesc, TYPE_FLOAT, TYPE_INT, TYPE_TEXT, UnionDesc};
    use abi::tables::{ColumnDesc, ColumnKind, TableDesc};
    use store::Value;
    use store::schema::{Migration, Schema};
    use values::testing::{World, add_class, add_type, fixed_shapes};

    /// `Deep { n: Int, f: ?Float, t: ?Text, map: map<Text, multi ?Int>, tree: Tree }`, `Tree = Leaf | Fork(Tree, Tree)`.
    fn shapes() -> (Shapes, TypeIdx) {
        shapes_of(false)
    }

    /// The same, or with fields and variants in the reverse order.
    fn shapes_of(reversed: bool) -> (Shapes, TypeIdx) {
        let mut s = fixed_shapes();
        let float = add_type(&mut s, TypeDesc::Nullable(TYPE_FLOAT));
        let text = add_type(&mut s, TypeDesc::Nullable(TYPE_TEXT));
        let int = add_type(&mut s, TypeDesc::Nullable(TYPE_INT));
        let ints = add_type(&mut s, TypeDesc::Multi(int));
        let map = add_type(&mut s, TypeDesc::Map(TYPE_TEXT, ints));
        let tree = add_type(&mut s, TypeDesc::Union(0));
        let mut fields =
            [("n", TYPE_INT, None), ("f", float, None), ("t", text, None), ("map", map, None), ("tree", tree, None)];
        if reversed {
            fields.reverse();
        }
        let deep = add_class(&mut s, "Deep", &fields);
        let variant = |ordinal, class: ClassDesc| ClassDesc { kind: ClassKind::Variant { union: 0, ordinal }, ..class };
        let _ = add_class(&mut s, "Leaf", &[]);
        let _ = add_class(&mut s, "Fork", &[("l", tree, None), ("r", tree, None)]);
        let fork = s.classes.pop().unwrap();
        let leaf = s.classes.pop().unwrap();
        s.classes.extend([variant(u32::from(reversed), leaf), variant(u32::from(!reversed), fork)]);
        let (mut variants, mut classes) = (vec!["Leaf".to_owned(), "Fork".to_owned()], vec![deep + 1, deep + 2]);
        if reversed {
            variants.reverse();
            classes.reverse();
        }
        s.unions.push(UnionDesc { name: "Tree".to_owned(), variants, classes });
        let object = add_type(&mut s, TypeDesc::Object(deep));
        (s, object)
    }

    /// The bytes of a value with something of everything.
    fn sample(w: &World) -> Vec<u8> {
        let mut out = vec![1];
        out.extend_from_slice(&(-5_i64).to_le_bytes());
        out.push(1);
        out.extend_from_slice(&f64::NAN.to_bits().to_le_bytes());
        out.extend_from_slice(&NIL.to_le_bytes());
        out.extend_from_slice(&2_u32.to_le_bytes());
        for (key, elements) in [("a", &[Some(7_u64), None][..]), ("", &[])] {
            out.extend_from_slice(&u32::try_from(key.len()).unwrap().to_le_bytes());
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(&u32::try_from(elements.len()).unwrap().to_le_bytes());
            for element in elements {
                out.push(u8::from(element.is_some()));
                element.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            }
        }
        // Fork(Leaf, Fork(Leaf, nil))
        for number in [1, 0, 1, 0, NIL] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        assert_eq!(w.live().0, 0);
        out
    }

    #[test]
    fn values_come_back_byte_for_byte() {
        let (shapes, ty) = shapes();
        let mut w = World::new(shapes);
        let bytes = sample(&w);
        let obj = decode(&mut w.ctx, ty, &bytes);
        assert!(!obj.is_null(), "{:?}", w.take_trap());
        // SAFETY: a live object of the type.
        assert_eq!(unsafe { encode(&w.ctx, ty, obj as u64) }, bytes);
        w.release(obj);
    }

    #[test]
    fn what_is_no_value_traps_and_leaves_nothing() {
        let (shapes, ty) = shapes();
        let mut w = World::new(shapes);
        let bytes = sample(&w);
        for end in 0..bytes.len() {
            let cut = bytes.get(..end).unwrap();
            assert!(decode(&mut w.ctx, ty, cut).is_null(), "{end} bytes");
            assert_eq!(w.take_trap().map(|t| t.0), Some(trap::EXPLICIT), "{end} bytes");
            assert_eq!(w.live().0, 0, "{end} bytes");
        }
        for at in 0..bytes.len() {
            for value in [0, 2, 9, 255] {
                let mut other = bytes.clone();
                if let Some(byte) = other.get_mut(at) {
                    *byte = value;
                }
                let obj = decode(&mut w.ctx, ty, &other);
                let _ = w.take_trap();
                w.release(obj);
                assert_eq!(w.live().0, 0, "byte {at} is {value}");
            }
        }
    }
    /// `Row { deep: Deep }` over the shapes.
    fn with_table(reversed: bool) -> (Shapes, TypeIdx) {
        let (mut s, deep) = shapes_of(reversed);
        let class = add_class(&mut s, "Row", &[("deep", deep, None)]);
        let column = ColumnDesc { name: "deep".to_owned(), kind: ColumnKind::Value, nullable: false, refers: None };
        s.tables.push(TableDesc {
            class,
            name: "Row".to_owned(),
            label: "Row".to_owned(),
            durable: true,
            declared: true,
            columns: vec![column],
            indexes: Vec::new(),
        });
        (s, deep)
    }

    /// What the store makes of bytes by its own knowledge of them.
    #[test]
    fn values_of_an_older_program_are_read_by_a_newer_one() {
        let ((old, _), (new, ty)) = (with_table(false), with_table(true));
        let (from, to) = (Schema::of(&old, 0), Schema::of(&new, 0));
        let (there, back) = (Migration::between(&from, &to), Migration::between(&to, &from));
        let mut w = World::new(new);
        let bytes = sample(&w);
        let Ok(Some((0, Value::Bytes(moved)))) = there.value(0, 0, Value::Bytes(bytes.as_slice().into())) else {
            unreachable!("the column is kept")
        };
        let obj = decode(&mut w.ctx, ty, &moved);
        assert!(!obj.is_null(), "{:?}", w.take_trap());
        // SAFETY: a live object of the type.
        let again = unsafe { encode(&w.ctx, ty, obj as u64) };
        w.release(obj);
        assert_eq!(back.value(0, 0, Value::Bytes(again.into())), Ok(Some((0, Value::Bytes(bytes.into())))));
    }
}
