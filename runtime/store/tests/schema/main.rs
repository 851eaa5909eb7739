//! Pairs of programs, the second started on the store of the first: each row of section 10 of the tables specification,
//! as far as schemas decide it, and schemas as bytes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod bytes;
mod convert;
mod program;

use abi::desc::{Default as Declared, TYPE_BOOL, TYPE_BYTES, TYPE_FLOAT, TYPE_INT, TYPE_JSON, TYPE_TEXT, TypeDesc};
use program::{Declaration, Program, indexes};
use store::schema::{Check, Migration, Refusal, Schema};
use store::{Cell, Value};

const NOW: i64 = 1_700_000_000_000;

/// A program of what `declare` declares.
fn program(declare: impl FnOnce(&mut Program)) -> Program {
    let mut program = Program::new();
    declare(&mut program);
    program
}

/// A program with one table, `Row`.
fn table(columns: &[Declaration<'_>]) -> Program {
    program(|p| {
        let _ = p.table("Row", columns);
    })
}

fn plain<'a>(name: &'a str, ty: u32) -> Declaration<'a> {
    (name, ty, None)
}

/// What the store of `old` and that of `new` remember.
fn schemas(old: &Program, new: &Program) -> (Schema, Schema) {
    let old = Schema::of(&old.0, NOW);
    let new = Schema::of(&new.0, NOW).remembering(&old);
    (old, new)
}

/// The refusal where each old table has this many rows.
fn refusal(old: &Program, new: &Program, rows: u64) -> Option<Refusal> {
    let (from, to) = schemas(old, new);
    Migration::between(&from, &to).refusal(&new.0, |_| rows)
}

#[track_caller]
fn opens(old: &Program, new: &Program) {
    assert_eq!(refusal(old, new, 3), None);
}

/// Refused with rows, by a line with these fragments; not without rows.
#[track_caller]
fn refused(old: &Program, new: &Program, fragments: &[&str]) {
    assert_eq!(refusal(old, new, 0), None);
    let text = refusal(old, new, 3).unwrap().to_string();
    for fragment in fragments {
        assert!(text.contains(fragment), "{fragment} in {text}");
    }
    assert!(!text.contains("corruption") && !text.contains('\n'), "{text}");
}

fn checks(old: &Program, new: &Program) -> Vec<Check> {
    let (old, new) = schemas(old, new);
    let migration = Migration::between(&old, &new);
    migration.not_nil().into_iter().map(|(_, check)| check).chain(migration.checks()).collect()
}

/// The line that refuses a row by this value.
fn broken(old: &Program, new: &Program, check: Check, value: Cell<'_>) -> String {
    let (old, new) = schemas(old, new);
    Migration::between(&old, &new).broken(check, value).unwrap().to_string()
}

fn notices(old: &Program, new: &Program) -> Vec<String> {
    let (old, new) = schemas(old, new);
    Migration::between(&old, &new).notices()
}

fn is_needed(old: &Program, new: &Program) -> bool {
    let (old, new) = schemas(old, new);
    Migration::between(&old, &new).is_needed()
}

#[track_caller]
fn row(old: &Program, new: &Program, values: &[Value]) -> Vec<Value> {
    let (old, new) = schemas(old, new);
    Migration::between(&old, &new).row(0, values.to_vec()).unwrap()
}

fn text(text: &str) -> Value {
    Value::Bytes(text.as_bytes().into())
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(bytes.into())
}

#[test]
fn nothing_changed() {
    let old = table(&[plain("a", TYPE_INT), plain("b", TYPE_TEXT)]);
    opens(&old, &old);
    assert!(!is_needed(&old, &old));
    assert_eq!(notices(&old, &old), [""; 0]);
    assert_eq!(row(&old, &old, &[Value::Word(1), text("x")]), [Value::Word(1), text("x")]);
}

#[test]
fn another_default_of_an_old_column_changes_nothing() {
    let old = table(&[("a", TYPE_INT, Some(Declared::Int(1)))]);
    let new = table(&[("a", TYPE_INT, Some(Declared::Int(2)))]);
    assert!(!is_needed(&old, &new));
}

