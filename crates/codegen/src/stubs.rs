//! Code that Cranelift has no instructions for.

use crate::compile::{Compiled, Reloc};
use crate::target::Target;

/// Frames up to this size are covered by the reserve that the stack limit leaves.
pub(crate) const LARGE: u32 = 4096;

/// Calls `trap_site` with the address that this returns to, which says where the trap was found, and the frame pointer
/// of the caller.
pub(crate) fn site(trap_site: Target) -> Compiled {
    // mov rsi, [rsp]; mov rdx, rbp; jmp trap_site
    let code = vec![0x48, 0x8b, 0x34, 0x24, 0x48, 0x89, 0xea, 0xe9, 0, 0, 0, 0];
    let relocs = vec![Reloc { offset: 8, target: trap_site, addend: -4 }];
    Compiled { code, align: 16, relocs, sites: Vec::new() }
}

/// The entry of a function with a large frame. The check at the entry of a function compares the stack pointer after
/// the frame has been made, so a frame larger than the reserve below the limit could write outside the stack before it
/// is checked. This stub compares first and touches no memory: it goes on to `body` if `frame` bytes fit above the
/// limit, else to `overflow`, with the stack and every argument register as they were; both of them behind it.
pub(crate) fn guarded(frame: u32, body: Compiled, overflow: Compiled) -> Result<Compiled, String> {
    let frame = i32::try_from(frame).map_err(|_| "stack frame too large".to_string())?;
    let mut code = Vec::with_capacity(24);
    // lea r11, [rsp - frame]
    code.extend([0x4c, 0x8d, 0x9c, 0x24]);
    code.extend((-frame).to_le_bytes());
    // cmp r11, [rdi + CTX_STACK_LIMIT]
    code.extend([0x4c, 0x3b, 0x9f]);
    code.extend(abi::layout::CTX_STACK_LIMIT.to_le_bytes());
    // jb overflow; jmp body
    code.extend([0x0f, 0x82, 0, 0, 0, 0]);
    let to_overflow = code.len();
    code.extend([0xe9, 0, 0, 0, 0]);
    let to_body = code.len();
    let mut out = Compiled { code, align: 16, relocs: Vec::new(), sites: Vec::new() };
    for (after, part) in [(to_overflow, overflow), (to_body, body)] {
        let at = out.append(part);
        let distance = i32::try_from(at - after).map_err(|_| "function too large".to_string())?;
        let field = out.code.get_mut(after - 4..after).ok_or("stub without jump")?;
        field.copy_from_slice(&distance.to_le_bytes());
    }
    Ok(out)
}
