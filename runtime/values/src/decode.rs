//! Values from JSON text (language specification 10.2): one pass over the text, straight into objects, with turns for
//! other fibers between pieces of a long one. What is unfinished then is owned here and nowhere else referred to. The
//! reader's open containers are kept in a list: a fiber's stack leaves the runtime too little room to recurse.

use crate::ctx::{Ctx, GiveWay};
use crate::object::{self, Obj, Plans};
use crate::text::{self, Gradual};
use crate::{map, multi};
use abi::desc::{ClassIdx, Default as FieldDefault, FieldDesc, Shapes, TypeDesc, TypeIdx};
use abi::layout::{KIND_BYTES, KIND_TEXT};
use codec::json::{Quoted, Reader};
use codec::{PIECE, Sink, Turns};

/// Deepest nesting of objects made by defaults; these are made recursively, in frames of a few hundred bytes.
const DEFAULT_DEPTH: u32 = 24;

/// One or two words of an owned value.
type Words = [u64; 2];

/// The value of type `ty` that `document` (null allowed) stands for; null when it does not have that shape, and with
/// trap 4 when memory is short or the trap that `give_way` leaves.
///
/// # Safety
/// `document` is null or a live Text of this shard; `ty` is a type of one word.
pub unsafe fn decode(ctx: &mut Ctx, ty: TypeIdx, document: *mut Obj, give_way: GiveWay) -> *mut Obj {
    if document.is_null() {
        return std::ptr::null_mut();
    }
    let (shapes, plans) = (object::shapes(ctx), object::plans(ctx));
    // SAFETY: the caller keeps the text for the duration of the call.
    let reader = Reader::new(unsafe { text::bytes(document) }, Lent { ctx, give_way });
    let mut decoder = Decoder { shapes, plans, reader, open: Vec::new(), present: Vec::new() };
    let value = decoder.run(ty);
    decoder.abandon();
    let Some([word, _]) = value else { return std::ptr::null_mut() };
    if decoder.reader.at_end() && decoder.ctx().trap == 0 {
        return word as *mut Obj;
    }
    decoder.drop_value(ty, word);
    std::ptr::null_mut()
}

/// The fiber's context, which the reader needs to give way.
struct Lent<'c> {
    ctx: &'c mut Ctx,
    give_way: GiveWay,
}

impl Turns for Lent<'_> {
    fn give_way(&mut self) -> bool {
        (self.give_way)(self.ctx)
    }
}

struct Decoder<'a, 'c> {
    shapes: &'a Shapes,
    plans: &'a Plans,
    reader: Reader<'a, Lent<'c>>,
    /// Containers that are being read, outermost first; at most as many as the reader's depth allows.
    open: Vec<Open<'a>>,
    /// Per field of the objects being read, outermost first: whether it has a value.
    present: Vec<bool>,
}

/// A container with the members read so far, owned here. A member that is a container itself is not yet in it.
struct Open<'a> {
    obj: *mut Obj,
    members: Members<'a>,
}

enum Members<'a> {
    Elements {
        ty: TypeIdx,
    },
    Entries {
        value: TypeIdx,
        /// Key of the value being read, owned; null between entries.
        key: *mut Obj,
    },
    Fields {
        fields: &'a [FieldDesc],
        /// Where the object's flags begin in `present`.
        base: usize,
        /// The field being read.
        at: usize,
    },
}

/// What the first token of a value leads to.
enum Begun {
    Value(Words),
    /// A container was opened, and the value of its first member, of this type, comes next.
    Member(TypeIdx),
    /// A container without members was opened.
    Empty,
}

/// Null is a failure.
fn pointer(obj: *mut Obj) -> Option<Words> {
    if obj.is_null() { None } else { Some([obj as u64, 0]) }
}

const fn scalar(word: u64) -> Option<Words> {
    Some([word, 0])
}

