//! Code as data: equal for equal programs, through bytes and back, and refused where it is not what it was.

use super::*;
use crate::Code;
use mir::ir::{Callee, Table};

/// Functions enough for several threads, with literals, a dispatch table and an entry.
fn sample() -> Program {
    let mut funcs = Vec::new();
    for i in 0..60 {
        let mut f = Build::new(&format!("f{i}"), &[Rep::Obj], &[Rep::Obj]);
        let _ = f.line(i + 1);
        let (dst, unwind) = (f.local(Rep::Obj), f.resume());
        let callee = if i == 1 { Callee::Table(0) } else { Callee::Func(FuncId(i.saturating_sub(1))) };
        let call = InstKind::Call { dsts: vec![dst], callee, args: vec![Local(0)], unwind: Some(unwind) };
        let _ = f.push(if i == 0 { InstKind::Null(dst) } else { call });
        let text = f.text(i % 7);
        let dst = if i % 3 == 0 { text } else { dst };
        let _ = f.ret(dst);
        funcs.push(f.func);
    }
    let mut program = program(funcs);
    program.texts = (0..7).map(|i| format!("text {i}").into_bytes()).collect();
    program.tables = vec![Table { name: "t".to_string(), rows: vec![(1, FuncId(0))] }];
    program.shapes.unions.push(abi::desc::UnionDesc { name: "u".into(), variants: vec![], classes: vec![3] });
    let main = Build::new("main", &[], &[]);
    program.funcs.push(main.func);
    program.funcs.last_mut().unwrap().blocks[0].term = Term::Return(vec![]);
    program.main = Some(FuncId(60));
    program
}

fn bytes(machine: Machine) -> Vec<u8> {
    let options = Options { optimize: true, verify: true, machine, files: vec!["a.wo".to_string()] };
    compile(&sample(), &options).unwrap().encode().unwrap()
}

#[test]
fn equal_programs_give_equal_bytes() {
    for machine in [Machine::Host, Machine::Baseline] {
        let first = bytes(machine);
        for _ in 0..5 {
            assert!(first == bytes(machine));
        }
    }
}

#[test]
fn dumps_name_what_is_referred_to() {
    let clif = crate::dump_clif(&sample(), &Options::default()).unwrap();
    assert!(clif.contains(" %text3\n") && clif.contains(" %t\n") && !clif.contains("userextname"), "{clif}");
}

#[test]
fn what_is_written_is_read() {
    let bytes = bytes(Machine::Baseline);
    let code = Code::decode(&bytes).unwrap();
    assert_eq!(code.encode().unwrap(), bytes);
    let image = load_with(code, &doubles::functions(), vec![b"x".to_vec()]).unwrap();
    assert_eq!((image.args.as_slice(), image.main.unwrap()(&mut ctx(image))), ([b"x".to_vec()].as_slice(), 0));
    assert_eq!(image.shapes, sample().shapes);
    assert_eq!((image.funcs[3].display.as_str(), image.funcs[3].file.as_str()), ("f3", "a.wo"));
    // Through calls and the table to a literal.
    let object: &'static mut [u64] = Box::leak(Box::new([1 + (u64::from(abi::layout::FIRST_CLASS + 1) << 32), 0]));
    let at = object.as_mut_ptr().expose_provenance() as i64;
    let mut ctx = ctx(image);
    assert_eq!(doubles::bytes(run(image, &mut ctx, 2, at, 0)[0]), b"text 0");
    assert_eq!(doubles::bytes(run(image, &mut ctx, 3, at, 0)[0]), b"text 3");
}

/// Whatever the bytes are: they are code or they are not, and code that cannot be loaded is refused.
#[test]
fn other_bytes_are_nothing() {
    let good = bytes(Machine::Baseline);
    for n in (0..good.len()).step_by(3) {
        assert!(Code::decode(&good[..n]).is_none(), "{n}");
    }
    assert!(Code::decode(&[good.as_slice(), &[0]].concat()).is_none());
    let (mut read, mut refused) = (0, 0);
    for at in (0..good.len()).step_by(3) {
        for bit in [0x01, 0x80] {
            let mut bad = good.clone();
            bad[at] ^= bit;
            let Some(code) = Code::decode(&bad) else {
                refused += 1;
                continue;
            };
            read += 1;
            // Loading leaks: some of them do.
            if read % 64 == 0 {
                let _ = load_with(code, &doubles::functions(), Vec::new());
            }
        }
    }
    assert!(read > 64 && refused > 64, "{read}, {refused}");
}

#[test]
fn entries_outside_the_text_are_refused() {
    let bytes = bytes(Machine::Baseline);
    let damage: [fn(&mut Code, u32); 3] =
        [|c, at| c.main = Some(at), |c, at| c.entries[0] = at, |c, at| c.receives[0] = Some(at)];
    for damage in damage {
        let mut code = Code::decode(&bytes).unwrap();
        let end = code.text.len() as u32;
        damage(&mut code, end);
        let error = load_with(code, &doubles::functions(), Vec::new()).err().unwrap();
        assert_eq!(error, "code: an entry outside the text");
    }
}

/// Instructions that came after x86-64-v2 have other names: `vaddsd` for `addsd`.
#[test]
fn code_for_all_machines_uses_what_all_have() {
    let mut f = Build::new("f", &[Rep::Int], &[Rep::Int]);
    let (x, dst) = (f.local(Rep::Float), f.local(Rep::Int));
    let _ = f.push(InstKind::FromBits(x, Local(0)));
    let _ = f.push(InstKind::FloatOp(x, mir::ir::FloatOp::Add, x, x)).push(InstKind::ToBits(dst, x)).ret(dst);
    let options = Options { optimize: true, machine: Machine::Baseline, ..Options::default() };
    let asm = crate::dump_asm(&program(vec![f.func]), &options).unwrap();
    assert!(asm.contains(" addsd ") && !asm.contains("vaddsd"), "{asm}");
    assert!(crate::missing_features().is_empty());
}

#[test]
fn symbols_cover_the_text_in_order() {
    let bytes = bytes(Machine::Baseline);
    let code = Code::decode(&bytes).unwrap();
    let symbols = code.symbols();
    let mut at = 0;
    for symbol in &symbols {
        assert_eq!(symbol.offset, at, "{symbol:?}");
        assert!(symbol.size > 0, "{symbol:?}");
        at += symbol.size;
    }
    assert_eq!(at as usize, code.text.len());
    let names: Vec<&str> = symbols.iter().map(|s| s.name.as_str()).collect();
    assert_eq!((names[0], names[59], names[60]), ("f0 (a.wo:1)", "f59 (a.wo:1)", "main (a.wo:1)"));
    assert!(
        names.contains(&"[receive of C3]") && names.contains(&"[main]") && names.contains(&"[calls of the runtime]")
    );
    // Every call lies in the function that it is recorded for.
    for (offset, func, _) in &code.sites {
        let symbol = &symbols[symbols.partition_point(|s| s.offset < *offset) - 1];
        let name = &code.functions[*func as usize].0;
        assert!(symbol.name.starts_with(&format!("{name} (")), "{symbol:?} at {offset} of {name}");
    }
}
