//! `woc db`: what it shows of a store, that it writes nothing, and its exit statuses (tables specification 12).

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::starting::files;
use crate::{Tree, assert_one_line, assert_status, assert_usage, woc};

const SHOP: &str = r#"use json
type Kind = Low | High
type Step = Stay | Go(n: Int, to: ?Text)
class Pos {
  x: Int
  y: ?Float
}
@table(name: "bins")
class Bin {
  code: Text @unique
  lots: backlink Lot.bin
}
@table
class Lot {
  n: Int
  b: Bool
  f: Float
  t: Text
  raw: Bytes
  j: json.Value
  kind: Kind
  step: Step
  at: ?Pos
  list: multi ?Int
  names: map<Text, multi Text>
  numbers: map<Int, Pos>
  bin: ref Bin
  spare: ?ref Bin
  many: multi ref Bin
}
fn main() {
  let bin: Bin = insert Bin { code: "B\"7\n" }
  let other: Bin = insert Bin { code: "ü" }
  let raw = bytes_of_text("\tab")
  let doc: json.Value = "{\"a\":\n[1, 2.50]}"
  let names: map<Text, multi Text> = {}
  names["z"] = ["one"]
  names["a"] = []
  let numbers: map<Int, Pos> = {}
  numbers[7] = Pos { x: 1, y: 0.5 }
  insert Lot { n: -5, b: true, f: 0.1, t: "", raw: raw, j: doc, kind: High, step: Go(3, nil), at: Pos { x: 1, y: nil },
    list: [1, nil, 3], names: names, numbers: numbers, bin: bin, spare: nil, many: [other, bin] }
  insert Lot { n: 9223372036854775807, b: false, f: 0.0 / zero(), t: "x", raw: raw, j: "{", kind: Low, step: Stay, at: nil,
    list: [], names: names, numbers: numbers, bin: other, spare: bin, many: [] }
}
fn zero() -> Float { return 0.0 }
"#;

const LOTS: [&str; 2] = [
    r#"{"table":"Lot","id":1,"row":{"n":-5,"b":true,"f":0.1,"t":"","raw":"CWFi","j":{"a": [1, 2.50]},"kind":1,"step":{"n":3,"to":null},"at":{"x":1,"y":null},"list":[1,null,3],"names":{"z":["one"],"a":[]},"numbers":{"7":{"x":1,"y":0.5}},"bin":1,"spare":null,"many":[2,1]}}"#,
    r#"{"table":"Lot","id":2,"row":{"n":9223372036854775807,"b":false,"f":null,"t":"x","raw":"CWFi","j":"{","kind":0,"step":{},"at":null,"list":[],"names":{"z":["one"],"a":[]},"numbers":{"7":{"x":1,"y":0.5}},"bin":2,"spare":1,"many":[]}}"#,
];

