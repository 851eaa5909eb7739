//! The store at the start of a program: where it is, what refuses a start and in which order (tables specification 7.1
//! and 7.2), and what programs find after a restart (13.4).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use corpus::Finished;

use crate::{Tree, assert_one_line, assert_status};

/// Counts the rows, inserts one, counts again.
const COUNTER: &str = "@table(name: \"visits\")\nclass Visit { n: Int }\n\
    fn main() {\n  let before = count(from v in Visit select v)\n  insert Visit { n: before }\n\
    \x20 print(\"${before} ${count(from v in Visit select v)}\")\n}\n";

/// Every file below a directory with its bytes; directories without.
pub fn files(dir: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path.clone());
            }
            let _ = found.insert(path.clone(), fs::read(&path).ok());
        }
    }
    found
}

/// The executable of a program in a tree of its own, called `app`.
fn built(source: &str) -> Tree {
    let tree = Tree::new(&[("a.wo", source.as_bytes())]);
    assert_status(&tree.woc(&["build", "a.wo", "-o", "app"]), 0);
    tree
}

fn start(tree: &Tree, env: &[(&str, &str)]) -> Finished {
    let mut command = Command::new(tree.path("app"));
    let _ = command.current_dir(tree.path("")).env_clear().env("WO_SHARDS", "2").envs(env.iter().copied());
    corpus::finish(&mut command, Duration::from_secs(60)).expect("the program runs")
}

#[track_caller]
fn assert_refused(tree: &Tree, env: &[(&str, &str)], fragments: &[&str]) {
    let before = files(tree.dir.path());
    let out = start(tree, env);
    assert_status(&out, 2);
    let stderr = out.stderr_text();
    assert!(stderr.starts_with("app: ") && stderr.lines().count() == 1, "{env:?}: {stderr}");
    for fragment in fragments {
        assert!(stderr.contains(fragment), "{env:?}: no `{fragment}` in {stderr}");
    }
    assert!(out.stdout.is_empty());
    if !fragments.contains(&"damaged") {
        assert!(!stderr.contains("corruption"), "{stderr}");
    }
    assert!(files(tree.dir.path()) == before, "{env:?}: something was changed");
}

#[track_caller]
fn assert_counts(out: &Finished, before: u32) {
    assert_status(out, 0);
    assert_eq!(out.stdout_text(), format!("{before} {}\n", before + 1), "{}", out.stderr_text());
}

/// Flips a bit in the middle of the first record of a store with several.
fn damage(dir: &Path) {
    let path = dir.join("0000000000000001.log");
    let mut bytes = fs::read(&path).expect("log");
    let preamble = u32::from_le_bytes(bytes[48..52].try_into().expect("length")) as usize;
    bytes[(64 + preamble).next_multiple_of(8) + 30] ^= 1;
    fs::write(path, bytes).expect("log");
}

#[test]
fn t20_refusals_in_their_order() {
    let tree = built(COUNTER);
    tree.write("file", b"");
    let ephemeral = ("WO_EPHEMERAL", "1");
    // Each case meets the conditions of all those below it that it can.
    assert_refused(
        &tree,
        &[("WO_DATA", "none/data"), ("WO_EPHEMERAL", "no")],
        &["WO_EPHEMERAL", "incompatible with WO_DATA"],
    );
    assert_refused(&tree, &[("WO_DATA", "data"), ephemeral], &["WO_EPHEMERAL", "incompatible with WO_DATA"]);
    assert_refused(&tree, &[("WO_DATA", "data"), ("WO_EPHEMERAL", "")], &["WO_EPHEMERAL", "incompatible with WO_DATA"]);
    assert_refused(&tree, &[("WO_EPHEMERAL", "yes")], &["WO_EPHEMERAL=yes", "WO_EPHEMERAL=1"]);
    assert_refused(&tree, &[("WO_EPHEMERAL", ""), ("WO_DATA", "")], &["WO_EPHEMERAL=", "WO_EPHEMERAL=1"]);
    for env in [&[][..], &[("WO_DATA", "")]] {
        assert_refused(&tree, env, &["Visit", "WO_DATA=", "WO_EPHEMERAL=1", "durable: false"]);
    }
    for (data, parent) in [("none/data", "none"), ("file/data", "file"), ("none/more/data", "none/more")] {
        let named = format!("WO_DATA={data}");
        assert_refused(
            &tree,
            &[("WO_DATA", data)],
            &[&named, "its parent", &format!("parent {parent} "), "is not an existing directory"],
        );
    }
    assert_refused(&tree, &[("WO_DATA", "file")], &["WO_DATA=file", "not a directory"]);
    fs::create_dir_all(tree.path("odd/lock")).expect("directory");
    assert_refused(&tree, &[("WO_DATA", "odd")], &["WO_DATA=odd", "odd/lock", "Is a directory"]);
    // Nothing of this is refused to root.
    if fs::metadata(tree.path("file")).expect("metadata").uid() != 0 {
        let locked = tree.path("locked");
        fs::create_dir(&locked).expect("directory");
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).expect("mode");
        assert_refused(&tree, &[("WO_DATA", "locked/data")], &["locked/data", "Permission denied"]);
        assert_refused(&tree, &[("WO_DATA", "locked")], &["locked", "Permission denied"]);
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).expect("mode");
    }
    // The store of another program, damaged, and in use.
    let other = built(&COUNTER.replace("Visit", "Other"));
    let data = tree.path("data").to_str().expect("path").to_owned();
    for count in 0..2 {
        assert_counts(&start(&other, &[("WO_DATA", &data)]), count);
    }
    assert_refused(&tree, &[("WO_DATA", "data"), ("WO_DB_MB", "1")], &["WO_DATA=data", "Other", "2 rows"]);
    let path = tree.path("data/0000000000000001.log");
    let sound = fs::read(&path).expect("log");
    damage(&tree.path("data"));
    assert_refused(&tree, &[("WO_DATA", "data")], &["data/0000000000000001.log", "damaged", "offset "]);
    {
        let lock = fs::File::open(tree.path("data/lock")).expect("lock");
        lock.lock().expect("lock");
        assert_refused(&tree, &[("WO_DATA", "data")], &["WO_DATA=data", "in use"]);
    }
    fs::write(path, sound).expect("log");
    assert_counts(&start(&other, &[("WO_DATA", &data)]), 2);
}