impl<'a> Decoder<'a, '_> {
    fn ctx(&mut self) -> &mut Ctx {
        self.reader.turns.ctx
    }

    fn drop_value(&mut self, ty: TypeIdx, word: u64) {
        let slot = self.plans.slot(ty);
        // SAFETY: callers pass a value they own and forget.
        unsafe { object::release_slot(self.ctx(), slot, word) };
    }

    /// The next value of the document and all below it.
    fn run(&mut self, ty: TypeIdx) -> Option<Words> {
        let mut ty = ty;
        'value: loop {
            let mut done = match self.begin(ty)? {
                Begun::Value(words) => Some(words),
                Begun::Member(member) => {
                    ty = member;
                    continue 'value;
                }
                Begun::Empty => None,
            };
            // Hands the value to the container around it, and containers that end with it to theirs.
            loop {
                let Some(mut open) = self.open.pop() else { return done };
                let next = match done {
                    Some(words) => self.store(&mut open, words),
                    None => Some(None),
                };
                match next {
                    Some(Some(member)) => {
                        self.open.push(open);
                        ty = member;
                        continue 'value;
                    }
                    Some(None) if self.finish(&open).is_some() => done = pointer(open.obj),
                    _ => {
                        self.open.push(open);
                        return None;
                    }
                }
            }
        }
    }

    /// Releases what was not finished.
    fn abandon(&mut self) {
        while let Some(open) = self.open.pop() {
            // SAFETY: open containers and their keys are owned here; fields that were not reached are zero.
            unsafe {
                if let Members::Entries { key, .. } = open.members {
                    object::release(self.ctx(), key);
                }
                object::release(self.ctx(), open.obj);
            }
        }
    }

    fn begin(&mut self, ty: TypeIdx) -> Option<Begun> {
        let mut desc = self.shapes.ty(ty);
        let nullable = matches!(desc, TypeDesc::Nullable(_));
        if let TypeDesc::Nullable(inner) = desc {
            // `null` for a nullable `json.Value` is nil.
            if self.reader.peek() == Some(b'n') {
                return self.reader.literal(b"null").then_some(Begun::Value([0, 0]));
            }
            desc = self.shapes.ty(inner);
        }
        match desc {
            TypeDesc::Multi(element) => {
                let more = self.reader.array()?;
                let obj = multi::new(self.ctx(), element, 0);
                self.push(obj, Members::Elements { ty: element })?;
                Some(if more { Begun::Member(element) } else { Begun::Empty })
            }
            TypeDesc::Map(key, value) => {
                if !matches!(self.shapes.ty(key), TypeDesc::Text | TypeDesc::Json) {
                    return None;
                }
                let first = self.reader.object()?;
                let obj = map::new(self.ctx(), key, value);
                let key = first.map_or(std::ptr::null_mut(), |quoted| self.text(quoted));
                self.push(obj, Members::Entries { value, key })?;
                if first.is_none() {
                    return Some(Begun::Empty);
                }
                if key.is_null() { None } else { Some(Begun::Member(value)) }
            }
            TypeDesc::Object(class) => {
                let shapes = self.shapes;
                let fields = &shapes.classes.get(class as usize)?.fields;
                let first = self.reader.object()?;
                let base = self.present.len();
                self.present.try_reserve(fields.len()).ok()?;
                self.present.resize(base + fields.len(), false);
                let obj = object::new(self.ctx(), class);
                self.push(obj, Members::Fields { fields, base, at: fields.len() })?;
                let next = self.next_field(obj, fields, base, usize::MAX, first)?;
                let Some(Open { members: Members::Fields { at, .. }, .. }) = self.open.last_mut() else { return None };
                match next {
                    Some((i, field)) => {
                        *at = i;
                        Some(Begun::Member(field.ty))
                    }
                    None => Some(Begun::Empty),
                }
            }
            scalar => {
                let [word, _] = self.scalar(scalar)?;
                Some(Begun::Value(if nullable && self.plans.words(ty) == 2 { [1, word] } else { [word, 0] }))
            }
        }
    }

    /// Opens a container; `obj` is null when memory is short.
    fn push(&mut self, obj: *mut Obj, members: Members<'a>) -> Option<()> {
        // Also when it failed, so that what was made so far is released with it.
        self.open.push(Open { obj, members });
        if obj.is_null() { None } else { Some(()) }
    }

    /// Puts a value that has been read into its container; the type of the next member, or an inner `None` at the end.
    fn store(&mut self, open: &mut Open<'a>, [first, second]: Words) -> Option<Option<TypeIdx>> {
        let obj = open.obj;
        match &mut open.members {
            Members::Elements { ty } => {
                // SAFETY: the multi is owned here; the element is consumed.
                if !unsafe { multi::push(self.ctx(), obj, first, second) } {
                    return None;
                }
                self.reader.next_element().map(|more| more.then_some(*ty))
            }
            Members::Entries { value, key } => {
                // SAFETY: the map, the key and the value are owned here. A place that was there already holds a value
                // of the type, a new one zeros; the map takes its own reference to the key.
                unsafe {
                    let place = map::slot(self.ctx(), obj, *key as u64);
                    object::release(self.ctx(), std::mem::replace(key, std::ptr::null_mut()));
                    if place.is_null() {
                        self.drop_value(*value, first);
                        return None;
                    }
                    let old = place.replace(first);
                    if self.plans.words(*value) == 2 {
                        *place.add(1) = second;
                    }
                    self.drop_value(*value, old);
                }
                let Some(quoted) = self.reader.next_key()? else { return Some(None) };
                *key = self.text(quoted);
                if key.is_null() { None } else { Some(Some(*value)) }
            }
            Members::Fields { fields, base, at } => {
                let field = fields.get(*at)?;
                self.put(obj, field, [first, second]);
                self.set_present(*base + *at, true);
                let key = self.reader.next_key()?;
                let next = self.next_field(obj, fields, *base, *at, key)?;
                Some(next.map(|(i, field)| {
                    *at = i;
                    field.ty
                }))
            }
        }
    }

    /// Follows keys to the next one that is a field with a value to be read, from `key` on; `before` is the field read
    /// last. An inner `None`: the object has ended.
    fn next_field(
        &mut self,
        obj: *mut Obj,
        fields: &'a [FieldDesc],
        base: usize,
        before: usize,
        key: Option<Quoted<'a>>,
    ) -> Option<Option<(usize, &'a FieldDesc)>> {
        // Documents mostly have their keys in the order of the fields.
        let mut guess = before.wrapping_add(1);
        let mut next = key;
        while let Some(quoted) = next {
            match field_index(fields, guess, quoted) {
                None => {
                    let _ = self.reader.skip()?;
                }
                Some((i, field)) => {
                    guess = i + 1;
                    if !self.is_absent(field.ty) {
                        return Some(Some((i, field)));
                    }
                    self.put(obj, field, [0, 0]);
                    self.set_present(base + i, false);
                }
            }
            next = self.reader.next_key()?;
        }
        Some(None)
    }

    fn set_present(&mut self, at: usize, present: bool) {
        if let Some(place) = self.present.get_mut(at) {
            *place = present;
        }
    }

    /// Gives the fields of an object that has ended, and that had no key, what absence means.
    fn finish(&mut self, open: &Open<'a>) -> Option<()> {
        let Members::Fields { fields, base, .. } = open.members else { return Some(()) };
        for (i, field) in fields.iter().enumerate() {
            if self.present.get(base + i) == Some(&false) {
                let words = self.absent(field, 0)?;
                self.put(open.obj, field, words);
            }
        }
        self.present.truncate(base);
        Some(())
    }

    fn scalar(&mut self, desc: TypeDesc) -> Option<Words> {
        match desc {
            TypeDesc::Int | TypeDesc::Row(_) => match self.reader.peek()? {
                b't' => self.reader.literal(b"true").then_some([1, 0]),
                b'f' => self.reader.literal(b"false").then_some([0, 0]),
                _ => scalar(self.reader.number()?.integer()? as u64),
            },
            TypeDesc::Bool => match self.reader.peek()? {
                b't' => self.reader.literal(b"true").then_some([1, 0]),
                b'f' => self.reader.literal(b"false").then_some([0, 0]),
                _ => match self.reader.number()?.integer()? {
                    n @ (0 | 1) => scalar(n as u64),
                    _ => None,
                },
            },
            TypeDesc::Float => scalar(self.reader.number()?.float()?.to_bits()),
            TypeDesc::Ordinal(union) => {
                let n = usize::try_from(self.reader.number()?.integer()?).ok()?;
                let variants = self.shapes.unions.get(union as usize)?.variants.len();
                if n < variants { scalar(n as u64) } else { None }
            }
            TypeDesc::Text => {
                let quoted = self.reader.string()?;
                pointer(self.text(quoted))
            }
            TypeDesc::Bytes => {
                let quoted = self.reader.string()?;
                self.bytes(quoted)
            }
            TypeDesc::Json => {
                let raw = self.reader.skip()?;
                pointer(self.text(Quoted { raw, escaped: false }))
            }
            // Containers are not scalars; the checker refuses the others, and `??T`.
            TypeDesc::Multi(_)
            | TypeDesc::Map(..)
            | TypeDesc::Object(_)
            | TypeDesc::Union(_)
            | TypeDesc::Interface
            | TypeDesc::Actor
            | TypeDesc::Nullable(_) => None,
        }
    }

    fn text(&mut self, quoted: Quoted<'_>) -> *mut Obj {
        if !quoted.escaped && quoted.raw.len() <= PIECE {
            return text::new(self.ctx(), quoted.raw);
        }
        let Lent { ctx, give_way } = &mut self.reader.turns;
        let mut out = Gradual::new(ctx, KIND_TEXT, quoted.raw.len(), *give_way);
        if quoted.escaped {
            quoted.unescape(&mut out);
        } else {
            out.put(quoted.raw);
        }
        out.finish()
    }

    fn bytes(&mut self, quoted: Quoted<'_>) -> Option<Words> {
        let give_way = self.reader.turns.give_way;
        if !quoted.escaped {
            return pointer(base64(self.ctx(), quoted.raw, give_way));
        }
        let coded = self.text(quoted);
        if coded.is_null() {
            return None;
        }
        // SAFETY: just made, and owned here.
        unsafe {
            let plain = base64(self.ctx(), text::bytes(coded), give_way);
            object::release(self.ctx(), coded);
            pointer(plain)
        }
    }

    /// Steps over `null` where it means that the field is absent.
    fn is_absent(&mut self, ty: TypeIdx) -> bool {
        self.reader.peek() == Some(b'n')
            && !matches!(self.shapes.ty(ty), TypeDesc::Nullable(_) | TypeDesc::Json)
            && self.reader.literal(b"null")
    }

    /// Stores an owned value in a field and gives up the one that was there.
    fn put(&mut self, obj: *mut Obj, field: &FieldDesc, [first, second]: Words) {
        // SAFETY: the object is owned here and of the class that the field belongs to; the field holds a value of its
        // type or zeros.
        unsafe {
            let at = obj.cast::<u8>().add(field.offset as usize).cast::<u64>();
            let old = at.replace(first);
            if self.plans.words(field.ty) == 2 {
                *at.add(1) = second;
            }
            self.drop_value(field.ty, old);
        }
    }

    // -- absent keys ---------------------------------------------------------------------------------------------

    /// What an absent key stands for; `None`: the decode fails.
    fn absent(&mut self, field: &FieldDesc, depth: u32) -> Option<Words> {
        match &field.default {
            Some(default) => self.default(field.ty, default, depth),
            None => self.zero(field.ty),
        }
    }

    fn zero(&mut self, ty: TypeIdx) -> Option<Words> {
        match self.shapes.ty(ty) {
            TypeDesc::Nullable(_)
            | TypeDesc::Int
            | TypeDesc::Bool
            | TypeDesc::Float
            | TypeDesc::Ordinal(_)
            | TypeDesc::Row(_) => Some([0, 0]),
            TypeDesc::Text => pointer(text::empty()),
            TypeDesc::Bytes => pointer(text::empty_bytes()),
            TypeDesc::Json => pointer(text::null()),
            TypeDesc::Multi(element) => pointer(multi::new(self.ctx(), element, 0)),
            TypeDesc::Map(key, value) => pointer(map::new(self.ctx(), key, value)),
            TypeDesc::Object(_) | TypeDesc::Union(_) | TypeDesc::Interface | TypeDesc::Actor => None,
        }
    }

    /// A declared default as an owned value of type `ty`.
    fn default(&mut self, ty: TypeIdx, default: &FieldDefault, depth: u32) -> Option<Words> {
        if let TypeDesc::Nullable(inner) = self.shapes.ty(ty) {
            if *default == FieldDefault::Nil {
                return Some([0, 0]);
            }
            let [word, _] = self.default(inner, default, depth)?;
            return Some(if self.plans.words(ty) == 2 { [1, word] } else { [word, 0] });
        }
        match default {
            FieldDefault::Nil => self.zero(ty),
            FieldDefault::Now => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                scalar(since.map_or(0, |d| d.as_millis() as u64))
            }
            FieldDefault::Int(n) => scalar(*n as u64),
            FieldDefault::Float(f) => scalar(f.to_bits()),
            FieldDefault::Bool(b) => scalar(u64::from(*b)),
            FieldDefault::Text(t) if self.shapes.ty(ty) == TypeDesc::Bytes => pointer(text::new_bytes(self.ctx(), t)),
            FieldDefault::Text(t) => pointer(text::new(self.ctx(), t)),
            FieldDefault::EmptyMulti | FieldDefault::EmptyMap => self.zero(ty),
            FieldDefault::List(items) => {
                let TypeDesc::Multi(element) = self.shapes.ty(ty) else { return None };
                let obj = multi::new(self.ctx(), element, items.len() as i64);
                if obj.is_null() {
                    return None;
                }
                for item in items {
                    let pushed = self.default(element, item, depth).is_some_and(|[first, second]| {
                        // SAFETY: the multi is owned here; the element is consumed.
                        unsafe { multi::push(self.ctx(), obj, first, second) }
                    });
                    if !pushed {
                        self.drop_value(ty, obj as u64);
                        return None;
                    }
                }
                pointer(obj)
            }
            FieldDefault::New(class) => self.fresh(*class, depth),
        }
    }

    /// An object all of whose fields take their defaults. Defaults that contain themselves fail, and so do those that
    /// nest deeper than `DEFAULT_DEPTH`.
    fn fresh(&mut self, class: ClassIdx, depth: u32) -> Option<Words> {
        let shapes = self.shapes;
        let desc = shapes.classes.get(class as usize).filter(|_| depth < DEFAULT_DEPTH)?;
        let obj = object::new(self.ctx(), class);
        if obj.is_null() {
            return None;
        }
        for field in &desc.fields {
            let Some(words) = self.absent(field, depth + 1) else {
                // SAFETY: the object is owned here; fields that were not reached are zero.
                unsafe { object::release(self.ctx(), obj) };
                return None;
            };
            self.put(obj, field, words);
        }
        pointer(obj)
    }
}

/// The field with the name that `quoted` means, with its position; `guess` is tried first.
fn field_index<'a>(fields: &'a [FieldDesc], guess: usize, quoted: Quoted<'_>) -> Option<(usize, &'a FieldDesc)> {
    let mut plain = Vec::new();
    let name = if quoted.escaped {
        quoted.unescape(&mut plain);
        plain.as_slice()
    } else {
        quoted.raw
    };
    if let Some(field) = fields.get(guess)
        && field.name.as_bytes() == name
    {
        return Some((guess, field));
    }
    fields.iter().enumerate().find(|(_, f)| f.name.as_bytes() == name)
}

/// The bytes that a base64 text stands for, as new Bytes; null when it is not strict base64, and with trap 4 when
/// memory is short or the trap that `give_way` leaves.
pub fn base64(ctx: &mut Ctx, coded: &[u8], give_way: GiveWay) -> *mut Obj {
    if coded.is_empty() {
        return text::empty_bytes();
    }
    let Some(len) = codec::base64::decoded_len(coded) else { return std::ptr::null_mut() };
    let mut out = Gradual::new(ctx, KIND_BYTES, len, give_way);
    if codec::base64::decode(coded, &mut out) { out.finish() } else { std::ptr::null_mut() }
}
