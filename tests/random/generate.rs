//! Well-typed random programs that end: bounded loops, calls only to functions written earlier, texts cut to size.
//!
//! Class objects are part of a cycle (so they alias freely), containers and payload unions have one owner each; a
//! program therefore also respects the rules of ownership.

use std::fmt::Write as _;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ty {
    Int,
    Text,
    Bool,
    Float,
    Class,
    Ints,
    Texts,
    Classes,
    Counts,
    Names,
    MaybeInt,
    MaybeText,
    MaybeClass,
    Union,
    Iface,
}

use Ty::*;

const LOCALS: [Ty; 15] =
    [Int, Text, Bool, Float, Class, Ints, Texts, Classes, Counts, Names, MaybeInt, MaybeText, MaybeClass, Union, Iface];
const RESULTS: [Ty; 11] = [Int, Int, Text, Bool, Float, Class, Ints, Texts, MaybeInt, MaybeText, Union];
const PARAMS: [Ty; 11] = [Int, Text, Bool, Float, Class, Ints, Texts, Counts, MaybeInt, MaybeText, MaybeClass];

fn source(ty: Ty) -> &'static str {
    match ty {
        Int => "Int",
        Text => "Text",
        Bool => "Bool",
        Float => "Float",
        Class => "C",
        Ints => "multi Int",
        Texts => "multi Text",
        Classes => "multi C",
        Counts => "map<Text, Int>",
        Names => "map<Int, Text>",
        MaybeInt => "?Int",
        MaybeText => "?Text",
        MaybeClass => "?C",
        Union => "U",
        Iface => "I",
    }
}

fn narrowed(ty: Ty) -> Option<Ty> {
    match ty {
        MaybeInt => Some(Int),
        MaybeText => Some(Text),
        MaybeClass => Some(Class),
        _ => None,
    }
}

