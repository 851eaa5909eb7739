//! `woc build DIR -o OUT` and `woc PATH` (14): one file that runs anywhere.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use corpus::{Finished, finish};

use crate::{Tree, assert_one_line, assert_status, assert_usage};

const MAIN: &[u8] = b"use kit
fn main(args: multi Text) -> Int {
#if LOUD
  print(\"loud\")
#end
  for a in args { print(kit.shown(a)) }
  if len(args) == 1 { trap(\"one\") }
  return len(args)
}
";

fn project() -> Tree {
    Tree::new(&[
        ("p/wo.toml", b"name = \"prog\"\n[deps]\nkit = { path = \"../lib\" }\n"),
        ("p/main.wo", MAIN),
        ("lib/wo.toml", b"name = \"lib\"\nkind = \"library\"\n"),
        ("lib/lib.wo", b"pub fn shown(t: Text) -> Text { return \"<\" .. t .. \">\" }\n"),
    ])
}

/// Runs a built program in an empty directory with an empty environment.
fn start(program: &Path, args: &[&str]) -> Finished {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut command = Command::new(program);
    let _ = command.args(args).current_dir(dir.path()).env_clear();
    loop {
        match finish(&mut command, Duration::from_secs(60)) {
            // A process that another test starts holds the file open for writing until it is another program.
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => std::thread::sleep(Duration::from_millis(5)),
            out => {
                let out = out.expect("the program runs");
                assert!(!out.timed_out);
                return out;
            }
        }
    }
}

#[test]
fn a_built_program_needs_nothing() {
    let tree = project();
    let out = tree.woc(&["build", "p", "-o", "out"]);
    assert_status(&out, 0);
    assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{}", out.stderr_text());
    let program = tree.path("out");
    assert_eq!(std::fs::metadata(&program).expect("there").permissions().mode() & 0o777, 0o755);
    for part in ["p", "lib"] {
        std::fs::remove_dir_all(tree.path(part)).expect("removed");
    }
    // Every argument is the program's.
    let out = start(&program, &["version", "--help", "-D", "--", "run"]);
    assert_status(&out, 5);
    assert_eq!(out.stdout_text(), "<version>\n<--help>\n<-D>\n<-->\n<run>\n");
    assert!(out.stderr.is_empty(), "{}", out.stderr_text());
    assert_status(&start(&program, &[]), 0);
    let out = start(&program, &["x"]);
    assert_status(&out, 1);
    assert_eq!(out.stderr_text(), "trap 8 in main at line 7: one\n  at main (main.wo:7)\n");
}

/// A start-up refusal under the program's name, not the compiler's apology.
#[test]
fn env_2_without_memory_for_its_first_thread_it_refuses_to_start() {
    let tree = project();
    assert_status(&tree.woc(&["build", "p", "-o", "out"]), 0);
    let program = tree.path("out");
    // The smallest stack that is tried has 64 MiB.
    let out = start(Path::new("/bin/sh"), &["-c", "ulimit -v 64000; exec \"$0\"", program.to_str().expect("text")]);
    assert_status(&out, 2);
    assert_eq!(out.stderr_text(), "out: cannot start: Resource temporarily unavailable\n");
}

#[test]
fn nothing_of_the_building_machine_is_in_it() {
    let tree = project();
    let (absolute, out) = (tree.path("p"), tree.path("out"));
    assert_status(&tree.woc(&["build", absolute.to_str().expect("text"), "-o", out.to_str().expect("text")]), 0);
    let bytes = std::fs::read(&out).expect("there");
    let place = absolute.parent().expect("parent").to_string_lossy().into_owned();
    assert!(!bytes.windows(place.len()).any(|w| w == place.as_bytes()), "{place} is in it");
    // The same bytes whatever the path was.
    assert_status(&tree.woc(&["build", "p", "-o", "other"]), 0);
    assert!(bytes == std::fs::read(tree.path("other")).expect("there"));
}

#[test]
fn flags_are_baked_in() {
    let tree = project();
    assert_status(&tree.woc(&["-D", "LOUD", "build", "p", "-o", "out"]), 0);
    assert_eq!(start(&tree.path("out"), &[]).stdout_text(), "loud\n");
}

#[test]
fn a_path_alone_builds_programs_and_checks_the_rest() {
    let tree = project();
    let out = tree.woc(&["p"]);
    assert_status(&out, 0);
    assert!(out.stdout.is_empty() && out.stderr.is_empty());
    assert_status(&start(&tree.path("p/target/prog"), &["a", "b"]), 2);
    let entries = std::fs::read_dir(tree.path("p/target")).expect("there");
    assert_eq!(entries.count(), 1, "no temporary file is left");
    assert_status(&tree.woc(&["lib"]), 0);
    assert!(!tree.path("lib/target").exists());
    assert_status(&tree.woc(&["p/main.wo"]), 1);
    tree.write("flat/a.wo", b"fn main() { }\n");
    assert_status(&tree.woc(&["flat"]), 0);
    assert_status(&tree.woc(&["check", "p"]), 0);
    assert!(!tree.path("flat/target").exists());
    // Errors: nothing is written.
    std::fs::remove_dir_all(tree.path("p/target")).expect("removed");
    tree.write("p/main.wo", b"fn main() { nothing() }\n");
    assert_status(&tree.woc(&["p"]), 1);
    assert!(!tree.path("p/target").exists());
}

#[test]
fn directories_without_manifest_and_files_are_built_too() {
    let tree = Tree::new(&[("flat/a.wo", b"fn main() { print(\"flat\") }\n")]);
    assert_status(&tree.woc(&["build", "flat", "-o", "one"]), 0);
    assert_eq!(start(&tree.path("one"), &[]).stdout_text(), "flat\n");
    assert_status(&tree.woc(&["build", "flat/a.wo", "-o", "two"]), 0);
    assert_eq!(start(&tree.path("two"), &[]).stdout_text(), "flat\n");
    assert_status(&tree.woc(&["build", "flat"]), 0);
    assert_eq!(start(&tree.path("flat/target/flat"), &[]).stdout_text(), "flat\n");
}

#[test]
fn without_a_main_there_is_no_program() {
    let tree = project();
    for form in [&["build", "lib", "-o", "out"][..], &["run", "lib"]] {
        assert_one_line(&tree.woc(form), "library `lib`");
    }
    tree.write("p/main.wo", b"fn other() { }\n");
    for form in [&["build", "p", "-o", "out"][..], &["run", "p"], &["p"]] {
        assert_one_line(&tree.woc(form), "program `prog`");
    }
    assert!(!tree.path("out").exists());
}

#[test]
fn names_may_be_as_long_as_the_system_allows() {
    let tree = project();
    let name = "n".repeat(255);
    assert_status(&tree.woc(&["build", "p", "-o", &name]), 0);
    assert_status(&start(&tree.path(&name), &[]), 0);
    assert_one_line(&tree.woc(&["build", "p", "-o", &"n".repeat(256)]), "File name too long");
}

#[test]
fn outputs_that_cannot_be() {
    let tree = project();
    assert_one_line(&tree.woc(&["build", "p", "-o", "lib"]), "is a directory");
    assert_one_line(&tree.woc(&["build", "p", "-o", "missing/out"]), "missing/out");
    assert_one_line(&tree.woc(&["build", "p", "-o", "/dev/null"]), "not a regular file");
    assert_one_line(&tree.woc(&["build", "p", "-o", "new/"]), "new/");
    assert_one_line(&tree.woc(&["build", "missing", "-o", "out"]), "missing");
    assert_usage(&tree.woc(&["build", "p", "-o"]));
    assert_usage(&tree.woc(&["build"]));
    // What the program is made of is never replaced.
    std::os::unix::fs::symlink("p/main.wo", tree.path("link")).expect("a link");
    for input in ["p/main.wo", "p/wo.toml", "lib/lib.wo", "link"] {
        assert_one_line(&tree.woc(&["build", "p", "-o", input]), "is a file of the program");
    }
    assert_one_line(&tree.woc(&["build", "./p/", "-o", "lib/../p/main.wo"]), "is a file of the program");
    assert_eq!(std::fs::read(tree.path("p/main.wo")).expect("there"), MAIN);
    // A file is replaced, whoever runs it at the time.
    tree.write("out", b"old");
    assert_status(&tree.woc(&["build", "p", "-o", "out"]), 0);
    assert_status(&start(&tree.path("out"), &[]), 0);
}

#[test]
fn damage_is_reported() {
    let tree = project();
    assert_status(&tree.woc(&["build", "p", "-o", "out"]), 0);
    let good = std::fs::read(tree.path("out")).expect("there");
    let end = good.len();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 0x40;
        bytes
    };
    let longer = [good.as_slice(), b"\n"].concat();
    for (what, bytes) in [
        ("cut at the end", good[..end - 1].to_vec()),
        ("cut in the program", good[..end - 200].to_vec()),
        ("longer", longer),
        ("changed program", flipped(end - 100)),
        ("changed checksum", flipped(end - 18)),
        ("changed length", flipped(end - 28)),
        ("huge length", flipped(end - 21)),
    ] {
        let path = tree.path("damaged");
        std::fs::write(&path, bytes).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let out = start(&path, &["version"]);
        assert_status(&out, 2);
        let stderr = out.stderr_text();
        assert!(stderr.starts_with("damaged: this executable is damaged: "), "{what}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{what}: {stderr}");
        std::fs::remove_file(&path).expect("removed");
    }
}

/// It might be the compiler or a program: neither is guessed, or `out fmt FILE` of a program would rewrite files.
#[test]
fn an_executable_that_cannot_be_read_is_neither() {
    let tree = project();
    assert_status(&tree.woc(&["build", "p", "-o", "out"]), 0);
    let program = tree.path("out");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o111)).expect("closed");
    let dir = program.parent().expect("a directory");
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o755)).expect("open");
    let mut command = Command::new(&program);
    let _ = command.arg("version").current_dir("/").env_clear();
    if std::fs::metadata(dir).expect("there").uid() == 0 {
        // The superuser reads anything.
        let _ = command.uid(65534).gid(65534);
    }
    let out = finish(&mut command, Duration::from_secs(60)).expect("it starts");
    assert_status(&out, 2);
    assert_eq!(out.stderr_text(), "out: cannot read this executable: Permission denied\n");
    assert!(out.stdout.is_empty());
}

