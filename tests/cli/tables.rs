//! Tables as the command line shows them: plans of queries, what a program with durable tables says at its start.

use crate::{Tree, assert_one_line, assert_status};

const SHOP: &str = r#"@table(index: [zone, code], index: [weight], durable: false)
class Bin {
  code: Text @unique
  zone: Int
  weight: Float
  tag: ?Text @unique
  lots: backlink Lot.bin
}
@table(index: [part, count], index: [count], durable: false)
class Lot {
  part: Text
  count: Int
  bin: ref Bin
  spare: ?ref Bin
}
fn long(t: Text) -> Bool { return len(t) > 3 }
"#;

/// The plan of each query, which stands in a line of its own.
#[track_caller]
fn plans(cases: &[(&str, &str)]) {
    let mut source = SHOP.to_owned();
    source.push_str("fn ask(b: Bin, some: multi Lot, n: Int, t: Text, u: ?Text) {\n");
    for (query, _) in cases {
        source.push_str(&format!("  print(\"${{len({query})}}\")\n"));
    }
    source.push_str("}\nfn main() { }\n");
    let tree = Tree::new(&[("shop.wo", source.as_bytes())]);
    let out = tree.woc(&["dump", "plan", "shop.wo"]);
    assert_status(&out, 0);
    let first = SHOP.lines().count() + 2;
    let wanted: Vec<String> =
        cases.iter().enumerate().map(|(i, (_, plan))| format!("shop.wo:{}: {plan}", first + i)).collect();
    assert_eq!(out.stdout_text().lines().collect::<Vec<_>>(), wanted);
}

#[test]
fn pln_2_access_paths() {
    plans(&[
        ("from x in Lot select x", "Lot scan"),
        ("from x in Lot where x.part == t select x", "Lot equal part"),
        ("from x in Lot where t == x.part and x.count == n select x", "Lot equal part count"),
        ("from x in Lot where x.part == t and 3 < x.count select x", "Lot range part count"),
        ("from x in Lot where x.part == t and x.bin.zone == 2 select x", "Lot equal part, filter"),
        ("from x in Lot where x.count > 3 and x.count <= n select x", "Lot range count"),
        ("from x in Lot where x.count > 3 and x.count != n select x", "Lot range count, filter"),
        ("from x in Lot where x.bin == b select x", "Lot equal bin"),
        ("from x in Lot where x.spare == nil select x", "Lot equal spare"),
        ("from x in Lot where x.part == t or x.count == n select x", "Lot scan, filter"),
        ("from x in Lot where x.part == t or n == 2 select x", "Lot scan, filter"),
        ("from x in Lot where n == 2 and x.part == t select x", "Lot equal part"),
        ("from x in Lot where x.part > t and x.bin == b select x", "Lot equal bin, filter"),
        ("from x in Lot where x.count + 0 == n select x", "Lot scan, filter"),
        ("from x in Lot where long(x.part) select x", "Lot scan, filter"),
        ("from x in Bin where x.zone == 1 and x.code == t select x", "Bin unique code, filter"),
        ("from x in Bin where x.tag == u select x", "Bin unique tag"),
        ("from x in Bin where x.zone == 1 and x.weight < 2.0 select x", "Bin equal zone, filter"),
        ("from x in some where x.part == t select x", "Lot list, filter"),
        ("from x in b.lots where x.count == n select x", "Lot equal bin, filter"),
    ]);
}

/// `len` needs no order, so these go through `join`.
#[test]
fn pln_4_orders() {
    let texts: Vec<(String, &str)> = [
        ("order by x.count", "Lot walk count, index"),
        ("order by x.count desc take 3", "Lot walk count, index"),
        ("order by x.part, x.count", "Lot walk part count, index"),
        ("order by x.part desc, x.count desc", "Lot walk part count, index"),
        ("order by x.part, x.count desc", "Lot scan, sort"),
        ("order by x.part", "Lot scan, sort"),
        ("order by x.part take 3", "Lot scan, heap"),
        ("order by x.count, x.part", "Lot scan, sort"),
        ("where x.part == t order by x.count", "Lot equal part, index"),
        ("where x.part == t order by x.count desc take n", "Lot equal part, index"),
        ("where x.part == t and x.count > 2 order by x.count", "Lot range part count, index"),
        ("where x.part == t order by x.part", "Lot equal part, sort"),
        ("where x.count > 2 order by x.count", "Lot range count, index"),
        ("where x.count > 2 order by x.part take 2", "Lot range count, heap"),
        ("where long(x.part) order by x.count", "Lot walk count, filter, index"),
        ("where long(x.part) order by x.part take 2", "Lot scan, filter, heap"),
        ("order by x.count + 1", "Lot scan, sort"),
        ("order by x.bin.code take 1", "Lot scan, heap"),
    ]
    .iter()
    .map(|(clauses, plan)| (format!("join(from x in Lot {clauses} select x.part, t)"), *plan))
    .collect();
    plans(&texts.iter().map(|(query, plan)| (query.as_str(), *plan)).collect::<Vec<_>>());
}

