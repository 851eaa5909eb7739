//! The functions of a program to machine code, each for itself and on as many threads as there are cores. What a
//! function becomes depends on the program alone, never on the thread or on what was compiled before it.

use std::sync::atomic::{AtomicUsize, Ordering};

use abi::symbols::Rep as AbiRep;
use cranelift_codegen::binemit::Reloc as Kind;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{ExternalName, Function};
use cranelift_codegen::{CompiledCode, Context, FinalizedMachReloc, FinalizedRelocTarget};
use cranelift_frontend::FunctionBuilderContext;
use values::ctx::Site;

use crate::target::Target;
use crate::unit::Unit;
use crate::{lower, stubs};

/// Functions that are worth a thread of their own.
const SHARE: usize = 8;
/// Address space for a thread's stack.
const STACK: usize = 64 << 20;

/// Machine code of a function.
pub(crate) struct Compiled {
    pub(crate) code: Vec<u8>,
    pub(crate) align: u32,
    pub(crate) relocs: Vec<Reloc>,
    /// Calls, by their return addresses' distances from the start, ascending. None for glue: stack walks end there.
    pub(crate) sites: Vec<Site>,
}

/// Four bytes of code that shall be `target` + `addend` - their own address.
pub(crate) struct Reloc {
    pub(crate) offset: u32,
    pub(crate) target: Target,
    pub(crate) addend: i64,
}

/// What function number `i` of the finished code is made from: the `i`th of these.
#[derive(Clone, Copy)]
pub(crate) enum Job {
    /// The MIR function of this number, which is also the job's.
    Func(u32),
    Release,
    Hole,
    Site,
    /// Glue around the `receive` of an actor class, which is this MIR function.
    Receive(u32),
    /// Glue around a `main` without result.
    Main(u32),
}

/// All jobs, and the function that is the program's entry.
pub(crate) fn jobs(unit: &Unit) -> Result<(Vec<Job>, Option<Target>), String> {
    let program = unit.program;
    let mut jobs: Vec<Job> = (0..program.funcs.len() as u32).map(Job::Func).collect();
    jobs.extend([Job::Release, Job::Hole, Job::Site]);
    jobs.extend(program.receives.iter().map(|(_, func)| Job::Receive(func.0)));
    let Some(main) = program.main else { return Ok((jobs, None)) };
    let (func, target) = unit.func(main.0)?;
    let entry = match (func.params, func.results.as_slice()) {
        (0, [rep]) if rep.abi() == AbiRep::W => target,
        (0, []) => {
            jobs.push(Job::Main(main.0));
            Target::Function(jobs.len() as u32 - 1)
        }
        _ => return Err("malformed MIR: `main` has parameters or a result that is no word".to_string()),
    };
    Ok((jobs, Some(entry)))
}