#[test]
fn order_of_classes_columns_and_variants() {
    let old = program(|p| {
        let state = p.bare("State", &["Open", "Held", "Done"]);
        let _ = p.table("Job", &[plain("state", state), plain("n", TYPE_INT)]);
        let _ = p.table("Other", &[plain("n", TYPE_INT)]);
    });
    let new = program(|p| {
        let _ = p.table("Other", &[plain("n", TYPE_INT)]);
        let state = p.bare("State", &["Done", "New", "Open", "Held"]);
        let _ = p.table("Job", &[plain("n", TYPE_INT), plain("state", state)]);
    });
    opens(&old, &new);
    assert_eq!(notices(&old, &new), [""; 0]);
    assert!(is_needed(&old, &new));
    assert_eq!(row(&old, &new, &[Value::Word(1), Value::Word(7)]), [Value::Word(7), Value::Word(3)]);
    let (from, to) = schemas(&old, &new);
    let migration = Migration::between(&from, &to);
    assert_eq!((migration.table(0), migration.table(1)), (Some(1), Some(0)));
    assert_eq!(migration.value(0, 0, Value::Word(2)), Ok(Some((1, Value::Word(0)))));
}

#[test]
fn scm_1_added_columns_are_filled() {
    let old = table(&[plain("n", TYPE_INT)]);
    let new = program(|p| {
        let texts = p.multi(TYPE_TEXT);
        let map = p.ty(TypeDesc::Map(TYPE_TEXT, TYPE_INT));
        let (maybe_int, maybe_float) = (p.nullable(TYPE_INT), p.nullable(TYPE_FLOAT));
        let numbers = p.multi(maybe_float);
        let point =
            p.record("Point", &[("x", TYPE_INT, Some(Declared::Int(3))), ("y", maybe_int, Some(Declared::Nil))]);
        let TypeDesc::Object(point_class) = p.0.ty(point) else { panic!() };
        let state = p.bare("State", &["Open"]);
        let maybe_state = p.nullable(state);
        let list = Declared::List(vec![Declared::Float(0.5), Declared::Nil]);
        let _ = p.table(
            "Row",
            &[
                plain("n", TYPE_INT),
                plain("int", TYPE_INT),
                plain("bool", TYPE_BOOL),
                plain("float", TYPE_FLOAT),
                plain("text", TYPE_TEXT),
                plain("bytes", TYPE_BYTES),
                plain("json", TYPE_JSON),
                plain("texts", texts),
                plain("map", map),
                ("maybe", maybe_int, Some(Declared::Nil)),
                ("maybe_state", maybe_state, Some(Declared::Nil)),
                ("seven", maybe_int, Some(Declared::Int(7))),
                ("yes", TYPE_BOOL, Some(Declared::Bool(true))),
                ("half", TYPE_FLOAT, Some(Declared::Float(0.5))),
                ("word", TYPE_TEXT, Some(Declared::Text(b"new".to_vec()))),
                ("made", TYPE_INT, Some(Declared::Now)),
                ("numbers", numbers, Some(list)),
                ("point", point, Some(Declared::New(point_class))),
            ],
        );
    });
    opens(&old, &new);
    let mut half = vec![2, 0, 0, 0, 1];
    half.extend(0.5_f64.to_le_bytes());
    half.push(0);
    let point = [1, 3, 0, 0, 0, 0, 0, 0, 0, 0];
    let expected = [
        Value::Word(9),
        Value::Word(0),
        Value::Word(0),
        Value::Word(0),
        text(""),
        text(""),
        text("null"),
        bytes(&[0; 4]),
        bytes(&[0; 4]),
        Value::Nil,
        Value::Nil,
        Value::Word(7),
        Value::Word(1),
        Value::Word(0.5_f64.to_bits()),
        text("new"),
        Value::Word(NOW as u64),
        bytes(&half),
        bytes(&point),
    ];
    assert_eq!(row(&old, &new, &[Value::Word(9)]), expected);
    let line = "Row +int +bool +float +text +bytes +json +texts +map +maybe +maybe_state +seven +yes +half +word +made \
                +numbers +point";
    assert_eq!(notices(&old, &new), [line]);
}

