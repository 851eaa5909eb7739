//! A small MIR interpreter that counts references: every access to a freed object, every count below zero and every
//! object left over is an error. Traps can be injected at the n-th instruction that may trap.

use abi::desc::{Shapes, TypeDesc};
use abi::{layout, symbols, trap};
use mir::ir::*;

struct Object {
    count: i64,
    immortal: bool,
    kind: u32,
    /// Class fields or container header words, from offset 8.
    words: Vec<i64>,
    /// Elements of a multi, entries (key, value, value) of a map.
    data: Vec<i64>,
    types: (u32, u32),
    text: Vec<u8>,
}

pub struct Machine<'a> {
    program: &'a Program,
    shapes: &'a Shapes,
    heap: Vec<Option<Object>>,
    texts: Vec<i64>,
    pub output: Vec<String>,
    trap: i64,
    trap_msg: i64,
    /// Instructions that may trap, so far.
    pub points: usize,
    inject: Option<usize>,
    fuel: usize,
    /// The run was cut short.
    pub exhausted: bool,
    depth: usize,
}

const DATA: i64 = 1 << 22;
const POISON: i64 = 0x7EAD_BEEF_0000_0000;

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program, inject: Option<usize>) -> Machine<'a> {
        let mut m = Machine {
            program,
            shapes: &program.shapes,
            heap: vec![None],
            texts: Vec::new(),
            output: Vec::new(),
            trap: 0,
            trap_msg: 0,
            points: 0,
            inject,
            fuel: 100_000,
            exhausted: false,
            depth: 0,
        };
        for text in &program.texts {
            let id = m.text(text.clone());
            m.obj(id).immortal = true;
            m.texts.push(id);
        }
        m
    }

    /// Runs the entry; the exit status, or the trap's code.
    pub fn main(&mut self) -> Result<i64, i64> {
        let main = self.program.main.expect("main");
        let out = self.call(main, Vec::new()).map(|r| r[0]);
        if out.is_err() {
            self.trap = 0;
            let msg = std::mem::take(&mut self.trap_msg);
            self.release(msg);
        }
        out
    }

    /// Objects whose count is not accounted for by other objects left over: cycles are the collector's business.
    pub fn leaks(&mut self) -> Vec<String> {
        let mut counts = vec![0i64; self.heap.len()];
        for at in 0..self.heap.len() {
            if self.heap[at].is_some() {
                for held in self.held(i64::try_from(at).unwrap() << 24) {
                    counts[usize::try_from(held >> 24).unwrap()] += 1;
                }
            }
        }
        let live = self.heap.iter().zip(counts).filter_map(|(o, n)| Some((o.as_ref()?, n)));
        live.filter(|(o, n)| !o.immortal && o.count != *n)
            .map(|(o, _)| format!("kind {} count {} {:?}", o.kind, o.count, String::from_utf8_lossy(&o.text)))
            .collect()
    }

    fn alloc(&mut self, kind: u32, words: usize, types: (u32, u32)) -> i64 {
        let words = vec![0; words];
        self.heap.push(Some(Object {
            count: 1,
            immortal: false,
            kind,
            words,
            data: Vec::new(),
            types,
            text: Vec::new(),
        }));
        i64::try_from(self.heap.len() - 1).unwrap() << 24
    }

    fn text(&mut self, bytes: Vec<u8>) -> i64 {
        let id = self.alloc(layout::KIND_TEXT, 1, (0, 0));
        self.obj(id).words[0] = i64::try_from(bytes.len()).unwrap();
        self.obj(id).text = bytes;
        id
    }

    fn obj(&mut self, ptr: i64) -> &mut Object {
        assert!(ptr & 0xFF_FFFF == 0 && ptr > 0, "not an object: {ptr:#x}");
        let slot = self.heap.get_mut(usize::try_from(ptr >> 24).unwrap()).expect("wild pointer");
        slot.as_mut().expect("use after free")
    }

    fn retain(&mut self, ptr: i64) {
        if ptr != 0 && !self.obj(ptr).immortal {
            self.obj(ptr).count += 1;
        }
    }

    fn release(&mut self, ptr: i64) {
        if ptr == 0 || self.obj(ptr).immortal {
            return;
        }
        self.obj(ptr).count -= 1;
        if self.obj(ptr).count > 0 {
            return;
        }
        let held = self.held(ptr);
        self.heap[usize::try_from(ptr >> 24).unwrap()] = None;
        held.into_iter().for_each(|p| self.release(p));
    }

    fn managed(&self, ty: u32) -> bool {
        match self.shapes.ty(ty) {
            TypeDesc::Int | TypeDesc::Bool | TypeDesc::Float | TypeDesc::Ordinal(_) | TypeDesc::Row(_) => false,
            TypeDesc::Nullable(inner) => self.managed(inner),
            _ => true,
        }
    }

    fn held(&mut self, ptr: i64) -> Vec<i64> {
        let shapes = self.shapes;
        let (kind, types) = (self.obj(ptr).kind, self.obj(ptr).types);
        let data = self.obj(ptr).data.clone();
        let words = self.obj(ptr).words.clone();
        match kind {
            layout::KIND_MULTI if self.managed(types.0) => data,
            layout::KIND_MAP => {
                let (k, v) = (self.managed(types.0), self.managed(types.1));
                data.chunks(3).flat_map(|e| [if k { e[0] } else { 0 }, if v { e[1] } else { 0 }]).collect()
            }
            kind if kind >= layout::FIRST_CLASS => {
                let class = &shapes.classes[(kind - layout::FIRST_CLASS) as usize];
                let at = |o: u32| words[(o as usize - 8) / 8];
                class.fields.iter().filter(|f| self.managed(f.ty)).map(|f| at(f.offset)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn word(&mut self, base: i64, offset: i32) -> &mut i64 {
        let addr = base + i64::from(offset);
        let (ptr, at) = (addr >> 24 << 24, addr & 0xFF_FFFF);
        let object = self.obj(ptr);
        if at >= DATA {
            return &mut object.data[usize::try_from((at - DATA) / 8).unwrap()];
        }
        &mut object.words[usize::try_from((at - 8) / 8).unwrap()]
    }

    fn raise(&mut self, code: i64, msg: &str) {
        assert!(self.trap == 0, "a trap while one is pending");
        self.trap = code;
        self.trap_msg = self.text(msg.as_bytes().to_vec());
    }

    fn point(&mut self) -> bool {
        let hit = self.inject == Some(self.points);
        self.points += 1;
        if self.fuel == 0 {
            self.exhausted = true;
            self.raise(trap::UNWIND, "stopped");
            return true;
        }
        if hit {
            // Every third is a stop, which no handler may catch.
            self.raise(if self.points.is_multiple_of(3) { trap::UNWIND } else { 4 }, "injected");
        }
        hit
    }

    fn call(&mut self, id: FuncId, args: Vec<i64>) -> Result<Vec<i64>, i64> {
        let func = &self.program.funcs[id.0 as usize];
        self.depth += 1;
        let mut trapped = self.depth > 200;
        if trapped {
            self.raise(3, "stack overflow");
        } else if func.entry_unwind.is_some() || func.recursive {
            trapped = self.point();
        }
        let mut locals = vec![POISON; func.locals.len()];
        locals[..args.len()].copy_from_slice(&args);
        let first = if trapped { func.entry_unwind } else { Some(BlockId(0)) };
        let Some(first) = first else {
            self.depth -= 1;
            return Err(self.trap);
        };
        let mut block = &func.blocks[first.0 as usize];
        let out = 'run: loop {
            let mut next = None;
            for inst in &block.insts {
                self.fuel = self.fuel.saturating_sub(1);
                if let Some(unwind) = self.step(&inst.kind, &mut locals) {
                    next = Some(unwind);
                    break;
                }
            }
            let get = |l: &Local| locals[l.0 as usize];
            let to = match (next, &block.term) {
                (Some(unwind), _) => unwind,
                (None, Term::Jump(to)) => *to,
                (None, Term::Branch { cond, then, otherwise }) => {
                    assert!(get(cond) == 0 || get(cond) != POISON, "branch on poison");
                    if get(cond) != 0 { *then } else { *otherwise }
                }
                (None, Term::Switch { on, cases, default }) => {
                    cases.iter().find(|(v, _)| *v == get(on)).map_or(*default, |(_, b)| *b)
                }
                (None, Term::Return(values)) => break 'run Ok(values.iter().map(get).collect()),
                (None, Term::Resume) => {
                    assert!(self.trap != 0, "resume without a trap");
                    break 'run Err(self.trap);
                }
                (None, Term::Unreachable) => panic!("unreachable reached in {}", func.display),
            };
            block = &func.blocks[to.0 as usize];
        };
        self.depth -= 1;
        out
    }

    /// Executes one instruction; the unwind block where it traps.
    fn step(&mut self, inst: &InstKind, l: &mut [i64]) -> Option<BlockId> {
        let i = |x: &Local| x.0 as usize;
        let f = |v: i64| f64::from_bits(v as u64);
        if let Some(unwind) = inst.unwind()
            && !matches!(inst, InstKind::Call { callee: Callee::Func(_) | Callee::Table(_), .. })
            && !matches!(inst, InstKind::Element { checked: false, .. })
            && self.point()
        {
            // What a trapping function consumes is gone nevertheless.
            match inst {
                InstKind::Concat { into: Some(into), .. } => self.release(l[i(into)]),
                InstKind::Push { multi, first, .. } => self.consume("multi.push", &[l[i(multi)], l[i(first)]]),
                InstKind::Call { callee: Callee::Runtime(name), args, dsts, .. } => {
                    let args: Vec<i64> = args.iter().map(|a| l[i(a)]).collect();
                    self.consume(name, &args);
                    dsts.iter().for_each(|d| l[i(d)] = POISON);
                }
                _ => {}
            }
            return Some(unwind);
        }
        match inst {
            InstKind::Int(d, v) => l[i(d)] = *v,
            InstKind::Float(d, v) => l[i(d)] = v.to_bits() as i64,
            InstKind::Text(d, id) => l[i(d)] = self.texts[id.0 as usize],
            InstKind::Null(d) => l[i(d)] = 0,
            InstKind::Copy(d, s) | InstKind::ToBits(d, s) | InstKind::FromBits(d, s) => l[i(d)] = l[i(s)],
            InstKind::IntOp(d, op, a, b) => l[i(d)] = int_op(*op, l[i(a)], l[i(b)]),
            InstKind::FloatOp(d, op, a, b) => {
                let (a, b) = (f(l[i(a)]), f(l[i(b)]));
                l[i(d)] = match op {
                    FloatOp::Add => (a + b).to_bits() as i64,
                    FloatOp::Sub => (a - b).to_bits() as i64,
                    FloatOp::Mul => (a * b).to_bits() as i64,
                    FloatOp::Div => (a / b).to_bits() as i64,
                    FloatOp::Eq => i64::from(a == b),
                    FloatOp::Ne => i64::from(a != b),
                    FloatOp::Lt => i64::from(a < b),
                    FloatOp::Le => i64::from(a <= b),
                    FloatOp::Gt => i64::from(a > b),
                    FloatOp::Ge => i64::from(a >= b),
                };
            }
            InstKind::FloatNeg(d, s) => l[i(d)] = (-f(l[i(s)])).to_bits() as i64,
            InstKind::Checked { dst, op, lhs, rhs, unwind } => {
                let (a, b) = (l[i(lhs)], l[i(rhs)]);
                let out = match op {
                    CheckedOp::Div => a.checked_div(b),
                    CheckedOp::Rem => a.checked_rem(b),
                    CheckedOp::Shl => (0..64).contains(&b).then(|| a << b),
                    CheckedOp::Shr => (0..64).contains(&b).then(|| a >> b),
                };
                let Some(out) = out else {
                    self.raise(if b == 0 { 1 } else { 12 }, "arithmetic");
                    return Some(*unwind);
                };
                l[i(dst)] = out;
            }
            InstKind::Load { dst, base, offset } => l[i(dst)] = *self.word(l[i(base)], *offset),
            InstKind::Store { base, offset, src } => {
                assert!(l[i(src)] != POISON, "poison stored");
                *self.word(l[i(base)], *offset) = l[i(src)];
            }
            InstKind::Kind(d, s) => l[i(d)] = i64::from(self.obj(l[i(s)]).kind),
            InstKind::Element { dst, multi, index, words, checked, unwind } => {
                let (m, index) = (l[i(multi)], l[i(index)]);
                if index < 0 || index >= self.obj(m).words[0] {
                    assert!(*checked, "index {index} is out of range");
                    self.raise(6, "multi index out of range");
                    return Some(*unwind);
                }
                l[i(dst)] = m + DATA + index * i64::from(*words) * 8;
            }
            InstKind::Retain { local, nonnull } => {
                assert!(!nonnull || l[i(local)] != 0, "null retained");
                self.retain(l[i(local)]);
            }
            InstKind::Release { local, nonnull } => {
                assert!(!nonnull || l[i(local)] != 0, "null released");
                self.release(l[i(local)]);
                l[i(local)] = POISON;
            }
            InstKind::TrapIfNull { local, code, text, unwind } => {
                if l[i(local)] == 0 {
                    let text = String::from_utf8_lossy(&self.program.texts[text.0 as usize]).into_owned();
                    self.raise(*code, &text);
                    return Some(*unwind);
                }
            }
            InstKind::Call { dsts, callee, args, unwind } => {
                let args: Vec<i64> = args.iter().map(|a| l[i(a)]).collect();
                let out = match callee {
                    Callee::Func(id) => self.call(*id, args),
                    Callee::Table(t) => {
                        let class = self.obj(args[0]).kind - layout::FIRST_CLASS;
                        let row = self.program.tables[*t as usize].rows.iter().find(|(c, _)| *c == class);
                        self.call(row.expect("row").1, args)
                    }
                    Callee::Runtime(name) => self.runtime(name, &args),
                };
                match out {
                    Ok(values) => {
                        assert_eq!(values.len(), dsts.len(), "results of {callee:?}");
                        dsts.iter().zip(values).for_each(|(d, v)| l[i(d)] = v);
                    }
                    Err(_) => {
                        dsts.iter().for_each(|d| l[i(d)] = POISON);
                        return Some(unwind.expect("unwind"));
                    }
                }
            }
            InstKind::Concat { dst, into, parts, .. } => {
                let mut bytes = Vec::new();
                for (kind, part) in parts {
                    let v = l[i(part)];
                    match *kind {
                        symbols::PART_TEXT => bytes.extend(self.obj(v).text.clone()),
                        symbols::PART_INT => bytes.extend(v.to_string().bytes()),
                        symbols::PART_FLOAT => bytes.extend(format!("{:?}", f(v)).bytes()),
                        _ => bytes.extend(if v != 0 { b"true".to_vec() } else { b"false".to_vec() }),
                    }
                }
                l[i(dst)] = match into {
                    None => self.text(bytes),
                    Some(into) => {
                        let text = l[i(into)];
                        let mut all = self.obj(text).text.clone();
                        all.extend(bytes);
                        if self.obj(text).count == 1 && !self.obj(text).immortal {
                            self.obj(text).words[0] = i64::try_from(all.len()).unwrap();
                            self.obj(text).text = all;
                            text
                        } else {
                            self.release(text);
                            self.text(all)
                        }
                    }
                };
            }
            InstKind::Safepoint { .. } => {}
            InstKind::Push { multi, first, second, unwind } => {
                let args = [l[i(multi)], l[i(first)], second.map_or(0, |second| l[i(&second)])];
                if self.runtime("multi.push", &args).is_err() {
                    return Some(*unwind);
                }
            }
            InstKind::Init { multi, at, first, second } => {
                assert_eq!(self.obj(l[i(multi)]).words[0], i64::from(*at), "elements before");
                let args = [l[i(multi)], l[i(first)], second.map_or(0, |second| l[i(&second)])];
                assert!(self.runtime("multi.push", &args).is_ok());
            }
        }
        None
    }

    fn consume(&mut self, name: &str, args: &[i64]) {
        match name {
            "multi.push" => {
                let elem = self.obj_types(args[0]).0;
                if self.managed(elem) {
                    self.release(args[1]);
                }
            }
            "actor.spawn" | "actor.send" | "actor.call" | "actor.call_dl" => self.release(args[1]),
            "actor.monitor" | "actor.after" => self.release(args[2]),
            _ => {}
        }
    }

    fn obj_types(&mut self, ptr: i64) -> (u32, u32) {
        self.obj(ptr).types
    }

    fn key_eq(&mut self, text: bool, a: i64, b: i64) -> bool {
        if text { self.obj(a).text.clone() == self.obj(b).text } else { a == b }
    }

    fn find(&mut self, map: i64, key: i64) -> Option<usize> {
        let text = self.shapes.ty(self.obj(map).types.0) == TypeDesc::Text;
        (0..self.obj(map).data.len() / 3).find(|e| {
            let k = self.obj(map).data[e * 3];
            self.key_eq(text, k, key)
        })
    }

    fn runtime(&mut self, name: &str, a: &[i64]) -> Result<Vec<i64>, i64> {
        let ty = |v: i64| u32::try_from(v).unwrap();
        Ok(match name {
            "rt.new" => {
                let size = self.shapes.classes[usize::try_from(a[0]).unwrap()].size as usize;
                vec![self.alloc(layout::FIRST_CLASS + ty(a[0]), (size - 8) / 8, (0, 0))]
            }
            "rt.args" => vec![self.alloc(layout::KIND_MULTI, 3, (3, 0))],
            "print" => {
                let text = String::from_utf8_lossy(&self.obj(a[0]).text).into_owned();
                self.output.push(text);
                Vec::new()
            }
            "print_int" => {
                self.output.push(a[0].to_string());
                Vec::new()
            }
            "now" => vec![1000],
            "trap.raise" => {
                let text = String::from_utf8_lossy(&self.obj(a[1]).text).into_owned();
                self.raise(a[0], &text);
                return Err(a[0]);
            }
            "trap.catchable" => vec![i64::from(self.trap != trap::UNWIND)],
            "trap.code" => vec![self.trap],
            "trap.line" => vec![1],
            "trap.method" => vec![self.text(b"m".to_vec())],
            "trap.msg" => {
                let text = self.obj(self.trap_msg).text.clone();
                vec![self.text(text)]
            }
            "trap.clear" => {
                self.trap = 0;
                let msg = std::mem::take(&mut self.trap_msg);
                self.release(msg);
                Vec::new()
            }
            "text.eq" => vec![i64::from(self.key_eq(true, a[0], a[1]))],
            "text.cmp" => {
                let r = self.obj(a[1]).text.clone();
                vec![self.obj(a[0]).text.cmp(&r) as i64]
            }
            "parse_int" => match String::from_utf8_lossy(&self.obj(a[0]).text).parse::<i64>() {
                Ok(v) => vec![1, v],
                Err(_) => vec![0, 77],
            },
            "env.get" => vec![0],
            "multi.new" => vec![self.alloc(layout::KIND_MULTI, 3, (ty(a[0]), 0))],
            "multi.push" => {
                let words = self.shapes.words(self.obj(a[0]).types.0);
                let m = self.obj(a[0]);
                m.data.push(a[1]);
                if words == 2 {
                    m.data.push(a[2]);
                }
                m.words[0] += 1;
                Vec::new()
            }
            "multi.pop" | "multi.shift" => {
                let words = self.shapes.words(self.obj(a[0]).types.0) as usize;
                let m = self.obj(a[0]);
                if m.words[0] == 0 {
                    self.raise(6, "empty");
                    return Err(6);
                }
                m.words[0] -= 1;
                let from = if name == "multi.pop" { m.data.len() - words } else { 0 };
                let out: Vec<i64> = m.data.drain(from..from + words).collect();
                vec![out[0], out.get(1).copied().unwrap_or(0)]
            }
            "map.new" => vec![self.alloc(layout::KIND_MAP, 1, (ty(a[0]), ty(a[1])))],
            "map.find" => {
                let at = self.find(a[0], a[1]);
                vec![at.map_or(0, |e| a[0] + DATA + i64::try_from(e * 24 + 8).unwrap())]
            }
            "map.slot" => {
                let at = match self.find(a[0], a[1]) {
                    Some(e) => e,
                    None => {
                        let key = self.obj_types(a[0]).0;
                        if self.managed(key) {
                            self.retain(a[1]);
                        }
                        let m = self.obj(a[0]);
                        m.words[0] += 1;
                        m.data.extend([a[1], 0, 0]);
                        m.data.len() / 3 - 1
                    }
                };
                vec![a[0] + DATA + i64::try_from(at * 24 + 8).unwrap()]
            }
            "map.entry" => {
                if a[1] < 0 || a[1] >= self.obj(a[0]).words[0] {
                    self.raise(6, "map slot out of range");
                    return Err(6);
                }
                vec![a[0] + DATA + a[1] * 24]
            }
            "map.remove" => match self.find(a[0], a[1]) {
                Some(e) => {
                    let (k, v) = self.obj_types(a[0]);
                    let entry: Vec<i64> = self.obj(a[0]).data.drain(e * 3..e * 3 + 3).collect();
                    self.obj(a[0]).words[0] -= 1;
                    if self.managed(k) {
                        self.release(entry[0]);
                    }
                    if self.managed(v) {
                        self.release(entry[1]);
                    }
                    vec![1]
                }
                None => vec![0],
            },
            "actor.send" | "actor.monitor" | "actor.after" => {
                self.consume(name, a);
                Vec::new()
            }
            "actor.spawn" => {
                self.consume(name, a);
                vec![self.text(b"actor".to_vec())]
            }
            "actor.call" => {
                self.consume(name, a);
                vec![5, 6]
            }
            "actor.call_dl" => {
                self.consume(name, a);
                vec![1, 5]
            }
            _ => panic!("runtime function {name} is not simulated"),
        })
    }
}

fn int_op(op: IntOp, a: i64, b: i64) -> i64 {
    match op {
        IntOp::Add => a.wrapping_add(b),
        IntOp::Sub => a.wrapping_sub(b),
        IntOp::Mul => a.wrapping_mul(b),
        IntOp::And => a & b,
        IntOp::Or => a | b,
        IntOp::Xor => a ^ b,
        IntOp::Shl => a << b,
        IntOp::Shr => a >> b,
        IntOp::Eq => i64::from(a == b),
        IntOp::Ne => i64::from(a != b),
        IntOp::Lt => i64::from(a < b),
        IntOp::Le => i64::from(a <= b),
        IntOp::Gt => i64::from(a > b),
        IntOp::Ge => i64::from(a >= b),
    }
}

/// Runs the program with and without optimisation, and then for places that may trap with a trap there (all of them, or
/// `most` spread evenly). Output and status must agree; nothing may leak. Returns output and status, `None` where a run
/// was cut short.
pub fn check_some(hir: &analysis::hir::Program, most: usize) -> Option<(Vec<String>, Result<i64, i64>)> {
    let mut results = Vec::new();
    let mut complete = true;
    for optimize in [false, true] {
        let program = mir::lower(hir, optimize);
        if let Err(e) = mir::verify(&program) {
            panic!("{e}\n{}", mir::dump(&program));
        }
        let mut m = Machine::new(&program, None);
        let status = m.main();
        assert_eq!(m.leaks(), Vec::<String>::new(), "optimize {optimize}\n{}", mir::dump(&program));
        complete &= !m.exhausted;
        let (points, output) = (m.points, m.output);
        for k in (0..points).step_by(points / most + 1) {
            let mut m = Machine::new(&program, Some(k));
            let _ = m.main();
            assert_eq!(m.leaks(), Vec::<String>::new(), "trap at {k}, optimize {optimize}\n{}", mir::dump(&program));
        }
        results.push((output, status));
    }
    let last = results.pop().unwrap();
    if !complete {
        return None;
    }
    assert_eq!(results.pop().unwrap(), last, "optimised and not\n{}", mir::dump(&mir::lower(hir, true)));
    Some(last)
}
