//! What a call may do to objects that exist when it begins, found for the whole program before functions are changed.
//! Functions that call each other get the effects of all of them.

use crate::ir::{Callee, Func, InstKind, Local, Program, Rep, Term};

/// What code may do to objects that it has not made itself. Giving back references of its own is no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Overwrites or removes a reference that a field or a container holds.
    pub unlinks: bool,
    /// Takes elements out of a `multi`.
    pub shrinks: bool,
    /// Writes to memory.
    pub writes: bool,
}

impl Effect {
    const NONE: Effect = Effect { unlinks: false, shrinks: false, writes: false };
    const WRITES: Effect = Effect { writes: true, ..Effect::NONE };
    const ALL: Effect = Effect { unlinks: true, shrinks: true, writes: true };

    fn or(self, other: Effect) -> Effect {
        Effect {
            unlinks: self.unlinks || other.unlinks,
            shrinks: self.shrinks || other.shrinks,
            writes: self.writes || other.writes,
        }
    }
}

/// The effects of a program's functions and tables, and which of their parameters they own.
pub struct Effects {
    funcs: Vec<Effect>,
    tables: Vec<Effect>,
    takes: Vec<Vec<Local>>,
    /// Of each table a function that shows what its methods take.
    rows: Vec<Option<usize>>,
}

impl Effects {
    pub fn of(program: &Program) -> Effects {
        let mut effects = Effects {
            funcs: program.funcs.iter().map(own_effect).collect(),
            tables: vec![Effect::NONE; program.tables.len()],
            takes: program.funcs.iter().map(taken).collect(),
            rows: program.tables.iter().map(|t| t.rows.first().map(|(_, f)| f.0 as usize)).collect(),
        };
        // Backwards along calls, from what has an effect to what calls it: each node changes three times at most.
        let funcs = program.funcs.len();
        let mut callers: Vec<Vec<usize>> = vec![Vec::new(); funcs + program.tables.len()];
        let mut edge = |callee: usize, caller: usize| {
            if let Some(list) = callers.get_mut(callee)
                && list.last() != Some(&caller)
            {
                list.push(caller);
            }
        };
        for (caller, func) in program.funcs.iter().enumerate() {
            for inst in func.blocks.iter().flat_map(|b| &b.insts) {
                match &inst.kind {
                    InstKind::Call { callee: Callee::Func(id), .. } => edge(id.0 as usize, caller),
                    InstKind::Call { callee: Callee::Table(t), .. } => edge(funcs + *t as usize, caller),
                    _ => {}
                }
            }
        }
        for (t, table) in program.tables.iter().enumerate() {
            table.rows.iter().for_each(|(_, f)| edge(f.0 as usize, funcs + t));
        }
        let mut work: Vec<usize> = (0..funcs).filter(|f| effects.node(*f) != Effect::NONE).collect();
        while let Some(node) = work.pop() {
            let effect = effects.node(node);
            for caller in callers.get(node).into_iter().flatten() {
                let old = effects.node(*caller);
                if old.or(effect) != old {
                    let list = if *caller < funcs { &mut effects.funcs } else { &mut effects.tables };
                    if let Some(slot) = list.get_mut(if *caller < funcs { *caller } else { *caller - funcs }) {
                        *slot = old.or(effect);
                    }
                    work.push(*caller);
                }
            }
        }
        effects
    }

    /// Functions, then tables.
    fn node(&self, node: usize) -> Effect {
        let table = || node.checked_sub(self.funcs.len()).and_then(|t| self.tables.get(t));
        self.funcs.get(node).or_else(table).copied().unwrap_or(Effect::ALL)
    }

    /// The effect of calling `callee`.
    pub fn call(&self, callee: &Callee) -> Effect {
        match callee {
            Callee::Func(id) => self.funcs.get(id.0 as usize).copied().unwrap_or(Effect::ALL),
            Callee::Table(t) => self.tables.get(*t as usize).copied().unwrap_or(Effect::ALL),
            Callee::Runtime(name) => runtime(name),
        }
    }

