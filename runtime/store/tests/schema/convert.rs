//! Values whose variants and fields have moved, inside of encoded values too.

use super::*;
use store::schema::Malformed;

const NIL: u32 = u32::MAX;

/// Encoded values are built of these.
fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn word(word: u64) -> [u8; 8] {
    word.to_le_bytes()
}

fn number(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

#[test]
fn variants_of_unions_inside_of_values() {
    let of = |variants: &[&str]| {
        program(|p| {
            let state = p.bare("State", variants);
            let maybe = p.nullable(state);
            let list = p.multi(maybe);
            let map = p.ty(TypeDesc::Map(state, list));
            let both = p.record("Both", &[plain("t", TYPE_TEXT), plain("states", map), plain("last", state)]);
            let _ = p.table("Row", &[plain("c", both), plain("state", maybe)]);
        })
    };
    let (old, new) = (of(&["A", "B"]), of(&["B", "C", "A"]));
    let value = |a: u64, b: u64| {
        let list = cat(&[&number(2), &[1], &word(b), &[0]]);
        bytes(&cat(&[&[1], &number(2), b"hi", &number(2), &word(a), &list, &word(b), &number(NIL), &word(a)]))
    };
    opens(&old, &new);
    assert_eq!(row(&old, &new, &[value(0, 1), Value::Word(1)]), [value(2, 0), Value::Word(0)]);
    assert_eq!(row(&old, &new, &[value(1, 1), Value::Nil]), [value(0, 0), Value::Nil]);
    assert_eq!(row(&new, &of(&["A", "B", "C"]), &[value(2, 0), Value::Nil]), [value(0, 1), Value::Nil]);
}

#[test]
fn a_union_that_contains_itself() {
    let of = |order: &[&'static str]| {
        program(|p| {
            let tree = p.union("Tree", |tree| {
                let variant = |name: &&'static str| match *name {
                    "Fork" => (*name, vec![("l", tree), ("r", tree)]),
                    name => (name, vec![]),
                };
                order.iter().map(variant).collect()
            });
            let _ = p.table("Row", &[plain("c", tree)]);
        })
    };
    let (old, new) = (of(&["Leaf", "Fork"]), of(&["Fork", "Stump", "Leaf"]));
    // Deeper than any stack.
    let deep = |leaf: u32, fork: u32| {
        let mut out = Vec::new();
        for _ in 0..200_000 {
            out.extend(number(fork));
            out.extend(number(leaf));
        }
        out.extend(number(NIL));
        bytes(&out)
    };
    opens(&old, &new);
    assert_eq!(row(&old, &new, &[deep(0, 1)]), [deep(2, 0)]);
}

#[test]
fn fields_in_another_order() {
    let of = |flip: bool| {
        program(|p| {
            let mut inner = [plain("n", TYPE_INT), plain("t", TYPE_TEXT), plain("b", TYPE_BOOL)];
            let mut payload = vec![("m", TYPE_TEXT), ("n", TYPE_INT)];
            if flip {
                inner.rotate_left(1);
                payload.reverse();
            }
            let inner = p.record("Inner", &inner);
            let maybe = p.nullable(inner);
            let shape = p.union("Shape", |_| vec![("Dot", payload)]);
            let mut outer = [plain("a", inner), plain("b", maybe), plain("c", shape)];
            if flip {
                outer.swap(0, 2);
            }
            let outer = p.record("Outer", &outer);
            let _ = p.table("Row", &[plain("c", outer)]);
        })
    };
    let (old, new) = (of(false), of(true));
    opens(&old, &new);
    let (n, b, t) = (word(5), word(1), cat(&[&number(2), b"hi"]));
    let (a, c) = (cat(&[&[1], &n, &t, &b]), cat(&[&number(0), &t, &n]));
    let before = cat(&[&[1], &a, &[0], &c]);
    let (a, c) = (cat(&[&[1], &t, &b, &n]), cat(&[&number(0), &n, &t]));
    let after = cat(&[&[1], &c, &[0], &a]);
    assert_eq!(row(&old, &new, &[bytes(&before)]), [bytes(&after)]);
    assert_eq!(row(&new, &old, &[bytes(&after)]), [bytes(&before)]);
    assert!(is_needed(&old, &new));
}

#[test]
fn a_bare_union_gets_a_payload() {
    let with = |p: &mut Program, state: u32| {
        let maybe = p.nullable(state);
        let list = p.multi(state);
        let maybes = p.multi(maybe);
        let _ =
            p.table("Row", &[plain("c", state), plain("maybe", maybe), plain("list", list), plain("maybes", maybes)]);
    };
    let old = program(|p| {
        let state = p.bare("State", &["Open", "Done"]);
        with(p, state);
    });
    let new = program(|p| {
        let state =
            p.union("State", |_| vec![("Failed", vec![("why", TYPE_TEXT)]), ("Open", vec![]), ("Done", vec![])]);
        with(p, state);
    });
    opens(&old, &new);
    let list = cat(&[&number(2), &word(1), &word(0)]);
    let maybes = cat(&[&number(2), &[0], &[1], &word(1)]);
    let before = [Value::Word(0), Value::Word(1), bytes(&list), bytes(&maybes)];
    let list = cat(&[&number(2), &number(2), &number(1)]);
    let maybes = cat(&[&number(2), &number(NIL), &number(2)]);
    let after = [bytes(&number(1)), bytes(&number(2)), bytes(&list), bytes(&maybes)];
    assert_eq!(row(&old, &new, &before), after);
    let nil = [Value::Word(0), Value::Nil, bytes(&number(NIL)), bytes(&number(0))];
    assert_eq!(row(&old, &new, &nil)[1], Value::Nil);
}

#[test]
fn bytes_that_are_no_value() {
    let of = |variants: &[&str]| {
        program(|p| {
            let state = p.bare("State", variants);
            let maybe = p.nullable(state);
            let map = p.ty(TypeDesc::Map(TYPE_TEXT, maybe));
            let record = p.record("Rec", &[plain("t", TYPE_TEXT), plain("map", map)]);
            let _ = p.table("Row", &[plain("c", record), plain("state", state)]);
        })
    };
    let (old, new) = schemas(&of(&["A", "B"]), &of(&["B", "A"]));
    let migration = Migration::between(&old, &new);
    let good = cat(&[&[1], &number(1), b"t", &number(1), &number(1), b"k", &[1], &word(1)]);
    assert!(migration.value(0, 0, bytes(&good)).is_ok());
    for end in 0..good.len() {
        assert_eq!(migration.value(0, 0, bytes(&good[..end])), Err(Malformed), "{end}");
    }
    assert_eq!(migration.value(0, 0, bytes(&cat(&[&good, &[0]]))), Err(Malformed));
    for at in 0..good.len() {
        for byte in [0, 1, 2, 255] {
            let mut other = good.clone();
            other[at] = byte;
            // Whatever the answer, it comes.
            let _ = migration.value(0, 0, bytes(&other));
        }
    }
    assert_eq!(migration.value(0, 1, Value::Word(2)), Err(Malformed));
    assert_eq!(migration.value(0, 2, Value::Word(0)), Err(Malformed));
    assert_eq!(migration.value(1, 0, Value::Word(0)), Err(Malformed));
    assert_eq!(migration.row(0, vec![bytes(&good)]), Err(Malformed));
}
