//! Pairs of programs, the second started on the store of the first: each row of section 10 of the tables specification,
//! with and without rows. A refused store stays as it was, byte for byte, and the first program still opens it. Both are
//! killed before calls that change a file, `tests/crash/fault.c` counts them: before some, or with `CRASH_RUNS` (any
//! number) before each, and the start after that in its turn before each of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use corpus::{Finished, finish, root};

use crate::starting::files;
use crate::{Tree, assert_status};

/// More calls than there are.
const NEVER: usize = 1_000_000;

/// Files of a few KiB: they are copied often.
const SMALL: (&str, &str) = ("WO_CHECKPOINT_BYTES", "16384");

struct Pair {
    tag: &'static str,
    /// Declarations before and after.
    old: &'static str,
    new: &'static str,
    /// Statements that insert rows with the old ones, and that print with the new ones.
    insert: &'static str,
    show: &'static str,
    with_rows: Result<Opens, &'static [&'static str]>,
}

/// Lines on standard output and, without the program's name, on standard error.
#[derive(Clone, Copy)]
struct Opens(&'static [&'static str], &'static [&'static str]);

fn opens(shown: &'static [&'static str], notices: &'static [&'static str]) -> Result<Opens, &'static [&'static str]> {
    Ok(Opens(shown, notices))
}

fn source(declarations: &str, body: &str) -> String {
    format!("{declarations}\nfn main() {{\n{body}\n}}\n")
}

fn check(pair: &Pair) {
    let tag = pair.tag;
    let (old, new) = (source(pair.old, pair.insert), source(pair.new, pair.show));
    let tree = Tree::new(&[("old.wo", old.as_bytes()), ("new.wo", new.as_bytes())]);
    tree.write("empty.wo", source(pair.old, "").as_bytes());
    tree.write("bare.wo", source(pair.new, "").as_bytes());
    let data = [("WO_DATA", "data"), SMALL];
    let run = |program: &str, env: &[(&str, &str)]| tree.woc_env(&["run", program], env);

    // Without rows nothing is a reason to refuse.
    assert_status(&run("empty.wo", &[("WO_DATA", "without"), SMALL]), 0);
    let out = run("new.wo", &[("WO_DATA", "without"), SMALL]);
    assert_eq!(out.status, Some(0), "{tag}: {}", out.stderr_text());

    let out = run("old.wo", &data);
    assert_eq!(out.status, Some(0), "{tag}: {}", out.stderr_text());
    let before = files(&tree.path("data"));
    if pair.with_rows.is_ok() {
        killed_while_it_migrates(&tree, tag);
    } else {
        killed_while_it_is_refused(&tree, tag);
    }
    let out = run("new.wo", &data);
    let stderr = out.stderr_text();
    match pair.with_rows {
        Ok(Opens(shown, notices)) => {
            assert_eq!(out.status, Some(0), "{tag}: {stderr}");
            assert_eq!(out.stdout_text().lines().collect::<Vec<_>>(), shown, "{tag}");
            let notices: Vec<String> = notices.iter().map(|notice| format!("woc: {notice}")).collect();
            assert_eq!(stderr.lines().collect::<Vec<_>>(), notices, "{tag}");
            // It was announced once.
            let again = run("new.wo", &data);
            assert_eq!((again.stdout_text(), again.stderr_text().as_str()), (out.stdout_text(), ""), "{tag}");
        }
        Err(fragments) => {
            assert_eq!(out.status, Some(2), "{tag}: {stderr}");
            assert!(out.stdout.is_empty() && stderr.starts_with("woc: ") && stderr.lines().count() == 1, "{stderr}");
            for fragment in fragments {
                assert!(stderr.contains(fragment), "{tag}: no `{fragment}` in {stderr}");
            }
            assert!(!stderr.contains("corruption"), "{stderr}");
            assert!(files(&tree.path("data")) == before, "{tag}: the store was changed");
            let out = run("empty.wo", &data);
            assert_eq!((out.status, out.stderr_text().as_str()), (Some(0), ""), "{tag}");
        }
    }
    let checked = tree.woc(&["db", "check", "data"]);
    assert_eq!(checked.status, Some(0), "{tag}: {}", checked.stdout_text());
}

/// The library that makes calls on a store's files fail, built once for all test binaries.
fn faults() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fault.so");
        let own = path.with_extension(std::process::id().to_string());
        let mut compiler = Command::new("cc");
        let _ = compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&own).arg(root().join("tests/crash/fault.c"));
        let out = finish(&mut compiler, Duration::from_secs(60)).expect("cc, which links these tests, runs");
        assert_status(&out, 0);
        fs::rename(own, &path).expect("fault.so");
        path
    })
}

