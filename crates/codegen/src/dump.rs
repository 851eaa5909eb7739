//! `woc dump clif` and `woc dump asm`: what code generation makes of a program, as text. Runtime functions need no
//! address here, and no address of this process is printed.

use cranelift_codegen::Context;
use cranelift_frontend::FunctionBuilderContext;
use mir::ir::Program;
use rustc_hash::FxHashMap;

use crate::unit::Unit;
use crate::{Options, lower};

/// The Cranelift IR of every function before Cranelift's own passes.
pub fn dump_clif(program: &Program, options: &Options) -> Result<String, String> {
    dump(program, options, |_, ctx| Ok(ctx.func.display().to_string()))
}

/// The machine code of every function, as Cranelift prints it.
pub fn dump_asm(program: &Program, options: &Options) -> Result<String, String> {
    dump(program, options, |unit, ctx| {
        ctx.set_disasm(true);
        let _ = unit.compile(ctx, false)?;
        let code = ctx.compiled_code().ok_or("Cranelift gave no code")?;
        let mut text = code.vcode.clone().unwrap_or_default();
        // Cranelift numbers the functions that a function uses; the last ones first, as 1 is a prefix of 10.
        for (name, target) in ctx.func.params.user_named_funcs().iter().rev() {
            let plain = format!("u{}:{}", target.namespace, target.index);
            text = text.replace(&format!("User({name})"), &plain).replace(&format!("{name}+0"), &plain);
        }
        Ok(text)
    })
}

fn dump(
    program: &Program,
    options: &Options,
    print: impl Fn(&Unit, &mut Context) -> Result<String, String>,
) -> Result<String, String> {
    let mut unit = Unit::new(program, options, None)?;
    let mut ctx = Context::new();
    let mut builder = FunctionBuilderContext::new();
    let mut out = String::new();
    for (index, func) in program.funcs.iter().enumerate() {
        let context = |e: String| format!("code generation of `{}`: {e}", func.display);
        lower::function(&mut unit, &mut ctx.func, &mut builder, index as u32).map_err(context)?;
        let text = print(&unit, &mut ctx).map_err(context)?;
        ctx.clear();
        let mut names: FxHashMap<u32, &str> = unit.helper_names().collect();
        names.extend(unit.ids.iter().zip(&program.funcs).map(|(id, f)| (id.as_u32(), f.display.as_str())));
        let file = options.files.get(func.file as usize).map_or("", String::as_str);
        out.push_str(&format!("; {} ({file}:{})\n{}\n", func.display, func.line, with_names(&text, &names)));
    }
    Ok(out)
}

/// `text` with the names of functions in place of `u0:INDEX`.
fn with_names(text: &str, names: &FxHashMap<u32, &str>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("u0:") {
        let (before, found) = rest.split_at(at);
        let digits = found.get(3..).unwrap_or("");
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (number, after) = digits.split_at(end);
        out.push_str(before);
        match number.parse().ok().and_then(|index: u32| names.get(&index)) {
            Some(name) => {
                out.push('%');
                out.push_str(name);
            }
            None => out.push_str(found.get(..3 + end).unwrap_or("")),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