/// Refusal 7 names the process that has the store, whatever path leads there.
#[test]
fn lck_2_refusal_7_names_the_holder() {
    let holder = built(
        "use time\n@table\nclass Row { n: Int }\nfn main() {\n  insert Row { n: 1 }\n  print(\"up\")\n  time.sleep(60000)\n}\n",
    );
    let mut command = Command::new(holder.path("app"));
    let _ = command.current_dir(holder.path("")).env_clear().env("WO_DATA", "data").stdout(Stdio::piped());
    let mut running = command.spawn().expect("the program runs");
    let mut line = String::new();
    let stdout = running.stdout.take().expect("output");
    let read = std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line);
    symlink("data", holder.path("link")).expect("link");
    let pid = running.id().to_string();
    let refusals: Vec<Finished> =
        ["data", "link", "link/../data"].iter().map(|data| start(&holder, &[("WO_DATA", data)])).collect();
    let stat = holder.woc(&["db", "stat", "link"]);
    running.kill().expect("kill");
    let _ = running.wait().expect("end");
    assert_eq!((read.ok(), line.as_str()), (Some(3), "up\n"));
    for out in refusals {
        assert_status(&out, 2);
        let stderr = out.stderr_text();
        assert!(stderr.starts_with("app: ") && stderr.contains("in use") && stderr.contains(&pid), "{stderr}");
    }
    assert_one_line(&stat, "in use");
    let out = holder.woc(&["db", "dump", "data"]);
    assert_status(&out, 0);
    assert_eq!(out.stdout_text(), "{\"table\":\"Row\",\"id\":1,\"row\":{\"n\":1}}\n");
}

#[test]
fn refusal_10_names_the_bound() {
    let tree = built(
        "@table\nclass Row { text: Text }\nfn main() {\n  let text = \"0123456789abcdef\"\n\
         \x20 let i = 0\n\
         \x20 while i < 12 {\n    text = text .. text\n    i += 1\n  }\n  while i < 52 {\n    insert Row { text: text }\n    i += 1\n  }\n}\n",
    );
    let data = ("WO_DATA", "data");
    assert_status(&start(&tree, &[data]), 0);
    assert_refused(&tree, &[data, ("WO_DB_MB", "1")], &["WO_DB_MB", "WO_DATA=data"]);
    // What the schema has to say comes before.
    let other = built(COUNTER);
    let path = tree.path("data").to_str().expect("path").to_owned();
    let out = start(&other, &[("WO_DATA", &path), ("WO_DB_MB", "1")]);
    assert_status(&out, 2);
    assert!(out.stderr_text().contains("`Row`") && !out.stderr_text().contains("WO_DB_MB"), "{}", out.stderr_text());
    assert_status(&start(&tree, &[data]), 0);
}