/// Starts an executable on the store `at`, killed before its call of that number that changes a file.
fn start_killed(tree: &Tree, program: &str, at: &str, call: usize) -> Finished {
    let data = fs::canonicalize(tree.path(at)).expect("store");
    let mut command = Command::new(tree.path(program));
    let _ = command.current_dir(tree.path("")).env_clear().env("WO_DATA", at).env("LD_PRELOAD", faults());
    // A kill leaves what was written, synced or not.
    let _ =
        command.env("FAULT_DIR", data).envs([("FAULT_ON", "any"), ("FAULT_DO", "kill"), ("FAULT_SYNC", "free"), SMALL]);
    let _ = command.env("FAULT_AT", call.to_string());
    let out = finish(&mut command, Duration::from_secs(60)).expect("the program runs");
    assert!(!out.timed_out);
    out
}

fn copy(tree: &Tree, from: &str, to: &str) {
    let _ = fs::remove_dir_all(tree.path(to));
    fs::create_dir(tree.path(to)).expect("directory");
    for (path, bytes) in files(&tree.path(from)) {
        let name = path.file_name().expect("name");
        fs::write(tree.path(to).join(name), bytes.expect("a file")).expect("file");
    }
}

/// Rows and next ids of a sound store.
fn contents(tree: &Tree, data: &str) -> (String, Vec<String>) {
    assert_status(&tree.woc(&["db", "check", data]), 0);
    let (dump, stat) = (tree.woc(&["db", "dump", data]), tree.woc(&["db", "stat", "--json", data]));
    let stat = stat.stdout_text();
    // Of tables that have had rows: the others may be missing in one of the schemas.
    let ids = stat.split("{\"class\":").skip(1).filter_map(|table| {
        let (class, next) = (table.split(',').next()?, table.split("\"next_id\":").nth(1)?.split(',').next()?);
        (next != "1").then(|| format!("{class} {next}"))
    });
    let mut ids: Vec<String> = ids.collect();
    ids.sort();
    (dump.stdout_text(), ids)
}

/// [SCM-12], T6: whenever the new program is killed while it opens `data`, there is what was there or what it makes of it,
/// and either program goes on with it. The programs here only open the store.
fn killed_while_it_migrates(tree: &Tree, tag: &str) {
    for program in ["bare", "empty"] {
        assert_status(&tree.woc(&["build", &format!("{program}.wo"), "-o", program]), 0);
    }
    let old = contents(tree, "data");
    copy(tree, "data", "whole");
    assert_status(&start_killed(tree, "bare", "whole", NEVER), 0);
    let new = contents(tree, "whole");
    let every = std::env::var_os("CRASH_RUNS").is_some();
    let (step, mut call) = if every { (1, 1) } else { (4, 1 + tag.len() % 4) };
    let mut made = 0;
    let last = loop {
        copy(tree, "data", "killed");
        let out = start_killed(tree, "bare", "killed", call);
        let left = contents(tree, "killed");
        assert!(left == old || left == new, "{tag}, call {call}: {left:?}");
        if out.status.is_some() {
            assert_status(&out, 0);
            break call;
        }
        made += usize::from(left == new);
        if left == old {
            copy(tree, "killed", "back");
            let out = start_killed(tree, "empty", "back", NEVER);
            // Where rows do not show which schema they have, the new one may be there, from which there may be no way back.
            assert!(out.status == Some(0) || new == old, "{tag}, call {call}: {}", out.stderr_text());
            assert_eq!(contents(tree, "back"), old, "{tag}, call {call}");
        }
        let first = 1 + call % 7;
        for second in if every { 1..usize::MAX } else { first..first + 1 } {
            copy(tree, "killed", "twice");
            let over = start_killed(tree, "bare", "twice", second).status.is_some();
            let out = start_killed(tree, "bare", "twice", NEVER);
            assert_eq!(out.status, Some(0), "{tag}, calls {call} and {second}: {}", out.stderr_text());
            assert_eq!(contents(tree, "twice"), new, "{tag}, calls {call} and {second}");
            if over {
                break;
            }
        }
        call += step;
    };
    // The lock, the process's number, the end at least.
    assert!(last > 4 && (!every || made > 0), "{tag}: {last} calls, after {made} of which all was new");
}