/// A payload that its checksum fits and that is no program.
#[test]
fn what_is_no_program_is_not_run() {
    let tree = project();
    assert_status(&tree.woc(&["build", "p", "-o", "out"]), 0);
    let good = std::fs::read(tree.path("out")).expect("there");
    let place = payload(&good);
    let half = good[place.start..place.start + place.len() / 2].to_vec();
    for body in [b"\xff".repeat(60), half, Vec::new()] {
        let mut bytes = good[..place.start].to_vec();
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&crc32(&body).to_le_bytes());
        bytes.extend_from_slice(&good[good.len() - 16..]);
        let path = tree.path("other");
        std::fs::write(&path, bytes).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let out = start(&path, &[]);
        assert_status(&out, 2);
        let told = "other: this executable is damaged: the program in it cannot be read; build it again\n";
        assert_eq!(out.stderr_text(), told);
        std::fs::remove_file(&path).expect("removed");
    }
}

/// Where the program lies in an executable.
fn payload(bytes: &[u8]) -> Range<usize> {
    let head = b"\0writeonce prog\n";
    let start = bytes.windows(head.len()).rposition(|w| w == head).expect("a program") + head.len();
    start..bytes.len() - 28
}

/// The checksum of zip and gzip, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[test]
fn the_program_in_it_is_compiled() {
    let tree = Tree::new(&[]);
    let hello = corpus::root().join("docs/examples/hello");
    for out in ["one", "two"] {
        assert_status(&tree.woc(&["build", hello.to_str().expect("text"), "-o", out]), 0);
    }
    let bytes = std::fs::read(tree.path("one")).expect("there");
    assert!(bytes == std::fs::read(tree.path("two")).expect("there"), "two builds differ");
    // No line of any source: literals are what is left of them.
    let program = &bytes[payload(&bytes)];
    let sources = ["docs/examples/hello/main.wo", "docs/examples/porch/http/types.wo"];
    for source in sources {
        let text = std::fs::read_to_string(corpus::root().join(source)).expect(source);
        let lines: Vec<&str> = text.lines().filter(|line| line.len() > 20 && line.contains([':', '='])).collect();
        assert!(!lines.is_empty());
        for line in lines {
            assert!(!program.windows(line.len()).any(|w| w == line.as_bytes()), "{source}: `{line}` is in it");
        }
    }
}

