//! Schemas as bytes.

use super::*;
use store::schema::{ClassName, Column, Table, Type};

/// A schema with something of everything.
fn sample() -> Schema {
    let program = program(|p| {
        let bin = p.table("Bin", &[plain("code", TYPE_TEXT)]);
        p.unique(0);
        let state = p.bare("State", &["Open", "Done"]);
        let tree = p.union("Tree", |tree| vec![("Leaf", vec![]), ("Fork", vec![("l", tree), ("n", TYPE_FLOAT)])]);
        let maybe = p.nullable(tree);
        let list = p.multi(maybe);
        let map = p.ty(TypeDesc::Map(state, list));
        let record = p.record("Pair", &[plain("map", map), plain("b", TYPE_BYTES), plain("j", TYPE_JSON)]);
        let maybe_bin = p.nullable(bin);
        let _ = p.table(
            "Lot",
            &[
                plain("bin", bin),
                plain("spare", maybe_bin),
                plain("pair", record),
                plain("state", state),
                ("n", TYPE_INT, Some(Declared::Int(-4))),
                ("t", TYPE_TEXT, Some(Declared::Text(b"text".to_vec()))),
            ],
        );
        p.last().indexes.push(IndexDesc { columns: vec![4, 0], unique: false });
        p.last().label = "lots".to_owned();
        p.0.classes[0].package = Some("lib".to_owned());
    });
    let gone = Schema::of(&table(&[plain("n", TYPE_INT)]).0, NOW);
    Schema::of(&program.0, NOW).remembering(&gone)
}

fn encoded(schema: &Schema) -> Vec<u8> {
    let mut out = Vec::new();
    schema.encode(&mut out);
    out
}

fn decoded(mut bytes: &[u8]) -> Option<Schema> {
    Schema::decode(&mut bytes)
}

#[test]
fn a_schema_comes_back() {
    let schema = sample();
    let mut bytes = encoded(&schema);
    bytes.extend(b"rest");
    let mut rest = bytes.as_slice();
    assert_eq!(Schema::decode(&mut rest), Some(schema));
    assert_eq!(rest, b"rest");
    assert_eq!(decoded(&encoded(&Schema::default())), Some(Schema::default()));
}

/// The bytes as `docs/store-format.md` has them.
#[test]
fn the_bytes_of_a_schema() {
    let schema = Schema::of(&table(&[("n", TYPE_INT, Some(Declared::Int(7)))]).0, NOW);
    let expected = [
        &[1, 0, 0, 0, 0][..],
        &[1, 0, 0, 0],
        &[0, 3, 0, 0, 0, b'R', b'o', b'w', 3, 0, 0, 0, b'R', b'o', b'w', 0],
        &[1, 0, 0, 0, 1, 0, 0, 0, b'n', 0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 0],
        &[0, 0, 0, 0],
    ];
    assert_eq!(encoded(&schema), expected.concat());
}

#[test]
fn cut_or_changed_bytes_never_panic() {
    let bytes = encoded(&sample());
    for end in 0..bytes.len() {
        assert_eq!(decoded(&bytes[..end]), None, "{end} bytes");
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            use_all(&other);
        }
        for value in [0, 1, 12, 127, 255] {
            let mut other = bytes.clone();
            other[at] = value;
            use_all(&other);
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    for _ in 0..200_000 {
        let mut bytes = Vec::new();
        for _ in 0..seed % 40 + 1 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Small numbers, so that something is read now and then.
            bytes.extend([((seed >> 33) % 13) as u8, 0, 0, 0].get(..(seed >> 60) as usize % 5).unwrap());
        }
        use_all(&bytes);
    }
}

/// Reads a schema and does everything with it.
fn use_all(bytes: &[u8]) {
    let Some(schema) = decoded(bytes) else { return };
    assert_eq!(decoded(&encoded(&schema)), Some(schema.clone()));
    for (a, b) in [(&schema, &schema), (&schema, &sample()), (&sample(), &schema)] {
        let b = b.clone().remembering(a);
        let migration = Migration::between(a, &b);
        let refusal = migration.refusal(&Program::new().0, |_| 1);
        let _ = refusal.map(|refusal| refusal.to_string());
        for check in migration.checks() {
            let _ = migration.broken(check, Cell::Word(9)).map(|refusal| refusal.to_string());
        }
        let _ = (migration.notices(), migration.is_needed());
        for (number, table) in a.tables.iter().enumerate() {
            let values = table.columns.iter().map(|c| c.fill.clone().unwrap_or(Value::Nil)).collect();
            let _ = migration.row(number, values);
        }
    }
    for column in schema.tables.iter().flat_map(|t| &t.columns) {
        assert!(schema.show(column.ty).len() <= 20 * bytes.len());
    }
}

fn column(name: &str, ty: u32, schema: &Schema) -> Column {
    schema.tables[0].columns.iter().find(|c| c.ty == ty).map(|c| Column { name: name.to_owned(), ..c.clone() }).unwrap()
}

type Fault = (&'static str, fn(&mut Schema));

#[test]
fn what_no_program_declares_is_no_schema() {
    let good = Schema::of(&table(&[plain("a", TYPE_INT), plain("b", TYPE_TEXT), plain("c", TYPE_JSON)]).0, NOW);
    assert!(decoded(&encoded(&good)).is_some());
    let faults: [Fault; 14] = [
        ("a list of itself", |s| s.types.push(Type::Multi(3))),
        ("a nullable of a later type", |s| s.types.push(Type::Nullable(4))),
        ("a nullable of a nullable", |s| s.types.extend([Type::Nullable(0), Type::Nullable(3)])),
        ("a map of maps", |s| s.types.extend([Type::Map(0, 0), Type::Map(3, 0)])),
        ("a key that is no text", |s| s.types.push(Type::Map(2, 0))),
        ("a variant twice", |s| {
            let variant = store::schema::Variant { name: "V".to_owned(), fields: Vec::new() };
            s.types.push(Type::Union { name: String::new(), variants: vec![variant.clone(), variant] });
        }),
        ("a field of no type", |s| {
            let field = store::schema::Field { name: "f".to_owned(), ty: 9 };
            s.types.push(Type::Object { name: String::new(), fields: vec![field] });
        }),
        ("a column of no type", |s| s.tables[0].columns[0].ty = 9),
        ("a column twice", |s| {
            let again = column("a", 1, s);
            s.tables[0].columns.push(again);
        }),
        ("a table twice", |s| s.tables.push(s.tables[0].clone())),
        ("columns of a retired table", |s| s.tables[0].retired = true),
        ("an index on nothing", |s| s.tables[0].indexes.push(IndexDesc { columns: vec![], unique: false })),
        ("an index on what is no key", |s| s.tables[0].indexes.push(IndexDesc { columns: vec![2], unique: false })),
        ("a unique index on two columns", |s| {
            s.tables[0].indexes.push(IndexDesc { columns: vec![0, 1], unique: true });
        }),
    ];
    for (fault, make) in faults {
        let mut schema = good.clone();
        make(&mut schema);
        assert_eq!(decoded(&encoded(&schema)), None, "{fault}");
    }
    let other = Table {
        name: ClassName { package: Some("lib".to_owned()), ..good.tables[0].name.clone() },
        ..good.tables[0].clone()
    };
    let mut both = good;
    both.tables.push(other);
    assert_eq!(decoded(&encoded(&both)), Some(both));
}
