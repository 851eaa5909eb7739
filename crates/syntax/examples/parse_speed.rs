//! Lines per second of `parse` over a generated source of about 100,000 lines. Run with `--release`; a path argument
//! dumps that file's tree and diagnostics instead.
#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::fmt::Write as _;
use std::time::Instant;

use diagnostics::span::{FileId, LineIndex};

fn generate(lines: usize) -> String {
    let mut out = String::from("use time\n\nconst LIMIT = 250\n\n");
    let mut n = 0;
    while out.len() < lines * 26 {
        n += 1;
        let _ = write!(
            out,
            r#"-- Orders of customer number {n}; kept sorted by their day.
@table(name: "orders{n}", index: [day, customer])
class Order{n} {{
  customer: Text
  day: Int = 0
  total: ?Float
  tags: multi Text = []
  by_name: map<Text, multi Int> = {{}}

  fn describe(prefix: Text) -> Text {{
    let label = prefix .. ": " .. self.customer
    if self.day > LIMIT and len(self.tags) != 0 {{
      return "${{label}} (${{self.day}})"
    }} else if self.total == nil {{
      return label .. "\n"
    }}
    return label
  }}
}}

fn sum_{n}(items: multi Int, mut seen: map<Text, Int>) -> Int {{
  let total = 0
  for item in items {{
    -- Every other one counts double.
    if item % 2 == 0 {{ total += item * 2 }} else {{ total += item }}
    seen["k${{item}}"] = total
  }}
  let best = try items[0] / total catch (e) nil
  return switch total {{
    case 0: -1
    case 1, 2: total + 1
    default: total
  }}
}}

fn top_{n}(day: Int) -> multi Text {{
  return from o in Order{n}
    where o.day == day
    order by o.total desc, o.customer
    take 10
    select o.customer
}}

"#
        );
    }
    out
}

fn main() {
    if let Some(path) = std::env::args().nth(1) {
        let source = std::fs::read(&path).unwrap_or_default();
        let parsed = syntax::parse(FileId(0), &source, &[]);
        println!("{}", syntax::dump_ast(&parsed.file));
        let index = LineIndex::new(&source);
        for d in &parsed.diagnostics {
            let (line, col) = index.line_col(d.span.start);
            println!("{path}:{line}:{col}: {} {} | {} | {:?} | {:?}", d.code, d.title, d.label, d.notes, d.help);
        }
        return;
    }
    let source = generate(100_000);
    let lines = source.lines().count();
    for _ in 0..5 {
        let start = Instant::now();
        let parsed = syntax::parse(FileId(0), source.as_bytes(), &[]);
        let took = start.elapsed().as_secs_f64();
        let found = parsed.diagnostics.len();
        println!("{lines} lines, {} bytes, {found} diagnostics: {:.0} lines/s", source.len(), lines as f64 / took);
        let start = Instant::now();
        drop(parsed);
        println!("  drop: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
}