/// What programs print, return and report is the same, however they are run.
#[test]
fn built_programs_do_what_run_does() {
    let corpus = corpus::root().join("tests/corpus");
    let cases = [
        "run/actor-call",
        "run/actor-monitor",
        "run/interfaces",
        "run/interface-messages",
        "run/json-round-trips",
        "run/main-arguments",
        "run/main-status",
        "run/one-function-many-locals",
        "run/sort-kinds",
        "run/stack-overflow-caught",
        "run/trap-stack",
        "trap/deep-catch",
        "trap/div-zero",
        "trap/multi-index",
        "trap/stack-overflow",
    ];
    let tree = Tree::new(&[]);
    for case in cases {
        let dir = corpus.join(case);
        let dir = dir.to_str().expect("text");
        let run = tree.woc(&["run", dir, "--", "a", "b"]);
        assert_status(&tree.woc(&["build", dir, "-o", "built"]), 0);
        let built = start(&tree.path("built"), &["a", "b"]);
        assert_eq!(built.status, run.status, "{case}: {}", built.stderr_text());
        assert_eq!(built.stdout_text(), run.stdout_text(), "{case}");
        // Built programs know files by their places in the project.
        assert_eq!(built.stderr_text(), run.stderr_text().replace(&format!("{dir}/"), ""), "{case}");
        std::fs::remove_file(tree.path("built")).expect("removed");
    }
}