    /// Calls `see` with every local one of whose references goes to somebody else in the instruction, also where it
    /// traps: into memory, to a callee.
    pub fn each_consumed(&self, func: &Func, kind: &InstKind, mut see: impl FnMut(Local)) {
        let mut counted = |local: Local| {
            if is_counted(func, local) {
                see(local);
            }
        };
        match kind {
            InstKind::Store { src, .. } => counted(*src),
            InstKind::Push { first, .. } | InstKind::Init { first, .. } => counted(*first),
            InstKind::Concat { into: Some(into), .. } => counted(*into),
            InstKind::Call { callee, args, .. } => {
                let taken = |f: Option<usize>| f.and_then(|f| self.takes.get(f)).map_or(&[][..], Vec::as_slice);
                let taken = match callee {
                    Callee::Func(id) => taken(Some(id.0 as usize)),
                    Callee::Table(t) => taken(self.rows.get(*t as usize).copied().flatten()),
                    Callee::Runtime("actor.spawn" | "actor.send" | "actor.call" | "actor.call_dl") => &[Local(1)],
                    Callee::Runtime("actor.monitor" | "actor.after") => &[Local(2)],
                    Callee::Runtime(_) => &[],
                };
                taken.iter().filter_map(|at| args.get(at.0 as usize)).for_each(|arg| counted(*arg));
            }
            _ => {}
        }
    }
}

/// Whether the local is one that `Retain` and `Release` count.
pub fn is_counted(func: &Func, local: Local) -> bool {
    func.locals.get(local.0 as usize).is_some_and(|l| matches!(l.rep, Rep::Obj | Rep::Actor))
}

/// The parameters that the callee owns: those that it releases when its entry traps.
pub fn taken(func: &Func) -> Vec<Local> {
    let mut out = Vec::new();
    let mut next = func.entry_unwind;
    while let Some(block) = next.and_then(|at| func.blocks.get(at.0 as usize)) {
        out.extend(block.insts.iter().filter_map(|inst| match &inst.kind {
            InstKind::Release { local, .. } => Some(*local),
            _ => None,
        }));
        next = match block.term {
            Term::Jump(to) if out.len() < func.params as usize => Some(to),
            _ => None,
        };
    }
    out
}

/// The effect of a function's own instructions, calls of generated code left out.
fn own_effect(func: &Func) -> Effect {
    // Locals that hold new objects only.
    let mut fresh: Vec<bool> = (0..func.locals.len()).map(|local| local >= func.params as usize).collect();
    for inst in func.blocks.iter().flat_map(|b| &b.insts) {
        let made = matches!(&inst.kind, InstKind::Call { callee: Callee::Runtime("rt.new"), .. });
        for local in inst.kind.writes().iter().filter(|_| !made) {
            fresh.get_mut(local.0 as usize).into_iter().for_each(|slot| *slot = false);
        }
    }
    let mut effect = Effect::NONE;
    for inst in func.blocks.iter().flat_map(|b| &b.insts) {
        effect = effect.or(match &inst.kind {
            // An object that the function has made was not there before.
            InstKind::Store { base, .. } if fresh.get(base.0 as usize) == Some(&true) => Effect::NONE,
            InstKind::Store { src, .. } => Effect { unlinks: is_counted(func, *src), ..Effect::WRITES },
            InstKind::Push { .. } | InstKind::Concat { into: Some(_), .. } => Effect::WRITES,
            InstKind::Call { callee: Callee::Runtime(name), .. } => runtime(name),
            _ => Effect::NONE,
        });
    }
    effect
}

/// The effect of a runtime function. Only those on containers and actors are given objects that they may change.
fn runtime(name: &str) -> Effect {
    match name {
        "multi.new" | "multi.slice" | "map.new" | "map.find" | "map.entry" => Effect::NONE,
        // One element or entry more, or the same in another order.
        "multi.push" | "multi.sort" | "multi.reverse" | "map.slot" => Effect::WRITES,
        "map.remove" => Effect { unlinks: true, ..Effect::WRITES },
        _ if ["multi.", "map.", "actor."].iter().any(|kind| name.starts_with(kind)) => Effect::ALL,
        _ => Effect::NONE,
    }
}