/// T19: up to its refusal a start changes nothing, so that it can be killed at any moment.
fn killed_while_it_is_refused(tree: &Tree, tag: &str) {
    assert_status(&tree.woc(&["build", "bare.wo", "-o", "bare"]), 0);
    let before = files(&tree.path("data"));
    for call in 1.. {
        let out = start_killed(tree, "bare", "data", call);
        assert!(files(&tree.path("data")) == before, "{tag}: the store was changed before call {call}");
        if out.status.is_some() {
            assert_status(&out, 2);
            // The lock file is opened as one that may have to be made.
            assert!(call <= 2, "{tag}: {call} calls");
            break;
        }
    }
}

const TWO: &str = "@table\nclass A {\n  n: Int\n  t: Text\n}";
const TWO_ROWS: &str = "  insert A { n: 1, t: \"one\" }\n  insert A { n: 2, t: \"two\" }";

#[test]
fn t19_changes_that_open() {
    let columns = "  for a in from a in A select a { print(\"${a.n} ${a.t}\") }";
    for pair in [
        Pair {
            tag: "none",
            old: TWO,
            new: TWO,
            insert: TWO_ROWS,
            show: columns,
            with_rows: opens(&["1 one", "2 two"], &[]),
        },
        Pair {
            tag: "reordering",
            old: "type Kind = Low | High | Odd\n@table\nclass A {\n  n: Int\n  t: Text\n  k: Kind\n}\n@table\nclass B { n: Int }",
            new: "type Kind = New | Odd | High | Low\n@table\nclass B { n: Int }\n@table\nclass A {\n  k: Kind\n  t: Text\n  n: Int\n}",
            insert: "  insert A { n: 1, t: \"one\", k: Low }\n  insert A { n: 2, t: \"two\", k: Odd }\n  insert B { n: 7 }",
            show: "  for a in from a in A select a { print(\"${a.n} ${a.t} ${a.k == Low} ${a.k == Odd}\") }\n  \
                   for b in from b in B select b { print(\"${b.n}\") }",
            with_rows: opens(&["1 one true false", "2 two false true", "7"], &[]),
        },
        Pair {
            tag: "SCM-1",
            old: "@table\nclass A { n: Int }",
            new: "@table\nclass A {\n  n: Int\n  d: Int = 5\n  q: ?Text\n  i: Int\n  f: Float\n  b: Bool\n  t: Text\n  m: multi Int\n}",
            insert: "  insert A { n: 1 }",
            show: "  for a in from a in A select a { print(\"${a.d} ${a.q == nil} ${a.i} ${a.f} ${a.b} '${a.t}' ${len(a.m)}\") }",
            with_rows: opens(&["5 true 0 0.0 false '' 0"], &["A +d +q +i +f +b +t +m"]),
        },
        Pair {
            tag: "SCM-3",
            old: TWO,
            new: "@table\nclass A { n: Int }",
            insert: TWO_ROWS,
            show: "  for a in from a in A select a { print(\"${a.n}\") }",
            with_rows: opens(&["1", "2"], &["A -t"]),
        },
        Pair {
            tag: "columns of other kinds removed and added, SCM-11",
            old: "@table\nclass A {\n  n: Int\n  t: Text\n}\n@table\nclass B { x: Int }",
            new: "@table\nclass A {\n  f: Float\n  t: Text\n}\n@table\nclass B {\n  x: Int\n  y: Text\n}",
            insert: "  insert A { n: 1, t: \"one\" }\n  insert B { x: 1 }",
            show: "  for a in from a in A select a { print(\"${a.f} ${a.t}\") }",
            with_rows: opens(&["0.0 one"], &["A -n +f", "B +y"]),
        },
        Pair {
            tag: "SCM-5 names of one kind, and Bool to them",
            old: "@table\nclass A {\n  n: Int\n  b: Bool\n}",
            new: "@table\nclass A {\n  n: Timestamp\n  b: Int\n}",
            insert: "  insert A { n: 1, b: true }",
            show: "  for a in from a in A select a {\n    let n: Int = a.n\n    print(\"${n} ${a.b}\")\n  }",
            with_rows: opens(&["1 1"], &[]),
        },
        Pair {
            tag: "SCM-5 nullable",
            old: "@table\nclass A {\n  n: Int\n  t: ?Text\n}",
            new: "@table\nclass A {\n  n: ?Int\n  t: Text\n}",
            insert: "  insert A { n: 1, t: \"one\" }",
            show: "  for a in from a in A select a { print(\"${a.n == 1} ${a.t}\") }",
            with_rows: opens(&["true one"], &[]),
        },
        Pair {
            tag: "SCM-7",
            old: TWO,
            new: "@table(index: [n])\nclass A {\n  n: Int\n  t: Text @unique\n}",
            insert: TWO_ROWS,
            show: "  for a in from a in A where a.t == \"two\" select a { print(\"${a.n}\") }\n  \
                   print(try \"${insert A { n: 3, t: \"one\" }}\" catch (e) \"${e.code}\")",
            with_rows: opens(&["2", "10"], &[]),
        },
        Pair {
            tag: "SCM-8 label",
            old: TWO,
            new: "@table(name: \"other\")\nclass A {\n  n: Int\n  t: Text\n}",
            insert: TWO_ROWS,
            show: columns,
            with_rows: opens(&["1 one", "2 two"], &[]),
        },
        Pair {
            tag: "SCM-8 volatile became durable",
            old: "@table(durable: false)\nclass A { n: Int }\n@table\nclass B { n: Int }",
            new: "@table\nclass A { n: Int }\n@table\nclass B { n: Int }",
            insert: "  insert A { n: 1 }\n  insert B { n: 1 }",
            show: "  print(\"${count(from a in A select a)} ${count(from b in B select b)}\")",
            with_rows: opens(&["0 1"], &[]),
        },
        Pair {
            tag: "SCM-10 variants added",
            old: "type Step = Stay | Go(n: Int)\n@table\nclass A { s: Step }",
            new: "type Step = Jump(h: Int, n: Int) | Go(n: Int) | Stay\n@table\nclass A { s: Step }",
            insert: "  insert A { s: Go(4) }\n  insert A { s: Stay }",
            show: "  for a in from a in A select a {\n    let n = switch a.s {\n      case Stay: 0\n      case Go(n): n\n      \
                   case Jump(h, n): h\n    }\n    print(\"${n}\")\n  }",
            with_rows: opens(&["4", "0"], &[]),
        },
    ] {
        check(&pair);
    }
}

