//! One program on its way through Cranelift: declarations, the loop over its functions, and the finished image.

use std::sync::atomic::{AtomicUsize, Ordering};

use abi::symbols::{self, Rep as AbiRep, Symbol};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{self as clif, AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, isa::OwnedTargetIsa};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleReloc};
use mir::ir::{Func, Program};
use rustc_hash::FxHashMap;
use values::ctx::{FuncInfo, Image, MainFn, ReceiveFn};

use crate::literals::Literals;
use crate::sites::Sites;
use crate::{Options, frame, lower};

/// Address space reserved for code. One region keeps every call within reach of a near call.
const CODE_SPACE: usize = 512 << 20;

/// Addresses of runtime functions by their names in `abi::symbols`.
pub(crate) type Functions<'a> = FxHashMap<&'a str, *const u8>;

/// What the lowering of a function needs from the rest of the program.
pub(crate) struct Unit<'a> {
    pub(crate) program: &'a Program,
    pub(crate) module: JITModule,
    /// The machine with the settings for huge functions.
    quick: OwnedTargetIsa,
    /// Per MIR function: its entry.
    pub(crate) ids: Vec<FuncId>,
    pub(crate) literals: Literals,
    /// Per dispatch table: code addresses by class.
    tables: Vec<&'static [AtomicUsize]>,
    runtime: FxHashMap<&'static str, (FuncId, &'static Symbol)>,
    /// The out-of-line release of `lower::release`, once something calls it.
    release: Option<FuncId>,
    /// `None` for dumps, which need no addresses.
    functions: Option<&'a Functions<'a>>,
}

/// Machine signature: the fiber context, then one machine value each.
pub(crate) fn signature(
    params: impl IntoIterator<Item = AbiRep>,
    results: impl IntoIterator<Item = AbiRep>,
) -> Signature {
    let mut sig = Signature::new(CallConv::SystemV);
    sig.params.push(AbiParam::new(types::I64));
    sig.params.extend(params.into_iter().map(|rep| AbiParam::new(ty(rep))));
    sig.returns.extend(results.into_iter().map(|rep| AbiParam::new(ty(rep))));
    sig
}

pub(crate) fn ty(rep: AbiRep) -> clif::Type {
    match rep {
        AbiRep::W => types::I64,
        AbiRep::F => types::F64,
    }
}

