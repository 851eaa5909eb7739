//! Dominators of a graph in close to linear time, however long its chains and however many edges meet in one node:
//! the semi-NCA algorithm (Georgiadis), without recursion.

/// Successors of each node, packed.
#[derive(Default)]
pub(super) struct Edges {
    start: Vec<usize>,
    to: Vec<u32>,
}

impl Edges {
    /// Begins the next node.
    pub(super) fn node(&mut self) {
        self.start.push(self.to.len());
    }

    /// An edge from the node begun last.
    pub(super) fn push(&mut self, to: u32) {
        self.to.push(to);
    }

    fn len(&self) -> usize {
        self.start.len()
    }

    fn of(&self, node: usize) -> &[u32] {
        let end = self.start.get(node + 1).copied().unwrap_or(self.to.len());
        &self.to[self.start[node]..end]
    }
}

const NONE: u32 = u32::MAX;

/// Answers whether one node dominates another; node 0 is the root.
pub(super) struct Dominators {
    /// Per node: its place in a preorder of the dominator tree; `NONE` if the root does not lead there.
    place: Vec<u32>,
    /// Per node: nodes that it dominates, itself included.
    size: Vec<u32>,
}

impl Dominators {
    pub(super) fn new(edges: &Edges) -> Dominators {
        let nodes = edges.len();
        let (order, number, parent) = depth_first(edges);
        let n = order.len();
        // From here on nodes are their numbers in depth-first order.
        let mut preds = vec![Vec::new(); n];
        for (from, node) in order.iter().enumerate() {
            for to in edges.of(*node as usize) {
                preds[number[*to as usize] as usize].push(from as u32);
            }
        }
        let mut idom = parent.clone();
        let mut forest = Forest { ancestor: parent, label: (0..n as u32).collect(), semi: (0..n as u32).collect() };
        let mut path = Vec::new();
        for at in (1..n).rev() {
            let mut semi = forest.ancestor[at];
            for pred in &preds[at] {
                let label = forest.eval(*pred, at as u32 + 1, &mut path);
                semi = semi.min(forest.semi[label as usize]);
            }
            forest.semi[at] = semi;
        }
        for at in 1..n {
            while idom[at] > forest.semi[at] {
                idom[at] = idom[idom[at] as usize];
            }
        }
        let mut sizes = vec![1u32; n];
        for at in (1..n).rev() {
            sizes[idom[at] as usize] += sizes[at];
        }
        let (mut places, mut next) = (vec![0u32; n], vec![1u32; n]);
        for at in 1..n {
            let above = idom[at] as usize;
            places[at] = next[above];
            next[above] += sizes[at];
            next[at] = places[at] + 1;
        }
        let mut out = Dominators { place: vec![NONE; nodes], size: vec![0; nodes] };
        for (at, node) in order.iter().enumerate() {
            out.place[*node as usize] = places[at];
            out.size[*node as usize] = sizes[at];
        }
        out
    }

    /// Whether every way from the root to `b` leads through `a`. Both must be reachable.
    pub(super) fn dominates(&self, a: usize, b: usize) -> bool {
        let (a_place, b_place) = (self.place[a], self.place[b]);
        a_place != NONE && a_place <= b_place && b_place - a_place < self.size[a]
    }
}

/// Reachable nodes in depth-first preorder, the number of each node in it, and per number that of its parent.
fn depth_first(edges: &Edges) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let mut number = vec![NONE; edges.len()];
    let (mut order, mut parent) = (Vec::new(), Vec::new());
    let mut stack = vec![(0u32, 0u32)];
    while let Some((node, from)) = stack.pop() {
        if number[node as usize] != NONE {
            continue;
        }
        let at = order.len() as u32;
        number[node as usize] = at;
        order.push(node);
        parent.push(from);
        stack.extend(edges.of(node as usize).iter().rev().map(|to| (*to, at)));
    }
    (order, number, parent)
}

/// The tree of depth-first parents, with paths compressed as they are asked for.
struct Forest {
    ancestor: Vec<u32>,
    label: Vec<u32>,
    semi: Vec<u32>,
}

impl Forest {
    /// The label with the least `semi` on the path from `node` up to the nodes below `linked`.
    fn eval(&mut self, mut node: u32, linked: u32, path: &mut Vec<u32>) -> u32 {
        while self.ancestor[node as usize] >= linked {
            path.push(node);
            node = self.ancestor[node as usize];
        }
        let mut above = node;
        while let Some(at) = path.pop() {
            self.ancestor[at as usize] = self.ancestor[above as usize];
            let (mine, theirs) = (self.label[at as usize], self.label[above as usize]);
            if self.semi[theirs as usize] < self.semi[mine as usize] {
                self.label[at as usize] = theirs;
            }
            above = at;
        }
        self.label[above as usize]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    /// What dominates what, by removing each node in turn.
    fn slow(graph: &[Vec<u32>]) -> Vec<Vec<bool>> {
        let reach = |without: Option<usize>| {
            let mut seen = vec![false; graph.len()];
            let mut stack = vec![0usize];
            while let Some(at) = stack.pop() {
                if Some(at) != without && !std::mem::replace(&mut seen[at], true) {
                    stack.extend(graph[at].iter().map(|to| *to as usize));
                }
            }
            seen
        };
        let all = reach(None);
        (0..graph.len())
            .map(|a| {
                let rest = reach(Some(a));
                (0..graph.len()).map(|b| all[a] && all[b] && !rest[b]).collect()
            })
            .collect()
    }

    #[test]
    fn agrees_with_the_definition() {
        let mut seed = 1u64;
        let mut below = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for _ in 0..2000 {
            let n = 1 + below(14);
            let graph: Vec<Vec<u32>> = (0..n).map(|_| (0..below(4)).map(|_| below(n) as u32).collect()).collect();
            let mut edges = Edges::default();
            for targets in &graph {
                edges.node();
                targets.iter().for_each(|to| edges.push(*to));
            }
            let (fast, slow) = (Dominators::new(&edges), slow(&graph));
            for (a, row) in slow.iter().enumerate() {
                for (b, expected) in row.iter().enumerate() {
                    if fast.place[a] != NONE && fast.place[b] != NONE {
                        assert_eq!(fast.dominates(a, b), *expected, "{a} {b} {graph:?}");
                    }
                }
            }
        }
    }
}