/// 13.3 and the example of [PLN-5], in the words of the specification.
#[test]
fn pln_5_plans_of_the_specification() {
    let runs = "@table(name: \"runs\", index: [team, secs], durable: false)\nclass Run {\n  team: Text\n  secs: Int\n}\n\
                fn show(rs: multi Run) { }\nfn main() {\n\
                \x20 show(from r in Run order by r.secs desc, r.team take 3 select r)\n\
                \x20 show(from r in Run where r.team == \"a\" order by r.secs select r)\n\
                \x20 show(from r in Run where r.secs >= 3 and r.secs <= 1 select r)\n\
                \x20 show(from r in Run order by r.team skip 1 take 2 select r)\n}\n";
    let shop = "@table\nclass Bin { zone: Int }\n@table(index: [part])\nclass Lot { part: Text, bin: ref Bin }\nfn main() {\n\
                \x20 let some = from x in Lot where x.part == \"bolt\" and x.bin.zone == 2 select x\n\
                \x20 for b in from b in Bin select b { print(\"${b.zone}\") }\n}\n";
    let tree = Tree::new(&[("runs.wo", runs.as_bytes()), ("shop.wo", shop.as_bytes())]);
    let lines = |name: &str| tree.woc(&["dump", "plan", name]).stdout_text();
    assert_eq!(
        lines("runs.wo"),
        "runs.wo:8: Run scan, heap\nruns.wo:9: Run equal team, index\nruns.wo:10: Run scan, filter\nruns.wo:11: Run scan, heap\n"
    );
    assert_eq!(lines("shop.wo"), "shop.wo:6: Lot equal part, filter\nshop.wo:7: Bin scan\n");
}

/// A condition is used for the path, or checked on each candidate.
#[test]
fn pln_1_usable_conditions() {
    plans(&[
        ("from x in Lot where (x.part == t and x.count > 1) and x.count < n select x", "Lot range part count"),
        ("from x in Lot where x.part == t where x.count == 2 select x", "Lot equal part count"),
        ("from x in Lot where x.count == n and x.count == 2 select x", "Lot equal count, filter"),
        ("from x in Lot where x.count >= n and x.count == 2 select x", "Lot equal count, filter"),
        ("from x in Lot where x.count == len(t) select x", "Lot equal count"),
        ("from x in Lot where x.count == len(x.part) select x", "Lot scan, filter"),
        ("from x in Lot where not (x.count == n) select x", "Lot scan, filter"),
        ("from x in Lot where x.count != n select x", "Lot scan, filter"),
        ("from x in Lot where x.spare != nil select x", "Lot scan, filter"),
        ("from x in Lot where nil == x.spare select x", "Lot equal spare"),
        ("from x in Lot where x.bin == b.lots[0].bin select x", "Lot equal bin"),
        ("from x in Lot where x == 3 select x", "Lot scan, filter"),
        ("from x in Bin where x.tag == nil select x", "Bin unique tag"),
        ("from x in Bin where x.code == t or x.zone == n select x", "Bin scan, filter"),
        ("from x in Bin where x.weight < 2.0 and x.weight >= 0.5 select x", "Bin range weight"),
    ]);
}

