//! The site table: which call in which function and line a return address belongs to.

use cranelift_codegen::CompiledCode;
use cranelift_module::FuncId;
use values::ctx::Site;

/// A call site before the code has its address.
struct Pending {
    id: FuncId,
    offset: u32,
    func: u32,
    line: u32,
}

/// Collects call sites while functions are compiled.
#[derive(Default)]
pub(crate) struct Sites {
    pending: Vec<Pending>,
}

impl Sites {
    /// Adds the calls of `code`, which is MIR function `func` and will lie where `id` lies. Source locations carry
    /// lines; a call without one gets `line`.
    pub(crate) fn collect(&mut self, id: FuncId, code: &CompiledCode, func: u32, line: u32) {
        let locs = code.buffer.get_srclocs_sorted();
        for call in code.buffer.call_sites() {
            // The range that the call's last byte lies in.
            let after = locs.partition_point(|loc| loc.start < call.ret_addr);
            let loc = after.checked_sub(1).and_then(|i| locs.get(i)).filter(|loc| call.ret_addr <= loc.end);
            let line = loc.filter(|loc| !loc.loc.is_default()).map_or(line, |loc| loc.loc.bits());
            self.pending.push(Pending { id, offset: call.ret_addr, func, line });
        }
    }

    /// The table, ascending by address.
    pub(crate) fn finish(self, address: impl Fn(FuncId) -> u64) -> Vec<Site> {
        let mut sites: Vec<Site> = self
            .pending
            .iter()
            .map(|p| Site { return_address: address(p.id) + u64::from(p.offset), func: p.func, line: p.line })
            .collect();
        sites.sort_unstable_by_key(|s| s.return_address);
        sites
    }
}
