//! Which classes and containers can be on a cycle: the graph of what can refer to what, and its strongly connected
//! components. An object is on a cycle of objects only if its class or container type is on a cycle of this graph.

use abi::desc::{Shapes, TypeDesc};

/// Per class and per type of the image, whether its objects can be on a cycle.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Cyclic {
    pub classes: Vec<bool>,
    /// For container types the containers themselves; for other types of no use.
    pub types: Vec<bool>,
}

/// Vertices are the types, then the classes. An edge leads from a class to the types of its fields, from a container or
/// nullable type to what it contains, and from an object, union or interface type to the classes its values can have.
struct Graph<'s> {
    shapes: &'s Shapes,
    types: usize,
}

impl Graph<'_> {
    /// The `i`-th vertex that `vertex` leads to.
    fn edge(&self, vertex: usize, i: usize) -> Option<usize> {
        let class = |c: u32| self.types + c as usize;
        if vertex >= self.types {
            let fields = &self.shapes.classes.get(vertex - self.types)?.fields;
            return fields.get(i).map(|f| f.ty as usize);
        }
        match (self.shapes.types.get(vertex)?, i) {
            (TypeDesc::Multi(inner) | TypeDesc::Nullable(inner) | TypeDesc::Map(inner, _), 0) => Some(*inner as usize),
            (TypeDesc::Map(_, value), 1) => Some(*value as usize),
            (TypeDesc::Object(c), 0) => Some(class(*c)),
            (TypeDesc::Union(u), _) => self.shapes.unions.get(*u as usize)?.classes.get(i).map(|&c| class(c)),
            (TypeDesc::Interface, _) => (i < self.shapes.classes.len()).then_some(self.types + i),
            _ => None,
        }
    }
}

#[allow(clippy::indexing_slicing, reason = "every vertex is below `n`, the length of all these lists")]
/// Finds the vertices on cycles (Tarjan's algorithm, with its stack as data: programs choose the depth).
pub(crate) fn cyclic(shapes: &Shapes) -> Cyclic {
    const UNSEEN: usize = usize::MAX;
    let graph = Graph { shapes, types: shapes.types.len() };
    let n = graph.types + shapes.classes.len();
    let mut order = vec![UNSEEN; n];
    let mut low = vec![UNSEEN; n];
    let mut open = vec![false; n];
    let mut on_cycle = vec![false; n];
    let (mut component, mut path, mut next) = (Vec::new(), Vec::new(), 0);
    for start in 0..n {
        if order[start] == UNSEEN {
            path.push((start, 0));
        }
        while let Some((v, i)) = path.last_mut() {
            let (v, edge) = (*v, *i);
            if edge == 0 && order[v] == UNSEEN {
                (order[v], low[v], open[v]) = (next, next, true);
                next += 1;
                component.push(v);
            }
            *i += 1;
            match graph.edge(v, edge) {
                Some(to) if to >= n => {}
                Some(to) if order[to] == UNSEEN => path.push((to, 0)),
                Some(to) => {
                    if open[to] {
                        low[v] = low[v].min(order[to]);
                    }
                }
                None => {
                    let _ = path.pop();
                    if let Some(&(parent, _)) = path.last() {
                        low[parent] = low[parent].min(low[v]);
                    }
                    if low[v] == order[v] {
                        // Between two classes lies a type, so a cycle has at least two vertices.
                        let alone = component.last() == Some(&v);
                        while let Some(member) = component.pop() {
                            open[member] = false;
                            on_cycle[member] = !alone;
                            if member == v {
                                break;
                            }
                        }
                    }
                }
            }
        }
    }
    let classes = on_cycle.split_off(graph.types);
    Cyclic { classes, types: on_cycle }
}