/// What the dynamic linker would load for `program`: names and files.
fn libraries(program: &Path) -> Vec<(String, Option<String>)> {
    let mut command = Command::new(program);
    let _ = command.env_clear().env("LD_TRACE_LOADED_OBJECTS", "1");
    let out = finish(&mut command, Duration::from_secs(60)).expect("it starts");
    assert_status(&out, 0);
    let line = |line: &str| {
        let mut words = line.split_whitespace().filter(|word| *word != "=>" && !word.starts_with("(0x"));
        let name = words.next().expect("a name").to_owned();
        let file = words.next().or(Some(name.as_str()).filter(|name| name.starts_with('/')));
        (name.clone(), file.map(str::to_owned))
    };
    out.stdout_text().lines().map(line).collect()
}

/// In a file system that has nothing but the program and the C library, hello serves. Where no such place can be
/// made, that nothing else would be loaded must do.
#[test]
fn hello_serves_in_an_empty_root() {
    let tree = Tree::new(&[]);
    let hello = corpus::root().join("docs/examples/hello");
    assert_status(&tree.woc(&["build", hello.to_str().expect("text"), "-o", "hello"]), 0);
    let program = tree.path("hello");
    let needed = libraries(&program);
    for (name, file) in &needed {
        let parts = ["linux-vdso.so.", "libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "ld-linux"];
        let known = parts.iter().any(|part| name.rsplit('/').next().is_some_and(|name| name.starts_with(part)));
        assert!(known, "{name} is needed");
        if let Some(file) = file {
            let copy = tree.path(&format!("root{file}"));
            std::fs::create_dir_all(copy.parent().expect("a directory")).expect("made");
            let _ = std::fs::copy(file, copy).expect("copied");
        }
    }
    let _ = std::fs::copy(&program, tree.path("root/hello")).expect("copied");
    let ways: [&[&str]; 2] = [&["chroot"], &["unshare", "--user", "--map-root-user", "chroot"]];
    let inside = |way: &[&str]| {
        let mut command = Command::new(way[0]);
        let _ = command.args(&way[1..]).arg(tree.path("root")).arg("/hello");
        command
    };
    // The dynamic linker lists and ends: a first look whether the way is open.
    let open =
        |way: &&&[&str]| inside(way).env("LD_TRACE_LOADED_OBJECTS", "1").output().is_ok_and(|o| o.status.success());
    match ways.iter().find(open) {
        Some(way) => serves(inside(way).arg("0")),
        None => eprintln!("NOT TESTED in an empty root: this user can make none. The files it needs: {needed:?}"),
    }
}

/// docs/examples/hello, built, serves from an empty directory and ends on SIGTERM with status 0.
#[test]
fn hello_serves_and_stops() {
    let tree = Tree::new(&[]);
    let hello = corpus::root().join("docs/examples/hello");
    assert_status(&tree.woc(&["build", hello.to_str().expect("text"), "-o", "hello"]), 0);
    let dir = tempfile::tempdir().expect("temporary directory");
    serves(Command::new(tree.path("hello")).arg("0").current_dir(dir.path()).env_clear());
}

/// Starts hello, asks it for its health, and stops it.
fn serves(hello: &mut Command) {
    let mut server = hello.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("started");
    let mut first = String::new();
    let mut stdout = BufReader::new(server.stdout.take().expect("stdout"));
    let _ = stdout.read_line(&mut first).expect("a line");
    let port: u16 = first.trim().rsplit(':').next().expect("a port").parse().expect("a number");
    let mut answer = String::new();
    let mut connection = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    connection.set_read_timeout(Some(Duration::from_secs(20))).expect("time limit");
    connection.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let _ = connection.read_to_string(&mut answer).expect("answered");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("{\"ok\":true}"), "{answer}");
    let kill = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    assert_eq!(server.wait().expect("ended").code(), Some(0));
}
