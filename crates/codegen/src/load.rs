//! Code into memory: the image that the runtime runs. Code, literals and tables live as long as the process.

use std::borrow::Cow;

use values::ctx::{FuncInfo, Image, MainFn, ReceiveFn, Site};

use crate::code::{Code, PAGE};
use crate::memory::Mapping;

/// Places `code` in memory. `function` gives the addresses of the runtime's functions by their names in
/// `abi::symbols`: `extern "C"` functions with the signatures given there. The error says what `code` needs and is not
/// there, or that it is not as it should be.
pub(crate) fn load(
    code: Code,
    function: impl Fn(&str) -> Option<*const u8>,
    args: Vec<Vec<u8>>,
) -> Result<&'static Image, String> {
    let words_at = code.text.len().next_multiple_of(PAGE);
    let words = code.runtime.len() + code.entries.len();
    let literals_at = (words_at + 8 * words).next_multiple_of(PAGE);
    let mut memory = Mapping::new(literals_at + code.literals.len())?;
    let entry = |offset: u32| {
        let inside = (offset as usize) < code.text.len();
        if inside { memory.at(offset as usize) } else { Err("code: an entry outside the text".to_string()) }
    };
    let mut filled = Vec::with_capacity(8 * words);
    for name in &code.runtime {
        let at = function(name).filter(|at| !at.is_null());
        let at = at.ok_or_else(|| format!("the runtime function `{name}` is not implemented"))?;
        filled.extend_from_slice(&at.expose_provenance().to_le_bytes());
    }
    for offset in &code.entries {
        filled.extend_from_slice(&entry(*offset)?.expose_provenance().to_le_bytes());
    }
    // SAFETY: `code` comes from `compile`, if through `Code::decode`, on the word of who called that. What `Code::main`
    // points at was compiled as a function of the context with one word as its result.
    let main = |at| unsafe { std::mem::transmute::<*const u8, MainFn>(at) };
    let main = code.main.map(|offset| entry(offset).map(main)).transpose()?;
    // SAFETY: as above; what `Code::receives` points at was compiled by `lower::receive` with the signature of `ReceiveFn`.
    let receive = |at| unsafe { std::mem::transmute::<*const u8, ReceiveFn>(at) };
    let receives = code.receives.iter().map(|offset| offset.map(|offset| entry(offset).map(receive)).transpose());
    let receives = receives.collect::<Result<Vec<_>, _>>()?;
    for (offset, part) in [(0, &code.text), (words_at, &Cow::Owned(filled)), (literals_at, &code.literals)] {
        memory.write(offset, part)?;
    }
    let base = memory.at(0)?.expose_provenance() as u64;
    memory.protect(words_at, literals_at)?;
    let info = |(display, file, _): (String, u32, u32)| FuncInfo {
        display,
        file: code.files.get(file as usize).cloned().unwrap_or_default(),
    };
    Ok(Box::leak(Box::new(Image {
        funcs: code.functions.into_iter().map(info).collect(),
        receives,
        main,
        base,
        sites: code.sites.into_iter().map(|(offset, func, line)| Site { offset, func, line }).collect(),
        args,
        ..Image::of(code.shapes)
    })))
}