#[test]
fn scm_2_columns_that_need_a_default() {
    let old = |p: &mut Program| p.table("Row", &[plain("n", TYPE_INT)]);
    let from = program(|p| {
        let _ = old(p);
    });
    let with = |column: fn(&mut Program) -> u32| {
        program(|p| {
            let ty = column(p);
            let _ = p.table("Row", &[plain("n", TYPE_INT), plain("extra", ty)]);
        })
    };
    let by_ref = with(|p| p.table("Bin", &[]));
    refused(&from, &by_ref, &["Row.extra", "ref Bin", "default", "3 rows"]);
    refused(
        &from,
        &with(|p| p.bare("State", &["Open"])),
        &["Row.extra", "without a value in it; declare it as `?State`"],
    );
    refused(&from, &with(|p| p.union("Shape", |_| vec![("Dot", vec![("x", TYPE_INT)])])), &["Row.extra", "Shape"]);
    refused(&from, &with(|p| p.record("Point", &[plain("x", TYPE_INT)])), &["Row.extra", "Point"]);
    opens(
        &from,
        &with(|p| {
            let bin = p.table("Bin", &[]);
            p.nullable(bin)
        }),
    );
}

#[test]
fn scm_1_a_default_that_names_a_row_is_checked() {
    let old = table(&[]);
    let new = program(|p| {
        let bin = p.table("Bin", &[]);
        let _ = p.table("Row", &[("bin", bin, Some(Declared::Int(1)))]);
    });
    opens(&old, &new);
    let check = Check::Target { table: 1, column: 0 };
    assert_eq!(checks(&old, &new), [check]);
    let line = broken(&old, &new, check, Cell::Word(1));
    assert!(line.contains("Row.bin") && line.contains("ref Bin"), "{line}");
}

#[test]
fn scm_3_removed_columns_are_dropped() {
    let old = table(&[plain("a", TYPE_INT), plain("b", TYPE_TEXT), plain("c", TYPE_BOOL)]);
    let new = table(&[plain("b", TYPE_TEXT)]);
    opens(&old, &new);
    assert_eq!(row(&old, &new, &[Value::Word(1), text("x"), Value::Word(0)]), [text("x")]);
    assert_eq!(notices(&old, &new), ["Row -a -c"]);
    let (from, to) = schemas(&old, &new);
    assert_eq!(Migration::between(&from, &to).value(0, 0, Value::Word(1)), Ok(None));
}

#[test]
fn scm_4_a_likely_rename_takes_two_steps() {
    let old = table(&[plain("count", TYPE_INT), plain("t", TYPE_TEXT)]);
    let new = table(&[plain("amount", TYPE_INT), plain("t", TYPE_TEXT)]);
    refused(&old, &new, &["Row", "`count`", "`amount`", "two steps"]);
    let nullable = program(|p| {
        let int = p.nullable(TYPE_INT);
        let _ = p.table("Row", &[("amount", int, Some(Declared::Nil)), plain("t", TYPE_TEXT)]);
    });
    refused(&old, &nullable, &["`count`", "`amount`"]);
    // One of another kind is no rename.
    let other = table(&[plain("amount", TYPE_FLOAT), plain("t", TYPE_TEXT)]);
    opens(&old, &other);
    assert_eq!(notices(&old, &other), ["Row -count +amount"]);
    let both = table(&[plain("count", TYPE_INT), plain("amount", TYPE_INT), plain("t", TYPE_TEXT)]);
    opens(&old, &both);
    opens(&both, &new);
}

