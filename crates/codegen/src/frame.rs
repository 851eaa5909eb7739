//! The entry of functions with large frames. The check at the entry of a function compares the stack pointer after the
//! frame has been made, so a frame larger than the reserve below the limit could write outside the stack before it is
//! checked. Such a function is entered through a stub, which compares first and touches no memory.

use cranelift_codegen::binemit::Reloc;
use cranelift_module::{FuncId, ModuleReloc, ModuleRelocTarget};

/// Frames up to this size are covered by the reserve that the stack limit leaves.
pub(crate) const LARGE: u32 = 4096;

/// Code of a stub that goes on to `body` if `frame` bytes fit above the limit, else to `overflow`, with the stack and
/// every argument register as they were.
pub(crate) fn stub(frame: u32, body: FuncId, overflow: FuncId) -> Result<(Vec<u8>, Vec<ModuleReloc>), String> {
    if !cfg!(target_arch = "x86_64") {
        return Err("stack frame too large for this machine".to_string());
    }
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
    let to_overflow = code.len() as u32 - 4;
    code.extend([0xe9, 0, 0, 0, 0]);
    let to_body = code.len() as u32 - 4;
    let jump = |offset: u32, to: FuncId| ModuleReloc {
        offset,
        kind: Reloc::X86CallPCRel4,
        name: ModuleRelocTarget::user(0, to.as_u32()),
        addend: -4,
    };
    Ok((code, vec![jump(to_overflow, overflow), jump(to_body, body)]))
}
