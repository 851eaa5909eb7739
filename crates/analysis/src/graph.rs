//! Strongly connected components, without recursion: programs decide how deep a graph is.

/// A component number for each node; two nodes have the same one exactly if each reaches the other (or they are one
/// node). `edges[n]` are the successors of `n`.
pub(crate) fn components(edges: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    #[derive(Clone, Copy)]
    struct Node {
        index: usize,
        low: usize,
        component: usize,
    }
    let mut nodes = vec![Node { index: NONE, low: NONE, component: NONE }; edges.len()];
    let mut stack = Vec::new();
    let mut counter = 0;
    let mut done = 0;
    for root in 0..edges.len() {
        if nodes.get(root).is_none_or(|n| n.index != NONE) {
            continue;
        }
        // Node and how many of its edges have been followed.
        let mut work = vec![(root, 0_usize)];
        while let Some((node, next)) = work.pop() {
            if next == 0
                && let Some(n) = nodes.get_mut(node)
            {
                *n = Node { index: counter, low: counter, component: NONE };
                counter += 1;
                stack.push(node);
            }
            if let Some(target) = edges.get(node).and_then(|e| e.get(next)).copied() {
                work.push((node, next + 1));
                match nodes.get(target).copied() {
                    Some(t) if t.index == NONE => work.push((target, 0)),
                    Some(t) if t.component == NONE => lower(&mut nodes, node, |n| &mut n.low, t.index),
                    _ => {}
                }
                continue;
            }
            let Some(finished) = nodes.get(node).copied() else { continue };
            if finished.low == finished.index {
                while let Some(member) = stack.pop() {
                    if let Some(n) = nodes.get_mut(member) {
                        n.component = done;
                    }
                    if member == node {
                        break;
                    }
                }
                done += 1;
            }
            if let Some((parent, _)) = work.last() {
                lower(&mut nodes, *parent, |n| &mut n.low, finished.low);
            }
        }
    }
    fn lower<T>(nodes: &mut [T], at: usize, field: fn(&mut T) -> &mut usize, value: usize) {
        if let Some(node) = nodes.get_mut(at) {
            let slot = field(node);
            *slot = (*slot).min(value);
        }
    }
    nodes.iter().map(|n| n.component).collect()
}

#[cfg(test)]
mod tests {
    use super::components;

    #[test]
    fn groups_cycles_and_nothing_else() {
        let found = components(&[vec![1], vec![2], vec![0, 3], vec![4], vec![]]);
        assert_eq!(found.first(), found.get(2));
        assert_eq!(found.first(), found.get(1));
        assert_ne!(found.first(), found.get(3));
        assert_ne!(found.get(3), found.get(4));
    }

    #[test]
    fn follows_a_cross_edge_without_joining() {
        let found = components(&[vec![1, 2], vec![3], vec![1, 3], vec![]]);
        let mut sorted = found.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 4);
    }

    #[test]
    fn deep_chains_need_no_stack() {
        let n = 200_000;
        let edges: Vec<Vec<usize>> = (0..n).map(|i| vec![(i + 1) % n]).collect();
        assert!(components(&edges).iter().all(|c| *c == 0));
    }
}