/// The code of each refusal of 2.2, and what its report must name.
#[test]
fn dcl_1_refusals_name_what_they_are_about() {
    let accepted: &[&str] = &["`name: ", "`index: ", "`durable: ", "`resident: "];
    let mut cases: Vec<(String, &str, Vec<&str>)> = Vec::new();
    let mut table = |arguments: &str, code, named: &[&'static str]| {
        cases.push((format!("@table({arguments})\nclass A {{ n: Int }}\n"), code, [named, accepted].concat()));
    };
    for twice in ["name: \"a\", name: \"b\"", "durable: true, durable: true", "resident: all, resident: all"] {
        table(twice, "WO-E102", &[twice.split(':').next().unwrap(), "twice"]);
    }
    for none in ["index: []", "index: n", "index: [\"n\"]"] {
        table(none, "WO-E102", &["`index`", "no columns"]);
    }
    table("name: n", "WO-E102", &["`name`"]);
    table("size: 5", "WO-E102", &["`size`"]);
    table("resident: some", "WO-E102", &["`resident`", "`all`"]);
    table("resident: keys", "WO-E102", &["`resident: keys`", "not supported yet"]);
    for word in ["mode", "store", "ram", "cold", "tiered", "paged", "mmap", "buffer"] {
        table(&format!("{word}: x"), "WO-E102", &["`durable: false`", "`resident: all`", word]);
    }
    let mut other = |source: &str, code, named: &[&'static str]| cases.push((source.to_owned(), code, named.to_vec()));
    for value in ["maybe", "\"true\"", "1"] {
        other(
            &format!("@table(durable: {value})\nclass A {{ n: Int }}\n"),
            "WO-E101",
            &["`true`", "`false`", "`durable:`"],
        );
    }
    let keys: [(&str, &'static str); 5] = [
        ("json.Value", "`json.Value`"),
        ("multi Int", "`multi Int`"),
        ("map<Text, Int>", "`map<Text, Int>`"),
        ("R", "`R`"),
        ("?U", "`?U`"),
    ];
    let types = "use json\ntypedef R = { x: Int }\ntype U = X(n: Int) | Y\n";
    for (ty, shown) in keys {
        other(&format!("{types}@table(index: [c])\nclass A {{ c: {ty} }}\n"), "WO-E102", &["`A.c`", shown]);
        other(&format!("{types}class A {{ c: {ty} @unique }}\n"), "WO-E102", &["`A.c`", shown, "`@unique`"]);
    }
    other("@table(index: [m])\nclass A { n: Int }\n", "WO-E202", &["`A`", "`m`"]);
    for (reference, volatile) in [("ref V", "@table(durable: false) class V"), ("?ref V", "class V")] {
        let source = format!("{volatile} {{ n: Int, d: backlink D.v }}\n@table class D {{ v: {reference} }}\n");
        other(&source, "WO-E224", &["`D`", "`V`", "`v`"]);
    }
    let stored: [(&str, &'static str, &'static str); 5] = [
        ("actor M", "`actor M`", "running actor"),
        ("multi I", "`multi I`", "interface"),
        ("?N", "`?N`", "traced"),
        ("map<Int, actor M>", "`map<Int, actor M>`", "running actor"),
        ("Q", "`Q`", "running actor"),
    ];
    for (ty, shown, why) in stored {
        let types = "class M { n: Int }\ninterface I { fn f() }\nclass N { next: ?N }\ntypedef Q = { a: ?actor M }\n";
        other(&format!("{types}@table\nclass A {{ c: {ty} }}\n"), "WO-E251", &["`A.c`", shown, why]);
    }
    for (end, ty) in [("B.x", "Int"), ("B.r", "ref B"), ("B.l", "multi ref A")] {
        let source = "@table\nclass A { bs: backlink END }\n@table\nclass B { x: Int, r: ref B, l: multi A }\n";
        let named = [
            if end == "B.x" {
                "`B.x`"
            } else if end == "B.r" {
                "`B.r`"
            } else {
                "`B.l`"
            },
            "`A.bs`",
            ty,
        ];
        other(&source.replace("END", end), "WO-E252", &named);
    }
    let tree = Tree::new(&[]);
    for (source, code, named) in cases {
        tree.write("a.wo", format!("{source}fn main() {{ }}\n").as_bytes());
        let out = tree.woc(&["check", "a.wo"]);
        let text = out.stderr_text();
        assert_eq!(out.status, Some(1), "{source}{text}");
        assert_eq!(text.matches("error WO-").count(), 1, "{source}{text}");
        for part in [&[code][..], &named].concat() {
            assert!(text.contains(part), "no {part} in the report of\n{source}{text}");
        }
    }
}

#[test]
fn dir_5_and_lim_1_lines_at_the_start() {
    let tree = Tree::new(&[("a.wo", b"@table\nclass A { n: Int }\nfn main() { print(\"${insert A { n: 1 }}\") }\n")]);
    let out = tree.woc_env(&["run", "a.wo"], &[("WO_EPHEMERAL", "1"), ("WO_DB_MB", "0")]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "1\n");
    let stderr = out.stderr_text();
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].starts_with("woc: ") && lines[0].contains("WO_EPHEMERAL=1"), "{stderr}");
    assert!(lines[1].starts_with("woc: ") && lines[1].contains("WO_DB_MB=0"), "{stderr}");
    assert!(!tree.path(".wo-data").exists());
    let out = tree.woc_env(&["run", "a.wo"], &[("WO_EPHEMRAL", "1"), ("WO_DATA", "rows")]);
    assert_status(&out, 0);
    assert_eq!(out.stderr_text(), "woc: WO_EPHEMRAL means nothing; did you mean WO_EPHEMERAL?\n");
}

