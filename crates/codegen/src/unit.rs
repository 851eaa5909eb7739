//! What the lowering of every function needs of the whole program. It is only read, so that functions are lowered and
//! compiled on several threads.

use abi::symbols::{self, Rep as AbiRep, Symbol};
use cranelift_codegen::ir::{self as clif, AbiParam, ExtFuncData, ExternalName, FuncRef, Signature, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa, TargetFrontendConfig};
use mir::ir::{Func, Program};
use rustc_hash::FxHashMap;

use crate::target::Target;
use crate::{Options, machine};

pub(crate) struct Unit<'a> {
    pub(crate) program: &'a Program,
    /// The machine, and the machine with the settings for huge functions.
    pub(crate) isa: OwnedTargetIsa,
    pub(crate) quick: OwnedTargetIsa,
    /// Places in `abi::symbols::SYMBOLS` by name.
    runtime: FxHashMap<&'static str, u32>,
}

/// Functions that no MIR stands for, by their numbers behind the program's own: see `Unit::glue`. The `receive`s of
/// actor classes come last, and a `main` without result.
pub(crate) const RELEASE: u32 = 0;
pub(crate) const HOLE: u32 = 1;
pub(crate) const SITE: u32 = 2;
pub(crate) const RECEIVES: u32 = 3;

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

pub(crate) fn func_signature(func: &Func) -> Signature {
    let params = func.locals.iter().take(func.params as usize).map(|local| local.rep.abi());
    signature(params, func.results.iter().map(|rep| rep.abi()))
}

impl<'a> Unit<'a> {
    pub(crate) fn new(program: &'a Program, options: &Options) -> Result<Self, String> {
        if let Some(func) = program.funcs.iter().find(|func| func.results.len() > 2) {
            return Err(format!("malformed MIR of `{}`: more than two results", func.display));
        }
        let runtime = symbols::SYMBOLS.iter().zip(0..).map(|(symbol, index)| (symbol.name, index)).collect();
        Ok(Unit { program, isa: machine::isa(options, false)?, quick: machine::isa(options, true)?, runtime })
    }

    pub(crate) fn config(&self) -> TargetFrontendConfig {
        self.isa.frontend_config()
    }

    /// MIR function `index` and its entry.
    pub(crate) fn func(&self, index: u32) -> Result<(&'a Func, Target), String> {
        let func = self.program.funcs.get(index as usize);
        let func = func.ok_or_else(|| format!("malformed MIR: no function {index}"))?;
        Ok((func, Target::Function(index)))
    }

    /// Function number `number` of those behind the program's own.
    pub(crate) fn glue(&self, number: u32) -> Target {
        Target::Function(self.program.funcs.len() as u32 + number)
    }

    /// The runtime function called `name`, which must be in `abi::symbols`.
    pub(crate) fn runtime(&self, name: &str) -> Result<(Target, &'static Symbol), String> {
        let index = self.runtime.get(name);
        let found = index.and_then(|index| Some((Target::Runtime(*index), symbols::SYMBOLS.get(*index as usize)?)));
        found.ok_or_else(|| format!("`{name}` is not a runtime function"))
    }
}

/// Lets `func` call `target`: all that a program calls lies within reach of a near call.
pub(crate) fn import(func: &mut clif::Function, target: Target, signature: Signature) -> FuncRef {
    let signature = func.import_signature(signature);
    let name = ExternalName::user(func.declare_imported_user_function(target.name()));
    func.import_function(ExtFuncData { name, signature, colocated: true, patchable: false })
}

/// Lets `func` take the address of `target`.
pub(crate) fn address(func: &mut clif::Function, target: Target) -> clif::GlobalValue {
    let name = ExternalName::user(func.declare_imported_user_function(target.name()));
    func.create_global_value(clif::GlobalValueData::Symbol { name, offset: 0.into(), colocated: true, tls: false })
}
