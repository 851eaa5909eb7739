//! Compiled functions, literals and tables put together: every reference between them is resolved here, as all of them
//! keep their distances wherever the whole is loaded. See `code` for the order of the parts.

use abi::symbols::SYMBOLS;
use rustc_hash::FxHashMap;

use crate::code::{Code, PAGE};
use crate::compile::{Compiled, HOLE, RECEIVES};
use crate::target::{FIXED, Target};
use crate::unit::Unit;
use crate::{Options, literals};

/// Places of what is referred to, counted from the start of the code.
type Places = FxHashMap<Target, usize>;

/// Puts `functions` together, which are the results of `compile::jobs` in their order.
pub(crate) fn link(
    unit: &Unit,
    options: &Options,
    functions: &[Compiled],
    entry: Option<Target>,
) -> Result<Code<'static>, String> {
    let program = unit.program;
    let mut places = Places::default();
    let mut text = Vec::new();
    for (function, index) in functions.iter().zip(0..) {
        // Between functions lies `int3`.
        text.resize(text.len().next_multiple_of(function.align as usize), 0xcc);
        let _ = places.insert(Target::Function(index), text.len());
        text.extend_from_slice(&function.code);
    }
    let used = used(functions);
    let runtime: Vec<&str> = used.iter().filter_map(|target| runtime_name(*target)).collect();
    // A stub per runtime function: `jmp [rip + distance of its word]`.
    let stubs = text.len().next_multiple_of(8);
    text.resize(stubs + 8 * runtime.len(), 0xcc);
    let words = text.len().next_multiple_of(PAGE);
    let callees = used.iter().filter(|target| matches!(target, Target::Runtime(_)));
    for (i, target) in callees.enumerate() {
        let (stub, word) = (stubs + 8 * i, words + 8 * i);
        let _ = places.insert(*target, stub);
        let jump = [[0xff, 0x25].as_slice(), &distance(stub + 6, word as i64)?].concat();
        text.get_mut(stub..stub + 6).ok_or("no room for a stub")?.copy_from_slice(&jump);
    }
    let classes = program.shapes.classes.len();
    let tables = words + 8 * runtime.len();
    for table in 0..program.tables.len() {
        let _ = places.insert(Target::Table(table as u32), tables + 8 * classes * table);
    }
    let first_literal = (tables + 8 * classes * program.tables.len()).next_multiple_of(PAGE);
    let mut literals = Vec::new();
    for target in used {
        if let Some(bytes) = literal(unit, target)? {
            let _ = places.insert(target, first_literal + literals.len());
            literals::push(&mut literals, bytes);
        }
    }
    resolve(&mut text, functions, &places)?;
    let offset = |target: Target| {
        let place = places.get(&target).ok_or_else(|| format!("malformed MIR: no {target:?}"))?;
        u32::try_from(*place).map_err(|_| TOO_LARGE.to_string())
    };
    let mut receives = vec![None; classes];
    for ((class, _), number) in program.receives.iter().zip(RECEIVES..) {
        let entry = receives.get_mut(*class as usize).ok_or_else(|| format!("receive: no class {class}"))?;
        *entry = Some(offset(unit.glue(number))?);
    }
    Ok(Code {
        entries: entries(unit, offset)?,
        main: entry.map(offset).transpose()?,
        receives,
        sites: sites(functions, &places),
        runtime: runtime.into_iter().map(Into::into).collect(),
        text: text.into(),
        literals: literals.into(),
        shapes: program.shapes.clone(),
        files: options.files.clone(),
        functions: program.funcs.iter().map(|func| (func.display.clone(), func.file)).collect(),
    })
}

const TOO_LARGE: &str = "the program is too large";

/// All targets of relocations, in one order whatever the order of the relocations.
fn used(functions: &[Compiled]) -> Vec<Target> {
    let mut used: Vec<Target> = functions.iter().flat_map(|f| &f.relocs).map(|reloc| reloc.target).collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn runtime_name(target: Target) -> Option<&'static str> {
    match target {
        Target::Runtime(index) => SYMBOLS.get(index as usize).map(|symbol| symbol.name),
        _ => None,
    }
}

fn literal<'u>(unit: &Unit<'u>, target: Target) -> Result<Option<&'u [u8]>, String> {
    let bytes = match target {
        Target::Text(index) => unit.program.texts.get(index as usize).map(Vec::as_slice),
        Target::Fixed(index) => FIXED.get(index as usize).map(|text| text.as_bytes()),
        Target::Function(_) | Target::Runtime(_) | Target::Table(_) => return Ok(None),
    };
    bytes.map(Some).ok_or_else(|| format!("malformed MIR: no {target:?}"))
}

/// From a place of which the four bytes before it hold this distance.
fn distance(from: usize, to: i64) -> Result<[u8; 4], String> {
    let distance = i32::try_from(to - from as i64).map_err(|_| TOO_LARGE.to_string())?;
    Ok(distance.to_le_bytes())
}

fn resolve(text: &mut [u8], functions: &[Compiled], places: &Places) -> Result<(), String> {
    for (function, index) in functions.iter().zip(0..) {
        let start = places.get(&Target::Function(index)).copied().unwrap_or_default();
        for reloc in &function.relocs {
            let place = places.get(&reloc.target).ok_or_else(|| format!("malformed MIR: no {:?}", reloc.target))?;
            let at = start + reloc.offset as usize;
            let field = text.get_mut(at..at + 4).ok_or("relocation outside its function")?;
            field.copy_from_slice(&distance(at, *place as i64 + reloc.addend)?);
        }
    }
    Ok(())
}

/// The words of the dispatch tables, one table after the other, by class.
fn entries(unit: &Unit, offset: impl Fn(Target) -> Result<u32, String>) -> Result<Vec<u32>, String> {
    let classes = unit.program.shapes.classes.len();
    let mut out = Vec::with_capacity(classes * unit.program.tables.len());
    for table in &unit.program.tables {
        let start = out.len();
        // A class without the method: the compiler makes no such call; if it did, it would trap.
        out.resize(start + classes, offset(unit.glue(HOLE))?);
        for (class, func) in &table.rows {
            let entry = out.get_mut(start + *class as usize);
            *entry.ok_or_else(|| format!("table `{}`: no class {class}", table.name))? =
                offset(Target::Function(func.0))?;
        }
    }
    Ok(out)
}

/// All call sites, ascending: offset, function, line.
fn sites(functions: &[Compiled], places: &Places) -> Vec<(u32, u32, u32)> {
    let mut out = Vec::with_capacity(functions.iter().map(|f| f.sites.len()).sum());
    for (function, index) in functions.iter().zip(0..) {
        let start = places.get(&Target::Function(index)).copied().unwrap_or_default() as u32;
        out.extend(function.sites.iter().map(|site| (start + site.offset, site.func, site.line)));
    }
    out
}