/// The log of a row that is changed again and again is compacted, and at the end the counters are told.
#[test]
fn a_line_of_counters_at_the_end_where_it_is_asked_for() {
    let source = "@table\nclass Hit { n: Int }\nfn main() {\n  let h = insert Hit { n: 0 }\n  let i = 0\n  \
                  while i < 400 { h.n = i; i += 1 }\n  print(\"${h.n}\")\n}\n";
    let tree = Tree::new(&[("a.wo", source.as_bytes())]);
    let run = |stats: &str| {
        let settings = [("WO_CHECKPOINT_BYTES", "4096"), ("WO_CHECKPOINT_RATIO", "1")];
        let out =
            tree.woc_env(&["run", "a.wo"], &[&settings[..], &[("WO_DATA", "rows"), ("WO_WAL_STATS", stats)]].concat());
        assert_status(&out, 0);
        assert_eq!(out.stdout_text(), "399\n");
        out.stderr_text()
    };
    let value = |line: &str, name: &str| -> u64 {
        let field = line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        field.unwrap().parse().unwrap()
    };
    let first = run("1");
    let names: Vec<&str> = first.trim_end().split(' ').map(|field| field.split('=').next().unwrap()).collect();
    let wanted = "walstats batches records peak_batch bytes syncs sync_us sync_us_p50 sync_us_p99 compactions \
                  compact_bytes compact_ms compact_pause_us_max live_bytes replay_records replay_ms";
    assert_eq!(names.join(" "), wanted);
    assert!(value(&first, "records") > 400 && value(&first, "batches") >= 400, "{first}");
    assert_eq!((value(&first, "live_bytes"), value(&first, "replay_records")), (48, 0), "{first}");
    assert!(value(&first, "compactions") > 0, "{first}");
    assert_eq!(run("0"), "");
    let third = run("1");
    assert_eq!(value(&third, "live_bytes"), 3 * 48, "{third}");
    assert!((3..600).contains(&value(&third, "replay_records")), "{third}");
}

/// A program without durable tables starts under any of the variables; so does one whose library has a durable table in
/// a module that nothing reaches.
#[test]
fn dcl_5_only_reachable_tables_are_declared() {
    let library: [(&str, &[u8]); 3] = [
        ("lib/wo.toml", b"name = \"lib\"\nkind = \"library\"\n"),
        ("lib/plain/a.wo", b"pub fn one() -> Int { return 1 }\n"),
        ("lib/rows/b.wo", b"@table\npub class Kept { n: Int }\npub fn keep() -> Int { return insert Kept { n: 1 } }\n"),
    ];
    let main = |source: &str| {
        let tree = Tree::new(&library);
        tree.write("p/wo.toml", b"name = \"p\"\n[deps]\nlib = { path = \"../lib\" }\n");
        tree.write("p/main.wo", source.as_bytes());
        tree
    };
    let volatile = main(
        "use lib/plain\n@table(durable: false)\nclass V { n: Int }\nfn main() { print(\"${one()} ${insert V { n: 1 }}\") }\n",
    );
    for env in [&[][..], &[("WO_DATA", "nowhere")], &[("WO_EPHEMERAL", "odd")], &[("WO_EPHEMERAL", "1")]] {
        let out = volatile.woc_env(&["run", "p"], env);
        assert_status(&out, 0);
        assert_eq!((out.stdout_text().as_str(), out.stderr_text().as_str()), ("1 1\n", ""), "{env:?}");
        assert!(!volatile.path("nowhere").exists());
    }
    for source in [
        "use lib/rows\nfn main() { print(\"${keep()}\") }\n",
        "fn main() { print(\"${count(from k in Kept select k)}\") }\n",
    ] {
        let out = main(source).woc_env(&["run", "p"], &[("WO_EPHEMERAL", "odd")]);
        assert_one_line(&out, "WO_EPHEMERAL=odd");
        assert!(out.stdout.is_empty());
    }
}

#[test]
fn tests_run_on_an_empty_store_in_memory() {
    let source = "@table\nclass A { n: Int @unique }\ntest \"one\" { assert_eq(insert A { n: 1 }, 1) }\n\
                  test \"two\" { assert_eq(count(from a in A select a), 0) }\nfn main() { }\n";
    let out = Tree::new(&[("a.wo", source.as_bytes())]).woc_env(&["test", "a.wo"], &[("WO_DATA", "x")]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "ok   one\nok   two\n2 passed, 0 failed\n");
}
