//! Types of two schemas: whether values of the one are values of the other, and how their bytes change. Variants and
//! fields are matched by name, and types may contain themselves; nothing here recurses.

use super::{Field, NIL, Schema, Type, TypeNumber, Variant};
use crate::bytes::Reader;
use crate::value::Value;
use std::collections::HashMap;

/// Bytes that are not those of a value of their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Why values of one type are no values of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    Kind,
    /// A variant of a union is gone.
    Variant {
        union: String,
        variant: String,
    },
    /// The fields of a record, class or variant differ.
    Fields {
        of: String,
    },
}

/// Number of a `Step`.
pub(super) type StepNumber = usize;

/// What becomes of the values of an old type inside of containers. Where a value is nil, only `Tagged` has more to say
/// about it.
#[derive(Debug)]
enum Step {
    /// Not known yet; only while types are being matched.
    Open,
    Word,
    /// Numbers of variants of a bare union, which has payloads in the new schema if `payload`.
    Ordinal {
        numbers: Vec<u32>,
        payload: bool,
    },
    /// Texts.
    Bytes,
    Multi(StepNumber),
    Map(StepNumber, StepNumber),
    Object(Fields),
    /// For each old variant its new number.
    Union(Vec<(u32, Fields)>),
    /// A nullable scalar, which is one in the new schema too if `tagged`, else a nullable union with payloads.
    Tagged {
        inner: StepNumber,
        tagged: bool,
    },
}

#[derive(Debug)]
struct Fields {
    /// In the old order.
    steps: Vec<StepNumber>,
    /// The old numbers in the new order; empty if that is the same.
    order: Vec<usize>,
}

/// The steps from one schema to another, made as they are asked for.
#[derive(Debug)]
pub(super) struct Matcher<'a> {
    old: &'a Schema,
    new: &'a Schema,
    pairs: HashMap<(TypeNumber, TypeNumber), StepNumber>,
    steps: Vec<Step>,
}

/// Pairs of types whose steps are open.
#[derive(Default)]
struct Pending {
    pairs: Vec<(TypeNumber, TypeNumber, StepNumber, Option<String>)>,
    /// What has the fields that pairs are added for, if any.
    within: Option<String>,
}

