#!/usr/bin/env python3
"""An index never changes a result (tables specification [SEM-8], [PLN-2]): random queries over a class with random indexes
and over the same rows in a class without, between random changes; optimised and not, on several shards, and from a store
that is opened again.

usage: scripts/queries.py [--seed N] [--programs N]    (WOC names the compiler; default: target/release/woc)

Each program prints `MISMATCH` with both results where they differ. The seed of each program is printed with a fault.
Exit status 0: all was well.
"""

import argparse, os, random, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "scenarios"))
from harness import environment

QUERIES = 40
INDEXES = ["a", "a b", "b a", "c a", "d", "e f a", "f", "b", "c d e", "r a", "q d", "y", "a c d"]
OPERATORS = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
OPERANDS = {
    "a": ["-2", "-1", "0", "1", "2", "n", "ident(n)", "g.n"],
    "c": ['"a"', '""', '"ab"', "text(n)"],
    "d": ["0.0", "1.5", "-2.5", "special(n)"],
}
CONDITIONS = [
    ["x.b == nil", "nil == x.b", "x.b != nil", "x.b == n", "x.b == maybe(n)"],
    ["x.e == Mid", "Lit == x.e", "x.e == tone(n)", "x.e != Dim"],
    ["x.f", "x.f == true", "x.f == false", "not x.f"],
    ["x.g == nil", 'x.g == "g5"', "x.g == some(n)", "x.g != nil"],
    ["x.r == g", "g == x.r", "x.r == goal(n)"],
    ["x.q == nil", "x.q == g", "x.q == or_nil(n)", "x.q != nil"],
    ["x.r.n == 2", "x.r.n > n", "odd(x.a)", "odd(x.z + n)", "x.a == x.z", "x.a + x.z > n", "len(x.r.ks) > 3"],
    ['x.y == bytes_of_text("a")', "bytes_of_text(text(n)) == x.y"],
    ["x == 3", "x != 5", "n == 2", "x.z > 3"],
]
KEYS = ["x.a", "x.b", "x.c", "x.d", "x.e", "x.f", "x.g", "x.r", "x.q", "x", "x.a + x.z", "x.r.n", "x.z"]
CHANGES = [
    "x.a += 1", "x.b = maybe(n)", "x.c = text(n + 1)", "x.d = special(n)", "x.d *= -1.0", "x.e = tone(n)", "x.f = not x.f",
    "x.r = goal(n)", "x.q = or_nil(n + x)", "x.q = nil", "x.y = bytes_of_text(text(n))", "x.z = n", "x.a = x.z", "x.g = nil",
    "delete x",
]

COLUMNS = """  a: Int
  b: ?Int
  c: Text
  d: Float
  e: Tone
  f: Bool
  g: ?Text{unique}
  r: ref Goal
  q: ?ref Goal
  y: Bytes
  z: Int
}}
"""

FUNCTIONS = """type Tone = Dim | Mid | Lit
@table
class Goal { n: Int, ks: backlink Keyed.r, ps: backlink Plain.r, kq: backlink Keyed.q, pq: backlink Plain.q }
fn special(n: Int) -> Float {
  let zero = 0.0
  let all = [zero / zero, 1.0 / zero, -1.0 / zero, -zero, zero, 1.5, -2.5, 0.5]
  return all[n % 8]
}
fn tone(n: Int) -> Tone {
  if n % 3 == 0 { return Dim }
  if n % 3 == 1 { return Mid }
  return Lit
}
fn text(n: Int) -> Text {
  let all = ["", "a", "ab", "b", char_of(255), "a" .. char_of(0)]
  return all[n % 6]
}
fn maybe(n: Int) -> ?Int {
  if n % 3 == 0 { return nil }
  return n % 5 - 2
}
fn some(n: Int) -> ?Text {
  if n % 4 == 0 { return nil }
  return "g${n}"
}
fn goal(n: Int) -> Goal { return n % 4 + 1 }
fn or_nil(n: Int) -> ?Goal {
  if n % 3 == 1 { return nil }
  return goal(n)
}
fn ident(n: Int) -> Int { return n }
fn odd(n: Int) -> Bool { return n % 2 != 0 }
fn same(q: Int, k: Text, p: Text) {
  if k != p { print("MISMATCH ${q}: ${k} and ${p}") }
  if len(k) > 1 { print("found") }
}
"""