/// `quick`: linear algorithms only.
fn isa(options: &Options, quick: bool) -> Result<OwnedTargetIsa, String> {
    let mut flags = settings::builder();
    for (name, value) in [
        ("opt_level", if options.optimize && !quick { "speed" } else { "none" }),
        ("regalloc_algorithm", if quick { "single_pass" } else { "backtracking" }),
        ("enable_verifier", if options.verify { "true" } else { "false" }),
        ("preserve_frame_pointers", "true"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_probestack", "false"),
        ("unwind_info", "false"),
    ] {
        flags.set(name, value).map_err(|e| format!("Cranelift setting `{name}`: {e}"))?;
    }
    let builder = cranelift_native::builder().map_err(|e| format!("this machine is not supported: {e}"))?;
    builder.finish(settings::Flags::new(flags)).map_err(|e| format!("Cranelift: {e}"))
}

impl<'a> Unit<'a> {
    /// Declares all functions of the program. Without `functions` the unit is only good for dumps.
    pub(crate) fn new(
        program: &'a Program,
        options: &Options,
        functions: Option<&'a Functions<'a>>,
    ) -> Result<Self, String> {
        let mut builder = JITBuilder::with_isa(isa(options, false)?, cranelift_module::default_libcall_names());
        if let Some(functions) = functions {
            let space = ArenaMemoryProvider::new_with_size(CODE_SPACE).map_err(|e| format!("memory for code: {e}"))?;
            let _ = builder.memory_provider(Box::new(space));
            for (name, at) in functions {
                let _ = builder.symbol(*name, *at);
            }
        }
        let mut unit = Unit {
            program,
            module: JITModule::new(builder),
            quick: isa(options, true)?,
            ids: Vec::with_capacity(program.funcs.len()),
            literals: Literals::new(functions.is_none()),
            tables: Vec::new(),
            runtime: FxHashMap::default(),
            release: None,
            functions,
        };
        for func in &program.funcs {
            if func.results.len() > 2 {
                return Err(format!("malformed MIR of `{}`: more than two results", func.display));
            }
            let id = unit.anonymous(&func_signature(func))?;
            unit.ids.push(id);
        }
        let classes = program.shapes.classes.len();
        if functions.is_some() {
            unit.tables = program.tables.iter().map(|_| table(classes)).collect();
        }
        Ok(unit)
    }

    pub(crate) fn anonymous(&mut self, sig: &Signature) -> Result<FuncId, String> {
        self.module.declare_anonymous_function(sig).map_err(|e| format!("Cranelift: {e}"))
    }

    /// The runtime function called `name`, which must be in `abi::symbols` and have an address.
    pub(crate) fn runtime(&mut self, name: &str) -> Result<(FuncId, &'static Symbol), String> {
        if let Some(found) = self.runtime.get(name) {
            return Ok(*found);
        }
        let symbol = symbols::find(name).ok_or_else(|| format!("`{name}` is not a runtime function"))?;
        if self.functions.is_some_and(|f| f.get(name).is_none_or(|at| at.is_null())) {
            return Err(format!("the runtime function `{name}` is not implemented"));
        }
        let sig = signature(symbol.params.iter().copied(), symbol.results.iter().copied());
        let id = self
            .module
            .declare_function(symbol.name, Linkage::Import, &sig)
            .map_err(|e| format!("runtime function `{name}`: {e}"))?;
        let _ = self.runtime.insert(symbol.name, (id, symbol));
        Ok((id, symbol))
    }

    /// The function that releases an object out of line, for cold code.
    pub(crate) fn release(&mut self) -> Result<FuncId, String> {
        if let Some(id) = self.release {
            return Ok(id);
        }
        let id = self.anonymous(&signature([AbiRep::W], []))?;
        self.release = Some(id);
        Ok(id)
    }

    /// Names of the functions used so far that no MIR stands for, by their function index in the module.
    pub(crate) fn helper_names(&self) -> impl Iterator<Item = (u32, &'static str)> {
        let runtime = self.runtime.iter().map(|(name, (id, _))| (id.as_u32(), *name));
        runtime.chain(self.release.map(|id| (id.as_u32(), "release")))
    }

    /// Address from which dispatch through table `t` counts: eight bytes per kind.
    pub(crate) fn table_base(&self, t: u32) -> Option<i64> {
        if self.functions.is_none() {
            return Some(0x7d00_0000_0000 + 0x1_0000 * i64::from(t));
        }
        let start = self.tables.get(t as usize)?.as_ptr().expose_provenance() as i64;
        Some(start - 8 * i64::from(abi::layout::FIRST_CLASS))
    }

    /// The entry of MIR function `index`.
    pub(crate) fn id(&self, index: u32) -> Result<FuncId, String> {
        self.ids.get(index as usize).copied().ok_or_else(|| format!("malformed MIR: no function {index}"))
    }

    /// Compiles what `ctx.func` holds; the result is the size of its frame in bytes.
    pub(crate) fn compile(&self, ctx: &mut Context, huge: bool) -> Result<u32, String> {
        let isa = if huge { self.quick.as_ref() } else { self.module.isa() };
        let code = ctx
            .compile(isa, &mut ControlPlane::default())
            .map_err(|e| cranelift_codegen::print_errors::pretty_error(e.func, e.inner))?;
        Ok(code.buffer.frame_layout().map_or(0, |layout| layout.frame_to_fp_offset))
    }

    /// Places what `ctx` has compiled as `id`. Calls go to `sites` if it is (part of) a MIR function.
    fn place(&mut self, ctx: &Context, id: FuncId, func: Option<u32>, sites: &mut Sites) -> Result<(), String> {
        let code = ctx.compiled_code().ok_or("Cranelift gave no code")?;
        if let Some(func) = func {
            let line = self.program.funcs.get(func as usize).map_or(0, |f| f.line);
            sites.collect(id, code, func, line);
        }
        let relocs: Vec<ModuleReloc> =
            code.buffer.relocs().iter().map(|r| ModuleReloc::from_mach_reloc(r, &ctx.func, id)).collect();
        let align = u64::from(code.buffer.alignment);
        self.module.define_function_bytes(id, align, code.code_buffer(), &relocs).map_err(|e| e.to_string())
    }
}

/// An empty dispatch table of `classes` entries.
fn table(classes: usize) -> &'static [AtomicUsize] {
    Box::leak((0..classes).map(|_| AtomicUsize::new(0)).collect())
}