#[test]
fn t19_more_changes_that_open() {
    for pair in [
        Pair {
            tag: "SCM-1 containers, records and refs",
            old: "@table\nclass A { n: Int }",
            new: "class Pos {\n  x: Int = 4\n  y: ?Int\n}\n@table\nclass B { n: Int }\n@table\nclass A {\n  n: Int\n  p: Pos = Pos {}\n\
                  \x20 r: ?ref B\n  w: map<Text, Int>\n  raw: Bytes\n  k: ?Text = \"k\"\n}",
            insert: "  insert A { n: 1 }",
            show: "  for a in from a in A select a {\n    \
                   print(\"${a.p.x} ${a.p.y == nil} ${a.r == nil} ${len(a.w)} ${a.raw == bytes_of_text(\"\")} ${a.k == \"k\"}\")\n  }",
            with_rows: opens(&["4 true true 0 true true"], &["A +p +r +w +raw +k"]),
        },
        Pair {
            tag: "SCM-3 a class without rows beside one with rows",
            old: "@table\nclass A { n: Int }\n@table\nclass B { n: Int }",
            new: "@table\nclass A { n: Int }",
            insert: "  insert A { n: 1 }\n  delete insert B { n: 1 }",
            show: "  for a in from a in A select a { print(\"${a.n}\") }",
            with_rows: opens(&["1"], &[]),
        },
        Pair {
            tag: "SCM-5 from Timestamp and Bool",
            old: "@table\nclass A {\n  n: Timestamp\n  b: Bool\n  c: ?Bool\n}",
            new: "@table\nclass A {\n  n: Int\n  b: Timestamp\n  c: ?Int\n}",
            insert: "  insert A { n: 7, b: true, c: false }",
            show: "  for a in from a in A select a {\n    let b: Int = a.b\n    print(\"${a.n} ${b} ${a.c == 0}\")\n  }",
            with_rows: opens(&["7 1 true"], &[]),
        },
        Pair {
            tag: "SCM-5 numbers that are not nil",
            old: "@table\nclass A {\n  n: ?Int\n  f: ?Float\n}",
            new: "@table\nclass A {\n  n: Int\n  f: Float\n}",
            insert: "  insert A { n: 0, f: 0.5 }",
            show: "  for a in from a in A select a { print(\"${a.n} ${a.f}\") }",
            with_rows: opens(&["0 0.5"], &[]),
        },
        Pair {
            tag: "SCM-7 removed and changed",
            old: "@table(index: [n], index: [n, t])\nclass A {\n  n: Int\n  t: Text @unique\n}",
            new: "@table(index: [t, n])\nclass A {\n  n: Int\n  t: Text\n}",
            insert: TWO_ROWS,
            show: "  insert A { n: 3, t: \"one\" }\n  \
                   for a in from a in A where a.t == \"one\" order by a.n desc select a {\n    print(\"${a.n}\")\n    \
                   if a.n == 3 { delete a }\n  }",
            with_rows: opens(&["3", "1"], &[]),
        },
        Pair {
            tag: "SCM-7 unique beside nil",
            old: "@table\nclass A { t: ?Text }",
            new: "@table\nclass A { t: ?Text @unique }",
            insert: "  insert A { t: nil }\n  insert A { t: \"one\" }\n  insert A { t: nil }",
            show: "  print(\"${count(from a in A where a.t == nil select a)}\")\n  \
                   print(try \"${insert A { t: \"one\" }}\" catch (e) \"${e.code}\")",
            with_rows: opens(&["2", "10"], &[]),
        },
        Pair {
            tag: "SCM-10 variants within values",
            old: "type Kind = Low | High\nclass Pos {\n  k: Kind\n  x: Int\n}\n@table\nclass A {\n  at: multi Pos\n  by: map<Text, Kind>\n}",
            new: "type Kind = New | High | Low\nclass Pos {\n  x: Int\n  k: Kind\n}\n@table\nclass A {\n  at: multi Pos\n  by: map<Text, Kind>\n}",
            insert: "  let by: map<Text, Kind> = {}\n  by[\"a\"] = High\n  insert A { at: [Pos { k: Low, x: 5 }], by: by }",
            show: "  for a in from a in A select a {\n    let by = a.by\n    print(\"${a.at[0].k == Low} ${a.at[0].x} ${by[\"a\"] == High}\")\n  }",
            with_rows: opens(&["true 5 true"], &[]),
        },
    ] {
        check(&pair);
    }
}