impl<'a> Matcher<'a> {
    pub fn new(old: &'a Schema, new: &'a Schema) -> Matcher<'a> {
        Matcher { old, new, pairs: HashMap::new(), steps: Vec::new() }
    }

    /// The step for values of type `old` as values of type `new`.
    pub fn matching(&mut self, old: TypeNumber, new: TypeNumber) -> Result<StepNumber, Mismatch> {
        let known = self.steps.len();
        let mut pending = Pending::default();
        let root = self.step(old, new, &mut pending);
        while let Some((old, new, number, within)) = pending.pairs.pop() {
            pending.within = within;
            match self.compare(old, new, &mut pending) {
                Ok(step) => {
                    if let Some(slot) = self.steps.get_mut(number) {
                        *slot = step;
                    }
                }
                Err(mismatch) => {
                    // What was assumed meanwhile may not hold.
                    self.steps.truncate(known);
                    self.pairs.retain(|_, number| *number < known);
                    return Err(match (mismatch, pending.within) {
                        (Mismatch::Kind, Some(of)) => Mismatch::Fields { of },
                        (mismatch, _) => mismatch,
                    });
                }
            }
        }
        Ok(root)
    }

    /// The number of the step for a pair of types, which is left open if it is a new one: types that contain themselves
    /// match if all else does.
    fn step(&mut self, old: TypeNumber, new: TypeNumber, pending: &mut Pending) -> StepNumber {
        let pair = match (self.old.ty(old), self.new.ty(new)) {
            // Such values have their own way of being nil.
            (Type::Nullable(a), Type::Nullable(b)) if !self.old.ty(*a).is_scalar() => (*a, *b),
            _ => (old, new),
        };
        *self.pairs.entry(pair).or_insert_with(|| {
            let number = self.steps.len();
            self.steps.push(Step::Open);
            pending.pairs.push((pair.0, pair.1, number, pending.within.clone()));
            number
        })
    }

    fn compare(&mut self, old: TypeNumber, new: TypeNumber, pending: &mut Pending) -> Result<Step, Mismatch> {
        let (from, to) = (self.old, self.new);
        Ok(match (from.ty(old), to.ty(new)) {
            (Type::Int, Type::Int) | (Type::Bool, Type::Bool) | (Type::Float, Type::Float) => Step::Word,
            (Type::Text, Type::Text) | (Type::Bytes, Type::Bytes) | (Type::Json, Type::Json) => Step::Bytes,
            (Type::Ref(a), Type::Ref(b)) if a == b => Step::Word,
            (Type::Multi(a), Type::Multi(b)) => Step::Multi(self.step(*a, *b, pending)),
            (Type::Map(a, c), Type::Map(b, d)) => Step::Map(self.step(*a, *b, pending), self.step(*c, *d, pending)),
            (Type::Nullable(a), Type::Nullable(b)) => {
                Step::Tagged { inner: self.step(*a, *b, pending), tagged: to.ty(*b).is_scalar() }
            }
            (Type::Object { name, fields: a }, Type::Object { fields: b, .. }) => {
                Step::Object(self.fields(name.clone(), a, b, pending)?)
            }
            (Type::Union { name, variants: a }, Type::Union { variants: b, .. }) => {
                let matched = a.iter().map(|variant| self.variant(name, variant, b, pending));
                let matched = matched.collect::<Result<Vec<_>, _>>()?;
                if from.ty(old).is_bare() {
                    let numbers = matched.into_iter().map(|(number, _)| number).collect();
                    Step::Ordinal { numbers, payload: !to.ty(new).is_bare() }
                } else {
                    Step::Union(matched)
                }
            }
            _ => return Err(Mismatch::Kind),
        })
    }

    fn variant(
        &mut self,
        union: &str,
        variant: &Variant,
        new: &[Variant],
        pending: &mut Pending,
    ) -> Result<(u32, Fields), Mismatch> {
        let Some((number, to)) = (0..).zip(new).find(|(_, v)| v.name == variant.name) else {
            return Err(Mismatch::Variant { union: union.to_owned(), variant: variant.name.clone() });
        };
        Ok((number, self.fields(format!("{union}.{}", variant.name), &variant.fields, &to.fields, pending)?))
    }

    fn fields(&mut self, of: String, old: &[Field], new: &[Field], pending: &mut Pending) -> Result<Fields, Mismatch> {
        let mut pairs = Vec::with_capacity(old.len());
        for ((i, from), (j, to)) in by_name(old).into_iter().zip(by_name(new)) {
            if from.name == to.name {
                pairs.push((i, j, from.ty, to.ty));
            }
        }
        if pairs.len() != old.len() || old.len() != new.len() {
            return Err(Mismatch::Fields { of });
        }
        pairs.sort_unstable_by_key(|(_, j, ..)| *j);
        let mut order: Vec<usize> = pairs.iter().map(|(i, ..)| *i).collect();
        if order.is_sorted() {
            order.clear();
        }
        pairs.sort_unstable_by_key(|(i, ..)| *i);
        let outer = pending.within.replace(of);
        let steps = pairs.iter().map(|(_, _, from, to)| self.step(*from, *to, pending)).collect();
        pending.within = outer;
        Ok(Fields { steps, order })
    }

    /// Whether any value becomes other bytes by this step or by those that it leads to.
    pub fn changes(&self, root: StepNumber) -> bool {
        let mut seen = vec![false; self.steps.len()];
        let mut work = vec![root];
        while let Some(number) = work.pop() {
            if seen.get_mut(number).is_none_or(|seen| std::mem::replace(seen, true)) {
                continue;
            }
            match self.steps.get(number) {
                None | Some(Step::Open | Step::Word | Step::Bytes) => {}
                Some(Step::Ordinal { numbers, payload }) => {
                    if *payload || !numbers.iter().copied().eq(0..numbers.len() as u32) {
                        return true;
                    }
                }
                Some(Step::Multi(element)) => work.push(*element),
                Some(Step::Map(key, value)) => work.extend([*key, *value]),
                Some(Step::Tagged { inner, .. }) => work.push(*inner),
                Some(Step::Object(fields)) => {
                    if !fields.order.is_empty() {
                        return true;
                    }
                    work.extend(&fields.steps);
                }
                Some(Step::Union(variants)) => {
                    if (0..).zip(variants).any(|(i, (number, fields))| *number != i || !fields.order.is_empty()) {
                        return true;
                    }
                    work.extend(variants.iter().flat_map(|(_, fields)| &fields.steps));
                }
            }
        }
        false
    }

    /// The value of a column whose values are words.
    pub fn word(&self, step: StepNumber, word: u64) -> Result<Value, Malformed> {
        match self.steps.get(step) {
            Some(Step::Ordinal { numbers, payload }) => {
                let number = ordinal(numbers, word)?;
                Ok(if *payload { Value::Bytes(number.to_le_bytes().into()) } else { Value::Word(u64::from(number)) })
            }
            _ => Ok(Value::Word(word)),
        }
    }

    /// The bytes of a value of a type that is kept as encoded bytes.
    pub fn rewrite(&self, step: StepNumber, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut rewriter = Rewriter { steps: &self.steps, from: Reader(bytes), out: Vec::with_capacity(bytes.len()) };
        let written = rewriter.run(step);
        written.filter(|()| rewriter.from.0.is_empty()).map(|()| rewriter.out).ok_or(Malformed)
    }
}

