//! `woc dump clif` and `woc dump asm`: what code generation makes of a program, as text.

use abi::symbols::SYMBOLS;
use cranelift_codegen::Context;
use cranelift_codegen::ir::{Function, UserExternalName};
use cranelift_frontend::FunctionBuilderContext;
use mir::ir::Program;

use crate::target::{FIXED, Target};
use crate::unit::{RELEASE, SITE, Unit};
use crate::{Options, compile, lower};

/// The Cranelift IR of every function before Cranelift's own passes.
pub fn dump_clif(program: &Program, options: &Options) -> Result<String, String> {
    dump(program, options, |_, ctx| Ok(with_targets(ctx.func.display().to_string(), &ctx.func)))
}

/// The machine code of every function, as Cranelift prints it.
pub fn dump_asm(program: &Program, options: &Options) -> Result<String, String> {
    dump(program, options, |unit, ctx| {
        ctx.set_disasm(true);
        compile::compile(ctx, unit.isa.as_ref())?;
        let code = ctx.compiled_code().ok_or("Cranelift gave no code")?;
        Ok(with_targets(code.vcode.clone().unwrap_or_default(), &ctx.func))
    })
}

/// `text` with `uNAMESPACE:INDEX` in place of the numbers that Cranelift gives to the names that a function uses.
fn with_targets(mut text: String, func: &Function) -> String {
    // The last ones first, as 1 is a prefix of 10.
    for (name, target) in func.params.user_named_funcs().iter().rev() {
        let plain = format!("u{}:{}", target.namespace, target.index);
        text = text.replace(&format!("User({name})"), &plain).replace(&format!("{name}+0"), &plain);
        text = text.replace(&format!("symbol colocated {name}\n"), &format!("symbol colocated {plain}\n"));
    }
    text
}

fn dump(
    program: &Program,
    options: &Options,
    print: impl Fn(&Unit, &mut Context) -> Result<String, String>,
) -> Result<String, String> {
    let unit = Unit::new(program, options)?;
    let mut ctx = Context::new();
    let mut builder = FunctionBuilderContext::new();
    let mut out = String::new();
    for (index, func) in program.funcs.iter().enumerate() {
        let context = |e: String| format!("code generation of `{}`: {e}", func.display);
        lower::function(&unit, &mut ctx.func, &mut builder, index as u32).map_err(context)?;
        let text = print(&unit, &mut ctx).map_err(context)?;
        ctx.clear();
        let file = options.files.get(func.file as usize).map_or("", String::as_str);
        out.push_str(&format!("; {} ({file}:{})\n{}\n", func.display, func.line, with_names(&text, &unit)));
    }
    Ok(out)
}

/// The name of a target for people.
fn name(unit: &Unit, target: Target) -> Option<String> {
    let program = unit.program;
    let name = match target {
        Target::Function(index) => match program.funcs.get(index as usize) {
            Some(func) => func.display.clone(),
            None if target == unit.glue(RELEASE) => "release".to_string(),
            None if target == unit.glue(SITE) => "site".to_string(),
            None => return None,
        },
        Target::Runtime(index) => SYMBOLS.get(index as usize)?.name.to_string(),
        Target::Text(index) => format!("text{index}"),
        Target::Fixed(index) => format!("{:?}", FIXED.get(index as usize)?),
        Target::Table(index) => program.tables.get(index as usize)?.name.clone(),
    };
    Some(name)
}

/// `text` with names in place of `uNAMESPACE:INDEX`.
fn with_names(text: &str, unit: &Unit) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('u') {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let named = reference(found).and_then(|(target, len)| Some((name(unit, target)?, len)));
        match named {
            Some((name, len)) => {
                out.push('%');
                out.push_str(&name);
                rest = found.get(len..).unwrap_or("");
            }
            None => {
                out.push('u');
                rest = found.get(1..).unwrap_or("");
            }
        }
    }
    out.push_str(rest);
    out
}

/// The target that `text` begins with, written `uNAMESPACE:INDEX`, and its length.
fn reference(text: &str) -> Option<(Target, usize)> {
    let (namespace, rest) = text.strip_prefix('u')?.split_once(':')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let name = UserExternalName { namespace: namespace.parse().ok()?, index: rest.get(..digits)?.parse().ok()? };
    Some((Target::named(&name)?, 2 + namespace.len() + digits))
}