/// Rows that a program inserts are there at its next start, but for volatile ones.
#[test]
fn restarts_with_a_directory() {
    let tree = built(COUNTER);
    for count in 0..3 {
        let out = start(&tree, &[("WO_DATA", "data")]);
        assert_counts(&out, count);
        assert_eq!(out.stderr_text(), "");
    }
    let mode = |path: &str| fs::metadata(tree.path(path)).expect("metadata").permissions().mode() & 0o777;
    assert_eq!((mode("data"), mode("data/lock"), mode("data/0000000000000001.log")), (0o700, 0o600, 0o600));
    for _ in 0..2 {
        let out = start(&tree, &[("WO_EPHEMERAL", "1")]);
        assert_counts(&out, 0);
        assert!(out.stderr_text().starts_with("app: WO_EPHEMERAL=1"), "{}", out.stderr_text());
    }
    let volatile = built(&COUNTER.replace("name: \"visits\"", "durable: false"));
    let undeclared = built(&COUNTER.replace("@table(name: \"visits\")\n", ""));
    assert!(undeclared.woc(&["check", "a.wo"]).stderr_text().contains("WO-W206"));
    for tree in [volatile, undeclared] {
        for _ in 0..2 {
            assert_counts(&start(&tree, &[("WO_DATA", "data")]), 0);
        }
        assert!(!tree.path("data").exists());
    }
}

/// Foreign files in the directory are left alone, and a link to it will do.
#[test]
fn dir_1_and_2_a_link_and_foreign_files() {
    let tree = built(COUNTER);
    tree.write("real/notes.txt", b"mine");
    tree.write("real/sub/0000000000000009.log", b"mine too");
    symlink("real", tree.path("link")).expect("link");
    let absolute = tree.path("real").to_str().expect("path").to_owned();
    for (count, data) in (0..).zip(["link", "./real", &absolute]) {
        assert_counts(&start(&tree, &[("WO_DATA", data)]), count);
    }
    assert_eq!(fs::read(tree.path("real/notes.txt")).ok().as_deref(), Some(&b"mine"[..]));
    assert_eq!(fs::read(tree.path("real/sub/0000000000000009.log")).ok().as_deref(), Some(&b"mine too"[..]));
}

/// Refusal 6: a bound on the size of files refuses the start with the system's text, it does not kill the program.
#[test]
fn refusal_6_a_limit_on_the_size_of_files() {
    let tree = built(COUNTER);
    let limited = |blocks: u32| {
        let mut command = Command::new("sh");
        let script = format!("ulimit -f {blocks} && exec ./app");
        let _ = command.args(["-c", &script]).current_dir(tree.path("")).env_clear().env("WO_DATA", "data");
        corpus::finish(&mut command, Duration::from_secs(60)).expect("the program runs")
    };
    for blocks in [0, 1, 100] {
        let out = limited(blocks);
        assert_status(&out, 2);
        let stderr = out.stderr_text();
        assert!(stderr.starts_with("app: WO_DATA=data: write of data/") && stderr.lines().count() == 1, "{stderr}");
        assert!(stderr.contains("File too large"), "{stderr}");
    }
    assert_counts(&start(&tree, &[("WO_DATA", "data")]), 0);
}

/// A path that is no UTF-8 names the directory of these bytes.
#[test]
fn dir_1_any_bytes_are_a_path() {
    use std::os::unix::ffi::OsStrExt as _;
    let tree = built(COUNTER);
    let name = std::ffi::OsStr::from_bytes(b"da\xffta");
    for count in 0..2 {
        let mut command = Command::new(tree.path("app"));
        let _ = command.current_dir(tree.path("")).env_clear().env("WO_DATA", name);
        assert_counts(&corpus::finish(&mut command, Duration::from_secs(60)).expect("the program runs"), count);
    }
    assert!(tree.path("").join(name).is_dir());
}

/// A program that declares volatile tables only looks into a directory that is there, and writes nothing.
#[test]
fn dir_3_volatile_tables_are_checked() {
    let tree = built(&COUNTER.replace("name: \"visits\"", "durable: false"));
    let durable = built(COUNTER);
    let without = built("fn main() { print(\"none\") }\n");
    let (data, file) = (tree.path("data"), tree.path("file"));
    let data = ("WO_DATA", data.to_str().expect("path"));
    let file = ("WO_DATA", file.to_str().expect("path"));
    tree.write("file", b"");
    let before = files(tree.dir.path());
    for env in [&[("WO_DATA", "data")][..], &[("WO_DATA", "none/data")], &[data, ("WO_EPHEMERAL", "odd")]] {
        assert_counts(&start(&tree, env), 0);
    }
    assert!(files(tree.dir.path()) == before);
    assert_refused(&tree, &[file], &["not a directory"]);
    fs::create_dir(tree.path("data")).expect("directory");
    assert_counts(&start(&tree, &[data]), 0);
    assert_eq!(fs::read_dir(tree.path("data")).expect("directory").count(), 0);

    assert_counts(&start(&durable, &[data]), 0);
    assert_refused(&tree, &[data], &["WO_DATA=", "Visit", "1 row", "durable: false"]);
    {
        let lock = fs::File::open(tree.path("data/lock")).expect("lock");
        lock.lock().expect("lock");
        assert_refused(&tree, &[data], &["WO_DATA=", "in use"]);
    }
    damage(&tree.path("data"));
    for env in [data, file] {
        let out = start(&without, &[env]);
        assert_status(&out, 0);
        assert_eq!((out.stdout_text().as_str(), out.stderr_text().as_str()), ("none\n", ""));
    }
}