const BINS: [&str; 2] =
    [r#"{"table":"Bin","id":1,"row":{"code":"B\"7\n"}}"#, "{\"table\":\"Bin\",\"id\":2,\"row\":{\"code\":\"\u{fc}\"}}"];

/// A tree with the store `data` of a program.
fn store(source: &str) -> Tree {
    let tree = Tree::new(&[("a.wo", source.as_bytes())]);
    assert_status(&tree.woc_env(&["run", "a.wo"], &[("WO_DATA", "data")]), 0);
    tree
}

#[test]
fn dump_has_all_kinds_of_columns() {
    let tree = store(SHOP);
    let before = files(&tree.path("data"));
    let out = tree.woc(&["db", "dump", "data"]);
    assert_status(&out, 0);
    let all: Vec<&str> = BINS.into_iter().chain(LOTS).collect();
    assert_eq!(out.stdout_text().lines().collect::<Vec<_>>(), all);
    assert!(out.stderr.is_empty());
    let out = tree.woc(&["db", "dump", "data", "--table", "Lot"]);
    assert_eq!(out.stdout_text().lines().collect::<Vec<_>>(), LOTS);
    assert_one_line(&tree.woc(&["db", "dump", "--table", "Lost", "data"]), "no class `Lost`");
    assert!(files(&tree.path("data")) == before);
}

/// What `dump` writes of a row is what the program's `json.encode` gives.
#[test]
fn dump_writes_as_json_encode() {
    let encode =
        "fn main() {\n  for l in from l in Lot select l { print(join(split(json.encode(l), \"\\n\"), \" \")) }\n";
    let tree = store(SHOP);
    let (declarations, _) = SHOP.split_once("fn main() {").unwrap();
    tree.write("b.wo", format!("{declarations}{encode}}}\n").as_bytes());
    let out = tree.woc_env(&["run", "b.wo"], &[("WO_DATA", "data")]);
    assert_status(&out, 0);
    let rows: Vec<String> = (1..)
        .zip(out.stdout_text().lines())
        .map(|(id, row)| format!("{{\"table\":\"Lot\",\"id\":{id},\"row\":{row}}}"))
        .collect();
    // But for what is no JSON, and for rows in a list.
    let many = "[{\"code\":\"\u{fc}\"},{\"code\":\"B\\\"7\\n\"}]";
    assert_eq!(rows, LOTS.map(|line| line.replace("\"j\":\"{\"", "\"j\":{").replace("[2,1]", many)));
}

#[test]
fn stat_for_people_and_machines() {
    let tree = store(
        "@table(name: \"marks\")\nclass Mark { n: Int }\n@table\nclass None { n: Int }\n\
         fn main() {\n  let m: Mark = insert Mark { n: 1 }\n  insert Mark { n: 2 }\n  m.n = 3\n  delete m\n}\n",
    );
    let before = files(&tree.path("data"));
    let out = tree.woc(&["db", "stat", "data"]);
    assert_status(&out, 0);
    let text = out.stdout_text();
    // An insert of one Int takes 48 bytes, a change 56, a deletion and the end 40 and 32.
    for part in [
        "\n0000000000000001.log  ",
        "\nlock  ",
        "\nclass  label  rows  next id  live bytes\nMark   marks     1        3          48\nNone   None      0        1           0\n",
        "\nrecords 5 in 224 bytes, 79 % no longer needed\nlast sequence number 5\ntorn tail 0 bytes\n",
    ] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
    let out = tree.woc(&["db", "stat", "--json", "data"]);
    assert_status(&out, 0);
    let text = out.stdout_text();
    let (files_part, rest) = text.split_once("],\"tables\":").unwrap();
    assert!(files_part.starts_with("{\"files\":[{\"name\":\"0000000000000001.log\",\"bytes\":"), "{text}");
    assert_eq!(
        rest,
        "[{\"class\":\"Mark\",\"label\":\"marks\",\"retired\":false,\"rows\":1,\"next_id\":3,\"live_bytes\":48},\
         {\"class\":\"None\",\"label\":\"None\",\"retired\":false,\"rows\":0,\"next_id\":1,\"live_bytes\":0}],\
         \"records\":5,\"record_bytes\":224,\"unneeded\":0.7857,\"last_seq\":5,\"torn_bytes\":0}\n"
    );
    let out = tree.woc(&["db", "check", "data"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "data: 5 records, 1 rows, nothing wrong\n");
    assert!(files(&tree.path("data")) == before);
}

/// Where each record of a segment begins: the lengths follow each other.
fn records(log: &[u8]) -> Vec<usize> {
    let number = |at: usize| u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize;
    let mut at = (64 + number(48)).next_multiple_of(8);
    let mut found = Vec::new();
    while number(at + 4) > 0 {
        found.push(at);
        at = (at + number(at + 4)).next_multiple_of(8);
    }
    found
}

#[test]
fn damage_and_torn_tails() {
    let tree = store(SHOP);
    let path = tree.path("data/0000000000000001.log");
    let sound = fs::read(&path).unwrap();
    let places = records(&sound);
    assert_eq!(places.len(), 5);

    // A bit in the body of the third record, which others follow.
    let mut bytes = sound.clone();
    bytes[places[2] + 40] ^= 4;
    fs::write(&path, &bytes).unwrap();
    let before = files(&tree.path("data"));
    let line = format!("data/0000000000000001.log is damaged at offset {}: ", places[2]);
    let out = tree.woc(&["db", "check", "data"]);
    assert_status(&out, 1);
    assert!(out.stdout_text().starts_with(&line) && out.stdout_text().lines().count() == 1, "{}", out.stdout_text());
    let out = tree.woc(&["db", "dump", "data"]);
    assert_status(&out, 1);
    assert_eq!(out.stdout_text().lines().collect::<Vec<_>>(), BINS);
    assert!(out.stderr_text().starts_with(&format!("woc: {line}")), "{}", out.stderr_text());
    assert_one_line(&tree.woc(&["db", "stat", "data"]), &line);
    assert!(files(&tree.path("data")) == before);

    // The last two records cut in the middle of the first of them, behind a byte that is zero.
    fs::write(&path, &sound[..places[3] + 33]).unwrap();
    let before = files(&tree.path("data"));
    let out = tree.woc(&["db", "check", "data"]);
    assert_status(&out, 0);
    let text = out.stdout_text();
    assert!(
        text.starts_with("note: a torn tail of ") && text.ends_with(" 3 records, 3 rows, nothing wrong\n"),
        "{text}"
    );
    assert!(tree.woc(&["db", "stat", "data"]).stdout_text().contains("\ntorn tail 32 bytes\n"));
    let out = tree.woc(&["db", "dump", "data"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text().lines().collect::<Vec<_>>(), [BINS[0], BINS[1], LOTS[0]]);
    assert!(files(&tree.path("data")) == before);
}

#[test]
fn what_cannot_be_opened() {
    let tree = Tree::new(&[("file", b""), ("other/notes.txt", b""), ("p/main.wo", b""), ("p/.wo-data/lock", b"")]);
    fs::create_dir(tree.path("empty")).unwrap();
    for form in ["stat", "check", "dump"] {
        for (dir, part) in [
            ("none", "none: there is no such directory"),
            ("file", "not a directory"),
            ("other", "other: not a store"),
            ("p", "p: not a store: none of its files is one's; `p/.wo-data` is one"),
        ] {
            assert_one_line(&tree.woc(&["db", form, dir]), part);
        }
        // A start that was cut off leaves such a store.
        assert_status(&tree.woc(&["db", form, "empty"]), 0);
    }
    assert_eq!(files(&tree.path("other")).len() + files(&tree.path("empty")).len(), 1);
    let out = woc(&["db"]);
    assert!(out.stderr_text().starts_with("woc: `db` needs `stat`, `check` or `dump`"), "{}", out.stderr_text());
    for wrong in [&["db"][..], &["db", "stat"], &["db", "repair", "x"], &["db", "check", "x", "--json"]] {
        assert_usage(&woc(wrong));
    }
}

/// Classes of a dependency have its key before their names.
#[test]
fn tables_of_a_dependency() {
    let tree = Tree::new(&[
        ("lib/wo.toml", b"name = \"lib\"\nkind = \"library\"\n"),
        ("lib/a.wo", b"@table\npub class Kept { n: Int }\n"),
        ("p/wo.toml", b"name = \"p\"\n[deps]\nlib = { path = \"../lib\" }\n"),
        ("p/main.wo", b"use lib\nfn main() { insert Kept { n: 1 } }\n"),
    ]);
    assert_status(&tree.woc(&["run", "p"]), 0);
    let out = tree.woc(&["db", "dump", "p/.wo-data", "--table", "lib.Kept"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "{\"table\":\"lib.Kept\",\"id\":1,\"row\":{\"n\":1}}\n");
}

/// T21: what has the name of a file of a store and is none, to tools and to a start: an answer, and soon.
#[test]
fn t21_names_of_the_store_that_are_no_files() {
    type Make = fn(&Path);
    let source = "@table\nclass Row { n: Int }\nfn main() { insert Row { n: 1 } }\n";
    let make: [(&str, Make); 6] = [
        ("a pipe", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("a directory", |path| fs::create_dir(path).unwrap()),
        ("a link to a device", |path| symlink("/dev/zero", path).unwrap()),
        ("a link to nothing", |path| symlink("nothing", path).unwrap()),
        ("a link to itself", |path| symlink(path, path).unwrap()),
        ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
    ];
    for name in ["0000000000000001.log", "0000000000000002.log", "0000000000000002.tmp", "lock"] {
        for (kind, make) in &make {
            let tree = store(source);
            let path = tree.path("data").join(name);
            let _ = fs::remove_file(&path);
            make(&path);
            let begun = Instant::now();
            for form in ["stat", "check", "dump"] {
                let out = tree.woc(&["db", form, "data"]);
                assert!(matches!(out.status, Some(0..=2)), "{form} with {kind} as {name}: {}", out.stderr_text());
            }
            let out = tree.woc_env(&["run", "a.wo"], &[("WO_DATA", "data")]);
            assert!(matches!(out.status, Some(0 | 2)), "{kind} as {name}: {:?} {}", out.status, out.stderr_text());
            assert!(begun.elapsed() < Duration::from_secs(20), "{kind} as {name}");
        }
    }
}

/// T21: some of the bytes that the store's own test has by the thousand, to the real thing.
#[test]
fn t21_any_bytes_as_the_log() {
    let tree = store(SHOP);
    let path = tree.path("data/0000000000000001.log");
    let sound = fs::read(&path).unwrap();
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..24 {
        let mut bytes = sound.clone();
        let end = records(&sound).last().unwrap() + 100;
        match round % 4 {
            0 => bytes[random(end)] ^= 1 << random(8),
            1 => bytes.truncate(random(end)),
            2 => drop(bytes.drain(random(200)..200 + random(400))),
            _ => bytes.iter_mut().for_each(|byte| *byte = random(256) as u8),
        }
        fs::write(&path, bytes).unwrap();
        let before = files(&tree.path("data"));
        let check = tree.woc(&["db", "check", "data"]);
        assert!(matches!(check.status, Some(0 | 1)), "round {round}: {}", check.stderr_text());
        let dump = tree.woc(&["db", "dump", "data"]);
        assert_eq!(dump.status, check.status, "round {round}: {}", dump.stderr_text());
        assert!(files(&tree.path("data")) == before);
        let out = tree.woc_env(&["run", "a.wo"], &[("WO_DATA", "data")]);
        if check.status == Some(1) {
            assert_one_line(&out, check.stdout_text().lines().next().unwrap());
            assert!(files(&tree.path("data")) == before, "round {round}");
        } else {
            // The program inserts rows that are there: it traps, unless they were lost.
            assert!(matches!(out.status, Some(0 | 1)), "round {round}: {}", out.stderr_text());
        }
    }
}