/// The fields with their numbers, by name.
fn by_name(fields: &[Field]) -> Vec<(usize, &Field)> {
    let mut sorted: Vec<_> = fields.iter().enumerate().collect();
    sorted.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    sorted
}

fn ordinal(numbers: &[u32], word: u64) -> Result<u32, Malformed> {
    usize::try_from(word).ok().and_then(|word| numbers.get(word)).copied().ok_or(Malformed)
}

/// A container whose beginning has been written.
enum Container<'a> {
    Multi {
        element: StepNumber,
        left: u32,
    },
    /// `left` counts keys and values.
    Map {
        key: StepNumber,
        value: StepNumber,
        left: u64,
    },
    /// `starts`: where the fields begin in the output, if they have another order there.
    Fields {
        fields: &'a Fields,
        next: usize,
        starts: Vec<usize>,
    },
}

struct Rewriter<'a, 'b> {
    steps: &'a [Step],
    from: Reader<'b>,
    out: Vec<u8>,
}

impl<'a> Rewriter<'a, '_> {
    /// `None`: malformed.
    fn run(&mut self, root: StepNumber) -> Option<()> {
        let mut open: Vec<Container<'a>> = Vec::new();
        open.extend(self.begin(root)?);
        while let Some(top) = open.last_mut() {
            let member = match top {
                Container::Multi { element, left } => left.checked_sub(1).map(|rest| {
                    *left = rest;
                    *element
                }),
                Container::Map { key, value, left } => left.checked_sub(1).map(|rest| {
                    *left = rest;
                    if rest % 2 == 1 { *key } else { *value }
                }),
                Container::Fields { fields, next, starts } => {
                    if !fields.order.is_empty() {
                        starts.push(self.out.len());
                    }
                    *next += 1;
                    fields.steps.get(*next - 1).copied()
                }
            };
            match member {
                Some(step) => open.extend(self.begin(step)?),
                None => {
                    if let Some(Container::Fields { fields, starts, .. }) = open.pop() {
                        self.reorder(&fields.order, &starts);
                    }
                }
            }
        }
        Some(())
    }

    /// Puts the fields at the end of the output into their new order; `starts` has the end of the last one, too.
    fn reorder(&mut self, order: &[usize], starts: &[usize]) {
        let Some(first) = starts.first().filter(|_| !order.is_empty()) else { return };
        let written = self.out.split_off(*first);
        for old in order {
            if let (Some(start), Some(end)) = (starts.get(*old), starts.get(old + 1)) {
                self.out.extend_from_slice(written.get(start - first..end - first).unwrap_or_default());
            }
        }
        debug_assert_eq!(self.out.len(), first + written.len());
    }

    /// Writes a scalar or text, or the beginning of a container, which is returned.
    #[allow(clippy::option_option, reason = "the outer one: malformed")]
    fn begin(&mut self, step: StepNumber) -> Option<Option<Container<'a>>> {
        match self.steps.get(step)? {
            Step::Open => None,
            Step::Word => {
                self.out.extend_from_slice(&self.from.u64()?.to_le_bytes());
                Some(None)
            }
            Step::Ordinal { numbers, payload } => {
                let number = ordinal(numbers, self.from.u64()?).ok()?;
                if *payload {
                    self.number(number);
                } else {
                    self.out.extend_from_slice(&u64::from(number).to_le_bytes());
                }
                Some(None)
            }
            Step::Tagged { inner, tagged } => {
                let present = self.from.flag()?;
                if *tagged {
                    self.out.push(u8::from(present));
                } else if !present {
                    self.number(NIL);
                }
                if present { self.begin(*inner) } else { Some(None) }
            }
            Step::Object(fields) => {
                let present = self.from.flag()?;
                self.out.push(u8::from(present));
                Some(present.then(|| Container::Fields { fields, next: 0, starts: Vec::new() }))
            }
            other => {
                let number = self.from.u32()?;
                if number == NIL {
                    self.number(NIL);
                    return Some(None);
                }
                if let Step::Union(variants) = other {
                    let (number, fields) = variants.get(number as usize)?;
                    self.number(*number);
                    return Some(Some(Container::Fields { fields, next: 0, starts: Vec::new() }));
                }
                self.number(number);
                match other {
                    Step::Multi(element) => Some(Some(Container::Multi { element: *element, left: number })),
                    Step::Map(key, value) => {
                        Some(Some(Container::Map { key: *key, value: *value, left: 2 * u64::from(number) }))
                    }
                    _ => {
                        self.out.extend_from_slice(self.from.exactly(number as usize)?);
                        Some(None)
                    }
                }
            }
        }
    }

    fn number(&mut self, number: u32) {
        self.out.extend_from_slice(&number.to_le_bytes());
    }
}