#[test]
fn dir_4_woc_run_has_a_store_of_its_own() {
    let tree = Tree::new(&[
        ("p/wo.toml", b"name = \"p\"\n"),
        ("p/main.wo", COUNTER.as_bytes()),
        ("single/a.wo", COUNTER.as_bytes()),
    ]);
    for (path, data) in [("p", "p/.wo-data"), ("single/a.wo", "single/.wo-data")] {
        for count in 0..3 {
            let out = tree.woc(&["run", path]);
            assert_counts(&out, count);
            let stderr = out.stderr_text();
            assert!(stderr.starts_with("woc: ") && stderr.lines().count() == 1, "{stderr}");
            assert!(stderr.contains(data) && stderr.contains("WO_DATA"), "{stderr}");
        }
        assert!(tree.path(data).is_dir());
        damage(&tree.path(data));
        assert_one_line(&tree.woc(&["run", path]), &format!("{data}/0000000000000001.log is damaged at offset "));
        assert_counts(&tree.woc_env(&["run", path], &[("WO_EPHEMERAL", "1")]), 0);
        assert_counts(&tree.woc_env(&["run", path], &[("WO_DATA", "elsewhere")]), if path == "p" { 0 } else { 1 });
    }
}

/// What precedes a trap is kept; ids go on where they were, also after refused inserts and deletions.
#[test]
fn upd_4_id_3_after_a_restart() {
    let tree = built(
        "@table\nclass Row {\n  a: Int\n  b: Int\n}\nfn zero() -> Int { return 0 }\n\
         fn main() {\n  let r: Row = insert Row { a: 0, b: 0 }\n  r.a = 1\n  r.b = 1 / zero()\n}\n",
    );
    let out = start(&tree, &[("WO_DATA", "data")]);
    assert_ne!(out.status, Some(0));
    let dump = tree.woc(&["db", "dump", "data"]);
    assert_eq!(dump.stdout_text(), "{\"table\":\"Row\",\"id\":1,\"row\":{\"a\":1,\"b\":0}}\n");

    let ids = built(
        "@table\nclass Tag { word: Text @unique }\nfn add(w: Text) -> Int {\n  let id = try insert Tag { word: w } catch (e) nil\n\
         \x20 if id == nil { return 0 }\n  return id\n}\nfn main() {\n  let n = count(from t in Tag select t)\n\
         \x20 print(\"${add(\"a${n}\")} ${add(\"a${n}\")} ${add(\"b${n}\")}\")\n\
         \x20 for t in from t in Tag where t.word == \"b${n}\" select t { delete t }\n}\n",
    );
    for wanted in ["1 0 2\n", "3 0 4\n", "5 0 6\n"] {
        let out = start(&ids, &[("WO_DATA", "data")]);
        assert_status(&out, 0);
        assert_eq!(out.stdout_text(), wanted);
    }
}

/// Statements of fibers that the end of the program finds waiting for the disk are durable too: `main` sees their rows.
#[test]
fn cmt_6_what_was_applied_is_there_after_a_normal_end() {
    let tree = built(
        "use time\n@table\nclass Row { n: Int }\nclass Go { n: Int }\nclass Busy {\n  fn receive(m: Go) {\n    while true { insert Row { n: m.n } }\n  }\n}\n\
         fn main() {\n  let before = count(from r in Row select r)\n  for i in [1, 2, 3, 4, 5, 6, 7, 8] {\n    let b: actor Go = spawn Busy {}\n\
         \x20   send(b, Go { n: i })\n  }\n  while count(from r in Row select r) < before + 20 { time.sleep(1) }\n\
         \x20 print(\"${count(from r in Row select r)}\")\n}\n",
    );
    let mut before = 0;
    for shards in ["1", "4", "1", "4", "1", "4"] {
        let out = start(&tree, &[("WO_DATA", "data"), ("WO_SHARDS", shards)]);
        assert_status(&out, 0);
        let applied: u64 = out.stdout_text().trim().parse().expect("a number");
        let dump = tree.woc(&["db", "dump", "data"]).stdout_text().lines().count() as u64;
        assert!(applied >= before + 20 && dump >= applied, "{shards}: {before} {applied} {dump}");
        before = dump;
    }
    assert_status(&tree.woc(&["db", "check", "data"]), 0);
}