#[test]
fn scm_5_kinds_may_not_change() {
    let kinds = [
        ("Int", TYPE_INT),
        ("Bool", TYPE_BOOL),
        ("Float", TYPE_FLOAT),
        ("Text", TYPE_TEXT),
        ("Bytes", TYPE_BYTES),
        ("json.Value", TYPE_JSON),
    ];
    for (old_name, old_kind) in kinds {
        for (new_name, new_kind) in kinds {
            let (old, new) = (table(&[plain("c", old_kind)]), table(&[plain("c", new_kind)]));
            if old_kind == new_kind || (old_kind, new_kind) == (TYPE_BOOL, TYPE_INT) {
                opens(&old, &new);
                assert_eq!(row(&old, &new, &[Value::Word(1)]), [Value::Word(1)]);
            } else {
                refused(&old, &new, &["Row.c", &format!("`{old_name}`"), &format!("`{new_name}`")]);
            }
        }
    }
    let (int, ints) = (table(&[plain("c", TYPE_INT)]), |element| {
        program(|p| {
            let ints = p.multi(element);
            let _ = p.table("Row", &[plain("c", ints)]);
        })
    });
    refused(&int, &ints(TYPE_INT), &["`Int`", "`multi Int`"]);
    refused(&ints(TYPE_INT), &ints(TYPE_TEXT), &["`multi Int`", "`multi Text`"]);
    let map = program(|p| {
        let texts = p.multi(TYPE_TEXT);
        let maybe = p.nullable(texts);
        let map = p.ty(TypeDesc::Map(TYPE_INT, maybe));
        let maybe = p.nullable(map);
        let _ = p.table("Row", &[plain("c", maybe)]);
    });
    refused(&int, &map, &["`Int`", "`?map<Int, ?multi Text>`"]);
}

#[test]
fn scm_5_a_class_without_rows_may_change_kinds() {
    let (old, new) = (table(&[plain("c", TYPE_INT)]), table(&[plain("c", TYPE_TEXT)]));
    assert_eq!(refusal(&old, &new, 0), None);
    assert_eq!(notices(&old, &new), ["Row -c +c"]);
    // A row that the log deletes later.
    assert_eq!(row(&old, &new, &[Value::Word(1)]), [text("")]);
}

#[test]
fn scm_5_nullable_or_not() {
    let plain_int = table(&[plain("c", TYPE_INT)]);
    let maybe = program(|p| {
        let int = p.nullable(TYPE_INT);
        let _ = p.table("Row", &[plain("c", int)]);
    });
    opens(&plain_int, &maybe);
    assert_eq!(checks(&plain_int, &maybe), []);
    assert_eq!(row(&plain_int, &maybe, &[Value::Word(0)]), [Value::Word(0)]);
    opens(&maybe, &plain_int);
    let check = Check::NotNil { table: 0, column: 0 };
    assert_eq!(checks(&maybe, &plain_int), [check]);
    // A row to which the log gives a value later.
    assert_eq!(row(&maybe, &plain_int, &[Value::Nil]), [Value::Nil]);
    let line = broken(&maybe, &plain_int, check, Cell::Nil);
    for fragment in ["Row.c", "`?Int`", "`Int`", "nil"] {
        assert!(line.contains(fragment), "{fragment} in {line}");
    }
    assert_eq!(notices(&maybe, &plain_int), [""; 0]);
}

#[test]
fn scm_6_a_class_that_is_gone() {
    let old = table(&[plain("n", TYPE_INT)]);
    let new = program(|p| {
        let _ = p.table("Line", &[plain("n", TYPE_INT)]);
    });
    refused(&old, &new, &["`Row`", "3 rows"]);
    assert!(refusal(&old, &new, 1).unwrap().to_string().contains("1 row of"));
    assert_eq!(notices(&old, &new), [""; 0]);
    let (from, to) = schemas(&old, &new);
    let migration = Migration::between(&from, &to);
    let retired = &to.tables[migration.table(0).unwrap()];
    assert!(retired.retired && retired.columns.is_empty());
    // It comes back, its ids go on.
    let back = Schema::of(&old.0, NOW).remembering(&to);
    let migration = Migration::between(&to, &back);
    let number = to.table(&retired.name).unwrap();
    assert_eq!(migration.table(number), Some(0));
    assert_eq!(migration.notices(), [""; 0]);
    assert!(!back.tables[0].retired && back.tables[1].retired);
    assert!(!Migration::between(&from, &Schema::of(&new.0, NOW)).is_complete(), "a store forgets no table");
}

