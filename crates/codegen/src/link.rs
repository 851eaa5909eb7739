//! Compiled functions, literals and tables put together: every reference between them is resolved here, as all of them
//! keep their distances wherever the whole is loaded. See `code` for the order of the parts.

use abi::symbols::SYMBOLS;
use rustc_hash::FxHashMap;

use crate::code::{Code, PAGE};
use crate::compile::Compiled;
use crate::target::{FIXED, Target};
use crate::unit::{HOLE, RECEIVES, Unit};
use crate::{Options, literals};

/// Puts `functions` together, which are the results of `compile::jobs` in their order.
pub(crate) fn link(
    unit: &Unit,
    options: &Options,
    functions: &[Compiled],
    entry: Option<Target>,
) -> Result<Code<'static>, String> {
    let program = unit.program;
    let used = used(functions);
    let mut parts = Parts::default();
    parts.functions(functions);
    let runtime = parts.runtime(&used)?;
    parts.data(unit, &used, runtime.len())?;
    parts.resolve(functions)?;
    Ok(Code {
        entries: parts.entries(unit)?,
        main: entry.map(|entry| parts.offset(entry)).transpose()?,
        receives: parts.receives(unit)?,
        sites: parts.sites(functions),
        runtime: runtime.into_iter().map(Into::into).collect(),
        text: parts.text.into(),
        literals: parts.literals.into(),
        shapes: program.shapes.clone(),
        files: options.files.clone(),
        functions: program.funcs.iter().map(|func| (func.display.clone(), func.file, func.line)).collect(),
        starts: parts.starts,
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

/// What leads from `from` to `to` in a field of four bytes.
fn distance(from: usize, to: i64) -> Result<[u8; 4], String> {
    let distance = i32::try_from(to - from as i64).map_err(|_| TOO_LARGE.to_string())?;
    Ok(distance.to_le_bytes())
}

/// The parts of the code, as far as they are known.
#[derive(Default)]
struct Parts {
    text: Vec<u8>,
    literals: Vec<u8>,
    /// Places of what is referred to, counted from the start of the text.
    places: FxHashMap<Target, usize>,
    starts: Vec<u32>,
}

impl Parts {
    fn functions(&mut self, functions: &[Compiled]) {
        for (function, index) in functions.iter().zip(0..) {
            // Between functions lies `int3`.
            self.text.resize(self.text.len().next_multiple_of(function.align as usize), 0xcc);
            self.starts.push(self.text.len() as u32);
            let _ = self.places.insert(Target::Function(index), self.text.len());
            self.text.extend_from_slice(&function.code);
        }
    }

    /// A stub for each runtime function, behind the functions: `jmp [rip + distance of its word]`. Gives their names.
    fn runtime(&mut self, used: &[Target]) -> Result<Vec<&'static str>, String> {
        let callees: Vec<_> = used.iter().filter_map(|target| Some((*target, runtime_name(*target)?))).collect();
        let stubs = self.text.len().next_multiple_of(8);
        self.starts.push(stubs as u32);
        self.text.resize(stubs + 8 * callees.len(), 0xcc);
        let words = self.text.len().next_multiple_of(PAGE);
        for (i, (target, _)) in callees.iter().enumerate() {
            let (stub, word) = (stubs + 8 * i, words + 8 * i);
            let _ = self.places.insert(*target, stub);
            let jump = [[0xff, 0x25].as_slice(), &distance(stub + 6, word as i64)?].concat();
            self.text.get_mut(stub..stub + 6).ok_or("no room for a stub")?.copy_from_slice(&jump);
        }
        Ok(callees.into_iter().map(|(_, name)| name).collect())
    }

    /// Behind the text: words for `callees` runtime functions, the dispatch tables, the literals.
    fn data(&mut self, unit: &Unit, used: &[Target], callees: usize) -> Result<(), String> {
        let program = unit.program;
        let mut at = self.text.len().next_multiple_of(PAGE) + 8 * callees;
        for (_, table) in program.tables.iter().zip(0..) {
            let _ = self.places.insert(Target::Table(table), at);
            at += 8 * program.shapes.classes.len();
        }
        let first = at.next_multiple_of(PAGE);
        for target in used {
            if let Some(bytes) = literal(unit, *target)? {
                let _ = self.places.insert(*target, first + self.literals.len());
                literals::push(&mut self.literals, bytes);
            }
        }
        Ok(())
    }

    fn place(&self, target: Target) -> Result<usize, String> {
        self.places.get(&target).copied().ok_or_else(|| format!("malformed MIR: no {target:?}"))
    }

    fn offset(&self, target: Target) -> Result<u32, String> {
        u32::try_from(self.place(target)?).map_err(|_| TOO_LARGE.to_string())
    }

    fn resolve(&mut self, functions: &[Compiled]) -> Result<(), String> {
        for (function, index) in functions.iter().zip(0..) {
            let start = self.place(Target::Function(index))?;
            for reloc in &function.relocs {
                let at = start + reloc.offset as usize;
                let distance = distance(at, self.place(reloc.target)? as i64 + reloc.addend)?;
                let field = self.text.get_mut(at..at + 4).ok_or("relocation outside its function")?;
                field.copy_from_slice(&distance);
            }
        }
        Ok(())
    }

    /// The words of the dispatch tables, one table after the other, by class.
    fn entries(&self, unit: &Unit) -> Result<Vec<u32>, String> {
        let classes = unit.program.shapes.classes.len();
        let mut out = Vec::with_capacity(classes * unit.program.tables.len());
        for table in &unit.program.tables {
            let start = out.len();
            // A class without the method: the compiler makes no such call; if it did, it would trap.
            out.resize(start + classes, self.offset(unit.glue(HOLE))?);
            for (class, func) in &table.rows {
                let entry = out.get_mut(start + *class as usize);
                *entry.ok_or_else(|| format!("table `{}`: no class {class}", table.name))? =
                    self.offset(Target::Function(func.0))?;
            }
        }
        Ok(out)
    }

    fn receives(&self, unit: &Unit) -> Result<Vec<Option<u32>>, String> {
        let mut out = vec![None; unit.program.shapes.classes.len()];
        for ((class, _), number) in unit.program.receives.iter().zip(RECEIVES..) {
            let entry = out.get_mut(*class as usize).ok_or_else(|| format!("receive: no class {class}"))?;
            *entry = Some(self.offset(unit.glue(number))?);
        }
        Ok(out)
    }

    /// All call sites, ascending: offset, function, line.
    fn sites(&self, functions: &[Compiled]) -> Vec<(u32, u32, u32)> {
        let mut out = Vec::with_capacity(functions.iter().map(|f| f.sites.len()).sum());
        for (function, index) in functions.iter().zip(0..) {
            let start = self.places.get(&Target::Function(index)).copied().unwrap_or_default() as u32;
            out.extend(function.sites.iter().map(|site| (start + site.offset, site.func, site.line)));
        }
        out
    }
}
