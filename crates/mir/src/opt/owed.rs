//! How many references each local owes at each place: what it will give back or hand over from there on, less what it
//! takes before. A program in which every reference is given back holds that many on the local's behalf.

use super::Table;
use super::effects::{Effects, is_counted};
use crate::ir::{Block, BlockId, Func, InstKind, Local, Term};

/// A local owes at most this many, as far as anybody wants to know.
const MOST: u8 = 3;

pub struct Owed<'a> {
    effects: &'a Effects,
    /// Per local its place among the counted ones, from 1; 0 for the others.
    place: Table<u32>,
    width: usize,
    /// Per block, per counted local: what is owed at its beginning. What no path says anything of counts as `MOST`.
    starts: Vec<u8>,
}

impl<'a> Owed<'a> {
    /// `None` for functions whose table would be large.
    pub fn of(func: &Func, effects: &'a Effects) -> Option<Owed<'a>> {
        const CELLS: usize = 200_000;
        let mut place = Table::new(func.locals.len());
        let mut width = 0;
        for local in 0..u32::try_from(func.locals.len()).unwrap_or(u32::MAX) {
            if is_counted(func, Local(local)) {
                width += 1;
                place.set(local, width);
            }
        }
        let width = width as usize;
        let cells = width.checked_mul(func.blocks.len()).filter(|cells| *cells <= CELLS)?;
        let mut owed = Owed { effects, place, width, starts: vec![MOST; cells] };
        // Against the order of blocks, which is mostly that of control; values only fall.
        let mut changed = true;
        while changed {
            changed = false;
            for at in (0..func.blocks.len()).rev() {
                let Some(block) = func.blocks.get(at) else { continue };
                let mut state = owed.at_end(func, block);
                for inst in block.insts.iter().rev() {
                    owed.before(func, &inst.kind, &mut state);
                }
                if let Some(start) = owed.starts.get_mut(at * width..(at + 1) * width)
                    && start != state.as_slice()
                {
                    start.copy_from_slice(&state);
                    changed = true;
                }
            }
        }
        Some(owed)
    }

    /// What `local` owes before instruction `at` of `block`.
    pub fn at(&self, func: &Func, block: BlockId, at: u32, local: Local) -> u8 {
        let Some(block) = func.blocks.get(block.0 as usize) else { return 0 };
        let mut state = self.at_end(func, block);
        for inst in block.insts.iter().skip(at as usize).rev() {
            self.before(func, &inst.kind, &mut state);
        }
        self.cell(local).and_then(|cell| state.get(cell).copied()).unwrap_or(0)
    }

    fn cell(&self, local: Local) -> Option<usize> {
        (self.place.get(local.0) as usize).checked_sub(1)
    }

    fn start(&self, block: BlockId) -> &[u8] {
        let at = block.0 as usize * self.width;
        self.starts.get(at..at + self.width).unwrap_or_default()
    }

    fn at_end(&self, func: &Func, block: &Block) -> Vec<u8> {
        let mut state = vec![MOST; self.width];
        block.term.each_target(|to| least(&mut state, self.start(to)));
        match &block.term {
            Term::Return(values) => {
                state.fill(0);
                values.iter().filter(|v| is_counted(func, **v)).for_each(|v| self.add(&mut state, *v, 1));
            }
            Term::Resume => state.fill(0),
            _ => {}
        }
        state
    }

    fn add(&self, state: &mut [u8], local: Local, more: u8) {
        if let Some(cell) = self.cell(local).and_then(|cell| state.get_mut(cell)) {
            *cell = (*cell + more).min(MOST);
        }
    }

    fn take(&self, state: &mut [u8], local: Local) -> u8 {
        self.cell(local).and_then(|cell| state.get_mut(cell)).map_or(0, std::mem::take)
    }

    /// From what is owed after an instruction to what is owed before it.
    fn before(&self, func: &Func, kind: &InstKind, state: &mut [u8]) {
        if let InstKind::Copy(dst, src) = kind {
            let moved = self.take(state, *dst);
            self.add(state, *src, moved);
            return;
        }
        for dst in kind.writes() {
            let _ = self.take(state, *dst);
        }
        if let Some(unwind) = kind.unwind() {
            least(state, self.start(unwind));
        }
        self.effects.each_consumed(func, kind, |local| self.add(state, local, 1));
        match kind {
            InstKind::Release { local, .. } => self.add(state, *local, 1),
            InstKind::Retain { local, .. } => {
                let owed = self.take(state, *local);
                self.add(state, *local, owed.saturating_sub(1));
            }
            _ => {}
        }
    }
}

fn least(state: &mut [u8], other: &[u8]) {
    state.iter_mut().zip(other).for_each(|(a, b)| *a = (*a).min(*b));
}