const PRELUDE: &str = "\
use json
interface I {
  fn key() -> Text
  fn bump(by: Int) -> Int
}
type U = None | One(n: Int, t: Text) | Many(xs: multi Int, c: ?C)
class C {
  n: Int = 3
  t: Text = \"c\"
  items: multi Int = []
  by: map<Text, Int> = {}
  next: ?C
  fn key() -> Text { return \"C\" .. self.t }
  fn bump(by: Int) -> Int {
    self.n += by
    return self.n
  }
}
class D {
  f: Float
  names: multi Text = []
  fn key() -> Text { return \"D${self.f}\" }
  fn bump(by: Int) -> Int {
    self.f = self.f + float(by)
    push(self.names, \"b\")
    if len(self.names) > 3 { trap(\"D is full\") }
    return len(self.names)
  }
}
class Holder {
  c: C
  t: Text = \"h\"
}
fn peek(c: C) -> Text { return c.t }
fn rename(mut c: C, t: Text) { c.t = t }
fn relink(mut c: C) { c.next = C { n: c.n } }
fn follow(c: C) -> Int {
  let n = c.next
  if n == nil { return c.n }
  return n.n + len(n.t)
}
fn drop_first(mut xs: multi C) { if len(xs) > 1 { shift(xs) } }
fn drop_last(mut xs: multi Int) { if len(xs) > 1 { pop(xs) } }
fn total(xs: multi Int) -> Int {
  let t = 0
  let i = 0
  while i < len(xs) {
    t += xs[i]
    i += 1
  }
  return t
}
fn keep(take c: C, mut xs: multi C) { if len(xs) < 20 { push(xs, c) } }
fn wrap(take c: C, take t: Text, bad: Bool) -> Holder {
  if bad { trap(\"not wrapped\") }
  return Holder { c: c, t: t }
}
fn cut(t: Text) -> Text { return substr(t, 0, 24) }
fn show_u(u: U) -> Text {
  return switch u {
    case None: \"none\"
    case One(n, t): \"one ${n} ${t}\"
    case Many(xs, c): \"many ${len(xs)} ${c == nil}\"
  }
}
fn show_i(n: ?Int) -> Text { return json.encode(n) }
fn show_t(t: ?Text) -> Text { return json.encode(t) }
fn show_c(c: C) -> Text { return \"${c.n} ${c.t} ${len(c.items)} ${len(c.by)} ${c.next == nil}\" }
";

struct Local {
    name: String,
    ty: Ty,
    fixed: bool,
}

struct Function {
    name: String,
    params: Vec<Ty>,
    result: Ty,
    level: usize,
}

pub struct Generator {
    seed: u64,
    out: String,
    depth: usize,
    scope: Vec<Local>,
    functions: Vec<Function>,
    names: usize,
    loops: usize,
    calls: usize,
    level: usize,
    result: Ty,
    budget: usize,
}

/// The source of one program with `functions` random functions.
pub fn program(seed: u64, functions: usize) -> String {
    let mut g = Generator {
        seed: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        out: PRELUDE.to_owned(),
        depth: 0,
        scope: Vec::new(),
        functions: Vec::new(),
        names: 0,
        loops: 0,
        calls: 0,
        level: 0,
        result: Int,
        budget: 0,
    };
    for _ in 0..functions {
        g.function();
    }
    g.main();
    g.out
}

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        usize::try_from(self.seed >> 33).unwrap_or(0) % n.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn fresh(&mut self, stem: &str) -> String {
        self.names += 1;
        format!("{stem}{}", self.names)
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Runs `body` with an own output and returns what it wrote.
    fn apart(&mut self, body: impl FnOnce(&mut Generator)) -> String {
        let before = std::mem::take(&mut self.out);
        body(self);
        std::mem::replace(&mut self.out, before)
    }

    fn scoped(&mut self, body: impl FnOnce(&mut Generator)) {
        let before = self.scope.len();
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.scope.truncate(before);
    }

    fn variable(&mut self, ty: Ty, assigned: bool) -> Option<String> {
        let all: Vec<usize> =
            (0..self.scope.len()).filter(|i| self.scope[*i].ty == ty && !(assigned && self.scope[*i].fixed)).collect();
        if all.is_empty() {
            return None;
        }
        let at = self.pick(&all);
        Some(self.scope[at].name.clone())
    }

    fn declare(&mut self, name: &str, ty: Ty, fixed: bool) {
        self.scope.push(Local { name: name.to_owned(), ty, fixed });
    }

    fn int_literal(&mut self) -> String {
        match self.below(8) {
            0 => "0".to_owned(),
            1 => "9223372036854775807".to_owned(),
            2 => "-9223372036854775808".to_owned(),
            3 => "-1".to_owned(),
            4 => self.below(100_000).to_string(),
            _ => self.below(6).to_string(),
        }
    }

    /// A literal, a variable or the zero of the type: an expression on one line without effects.
    fn leaf(&mut self, ty: Ty) -> String {
        if self.below(4) != 0
            && !matches!(ty, Ints | Texts | Classes | Counts | Names | Union)
            && let Some(name) = self.variable(ty, false)
        {
            return name;
        }
        match ty {
            Int => self.int_literal(),
            Text => self.pick(&["\"\"", "\"a\"", "\"12\"", "\"é x\"", "\"long enough to move\"", "\"-7z\""]).to_owned(),
            Bool => self.pick(&["true", "false"]).to_owned(),
            Float => self.pick(&["0.0", "1.5", "-2.25", "1e300", "0.1"]).to_owned(),
            Class => "C {}".to_owned(),
            Ints => self.pick(&["[1, 2, 3]", "[5]", "[0, 0]"]).to_owned(),
            Texts => self.pick(&["[\"x\"]", "[\"p\", \"q\"]"]).to_owned(),
            Classes => "[C {}]".to_owned(),
            Counts | Names => "map_new()".to_owned(),
            MaybeInt | MaybeText | MaybeClass => "nil".to_owned(),
            Union => "None".to_owned(),
            Iface => self.pick(&["C { n: 1 }", "D { f: 0.5 }"]).to_owned(),
        }
    }

    fn call(&mut self, ty: Ty, depth: usize) -> Option<String> {
        if self.calls == 0 {
            return None;
        }
        let all: Vec<usize> = (0..self.functions.len())
            .filter(|i| self.functions[*i].result == ty && self.functions[*i].level < 3)
            .collect();
        if all.is_empty() {
            return None;
        }
        self.calls -= 1;
        let at = self.pick(&all);
        self.level = self.level.max(self.functions[at].level + 1);
        let (name, params) = (self.functions[at].name.clone(), self.functions[at].params.clone());
        let args: Vec<String> = params.iter().map(|p| self.argument(*p, depth)).collect();
        Some(format!("{name}({})", args.join(", ")))
    }

    /// Containers are passed as variables too: the callee borrows them.
    fn argument(&mut self, ty: Ty, depth: usize) -> String {
        if matches!(ty, Ints | Texts | Counts)
            && let Some(name) = self.variable(ty, false)
        {
            return name;
        }
        if matches!(ty, Counts) {
            return "map_new()".to_owned();
        }
        self.value(ty, depth.saturating_sub(1))
    }

    fn list(&mut self, item: Ty, depth: usize) -> String {
        let n = 1 + self.below(3);
        let items: Vec<String> = (0..n).map(|_| self.value(item, depth - 1)).collect();
        format!("[{}]", items.join(", "))
    }

    fn value(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.budget == 0 {
            return self.leaf(ty);
        }
        self.budget -= 1;
        let d = depth - 1;
        match self.below(12) {
            0 => return self.switch(ty, d),
            1 => return self.attempt(ty, d),
            2 | 3 => {
                if let Some(call) = self.call(ty, d) {
                    return call;
                }
            }
            _ => {}
        }
        match ty {
            Int => self.int(d),
            Text => self.text(d),
            Bool => self.bool(d),
            Float => self.float(d),
            Class => self.class(d),
            Ints => match self.below(3) {
                0 => self.list(Int, depth),
                1 => match self.variable(Ints, false) {
                    Some(v) => format!("slice({v}, {}, {})", self.below(2), self.below(5)),
                    None => self.leaf(Ints),
                },
                _ => self.list(Int, depth),
            },
            Texts => match self.below(3) {
                0 => {
                    let t = self.value(Text, d);
                    format!("split({t}, {})", self.pick(&["\" \"", "\"a\"", "\"e\""]))
                }
                1 => {
                    let t = self.value(Text, d);
                    format!("split_ws({t})")
                }
                _ => self.list(Text, depth),
            },
            Classes => self.list(Class, depth),
            Counts | Names => "map_new()".to_owned(),
            MaybeInt | MaybeText | MaybeClass => self.maybe(ty, d),
            Union => match self.below(3) {
                0 => format!("One({}, {})", self.value(Int, d), self.value(Text, d)),
                1 => format!("Many({}, {})", self.value(Ints, d), self.value(MaybeClass, d)),
                _ => "None".to_owned(),
            },
            Iface => match self.below(3) {
                0 => self.value(Class, d),
                1 => format!("D {{ f: {}, names: {} }}", self.value(Float, d), self.value(Texts, d)),
                _ => self.leaf(Iface),
            },
        }
    }

    fn int(&mut self, d: usize) -> String {
        let a = self.value(Int, d);
        match self.below(20) {
            0..=5 => {
                let op = self.pick(&["+", "-", "*", "/", "%", "&", "|", "^", "+", "-"]);
                let b = self.value(Int, d);
                format!("({a} {op} {b})")
            }
            6 => {
                let (op, b) = (self.pick(&["<<", ">>"]), self.value(Int, d));
                format!("({a} {op} ({b} & {}))", self.pick(&["63", "127"]))
            }
            7 => format!("len({})", self.value(Text, d)),
            8 | 9 => match self.variable(Ints, false) {
                Some(xs) => match self.below(4) {
                    0 => format!("{xs}[{a} & 3]"),
                    1 => format!("get({xs}, {a})"),
                    2 => format!("pop({xs})"),
                    _ => format!("(len({xs}) + {xs}[0])"),
                },
                None => a,
            },
            10 => match self.variable(Counts, false) {
                Some(m) => {
                    let k = self.value(Text, d);
                    match self.below(4) {
                        0 => format!("get({m}, {k})"),
                        1 => format!("(len({m}) + {m}[{k}])"),
                        2 => format!("val_at({m}, {a} & 3)"),
                        _ => format!("({m}[{k}] + {a})"),
                    }
                }
                None => a,
            },
            11 => format!("(parse_int({}) + 1)", self.value(Text, d)),
            12 | 13 => match self.variable(Class, false) {
                Some(c) => match self.below(4) {
                    0 => format!("{c}.n"),
                    1 => format!("{c}.bump({a})"),
                    2 => format!("{c}.items[{a} & 1]"),
                    _ => format!("({c}.n + {c}.bump({a}) + {c}.n)"),
                },
                None => a,
            },
            14 => match self.variable(Iface, false) {
                Some(i) => format!("{i}.bump({a})"),
                None => a,
            },
            15 => format!("index_of({}, {})", self.value(Text, d), self.value(Text, d)),
            16 => format!("byte_at({}, {a} & 7)", self.value(Text, d)),
            17 => format!("trunc({})", self.value(Float, d)),
            18 => format!("-({a})"),
            _ => a,
        }
    }

    fn text(&mut self, d: usize) -> String {
        match self.below(13) {
            0..=2 => format!("({} .. {})", self.value(Text, d), self.value(Text, d)),
            3 | 4 => {
                let from = self.pick(&[Int, Bool, Float, Text]);
                let hole = self.value(from, d.min(1));
                if hole.contains('\n') { self.leaf(Text) } else { format!("\"<${{{hole}}}>\"") }
            }
            5 => format!("substr({}, {}, {})", self.value(Text, d), self.below(3), self.below(9)),
            6 => match self.variable(Texts, false) {
                Some(xs) => match self.below(4) {
                    0 => format!("join({xs}, \"+\")"),
                    1 => format!("shift({xs})"),
                    2 => format!("latest({xs})"),
                    _ => format!("{xs}[{} & 3]", self.value(Int, d)),
                },
                None => self.leaf(Text),
            },
            7 => match self.variable(Class, false) {
                Some(c) => format!("{c}.{}", self.pick(&["t", "key()"])),
                None => self.leaf(Text),
            },
            8 => match self.variable(Names, false) {
                Some(m) => format!("({m}[{}] .. \"\")", self.value(Int, d)),
                None => self.leaf(Text),
            },
            9 => format!("int_to_text({})", self.value(Int, d)),
            10 => match self.variable(Iface, false) {
                Some(i) => format!("({i}.key() .. class_name({i}))"),
                None => self.leaf(Text),
            },
            11 => format!("show_u({})", self.value(Union, d)),
            _ => format!("trim({})", self.value(Text, d)),
        }
    }

    fn bool(&mut self, d: usize) -> String {
        match self.below(10) {
            0..=2 => {
                let of = self.pick(&[Int, Float, Text, Int]);
                let (a, op, b) = (self.value(of, d), self.pick(&["==", "!=", "<", "<=", ">", ">="]), self.value(of, d));
                format!("({a} {op} {b})")
            }
            3 | 4 => format!("({} and {})", self.value(Bool, d), self.value(Bool, d)),
            5 => format!("({} or {})", self.value(Bool, d), self.value(Bool, d)),
            6 => format!("(not {})", self.value(Bool, d)),
            7 => {
                let of = self.pick(&[MaybeInt, MaybeText, MaybeClass]);
                match self.variable(of, false) {
                    Some(v) if of == MaybeInt => format!("({v} == {})", self.value(Int, d)),
                    Some(v) => format!("({v} {} nil)", self.pick(&["==", "!="])),
                    None => self.leaf(Bool),
                }
            }
            8 => match self.variable(Counts, false) {
                Some(m) => format!("{}({m}, {})", self.pick(&["has", "remove"]), self.value(Text, d)),
                None => self.leaf(Bool),
            },
            _ => format!("({} == {})", self.leaf(Class), self.leaf(Class)).replace("C {}", "(C {})"),
        }
    }

    fn float(&mut self, d: usize) -> String {
        match self.below(6) {
            0..=2 => {
                let op = self.pick(&["+", "-", "*", "/"]);
                format!("({} {op} {})", self.value(Float, d), self.value(Float, d))
            }
            3 => format!("float({})", self.value(Int, d)),
            4 => format!("parse_float({})", self.value(Text, d)),
            _ => format!("-({})", self.value(Float, d)),
        }
    }

    fn class(&mut self, d: usize) -> String {
        match self.below(4) {
            0 => match self.variable(Classes, false) {
                Some(xs) => format!("{xs}[{} & 1]", self.value(Int, d)),
                None => self.leaf(Class),
            },
            1 => self.leaf(Class),
            _ => {
                let mut fields = Vec::new();
                for (name, ty) in [("n", Int), ("t", Text), ("items", Ints), ("next", MaybeClass)] {
                    if self.below(2) == 0 {
                        fields.push(format!("{name}: {}", self.value(ty, d)));
                    }
                }
                format!("C {{ {} }}", fields.join(", "))
            }
        }
    }

    fn maybe(&mut self, ty: Ty, d: usize) -> String {
        let inner = narrowed(ty).unwrap_or(Int);
        match self.below(5) {
            0 => self.leaf(ty),
            1 => format!("(try {} catch (e) nil)", self.value(inner, d)),
            2 => match ty {
                MaybeInt => format!("parse_int({})", self.value(Text, d)),
                MaybeClass => self.variable(Class, false).map_or("nil".to_owned(), |c| format!("{c}.next")),
                _ => match self.variable(Names, false) {
                    Some(m) => format!("{m}[{}]", self.value(Int, d)),
                    None => self.leaf(ty),
                },
            },
            _ => self.value(inner, d),
        }
    }

    /// A `switch` whose arms may change locals before they yield.
    fn switch(&mut self, ty: Ty, d: usize) -> String {
        let of = self.pick(&[Int, Text, Bool, Union]);
        let subject = self.value(of, d.min(1));
        let subject = if subject.contains('{') { format!("({subject})") } else { subject };
        let heads: Vec<(String, Vec<(String, Ty)>)> = match of {
            Int => vec![("case 0, 1".into(), vec![]), ("case 3".into(), vec![]), ("default".into(), vec![])],
            Text => vec![("case \"a\"".into(), vec![]), ("default".into(), vec![])],
            Bool => vec![("case true".into(), vec![]), ("default".into(), vec![])],
            _ => {
                let (n, t) = (self.fresh("n"), self.fresh("t"));
                let (xs, c) = (self.fresh("xs"), self.fresh("c"));
                vec![
                    ("case None".into(), vec![]),
                    (format!("case One({n}, {t})"), vec![(n, Int), (t, Text)]),
                    (format!("case Many({xs}, {c})"), vec![(xs, Ints), (c, MaybeClass)]),
                ]
            }
        };
        let mut arms = String::new();
        for (head, bound) in heads {
            arms += &self.apart(|g| {
                g.depth += 1;
                g.line(&format!("{head}:"));
                g.scoped(|g| {
                    for (name, ty) in bound {
                        g.declare(&name, ty, true);
                    }
                    if g.below(2) == 0 {
                        g.simple(d);
                    }
                    let value = g.yielded(ty, d);
                    g.line(&value);
                });
                g.depth -= 1;
            });
        }
        let mut pad = String::new();
        for _ in 0..self.depth {
            pad.push_str("  ");
        }
        format!("(switch {subject} {{\n{arms}{pad}}})")
    }

    /// A value at the start of a line, where a bracket would otherwise stand alone.
    fn yielded(&mut self, ty: Ty, d: usize) -> String {
        if narrowed(ty).is_some() {
            return self.value(ty, d.min(1));
        }
        self.value(ty, d)
    }

    fn attempt(&mut self, ty: Ty, d: usize) -> String {
        let body = self.value(ty, d);
        let e = self.fresh("e");
        if self.below(2) == 0 {
            let mut arm = self.value(ty, d);
            if ty == Text && self.below(2) == 0 {
                arm = format!("({e}.msg .. \" ${{{e}.code}} ${{{e}.line}} ${{{e}.method}}\")");
            }
            return format!("(try {body} catch ({e}) {arm})");
        }
        let arm = self.apart(|g| {
            g.scoped(|g| {
                g.simple(d);
                let value = g.yielded(ty, d);
                g.line(&value);
            });
        });
        let mut pad = String::new();
        for _ in 0..self.depth {
            pad.push_str("  ");
        }
        format!("(try {body} catch ({e}) {{\n{arm}{pad}}})")
    }

    /// An assignment, a store or a change of a container.
    fn simple(&mut self, d: usize) {
        match self.below(14) {
            0..=3 => {
                let ty = self.pick(&LOCALS);
                if let Some(name) = self.variable(ty, true) {
                    let value = self.value(ty, d);
                    let value = match ty {
                        Text if self.below(3) == 0 => format!("{name} .. cut({value})"),
                        Text => format!("cut({value})"),
                        _ => value,
                    };
                    self.line(&format!("{name} = {value}"));
                }
            }
            4 => {
                if let Some(name) = self.variable(Int, true) {
                    let (op, value) = (self.pick(&["+=", "-=", "*=", "/=", "%="]), self.value(Int, d));
                    self.line(&format!("{name} {op} {value}"));
                }
            }
            5 => {
                if let Some(c) = self.variable(Class, false) {
                    let text = match self.below(6) {
                        0 => format!("{c}.n = {}", self.value(Int, d)),
                        1 => format!("{c}.n += {}", self.value(Int, d)),
                        2 => format!("{c}.t = cut({})", self.value(Text, d)),
                        // Only what cannot reach `c`: a cycle would wait for the collector.
                        3 => format!("{c}.next = C {{ n: {}, t: cut({}) }}", self.value(Int, d), self.value(Text, d)),
                        4 => format!("{c}.by[cut({})] += {}", self.value(Text, d), self.value(Int, d)),
                        _ => format!("{c}.items = {}", self.value(Ints, d)),
                    };
                    self.line(&text);
                    if self.below(3) == 0 {
                        self.alias(&c);
                    }
                }
            }
            6 | 7 => {
                if let Some(xs) = self.variable(Ints, false) {
                    let value = self.value(Int, d);
                    let text = match self.below(6) {
                        0 => format!("{xs}[{} & 3] = {value}", self.value(Int, d)),
                        1 => format!("{xs}[{} & 1] -= {value}", self.value(Int, d)),
                        2 => format!("sort({xs})"),
                        3 => format!("reverse({xs})"),
                        _ => format!("if len({xs}) < 20 {{ push({xs}, {value}) }}"),
                    };
                    self.line(&text);
                }
            }
            8 => {
                if let Some(xs) = self.variable(Texts, false) {
                    let value = self.value(Text, d);
                    let text = match self.below(4) {
                        0 => format!("{xs}[{} & 1] = cut({value})", self.value(Int, d)),
                        1 => format!("sort({xs})"),
                        _ => format!("if len({xs}) < 20 {{ push({xs}, cut({value})) }}"),
                    };
                    self.line(&text);
                }
            }
            9 => {
                if let Some(xs) = self.variable(Classes, false) {
                    let value = self.value(Class, d);
                    let text = match self.below(3) {
                        0 => format!("{xs}[{} & 1] = {value}", self.value(Int, d)),
                        1 => format!("{xs}[0].n *= {}", self.value(Int, d)),
                        _ => format!("if len({xs}) < 20 {{ push({xs}, {value}) }}"),
                    };
                    self.line(&text);
                }
            }
            10 => {
                if let Some(m) = self.variable(Counts, false) {
                    let (k, v) = (self.value(Text, d), self.value(Int, d));
                    let op = self.pick(&["=", "+=", "*="]);
                    self.line(&format!("if len({m}) < 20 {{ {m}[cut({k})] {op} {v} }}"));
                }
            }
            11 => {
                if let Some(m) = self.variable(Names, false) {
                    let (k, v) = (self.value(Int, d), self.value(Text, d));
                    self.line(&format!("if len({m}) < 20 {{ set({m}, {k}, cut({v})) }}"));
                }
            }
            _ => self.print(d),
        }
    }

    fn print(&mut self, d: usize) {
        let ty = self.pick(&[Int, Text, Bool, Float, Class, MaybeInt, Union]);
        let value = self.value(ty, d);
        let text = shown(ty, &value);
        self.line(&text);
    }

    fn block(&mut self, n: usize, d: usize) {
        self.scoped(|g| {
            for _ in 0..n {
                g.statement(d);
            }
        });
    }

    fn statement(&mut self, d: usize) {
        if self.budget == 0 {
            self.print(0);
            return;
        }
        self.budget -= 1;
        match self.below(16) {
            0..=2 => {
                let ty = self.pick(&LOCALS);
                let (name, value) = (self.fresh("v"), self.value(ty, d));
                let needs =
                    narrowed(ty).is_some() || matches!(ty, Counts | Names | Iface | Union) || self.below(2) == 0;
                let annotation = if needs { format!(": {}", source(ty)) } else { String::new() };
                self.line(&format!("let {name}{annotation} = {value}"));
                self.declare(&name, ty, false);
            }
            3 => {
                let condition = self.value(Bool, d);
                self.line(&format!("if ({condition}) {{"));
                self.block(2, d);
                if self.below(2) == 0 {
                    self.line("} else {");
                    self.block(2, d);
                }
                self.line("}");
            }
            4 => {
                let ty = self.pick(&[MaybeInt, MaybeText, MaybeClass]);
                if let Some(name) = self.variable(ty, false) {
                    self.line(&format!("if {name} != nil {{"));
                    self.scoped(|g| {
                        // While it is narrowed it is another variable, which nobody assigns.
                        let hidden: Vec<usize> = (0..g.scope.len()).filter(|i| g.scope[*i].name == name).collect();
                        for i in &hidden {
                            g.scope[*i].fixed = true;
                        }
                        let copy = g.fresh("w");
                        g.line(&format!("let {copy} = {name}"));
                        g.declare(&copy, narrowed(ty).unwrap_or(Int), false);
                        g.statement(d);
                        g.statement(d);
                        for i in hidden {
                            g.scope[i].fixed = false;
                        }
                    });
                    self.line("}");
                }
            }
            5..=7 if self.loops < 2 => self.repeat(d),
            8 => {
                let ty = self.pick(&[Int, Text, Class]);
                let (body, e) = (self.value(ty, d), self.fresh("e"));
                self.line(&format!("try {body} catch ({e}) {{"));
                self.scoped(|g| {
                    g.line(&format!("print(\"${{{e}.code}} ${{{e}.line}} ${{{e}.msg}}\")"));
                    g.statement(d);
                    g.leave(d);
                });
                self.line("}");
            }
            9 => {
                let condition = self.value(Bool, d);
                self.line(&format!("if ({condition}) {{"));
                self.scoped(|g| g.leave(d));
                self.line("}");
            }
            _ => self.simple(d),
        }
    }

    /// Maybe a `return`, `break` or `continue`.
    fn leave(&mut self, d: usize) {
        match self.below(3) {
            0 => {
                let value = self.value(self.result, d);
                self.line(&format!("return {value}"));
            }
            1 if self.loops > 0 => {
                let word = self.pick(&["break", "continue"]);
                self.line(word);
            }
            _ => self.print(0),
        }
    }

    /// A walk by index over a list that the body may change.
    fn walk(&mut self, d: usize) {
        let (list, item) = self.pick(&[(Ints, Int), (Texts, Text), (Classes, Class)]);
        let Some(xs) = self.variable(list, false) else { return self.print(d) };
        let (i, x) = (self.fresh("i"), self.fresh("x"));
        let start = self.pick(&["0", "0", "0", "1", "-1"]);
        self.line(&format!("let {i} = {start}"));
        let more = self.pick(&["i < len(xs)", "i < len(xs) and i < 9", "i < 3", "i <= len(xs) - 1 and i < 9"]);
        self.line(&format!("while {} {{", more.replace("xs", &xs).replace('i', &i)));
        self.scoped(|g| {
            let step = g.pick(&["1", "1", "2"]);
            // First, so that `continue` does not pass it.
            g.line(&format!("let {x} = {xs}[{i}]"));
            g.line(&format!("{i} += {step}"));
            g.declare(&x, item, false);
            g.declare(&i, Int, true);
            for _ in 0..2 {
                match g.below(6) {
                    0 => g.shrink(list, &xs),
                    1 => g.line(&shown(item, &format!("{xs}[{i}]"))),
                    2 => g.line(&shown(item, &format!("{xs}[{i} - {step}]"))),
                    3 if item == Class => g.alias(&x),
                    _ => g.statement(d),
                }
            }
            g.line(&shown(item, &x));
        });
        self.line("}");
    }

    fn shrink(&mut self, list: Ty, xs: &str) {
        let text = match (self.below(4), list) {
            (0, Ints) => format!("drop_last({xs})"),
            (0, Classes) => format!("drop_first({xs})"),
            (1, Classes) => format!("{xs}[len({xs}) - 1] = C {{ t: \"new\" }}"),
            (2, _) => format!("if len({xs}) > 1 {{ shift({xs}) }}"),
            _ => format!("pop({xs})"),
        };
        self.line(&text);
    }

    /// Uses of an object under several names, some of which lose it.
    fn alias(&mut self, c: &str) {
        let other = self.fresh("y");
        self.line(&format!("let {other} = {c}"));
        for _ in 0..3 {
            let text = match self.below(9) {
                0 => format!("rename({other}, {c}.t .. \"!\")"),
                1 => format!("print(cut(peek({c}) .. peek({other})))"),
                2 => format!("relink({c})"),
                3 => format!("print(\"${{follow({other})}}\")"),
                4 => match self.variable(Classes, false) {
                    Some(xs) => format!("keep({other}, {xs})"),
                    None => format!("rename({c}, \"alone\")"),
                },
                5 => {
                    let bad = self.pick(&["false", "false", "true"]);
                    format!("print(wrap({other}, {c}.t, {bad}).c.t)")
                }
                6 => format!("if {c}.next != nil {{ {c}.next = nil }}"),
                7 => format!("{c}.t = {other}.t .. \".\""),
                _ => format!("print(\"${{total({c}.items)}} ${{len({other}.items)}}\")"),
            };
            self.line(&text);
        }
        self.line(&format!("{c}.t = cut({other}.t)"));
        self.declare(&other, Class, false);
    }

    fn repeat(&mut self, d: usize) {
        self.loops += 1;
        match self.below(6) {
            4 | 5 => self.walk(d),
            0 => {
                let i = self.fresh("i");
                self.line(&format!("let {i} = 0"));
                let bound = 2 + self.below(3);
                let condition = self.value(Bool, d.min(1));
                self.line(&format!("while {i} < {bound} and ({condition} or true) {{"));
                self.scoped(|g| g.line(&format!("{i} += 1")));
                self.declare(&i, Int, true);
                self.block(3, d);
                self.line("}");
            }
            1 => {
                let i = self.fresh("i");
                self.line(&format!("let {i} = 0"));
                self.declare(&i, Int, true);
                self.line("do {");
                self.scoped(|g| g.line(&format!("{i} += 1")));
                self.block(2, d);
                self.line(&format!("}} while {i} < 3"));
            }
            2 => {
                let (list, item) = self.pick(&[(Ints, Int), (Texts, Text), (Classes, Class)]);
                let over = match self.variable(list, false) {
                    Some(v) if self.below(3) > 0 => v,
                    _ => format!("({})", self.value(list, d)),
                };
                let x = self.fresh("x");
                self.line(&format!("for {x} in {over} {{"));
                self.scoped(|g| {
                    g.declare(&x, item, false);
                    g.statement(d);
                    g.statement(d);
                });
                self.line("}");
            }
            _ => {
                let (map, key, val) = self.pick(&[(Counts, Text, Int), (Names, Int, Text)]);
                if let Some(m) = self.variable(map, false) {
                    let (k, v) = (self.fresh("k"), self.fresh("x"));
                    self.line(&format!("for {k}, {v} in {m} {{"));
                    self.scoped(|g| {
                        g.declare(&k, key, true);
                        g.declare(&v, val, false);
                        g.statement(d);
                        g.statement(d);
                    });
                    self.line("}");
                }
            }
        }
        self.loops -= 1;
    }

    fn function(&mut self) {
        let name = format!("f{}", self.functions.len());
        let params: Vec<Ty> = (0..self.below(4)).map(|_| self.pick(&PARAMS)).collect();
        self.result = self.pick(&RESULTS);
        (self.scope, self.loops, self.calls, self.level, self.budget) = (Vec::new(), 0, 2, 0, 110);
        let mut list = Vec::new();
        for ty in &params {
            let p = self.fresh("p");
            list.push(format!("{p}: {}", source(*ty)));
            self.declare(&p, *ty, false);
        }
        self.line(&format!("fn {name}({}) -> {} {{", list.join(", "), source(self.result)));
        self.scoped(|g| {
            for _ in 0..3 {
                let ty = g.pick(&LOCALS);
                let (name, value) = (g.fresh("v"), g.value(ty, 1));
                g.line(&format!("let {name}: {} = {value}", source(ty)));
                g.declare(&name, ty, false);
            }
            let n = 4 + g.below(6);
            for _ in 0..n {
                g.statement(3);
            }
            let all: Vec<(String, Ty)> = g.scope.iter().map(|l| (l.name.clone(), l.ty)).collect();
            for (name, ty) in all {
                if matches!(ty, Int | Text | Bool | Float | Class | MaybeInt | MaybeText | Ints | Texts | Counts) {
                    g.line(&shown(ty, &name));
                }
            }
            g.budget += 3;
            let value = g.value(g.result, 2);
            g.line(&format!("return {value}"));
        });
        self.line("}");
        self.functions.push(Function { name, params, result: self.result, level: self.level });
    }

    fn main(&mut self) {
        self.line("fn main() {");
        self.depth += 1;
        for i in 0..self.functions.len() {
            let (name, params) = (self.functions[i].name.clone(), self.functions[i].params.clone());
            let result = self.functions[i].result;
            self.scope.clear();
            let args: Vec<String> = params.iter().map(|p| self.argument(*p, 0)).collect();
            self.line(&format!("print(\"{name}\")"));
            self.line(&format!("try call_{name}({}) catch (e) {{", args.join(", ")));
            self.line("  print(\"trap ${e.code} ${e.line} ${e.method} ${e.msg}\")");
            self.line("}");
            let heads: Vec<String> = params.iter().enumerate().map(|(i, p)| format!("a{i}: {}", source(*p))).collect();
            let names: Vec<String> = (0..params.len()).map(|i| format!("a{i}")).collect();
            let body = shown(result, &format!("{name}({})", names.join(", ")));
            let text = format!("fn call_{name}({}) {{\n  {body}\n}}\n", heads.join(", "));
            self.out.insert_str(self.out.rfind("fn main()").unwrap_or(0), &text);
        }
        self.depth -= 1;
        self.line("}");
    }
}

/// A statement that prints a value.
fn shown(ty: Ty, value: &str) -> String {
    let mut out = String::new();
    let _ = match ty {
        Text => write!(out, "print({value})"),
        Class => write!(out, "print(show_c({value}))"),
        Union => write!(out, "print(show_u({value}))"),
        MaybeInt => write!(out, "print(show_i({value}))"),
        MaybeText => write!(out, "print(show_t({value}))"),
        Int if !value.contains('\n') && !value.contains('"') => write!(out, "print(\"${{{value}}}\")"),
        Int => write!(out, "print_int({value})"),
        Bool => write!(out, "print_int({value})"),
        Float => write!(out, "print(float_to_text({value}))"),
        _ => write!(out, "print(json.encode({value}))"),
    };
    out
}
