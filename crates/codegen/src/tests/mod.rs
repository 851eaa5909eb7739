//! Hand-built MIR programs, compiled and run on the host's stack with doubles for the runtime's functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod budget;
mod calls;
mod doubles;
mod images;
mod ops;
mod stack;

use mir::ir::{Block, BlockId, Func, FuncId, Inst, InstKind, Local, LocalDecl, Program, Rep, Term, TextId};
use values::ctx::{Ctx, Image};

use crate::{Machine, Options, compile, load_with};

/// A fresh context with a large budget and no stack limit.
pub(crate) fn ctx(image: &'static Image) -> Ctx {
    Ctx {
        budget: i64::MAX,
        stack_limit: 0,
        trap: 0,
        heap: std::ptr::null_mut(),
        image,
        fiber: std::ptr::null_mut(),
        stack_base: u64::MAX,
        trap_msg: std::ptr::null_mut(),
        trap_frames: Vec::new(),
        trap_recorded: false,
        caught_frames: Vec::new(),
    }
}

/// Compiles with the verifier and the doubles, at both optimisation levels.
pub(crate) fn images(program: &Program) -> [&'static Image; 2] {
    [false, true].map(|optimize| {
        let options = Options { optimize, verify: true, machine: Machine::Host, files: vec!["a.wo".to_string()] };
        load_with(compile(program, &options).unwrap(), &doubles::functions(), Vec::new()).unwrap()
    })
}

/// Builds one function, block by block.
pub(crate) struct Build {
    pub func: Func,
    at: usize,
    line: u32,
}

impl Build {
    pub fn new(display: &str, params: &[Rep], results: &[Rep]) -> Self {
        let locals = params.iter().map(|rep| LocalDecl { rep: *rep, name: String::new() }).collect();
        let func = Func {
            display: display.to_string(),
            file: 0,
            line: 1,
            params: params.len() as u32,
            results: results.to_vec(),
            locals,
            blocks: vec![Block { insts: Vec::new(), term: Term::Unreachable, cold: false }],
            entry_unwind: None,
            recursive: false,
        };
        Build { func, at: 0, line: 1 }
    }
    pub fn line(&mut self, line: u32) -> &mut Self {
        self.line = line;
        self
    }
    pub fn local(&mut self, rep: Rep) -> Local {
        self.func.locals.push(LocalDecl { rep, name: String::new() });
        Local(self.func.locals.len() as u32 - 1)
    }
    pub fn block(&mut self) -> BlockId {
        self.func.blocks.push(Block { insts: Vec::new(), term: Term::Unreachable, cold: false });
        BlockId(self.func.blocks.len() as u32 - 1)
    }
    /// A block that only resumes.
    pub fn resume(&mut self) -> BlockId {
        let id = self.block();
        self.func.blocks[id.0 as usize].term = Term::Resume;
        self.func.blocks[id.0 as usize].cold = true;
        id
    }
    pub fn go(&mut self, block: BlockId) -> &mut Self {
        self.at = block.0 as usize;
        self
    }
    pub fn push(&mut self, kind: InstKind) -> &mut Self {
        let line = self.line;
        self.func.blocks[self.at].insts.push(Inst { kind, line });
        self
    }
    pub fn term(&mut self, term: Term) -> &mut Self {
        self.func.blocks[self.at].term = term;
        self
    }
    pub fn int(&mut self, value: i64) -> Local {
        let local = self.local(Rep::Int);
        let _ = self.push(InstKind::Int(local, value));
        local
    }
    pub fn text(&mut self, text: u32) -> Local {
        let local = self.local(Rep::Obj);
        let _ = self.push(InstKind::Text(local, TextId(text)));
        local
    }
    pub fn ret(&mut self, local: Local) -> &mut Self {
        self.term(Term::Return(vec![local]))
    }
}

/// A program whose receives make every function callable: class `i` is function `i`, with up to two word parameters.
pub(crate) fn program(funcs: Vec<Func>) -> Program {
    let mut program = Program { funcs, ..Program::default() };
    for i in 0..program.funcs.len() as u32 {
        program.shapes.classes.push(class(&format!("C{i}")));
        let func = &program.funcs[i as usize];
        if func.params <= 2 && func.locals.iter().take(func.params as usize).all(|l| l.rep != Rep::Float) {
            program.receives.push((i, FuncId(i)));
        }
    }
    program
}

pub(crate) fn class(name: &str) -> abi::desc::ClassDesc {
    abi::desc::ClassDesc {
        name: name.to_string(),
        package: None,
        kind: abi::desc::ClassKind::Class,
        size: 16,
        fields: Vec::new(),
        reply: None,
    }
}

/// Calls function `index` through its receive glue; the result's words.
pub(crate) fn run(image: &'static Image, ctx: &mut Ctx, index: usize, a: i64, b: i64) -> [i64; 2] {
    let mut out = [0u64; 2];
    let f = image.receives[index].unwrap();
    let at = |word: i64| std::ptr::with_exposed_provenance_mut(word as usize);
    f(ctx, at(a), at(b), &mut out);
    out.map(|word| word as i64)
}

/// Runs function 0 of `program` at both optimisation levels, which must agree.
pub(crate) fn eval(program: &Program, a: i64, b: i64) -> Result<[i64; 2], (i64, String)> {
    let results = images(program).map(|image| {
        let mut ctx = ctx(image);
        let words = run(image, &mut ctx, 0, a, b);
        if ctx.trap == 0 { Ok(words) } else { Err((ctx.trap, doubles::message())) }
    });
    assert_eq!(results[0], results[1]);
    results[0].clone()
}
