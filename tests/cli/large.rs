//! Large programs, as generators write them: each must compile and run within the runner's limit. What takes more than
//! linear time in the compiler shows here first.

use std::fmt::Write;

use crate::{Tree, assert_status};

/// Runs a program that is the whole text and compares what it prints.
#[track_caller]
fn prints(source: &str, expected: &str) {
    let tree = Tree::new(&[("a.wo", source.as_bytes())]);
    for args in [&["run", "a.wo"][..], &["check", "a.wo"][..]] {
        assert_status(&tree.woc(args), 0);
    }
    assert_eq!(tree.woc(&["run", "a.wo"]).stdout_text().trim_end(), expected);
}

fn repeat(n: usize, line: impl Fn(usize) -> String) -> String {
    (0..n).map(line).collect()
}

#[test]
fn operands() {
    let chain = |op: &str| vec!["a"; 20_000].join(op);
    prints(&format!("fn main() {{\n  let a = 1\n  print_int({})\n}}\n", chain(" + ")), "20000");
    let mut source = String::from("fn main() {\n  let a = true\n");
    for op in [" and ", " or "] {
        let _ = writeln!(source, "  print(\"${{{}}}\")", chain(op));
    }
    prints(&format!("{source}}}\n"), "true\ntrue");
}

#[test]
fn a_list_literal() {
    let items: Vec<String> = (0..50_000).map(|i| i.to_string()).collect();
    let texts: Vec<String> = (0..3_000).map(|i| format!("t .. \"{i}\"")).collect();
    let lists = format!("  let a = [{}]\n  let t = \"x\"\n  let b = [{}]\n", items.join(", "), texts.join(", "));
    prints(
        &format!("fn main() {{\n{lists}  print(\"${{len(a)}} ${{a[49999]}} ${{b[2999]}}\")\n}}\n"),
        "50000 49999 x2999",
    );
}

#[test]
fn fields() {
    let fields = repeat(4_000, |i| format!("  f{i}: Int = {i}\n"));
    let given = (0..4_000).map(|i| format!("f{i}: {}", i + 1)).collect::<Vec<_>>().join(", ");
    let main = format!("  let c = C {{}}\n  let d = C {{ {given} }}\n  print_int(c.f3999 + d.f3999)\n");
    prints(&format!("class C {{\n{fields}}}\nfn main() {{\n{main}}}\n"), "7999");
}

#[test]
fn variables() {
    let fixed = repeat(1_500, |i| format!("  let t{i} = s .. \"{i}\"\n"));
    let assigned = repeat(1_500, |i| format!("  let u{i} = s .. \"{i}\"\n  if n == {i} {{ u{i} = t{i} .. \"!\" }}\n"));
    let source =
        format!("fn main() {{\n  let s = \"x\"\n  let n = 7\n{fixed}{assigned}  print(t1499 .. u7 .. u1499)\n}}\n");
    prints(&source, "x1499x7!x1499");
}

#[test]
fn branches() {
    let arms = repeat(4_000, |i| format!("  else if n == {} {{ print(\"{i}\") }}\n", i + 1));
    let cases = repeat(4_000, |i| format!("    case {i}: print(\"{i}\")\n"));
    let texts = repeat(4_000, |i| format!("    case \"{i}\": print(\"{i}\")\n"));
    let main = format!(
        "  let n = 7\n  if n == 0 {{ print(\"no\") }}\n{arms}  switch n {{\n{cases}    default: print(\"d\")\n  }}\n  \
         switch \"3999\" {{\n{texts}    default: print(\"d\")\n  }}\n"
    );
    prints(&format!("fn main() {{\n{main}}}\n"), "6\n7\n3999");
}

#[test]
fn calls() {
    let ints = repeat(4_000, |_| "  n = f(n)\n".to_string());
    let texts = repeat(3_000, |_| "  s = g(s)\n".to_string());
    let functions = "fn f(n: Int) -> Int { return n + 1 }\nfn g(s: Text) -> Text { return s .. \"1\" }\n";
    let main = format!("  let n = 7\n  let s = \"\"\n{ints}{texts}  print(\"${{n}} ${{len(s)}}\")\n");
    prints(&format!("{functions}fn main() {{\n{main}}}\n"), "4007 3000");
}

/// A trap in a huge function: its line, what it frees, and that it can be caught.
#[test]
fn traps() {
    let before = repeat(3_000, |i| format!("  let t{i} = s .. \"{i}\"\n"));
    let main = format!("  let s = \"x\"\n{before}  print(t2999)\n  return 1 / len(list)\n");
    let source = format!(
        "fn f(list: multi Int) -> Int {{\n{main}}}\nfn main() {{\n  try print_int(f([])) catch (e) {{ print(\"${{e.line}} ${{e.msg}}\") }}\n}}\n"
    );
    prints(&source, "x2999\n3004 division by zero");
}