/// Compiles `program` and hands over the image. See `crate::compile`.
pub(crate) fn image(program: &Program, options: &Options, functions: &Functions) -> Result<&'static Image, String> {
    let mut unit = Unit::new(program, options, Some(functions))?;
    let mut work = Work { ctx: Context::new(), builder: FunctionBuilderContext::new(), sites: Sites::default() };
    for (index, func) in program.funcs.iter().enumerate() {
        let context = |e: String| format!("code generation of `{}`: {e}", func.display);
        work.function(&mut unit, index as u32).map_err(context)?;
    }
    let main = program.main.map(|main| work.main(&mut unit, main.0)).transpose()?;
    let mut receives = Vec::with_capacity(program.receives.len());
    for (class, func) in &program.receives {
        let id = unit.anonymous(&signature([AbiRep::W; 3], []))?;
        lower::receive(&mut unit, &mut work.ctx.func, &mut work.builder, func.0)?;
        work.glue(&mut unit, id)?;
        receives.push((*class, id));
    }
    if let Some(id) = unit.release {
        lower::release(&mut unit, &mut work.ctx.func, &mut work.builder)?;
        work.glue(&mut unit, id)?;
    }
    let hole = if program.tables.is_empty() {
        None
    } else {
        let id = unit.anonymous(&signature([], []))?;
        lower::hole(&mut unit, &mut work.ctx.func, &mut work.builder)?;
        work.glue(&mut unit, id)?;
        Some(id)
    };

    unit.module.finalize_definitions().map_err(|e| format!("code in memory: {e}"))?;
    let address = |id: FuncId| unit.module.get_finalized_function(id);
    for (table, rows) in unit.tables.iter().zip(&program.tables) {
        // A class without the method: the compiler makes no such call; if it did, it would trap.
        if let Some(hole) = hole {
            table.iter().for_each(|entry| entry.store(address(hole).expose_provenance(), Ordering::Relaxed));
        }
        for (class, func) in &rows.rows {
            let entry = table.get(*class as usize).ok_or_else(|| format!("table `{}`: no class {class}", rows.name))?;
            entry.store(address(unit.id(func.0)?).expose_provenance(), Ordering::Relaxed);
        }
    }
    let mut receive_fns: Vec<Option<ReceiveFn>> = vec![None; program.shapes.classes.len()];
    for (class, id) in receives {
        let entry = receive_fns.get_mut(class as usize).ok_or_else(|| format!("receive: no class {class}"))?;
        // SAFETY: `id` was compiled by `lower::receive` with the signature of `ReceiveFn`, and the code is never freed.
        *entry = Some(unsafe { std::mem::transmute::<*const u8, ReceiveFn>(address(id)) });
    }
    // SAFETY: `Work::main` gives a function of the context with one word as its result; the code is never freed.
    let main = main.map(|id| unsafe { std::mem::transmute::<*const u8, MainFn>(address(id)) });
    let sites = work.sites.finish(|id| address(id).expose_provenance() as u64);
    let info = |func: &Func| FuncInfo {
        display: func.display.clone(),
        file: options.files.get(func.file as usize).cloned().unwrap_or_default(),
    };
    Ok(Box::leak(Box::new(Image {
        shapes: program.shapes.clone(),
        funcs: program.funcs.iter().map(info).collect(),
        receives: receive_fns,
        main,
        sites,
        args: options.args.clone(),
    })))
}

/// What is reused from function to function.
struct Work {
    ctx: Context,
    builder: FunctionBuilderContext,
    sites: Sites,
}

impl Work {
    /// Compiles MIR function `index`; one with a large frame goes behind a stub.
    fn function(&mut self, unit: &mut Unit, index: u32) -> Result<(), String> {
        let id = unit.id(index)?;
        lower::function(unit, &mut self.ctx.func, &mut self.builder, index)?;
        let huge = unit.program.funcs.get(index as usize).is_some_and(lower::is_huge);
        let frame = unit.compile(&mut self.ctx, huge)?;
        if frame <= frame::LARGE {
            unit.place(&self.ctx, id, Some(index), &mut self.sites)?;
            self.ctx.clear();
            return Ok(());
        }
        let sig = self.ctx.func.signature.clone();
        let body = unit.anonymous(&sig)?;
        unit.place(&self.ctx, body, Some(index), &mut self.sites)?;
        self.ctx.clear();
        let overflow = unit.anonymous(&sig)?;
        lower::overflow(unit, &mut self.ctx.func, &mut self.builder, sig, index)?;
        let _ = unit.compile(&mut self.ctx, false)?;
        unit.place(&self.ctx, overflow, Some(index), &mut self.sites)?;
        self.ctx.clear();
        let (code, relocs) = frame::stub(frame, body, overflow)?;
        unit.module.define_function_bytes(id, 16, &code, &relocs).map_err(|e| e.to_string())
    }

    /// Compiles what is in the context as `id`, which is no function of the program: stack walks end there.
    fn glue(&mut self, unit: &mut Unit, id: FuncId) -> Result<(), String> {
        let _ = unit.compile(&mut self.ctx, false)?;
        unit.place(&self.ctx, id, None, &mut self.sites)?;
        self.ctx.clear();
        Ok(())
    }

    /// The entry of the program: `main` itself, or glue that returns 0 after a `main` without result.
    fn main(&mut self, unit: &mut Unit, index: u32) -> Result<FuncId, String> {
        let func = unit.program.funcs.get(index as usize).ok_or("malformed MIR: `main` is no function")?;
        match (func.params, func.results.as_slice()) {
            (0, [rep]) if rep.abi() == AbiRep::W => unit.id(index),
            (0, []) => {
                let id = unit.anonymous(&signature([], [AbiRep::W]))?;
                lower::main(unit, &mut self.ctx.func, &mut self.builder, index)?;
                self.glue(unit, id)?;
                Ok(id)
            }
            _ => Err("malformed MIR: `main` has parameters or a result that is no word".to_string()),
        }
    }
}

pub(crate) fn func_signature(func: &Func) -> Signature {
    let params = func.locals.iter().take(func.params as usize).map(|local| local.rep.abi());
    signature(params, func.results.iter().map(|rep| rep.abi()))
}