/// Compiles everything; the first failure in the order of the jobs counts.
pub(crate) fn all(unit: &Unit, jobs: &[Job]) -> Result<Vec<Compiled>, String> {
    // The largest first: no thread is left with one when the others are done.
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_cached_key(|job| std::cmp::Reverse(jobs.get(*job).map_or(0, |job| weight(unit, *job))));
    let next = AtomicUsize::new(0);
    let work = || {
        let mut worker = Worker::new(unit);
        let mut done = Vec::new();
        while let Some((number, job)) =
            order.get(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((*i, jobs.get(*i)?)))
        {
            let result = worker.job(*job);
            if result.is_err() {
                // It left a function half done.
                worker = Worker::new(unit);
            }
            done.push((number, result));
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len().div_ceil(SHARE));
    let mut done = std::thread::scope(|scope| {
        let helper = |_| std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
        // A helper that cannot be had leaves more to the others.
        let helpers: Vec<_> = (1..threads).map_while(helper).collect();
        let mut done = work();
        for helper in helpers {
            done.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

/// About how long a job takes.
fn weight(unit: &Unit, job: Job) -> usize {
    match job {
        Job::Func(index) => unit.func(index).map_or(0, |(func, _)| func.blocks.iter().map(|b| b.insts.len()).sum()),
        Job::Release | Job::Hole | Job::Site | Job::Receive(_) | Job::Main(_) => 0,
    }
}

/// What is reused from function to function.
struct Worker<'u, 'p> {
    unit: &'u Unit<'p>,
    ctx: Context,
    builder: FunctionBuilderContext,
}

impl<'u, 'p> Worker<'u, 'p> {
    fn new(unit: &'u Unit<'p>) -> Self {
        Worker { unit, ctx: Context::new(), builder: FunctionBuilderContext::new() }
    }

    fn job(&mut self, job: Job) -> Result<Compiled, String> {
        let (unit, out, builder) = (self.unit, &mut self.ctx.func, &mut self.builder);
        match job {
            Job::Func(index) => {
                let (func, _) = unit.func(index)?;
                return self.function(index).map_err(|e| format!("code generation of `{}`: {e}", func.display));
            }
            Job::Site => return Ok(stubs::site(unit.runtime("trap.site")?.0)),
            Job::Release => lower::release(unit, out, builder)?,
            Job::Hole => lower::hole(unit, out, builder)?,
            Job::Receive(index) => lower::receive(unit, out, builder, index)?,
            Job::Main(index) => lower::main(unit, out, builder, index)?,
        }
        Ok(self.finish(None, false)?.0)
    }

    /// MIR function `index`; one with a large frame lies behind a stub.
    fn function(&mut self, index: u32) -> Result<Compiled, String> {
        lower::function(self.unit, &mut self.ctx.func, &mut self.builder, index)?;
        let huge = lower::is_huge(self.unit.func(index)?.0);
        let sig = self.ctx.func.signature.clone();
        let (body, frame) = self.finish(Some(index), huge)?;
        if frame <= stubs::LARGE {
            return Ok(body);
        }
        lower::overflow(self.unit, &mut self.ctx.func, &mut self.builder, sig, index)?;
        let (overflow, _) = self.finish(Some(index), false)?;
        stubs::guarded(frame, body, overflow)
    }

    /// Compiles what the context holds, which is (part of) a MIR function or glue. Gives the size of the frame too.
    fn finish(&mut self, func: Option<u32>, huge: bool) -> Result<(Compiled, u32), String> {
        let isa = if huge { &self.unit.quick } else { &self.unit.isa };
        compile(&mut self.ctx, isa.as_ref())?;
        let code = self.ctx.compiled_code().ok_or("Cranelift gave no code")?;
        let mut relocs = Vec::with_capacity(code.buffer.relocs().len());
        for reloc in code.buffer.relocs() {
            relocs.push(relocation(reloc, &self.ctx.func)?);
        }
        let sites = match func {
            Some(func) => sites(code, func, self.unit.func(func)?.0.line),
            None => Vec::new(),
        };
        let align = code.buffer.alignment.max(isa.function_alignment().preferred);
        let frame = code.buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset);
        let compiled = Compiled { code: code.code_buffer().to_vec(), align, relocs, sites };
        self.ctx.clear();
        Ok((compiled, frame))
    }
}

/// Runs Cranelift on what `ctx.func` holds.
pub(crate) fn compile(ctx: &mut Context, isa: &dyn cranelift_codegen::isa::TargetIsa) -> Result<(), String> {
    match ctx.compile(isa, &mut ControlPlane::default()) {
        Ok(_) => Ok(()),
        Err(e) => Err(cranelift_codegen::print_errors::pretty_error(e.func, e.inner)),
    }
}

fn relocation(reloc: &FinalizedMachReloc, func: &Function) -> Result<Reloc, String> {
    let FinalizedRelocTarget::ExternalName(ExternalName::User(name)) = &reloc.target else {
        return Err(format!("Cranelift wants {:?}, which no program has", reloc.target));
    };
    let target = func.params.user_named_funcs().get(*name).and_then(Target::named);
    match (target, reloc.kind) {
        (Some(target), Kind::X86PCRel4 | Kind::X86CallPCRel4) => {
            Ok(Reloc { offset: reloc.offset, target, addend: reloc.addend })
        }
        (target, kind) => Err(format!("relocation {kind:?} to {target:?} is not supported")),
    }
}

/// The calls of `code`, which is MIR function `func`. Source locations carry lines; a call without one gets `line`.
fn sites(code: &CompiledCode, func: u32, line: u32) -> Vec<Site> {
    let locs = code.buffer.get_srclocs_sorted();
    let site = |offset: u32| {
        // The range that the call's last byte lies in.
        let after = locs.partition_point(|loc| loc.start < offset);
        let loc = after.checked_sub(1).and_then(|i| locs.get(i)).filter(|loc| offset <= loc.end);
        let line = loc.filter(|loc| !loc.loc.is_default()).map_or(line, |loc| loc.loc.bits());
        Site { offset, func, line }
    };
    code.buffer.call_sites().map(|call| site(call.ret_addr)).collect()
}

impl Compiled {
    /// Puts `other` behind this one; gives the place of it.
    pub(crate) fn append(&mut self, other: Compiled) -> usize {
        let start = self.code.len().next_multiple_of(other.align as usize);
        self.code.resize(start, 0);
        self.code.extend(other.code);
        self.align = self.align.max(other.align);
        let shift = start as u32;
        self.relocs.extend(other.relocs.into_iter().map(|r| Reloc { offset: r.offset + shift, ..r }));
        self.sites.extend(other.sites.into_iter().map(|s| Site { offset: s.offset + shift, ..s }));
        start
    }
}
