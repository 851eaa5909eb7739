//! Where control comes from: per block the places that lead to it.

use crate::ir::{BlockId, Func};

/// Place of a block's terminator, after all of its instructions.
pub const END: u32 = u32::MAX;

/// A place in a function: before instruction `at` of `block`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub block: BlockId,
    pub at: u32,
}

impl Default for Place {
    fn default() -> Place {
        Place { block: BlockId(0), at: END }
    }
}

pub struct Edges {
    /// Into each block; unwind edges count from their instruction.
    into: Vec<Vec<Place>>,
}

impl Edges {
    pub fn of(func: &Func) -> Edges {
        let mut into = vec![Vec::new(); func.blocks.len()];
        let mut add = |to: BlockId, from: Place| {
            if let Some(list) = into.get_mut(to.0 as usize) {
                list.push(from);
            }
        };
        for (block, at) in func.blocks.iter().zip(0..) {
            let block_id = BlockId(at);
            for (inst, at) in block.insts.iter().zip(0..) {
                inst.kind.unwind().into_iter().for_each(|to| add(to, Place { block: block_id, at }));
            }
            block.term.each_target(|to| add(to, Place { block: block_id, at: END }));
        }
        Edges { into }
    }

    pub fn into(&self, block: BlockId) -> &[Place] {
        self.into.get(block.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The block that alone leads here, by its end.
    pub fn only(&self, block: BlockId) -> Option<BlockId> {
        match self.into(block) {
            [Place { block, at: END }] => Some(*block),
            _ => None,
        }
    }
}
