//! Which functions a program can get to from its entry. Code generation is most of the time between start and `main`,
//! and a program uses a part of its libraries.

use crate::ir::{Callee, Func, FuncId, InstKind, Local, Program};

/// Drops the functions that nothing leads to from `main`; without a `main` and its tests as well. Ids become dense.
/// A call through a dispatch table leads to all of its rows, a `spawn` to the `receive` of its class.
pub fn keep_reachable(program: &mut Program) {
    program.tests.clear();
    let mut seen = vec![false; program.funcs.len()];
    let mut called_tables = vec![false; program.tables.len()];
    let mut stack: Vec<FuncId> = program.main.into_iter().collect();
    while let Some(id) = stack.pop() {
        let Some(slot) = seen.get_mut(id.0 as usize) else { continue };
        if std::mem::replace(slot, true) {
            continue;
        }
        let Some(func) = program.funcs.get(id.0 as usize) else { continue };
        for inst in func.blocks.iter().flat_map(|b| &b.insts) {
            let InstKind::Call { callee, args, .. } = &inst.kind else { continue };
            match callee {
                Callee::Func(to) => stack.push(*to),
                Callee::Table(t) => {
                    let first = called_tables.get_mut(*t as usize).is_some_and(|c| !std::mem::replace(c, true));
                    if let Some(table) = program.tables.get(*t as usize).filter(|_| first) {
                        stack.extend(table.rows.iter().map(|(_, f)| *f));
                    }
                }
                Callee::Runtime("actor.spawn") => {
                    let classes = args.first().map(|class| constants(func, *class)).unwrap_or_default();
                    let receives = program.receives.iter();
                    // A class that is no constant here could be any.
                    let spawned = receives.filter(|(c, _)| classes.is_empty() || classes.contains(&i64::from(*c)));
                    stack.extend(spawned.map(|(_, f)| *f));
                }
                Callee::Runtime(_) => {}
            }
        }
    }
    let mut next = 0;
    let renumber: Vec<Option<FuncId>> = seen
        .iter()
        .map(|seen| {
            let id = FuncId(next);
            next += u32::from(*seen);
            seen.then_some(id)
        })
        .collect();
    let to = |id: FuncId| renumber.get(id.0 as usize).copied().flatten();
    let mut index = 0;
    program.funcs.retain(|_| {
        index += 1;
        seen.get(index - 1).copied().unwrap_or(false)
    });
    for inst in program.funcs.iter_mut().flat_map(|f| &mut f.blocks).flat_map(|b| &mut b.insts) {
        if let InstKind::Call { callee: Callee::Func(id), .. } = &mut inst.kind {
            // What is kept calls only what is kept.
            *id = to(*id).unwrap_or(*id);
        }
    }
    program.main = program.main.and_then(to);
    for (table, called) in program.tables.iter_mut().zip(called_tables) {
        let rows = std::mem::take(&mut table.rows);
        if called {
            table.rows = rows.into_iter().filter_map(|(class, f)| Some((class, to(f)?))).collect();
        }
    }
    program.receives =
        std::mem::take(&mut program.receives).into_iter().filter_map(|(class, f)| Some((class, to(f)?))).collect();
}

/// The constants that `local` is given in `func`; none if it is given anything else.
fn constants(func: &Func, local: Local) -> Vec<i64> {
    let mut values = Vec::new();
    for inst in func.blocks.iter().flat_map(|b| &b.insts) {
        match &inst.kind {
            InstKind::Int(to, n) if *to == local => values.push(*n),
            InstKind::Copy(to, _) if *to == local => return Vec::new(),
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use crate::ir::{Block, Inst, Rep, Table, Term};

    fn func(name: &str, calls: &[Callee]) -> Func {
        let call = |callee: &Callee| Inst {
            kind: InstKind::Call { dsts: vec![], callee: callee.clone(), args: vec![], unwind: None },
            line: 1,
        };
        let block = Block { insts: calls.iter().map(call).collect(), term: Term::Return(vec![]), cold: false };
        Func {
            display: name.to_owned(),
            file: 0,
            line: 1,
            params: 0,
            results: Vec::<Rep>::new(),
            locals: vec![],
            blocks: vec![block],
            entry_unwind: None,
            recursive: false,
            entry_unwind: None,
        }
    }

    #[test]
    fn what_main_and_actors_can_call_is_kept() {
        let to = |n| Callee::Func(FuncId(n));
        let mut funcs = vec![
            func("dead", &[to(1)]),
            func("main", &[to(3), Callee::Table(1)]),
            func("row of a table that nobody calls", &[]),
            func("called", &[to(1)]),
            func("row", &[]),
            func("receive", &[to(6)]),
            func("from receive", &[]),
            func("test", &[to(0)]),
            func("receive of a class that nobody spawns", &[]),
        ];
        let spawn = InstKind::Call {
            dsts: vec![],
            callee: Callee::Runtime("actor.spawn"),
            args: vec![Local(0), Local(1)],
            unwind: None,
        };
        for kind in [InstKind::Int(Local(0), 5), spawn] {
            funcs[3].blocks[0].insts.push(Inst { kind, line: 1 });
        }
        let table = |f| Table { name: String::new(), rows: vec![(9, FuncId(f))] };
        let mut program = Program {
            funcs,
            tables: vec![table(2), table(4)],
            main: Some(FuncId(1)),
            receives: vec![(5, FuncId(5)), (6, FuncId(8))],
            tests: vec![("t".to_owned(), FuncId(7))],
            ..Program::default()
        };
        keep_reachable(&mut program);
        let names: Vec<_> = program.funcs.iter().map(|f| f.display.as_str()).collect();
        assert_eq!(names, ["main", "called", "row", "receive", "from receive"]);
        assert_eq!(program.main, Some(FuncId(0)));
        assert!(program.tables[0].rows.is_empty());
        assert_eq!(program.tables[1].rows, [(9, FuncId(2))]);
        assert_eq!(program.receives, [(5, FuncId(3))]);
        let callees: Vec<_> = program.funcs[0].blocks[0].insts.iter().map(|i| format!("{:?}", i.kind)).collect();
        assert!(callees[0].contains("Func(FuncId(1))"), "{callees:?}");
    }
}