#[test]
fn t19_changes_that_are_refused() {
    let count = "  print(\"${count(from a in A select a)}\")";
    for (tag, old, new, insert, fragments) in [
        (
            "SCM-2 ref",
            "@table\nclass A { n: Int }",
            "@table\nclass B { n: Int }\n@table\nclass A {\n  n: Int\n  other: ref B\n}",
            "  insert A { n: 1 }",
            &["A", "other"][..],
        ),
        (
            "SCM-2 union",
            "@table\nclass A { n: Int }",
            "type Kind = Low | High\n@table\nclass A {\n  n: Int\n  kind: Kind\n}",
            "  insert A { n: 1 }",
            &["A", "kind"],
        ),
        ("SCM-4", TWO, "@table\nclass A {\n  n: Int\n  word: Text\n}", TWO_ROWS, &["A", "`t`", "`word`", "two steps"]),
        ("SCM-5", TWO, "@table\nclass A {\n  n: Text\n  t: Text\n}", TWO_ROWS, &["A.n", "Int", "Text"]),
        ("SCM-5 Int to Bool", TWO, "@table\nclass A {\n  n: Bool\n  t: Text\n}", TWO_ROWS, &["A.n", "Int", "Bool"]),
        (
            "SCM-5 nil",
            "@table\nclass A { t: ?Text }",
            "@table\nclass A { t: Text }",
            "  insert A { t: \"one\" }\n  insert A { t: nil }",
            &["A.t", "?Text", "nil"],
        ),
        (
            "SCM-2 record",
            "@table\nclass A { n: Int }",
            "class Pos { x: Int }\n@table\nclass A {\n  n: Int\n  at: Pos\n}",
            "  insert A { n: 1 }",
            &["A.at", "Pos", "1 row"],
        ),
        (
            "SCM-4 nullable",
            "@table\nclass A { n: Int }",
            "@table\nclass A { m: ?Int }",
            "  insert A { n: 1 }",
            &["A", "`n`", "`m`", "two steps"],
        ),
        (
            "SCM-5 nil of a number",
            "@table\nclass A { n: ?Int }",
            "@table\nclass A { n: Int }",
            "  insert A { n: 1 }\n  insert A { n: nil }",
            &["A.n", "?Int", "nil"],
        ),
        (
            "SCM-5 nil of a float beside another change",
            "@table\nclass A {\n  f: ?Float\n  t: Text\n}",
            "@table\nclass A {\n  f: Float\n}",
            "  insert A { f: nil, t: \"\" }",
            &["A.f", "?Float", "nil"],
        ),
        (
            "SCM-5 Float to Int",
            "@table\nclass A { n: Float }",
            "@table\nclass A { n: Int }",
            "  insert A { n: 1.0 }",
            &["A.n", "Float", "Int"],
        ),
        (
            "SCM-7 of a number",
            "@table\nclass A { n: Int }",
            "@table\nclass A { n: Int @unique }",
            "  insert A { n: -7 }\n  insert A { n: 1 }\n  insert A { n: -7 }",
            &["A.n", "@unique", "-7"],
        ),
        (
            "SCM-10 payload",
            "type Step = Stay | Go(n: Int)\n@table\nclass A { s: Step }",
            "type Step = Stay | Go(n: Text)\n@table\nclass A { s: Step }",
            "  insert A { s: Go(4) }",
            &["A.s", "Go"],
        ),
        (
            "SCM-10 within a list",
            "class Pos { x: Int }\n@table\nclass A { at: multi Pos }",
            "class Pos { y: Int }\n@table\nclass A { at: multi Pos }",
            "  insert A { at: [Pos { x: 1 }] }",
            &["A.at", "Pos"],
        ),
        (
            "SCM-7",
            "@table\nclass A { t: Text }",
            "@table\nclass A { t: Text @unique }",
            "  insert A { t: \"one\" }\n  insert A { t: \"two\" }\n  insert A { t: \"one\" }",
            &["A.t", "@unique", "\"one\""],
        ),
        (
            "SCM-10 target",
            "@table\nclass B { n: Int }\n@table\nclass C { n: Int }\n@table\nclass A { to: ref B }",
            "@table\nclass B { n: Int }\n@table\nclass C { n: Int }\n@table\nclass A { to: ref C }",
            "  insert A { to: insert B { n: 1 } }",
            &["A.to"],
        ),
        (
            "SCM-10 shape",
            "class Pos { x: Int }\n@table\nclass A { at: Pos }",
            "class Pos {\n  x: Int\n  y: Int\n}\n@table\nclass A { at: Pos }",
            "  insert A { at: Pos { x: 1 } }",
            &["A.at", "Pos"],
        ),
        (
            "SCM-10 variant",
            "type Kind = Low | High\n@table\nclass A { kind: Kind }",
            "type Kind = Low\n@table\nclass A { kind: Kind }",
            "  insert A { kind: Low }",
            &["A.kind", "High"],
        ),
    ] {
        check(&Pair { tag, old, new, insert, show: count, with_rows: Err(fragments) });
    }
    let other = "  print(\"${count(from b in B select b)}\")";
    for (tag, old, new, fragments) in [
        ("SCM-6 gone", "@table\nclass A { n: Int }", "@table\nclass B { n: Int }", &["A", "2 rows"][..]),
        (
            "SCM-9",
            "@table\nclass A { n: Int }",
            "@table\nclass B { n: Int }\n@table(durable: false)\nclass A { n: Int }",
            &["A", "durable: false", "2 rows"],
        ),
    ] {
        let insert = "  insert A { n: 1 }\n  insert A { n: 2 }";
        check(&Pair { tag, old, new, insert, show: other, with_rows: Err(fragments) });
    }
}

/// Ids go on where they were when a class that was gone without rows comes back.
#[test]
fn id_3_across_changes_of_the_schema() {
    let a = "@table\nclass A { n: Int }\nfn main() {\n  let a: A = insert A { n: 1 }\n  let id: Int = a\n  print(\"${id}\")\n  delete a\n}\n";
    let b = "@table\nclass B { n: Int }\nfn main() { insert B { n: 1 } }\n";
    let both = format!("@table\nclass B {{ n: Int }}\n{a}");
    let tree = Tree::new(&[("a.wo", a.as_bytes()), ("b.wo", b.as_bytes()), ("both.wo", both.as_bytes())]);
    let data = [("WO_DATA", "data")];
    for (program, wanted) in [("a.wo", "1\n"), ("b.wo", ""), ("both.wo", "2\n")] {
        let out = tree.woc_env(&["run", program], &data);
        assert_status(&out, 0);
        assert_eq!(out.stdout_text(), wanted, "{program}");
    }
    assert_status(&tree.woc(&["db", "check", "data"]), 0);
    assert!(fs::metadata(tree.path("data")).is_ok());
}