#[test]
fn scm_7_indexes() {
    let old = table(&[plain("n", TYPE_INT), plain("t", TYPE_TEXT)]);
    let mut indexed = old.clone();
    indexed.last().indexes = indexes(&[(&[0, 1], false)]);
    for (from, to) in [(&old, &indexed), (&indexed, &old)] {
        opens(from, to);
        assert_eq!(checks(from, to), []);
        assert_eq!(notices(from, to), [""; 0]);
        assert!(is_needed(from, to));
    }
    let mut unique = old.clone();
    unique.unique(1);
    opens(&old, &unique);
    let check = Check::Unique { table: 0, column: 1 };
    assert_eq!(checks(&old, &unique), [check]);
    assert_eq!(checks(&unique, &unique), []);
    assert_eq!(checks(&unique, &old), []);
    let line = broken(&old, &unique, check, Cell::Bytes(b"two\n\xff"));
    for fragment in ["Row.t", "@unique", "\"two\\n\u{fffd}\""] {
        assert!(line.contains(fragment), "{fragment} in {line}");
    }
    let mut filled = table(&[plain("n", TYPE_INT), plain("t", TYPE_TEXT), plain("new", TYPE_INT)]);
    filled.unique(2);
    assert_eq!(checks(&old, &filled), [Check::Unique { table: 0, column: 2 }]);
}

#[test]
fn scm_7_values_of_each_kind_of_key_are_shown() {
    let shown = |declare: fn(&mut Program) -> u32, value: Cell<'_>| {
        let of = |unique: bool| {
            program(|p| {
                let ty = declare(p);
                let _ = p.table("Row", &[plain("c", ty)]);
                if unique {
                    p.unique(0);
                }
            })
        };
        let new = of(true);
        let table = new.0.tables.len() - 1;
        let line = broken(&of(false), &new, Check::Unique { table, column: 0 }, value);
        line.split_once(" have ").unwrap().1.split_once(" there").unwrap().0.to_owned()
    };
    assert_eq!(shown(|_| TYPE_INT, Cell::Word(-5_i64 as u64)), "-5");
    assert_eq!(shown(|_| TYPE_BOOL, Cell::Word(1)), "true");
    assert_eq!(shown(|_| TYPE_FLOAT, Cell::Word(0.5_f64.to_bits())), "0.5");
    assert_eq!(shown(|p| p.bare("State", &["Open", "Done"]), Cell::Word(1)), "Done");
    assert_eq!(shown(|p| p.table("Bin", &[]), Cell::Word(4)), "4");
    assert_eq!(shown(|_| TYPE_BYTES, Cell::Bytes(&[1, 254])), "0x01fe");
    assert_eq!(shown(|_| TYPE_TEXT, Cell::Bytes(&[b'a'; 99])), format!("\"{}…\"", "a".repeat(64)));
}

#[test]
fn scm_8_labels_and_volatile_tables() {
    let old = table(&[plain("n", TYPE_INT)]);
    let mut new = old.clone();
    new.last().label = "rows".to_owned();
    opens(&old, &new);
    assert!(is_needed(&old, &new));
    let mut volatile = old.clone();
    volatile.last().durable = false;
    opens(&volatile, &old);
    assert_eq!(notices(&volatile, &old), [""; 0]);
}

#[test]
fn scm_9_durable_became_volatile() {
    let old = table(&[plain("n", TYPE_INT)]);
    let mut new = old.clone();
    new.last().durable = false;
    refused(&old, &new, &["`Row`", "durable: false", "3 rows"]);
    // A durable table in a library module that nothing reaches is not declared.
    new.last().durable = true;
    new.last().declared = false;
    refused(&old, &new, &["`Row`", "3 rows", "no table of this program"]);
}

