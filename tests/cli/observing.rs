//! What shows a running program from outside: reports of traps in actors, `WO_TRACE=1`, and `WO_PERF=1`, which names
//! generated code for `perf`.

use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use corpus::command;

use crate::{Tree, assert_status};

#[test]
fn trc_2_the_report_names_the_classes_of_actor_and_message() {
    let source = b"use time
class Hit { n: Int }
type Job = Start | Run(of: Int)
type Light = On | Off
class Lamp {
  fn receive(m: Light) -> Int { return share(switch m { case On: 1; case Off: 0 }) }
}
class Counter {
  fn receive(m: Hit) -> Int { return share(m.n) }
}
class Worker {
  fn receive(m: Job) {
    switch m {
      case Start: trap(\"started\")
      case Run(of): print_int(share(of))
    }
  }
}
fn share(n: Int) -> Int { return 6 / n }
fn main() {
  let c = spawn Counter {}
  let gone = try call(c, Hit { n: 0 }) catch (e) -1
  send(spawn Worker {}, Run(0))
  time.sleep(1)
  send(spawn Worker {}, Start)
  time.sleep(1)
  let dark = try call(spawn Lamp {}, Off) catch (e) -1
}
";
    // On one shard each report is complete before `main` goes on.
    let out = Tree::new(&[("a.wo", source)]).woc_env(&["run", "a.wo"], &[("WO_SHARDS", "1")]);
    assert_status(&out, 0);
    let expected = "fiber trap 1 at share:19: division by zero
  at share (a.wo:19)
  at Counter.receive (a.wo:9)
  in actor Counter handling Hit
fiber trap 1 at share:19: division by zero
  at share (a.wo:19)
  at Worker.receive (a.wo:15)
  in actor Worker handling Run
fiber trap 8 at receive:14: started
  at Worker.receive (a.wo:14)
  in actor Worker handling Start
fiber trap 1 at share:19: division by zero
  at share (a.wo:19)
  at Lamp.receive (a.wo:6)
  in actor Lamp handling Light
";
    assert_eq!(out.stderr_text(), expected);
}

#[test]
fn wo_trace_names_the_actors_of_a_program() {
    let source = b"class Hit { n: Int }
class Counter {
  fn receive(m: Hit) -> Int { return 6 / m.n }
}
fn main() {
  let c = spawn Counter {}
  print_int(call(c, Hit { n: 2 }))
  trap(\"end\")
}
";
    let tree = Tree::new(&[("a.wo", source)]);
    let out = tree.woc_env(&["run", "a.wo"], &[("WO_TRACE", "1")]);
    assert_status(&out, 1);
    let text = out.stderr_text();
    let events: Vec<&str> =
        text.lines().filter_map(|l| l.strip_prefix("wotrace 0 ")?.split_once(' ')).map(|e| e.1).collect();
    let expected = [
        "last 5 of 5 events",
        "spawn actor 1 Counter",
        "park fiber 0 main: call of actor 1",
        "deliver fiber 1 actor 1 Counter: Hit",
        "wake fiber 0 main: ready",
        "trap fiber 0 main: 8",
    ];
    assert_eq!(events, expected, "{text}");
    assert!(text.starts_with("trap 8 in main at line 8: end\n"), "{text}");
    assert!(!tree.woc(&["run", "a.wo"]).stderr_text().contains("wotrace"));
}

/// Prints where memory lies in which code may be run, then waits for a byte.
const MAPS: &[u8] = b"use fs
class Hit { n: Int }
class Counter {
  n: Int = 0
  fn receive(m: Hit) -> Int {
    let i = 0
    while i < m.n { i += step(i) }
    return i
  }
}
fn step(n: Int) -> Int {
  if n > 1000000 { return step(n - 1) }
  return 1
}
fn main() {
  let c = spawn Counter {}
  print_int(call(c, Hit { n: 3 }))
  for line in split(fs.read_all(\"/proc/self/maps\", 1000000), \"\\n\") {
    if index_of(line, \" r-xp \") >= 0 { print(line) }
  }
  print(\"end\")
  let byte = fs.read_all(\"/dev/stdin\", 1)
}
";

struct Profiled {
    /// Start, end and name of each line of the map.
    symbols: Vec<(u64, u64, String)>,
    /// Start and end of mappings that may be run.
    code: Vec<(u64, u64)>,
}

fn map_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/perf-{pid}.map"))
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Runs the program until it waits; reads its map, which is removed.
fn profiled(mut command: Command) -> Profiled {
    let _ = command.env("WO_PERF", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = loop {
        match command.spawn() {
            // A process that another test starts holds the file open for writing until it is another program.
            Err(e) if e.kind() == ErrorKind::ExecutableFileBusy => std::thread::sleep(Duration::from_millis(5)),
            child => break child.expect("the program runs"),
        }
    };
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    let lines: Vec<String> = lines.take_while(|line| line != "end").collect();
    let map = map_of(child.id());
    let text = std::fs::read_to_string(&map).unwrap_or_else(|e| panic!("{}: {e}", map.display()));
    std::fs::remove_file(&map).expect("removed");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    assert_eq!(lines[0], "3");
    let range = |line: &String| line.split([' ', '-']).take(2).map(hex).collect::<Vec<_>>();
    let code = lines[1..].iter().map(range).map(|r| (r[0], r[1])).collect();
    let symbol = |line: &str| {
        let parts: Vec<&str> = line.splitn(3, ' ').collect();
        (hex(parts[0]), hex(parts[0]) + hex(parts[1]), parts[2].to_string())
    };
    Profiled { symbols: text.lines().map(symbol).collect(), code }
}

fn assert_names_the_code(of: &Profiled, file: &str) {
    let (start, end) = (of.symbols[0].0, of.symbols[of.symbols.len() - 1].1);
    assert!(of.code.iter().any(|(from, to)| *from == start && end <= *to), "{start:x} to {end:x} in {:x?}", of.code);
    for pair in of.symbols.windows(2) {
        assert!(pair[0].0 < pair[0].1 && pair[0].1 == pair[1].0, "{pair:x?}");
    }
    for (name, line) in [("main", 15), ("step", 11), ("Counter.receive", 5)] {
        let name = format!("{name} ({file}:{line})");
        let found = of.symbols.iter().filter(|(_, _, n)| *n == name).count();
        assert_eq!(found, 1, "{name} in {:?}", of.symbols);
    }
}

#[test]
fn wo_perf_names_code_in_memory() {
    let tree = Tree::new(&[("a.wo", MAPS)]);
    let mut command = command(&tree.path("")).unwrap_or_else(|e| panic!("{e}"));
    let _ = command.args(["run", "a.wo"]);
    assert_names_the_code(&profiled(command), "a.wo");
}

#[test]
fn wo_perf_names_code_of_a_built_program() {
    let tree = Tree::new(&[("a.wo", MAPS)]);
    assert_status(&tree.woc(&["build", "a.wo", "-o", "out"]), 0);
    assert_names_the_code(&profiled(Command::new(tree.path("out"))), "a.wo");
}

#[test]
fn without_wo_perf_there_is_no_map() {
    let tree = Tree::new(&[("a.wo", b"fn main() { print(\"end\") }\n")]);
    for value in [None, Some("0"), Some("yes")] {
        let mut command = command(&tree.path("")).unwrap_or_else(|e| panic!("{e}"));
        let _ = command.args(["run", "a.wo"]).envs(value.map(|v| ("WO_PERF", v))).stdout(Stdio::null());
        let mut child = command.spawn().expect("woc runs");
        let pid = child.id();
        assert!(child.wait().expect("it ends").success());
        assert!(!map_of(pid).exists());
    }
}
