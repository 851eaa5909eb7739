//! Larger programs that must be free of reports.

use super::{check, expect};

#[test]
fn realistic() {
    expect(include_str!("bookshop.wo"));
}

#[test]
fn long_chains() {
    let mut source = String::from("fn main() {\n  let x = 1\n  let n = 0");
    for _ in 0..100_000 {
        source.push_str(" + x");
    }
    source.push_str("\n  let b = true");
    for _ in 0..20_000 {
        source.push_str(" and x == 1");
    }
    source.push_str("\n}\n");
    let worker = std::thread::Builder::new().stack_size(1 << 30);
    let handle = worker.spawn(move || check(&source).diagnostics.len()).unwrap();
    assert_eq!(handle.join().unwrap(), 0);
}

#[test]
fn nested_loops_are_walked_few_times() {
    let mut source = String::from("fn main() {\n  let x: ?Int = 1\n");
    for _ in 0..100 {
        source.push_str("  while true { x = 1\n");
    }
    source.push_str("x = nil\n");
    for _ in 0..100 {
        source.push_str("print_int(1) }\n");
    }
    source.push_str("}\n");
    let started = std::time::Instant::now();
    let _ = check(&source);
    assert!(started.elapsed().as_secs() < 5);
}