# For each of the classes.
OF_CLASS = """fn add_CLASS(n: Int, m: Int) {
  insert CLASS {
    a: m % 5 - 2, b: maybe(m / 5), c: text(m / 7), d: special(m / 3), e: tone(m / 11), f: m / 13 % 2 == 0, g: some(n),
    r: goal(m / 17), q: or_nil(m / 19), y: bytes_of_text(text(m / 23)), z: m % 7
  }
}
fn list_CLASS(m: Int) -> multi CLASS {
  let l: multi CLASS = from x in CLASS where x.z != m order by x.c desc select x
  if len(l) > 2 { push(l, l[1]) }
  return l
}
"""

MAIN = """fn main() {{
  if count(from x in Goal select x) == 0 {{
    for n in [1, 2, 3, 2] {{ insert Goal {{ n: n }} }}
  }}
  ask(0)
  let n = count(from x in Keyed select x)
  let end = n + {rows}
  let m = {start} + n
  while n < end {{
    add_Keyed(n + 1000 * m, m)
    add_Plain(n + 1000 * m, m)
    m = ((m * 1103515245 + 12345) & 2147483647) / 3 + n * 7
    n += 1
  }}
  ask(1)
  change(3)
  ask(3)
  change(4)
  ask(4)
  ask(6)
}}
"""