#[test]
fn scm_10_the_target_of_a_ref() {
    let to = |target: &str| {
        program(|p| {
            let target = p.table(target, &[]);
            let maybe = p.nullable(target);
            let list = p.multi(target);
            let _ = p.table("Row", &[plain("at", target), plain("maybe", maybe), plain("list", list)]);
        })
    };
    let (old, new) = (to("Bin"), to("Box"));
    assert_eq!(refusal(&old, &new, 0), None);
    let (from, into) = schemas(&old, &new);
    let row = from.tables.iter().position(|t| t.name.class == "Row").unwrap();
    let migration = Migration::between(&from, &into);
    let line = migration.refusal(&new.0, |table| u64::from(table == row)).unwrap().to_string();
    for fragment in ["Row.at", "`ref Bin`", "`ref Box`"] {
        assert!(line.contains(fragment), "{fragment} in {line}");
    }
    assert_eq!(from.target(&from.tables[row].columns[1]), Some(0));
    assert_eq!(from.target(&from.tables[row].columns[2]), None);
}

#[test]
fn scm_10_shapes_of_records_and_payloads() {
    let record = |fields: &[Declaration<'_>]| {
        program(|p| {
            let point = p.record("Point", fields);
            let points = p.multi(point);
            let map = p.ty(TypeDesc::Map(TYPE_TEXT, points));
            let maybe = p.nullable(map);
            let _ = p.table("Row", &[plain("c", maybe)]);
        })
    };
    let old = record(&[plain("x", TYPE_INT), plain("y", TYPE_INT)]);
    for fields in [
        &[plain("x", TYPE_INT)][..],
        &[plain("x", TYPE_INT), plain("z", TYPE_INT)],
        &[plain("x", TYPE_INT), plain("y", TYPE_TEXT)],
        &[plain("x", TYPE_INT), plain("y", TYPE_INT), plain("z", TYPE_INT)],
    ] {
        refused(&old, &record(fields), &["Row.c", "Point"]);
    }
    let payload = |fields: &[(&'static str, u32)]| {
        program(|p| {
            let shape = p.union("Shape", |_| vec![("None", vec![]), ("Dot", fields.to_vec())]);
            let _ = p.table("Row", &[plain("c", shape)]);
        })
    };
    let old = payload(&[("x", TYPE_INT)]);
    refused(&old, &payload(&[("x", TYPE_FLOAT)]), &["Row.c", "Shape.Dot"]);
    refused(&old, &payload(&[("x", TYPE_INT), ("y", TYPE_INT)]), &["Row.c", "Shape.Dot"]);
    let bare = program(|p| {
        let shape = p.bare("Shape", &["None", "Dot"]);
        let _ = p.table("Row", &[plain("c", shape)]);
    });
    refused(&old, &bare, &["Row.c", "Shape.Dot"]);
}

#[test]
fn scm_10_variants() {
    let bare = |variants: &[&str], nested: bool| {
        program(|p| {
            let state = p.bare("State", variants);
            let ty = if nested { p.multi(state) } else { state };
            let _ = p.table("Row", &[plain("c", ty)]);
        })
    };
    for nested in [false, true] {
        let old = bare(&["Open", "Done"], nested);
        refused(&old, &bare(&["Open"], nested), &["Row.c", "`State`", "`Done`"]);
        refused(&old, &bare(&["Open", "Over"], nested), &["Row.c", "`Done`"]);
        opens(&old, &bare(&["Open", "Done", "Held"], nested));
    }
    let payload = |variants: &[&'static str]| {
        program(|p| {
            let shape = p.union("Shape", |_| variants.iter().map(|v| (*v, vec![("x", TYPE_INT)])).collect());
            let _ = p.table("Row", &[plain("c", shape)]);
        })
    };
    refused(&payload(&["Dot", "Line"]), &payload(&["Line"]), &["Row.c", "`Shape`", "`Dot`"]);
    opens(&payload(&["Dot", "Line"]), &payload(&["Line", "Area", "Dot"]));
}

#[test]
fn a_dependencys_class_is_another_one() {
    let of = |package: Option<&str>| {
        let mut program = table(&[plain("n", TYPE_INT)]);
        program.0.classes[0].package = package.map(str::to_owned);
        program
    };
    let (own, foreign) = (of(None), of(Some("lib")));
    opens(&foreign, &foreign);
    refused(&own, &foreign, &["`Row`", "3 rows"]);
    refused(&foreign, &own, &["`lib.Row`", "3 rows"]);
}