class Program:
    """A random program. Every query is there for both classes."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.indexes = [index.split() for index in self.rng.sample(INDEXES, self.rng.randrange(1, 6))]

    def chance(self, share):
        return self.rng.random() < share

    def text(self):
        arguments = ", ".join(f"index: [{', '.join(index)}]" for index in self.indexes)
        unique = " @unique" if self.chance(0.6) else ""
        parts = [FUNCTIONS, f"@table({arguments})\nclass Keyed {{\n" + COLUMNS.format(unique=unique)]
        parts.append("@table\nclass Plain {\n" + COLUMNS.format(unique=""))
        parts += [OF_CLASS.replace("CLASS", name) for name in ("Keyed", "Plain")]
        parts += [f"fn q{n}(n: Int, g: Goal) {{ {self.comparison(n)} }}\n" for n in range(QUERIES)]
        asked = "".join(f"  q{n}(n, goal(n))\n" for n in range(QUERIES))
        changes = "".join(f"  {line}\n" for _ in range(3) for line in self.change())
        parts.append(f"fn ask(n: Int) {{\n{asked}}}\nfn change(n: Int) {{\n{changes}}}\n")
        parts.append(MAIN.format(rows=self.rng.choice([1, 5, 20, 60]), start=self.rng.randrange(1, 99999)))
        return "".join(parts)

    def comparison(self, number):
        sources = self.rng.choice([("Keyed", "Plain")] * 6 + [("g.ks", "g.ps"), ("g.kq", "g.pq"), ("list_Keyed(n)", "list_Plain(n)")])
        clauses, form = self.clauses(), self.rng.choice(["join", "join", "join", "count"])
        select = self.rng.choice(['"${x}"', '"${x}"', "x.c", '"${x.r.n}:${x.z}"'])
        if form == "count":
            queries = [f'"${{count(from x in {source}{clauses} select x)}}"' for source in sources]
        else:
            queries = [f'join(from x in {source}{clauses} select {select}, " ")' for source in sources]
        return f"same({number}, {', '.join(queries)})"

    def clauses(self):
        count = self.rng.choice([0, 1, 1, 2, 2, 3, 4])
        out = " where " + " and ".join(self.condition() for _ in range(count)) if count else ""
        if self.chance(0.15):
            out += " where " + self.condition()
        if self.chance(0.7):
            out += " order by " + ", ".join(self.keys())
        if self.chance(0.3):
            out += " skip " + self.rng.choice(["0", "1", "2", "n", "-1", "50"])
        if self.chance(0.4):
            out += " take " + self.rng.choice(["0", "1", "3", "7", "n", "-2", "1000"])
        return out

    def keys(self):
        """In six of ten cases what some index may yield, or nearly so."""
        descending = " desc" if self.chance(0.4) else ""
        if self.chance(0.6):
            index = self.rng.choice(self.indexes)
            part = [c for c in index[self.rng.randrange(len(index)):] if c != "y"][:self.rng.randrange(1, 4)]
            if part:
                return [f"x.{c}" + (descending if self.chance(0.9) else "") for c in part]
        return [key + (descending if self.chance(0.7) else "") for key in self.rng.sample(KEYS, self.rng.choice([1, 1, 2, 3]))]

    def condition(self, depth=0):
        if depth < 2 and self.chance(0.25):
            word = self.rng.choice(["or", "and"])
            return f"({self.condition(depth + 1)} {word} {self.condition(depth + 1)})"
        if self.chance(0.05):
            return f"not ({self.condition(2)})"
        if self.chance(0.5):
            return self.rng.choice(self.rng.choice(CONDITIONS))
        column = self.rng.choice("aacd")
        operator, operand = self.rng.choice([*OPERATORS, "=="]), self.rng.choice(OPERANDS[column])
        return f"x.{column} {operator} {operand}" if self.chance(0.7) else f"{operand} {OPERATORS[operator]} x.{column}"

    def change(self):
        which = self.rng.choice(["x.z == n", "x.a > 0", "x.a == n % 5 - 2", "odd(x)", "x.b == nil", "x.e == Mid", "x.d < 0.5"])
        what = self.rng.choice(CHANGES)
        return [f"for x in from x in {name} where {which} select x {{ {what} }}" for name in ("Keyed", "Plain")]


def fault(woc, seed, place):
    """What is wrong with the program of this seed; and how often a query has found something."""
    path, data = os.path.join(place, f"queries-{seed}.wo"), os.path.join(place, f"data-{seed}")
    with open(path, "w") as f:
        f.write(Program(seed).text())
    runs = [dict(WO_EPHEMERAL=1, WO_SHARDS=1), dict(WO_EPHEMERAL=1, WO_SHARDS=4, WO_OPT=0)]
    if seed % 4 == 0:
        runs += [dict(WO_DATA=data, WO_SHARDS=4, WO_CHECKPOINT_BYTES=16384, WO_CHECKPOINT_RATIO=1)] * 2
    outputs = []
    for settings in runs:
        done = subprocess.run([woc, "run", path], env=environment(**settings), capture_output=True, text=True)
        wrong = [line for line in done.stdout.splitlines() if "MISMATCH" in line]
        if done.returncode or wrong:
            return f"{settings}: status {done.returncode} {wrong[:2]} {done.stderr[-1500:]}", 0
        outputs.append(done.stdout)
    if len(set(outputs[:3])) > 1:
        return "the runs differ", 0
    if seed % 4 == 0:
        done = subprocess.run([woc, "db", "check", data], capture_output=True, text=True)
        if done.returncode:
            return f"woc db check: {done.stdout}", 0
    return None, outputs[0].count("found")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**9))
    parser.add_argument("--programs", type=int, default=8)
    parser.add_argument("--woc", default=os.environ.get("WOC", os.path.join(ROOT, "target/release/woc")))
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    failed = found = 0
    with tempfile.TemporaryDirectory(prefix="wo-queries-") as place:
        for seed in range(args.seed, args.seed + args.programs):
            why, count = fault(args.woc, seed, place)
            found += count
            if why:
                failed += 1
                print(f"FAIL {seed}: {why}\n     repeat: scripts/queries.py --seed {seed} --programs 1", flush=True)
    # Queries of which none finds anything would always agree.
    if not failed and found < 20 * args.programs:
        failed += 1
        print(f"FAIL only {found} queries have found something")
    print(f"queries: {args.programs} checks, {failed} failures")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
