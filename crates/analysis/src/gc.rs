//! Which classes are traced by structure (language specification 7.2, step 1), and `woc dump gc`. The demand part of
//! 7.2, classes traced because borrowed places of them escape, is found by the ownership pass.

use crate::env::STDLIB_FILE;
use crate::graph;
use crate::hir::{ClassId, Program};
use crate::types::{Ty, TyKind};
use std::collections::VecDeque;
use std::fmt::Write;

/// For each class of the program, whether it lies on a cycle of fields.
#[must_use]
pub fn traced_by_structure(program: &Program) -> Vec<bool> {
    let edges = edges(program);
    let components = graph::components(&edges);
    let mut sizes = vec![0_usize; program.classes.len()];
    for component in &components {
        if let Some(size) = sizes.get_mut(*component) {
            *size += 1;
        }
    }
    components
        .iter()
        .zip(&edges)
        .enumerate()
        .map(|(i, (component, out))| sizes.get(*component).is_some_and(|s| *s > 1) || out.contains(&i))
        .collect()
}

/// One line per class and record of the program, sorted by name: traced with a shortest cycle, traced by demand, or
/// owned.
#[must_use]
pub fn dump_gc(program: &Program) -> String {
    let edges = cyclic_edges(program);
    let name = |i: usize| program.classes.get(i).map_or("", |c| c.name.as_str());
    let is_demanded = |i: usize| matches!(program.ownership.traced.get(i), Some(Some(_)));
    let declared = program.classes.iter().enumerate().filter(|(_, c)| c.span.file != STDLIB_FILE);
    let mut lines: Vec<(&str, usize)> = declared.map(|(i, c)| (c.name.as_str(), i)).collect();
    lines.extend(program.aliases.iter().map(|(alias, class)| (alias.as_str(), class.0 as usize)));
    lines.sort_unstable();
    let mut out = String::new();
    for (shown, class) in lines {
        let _ = match cycle(&edges, class) {
            Some(path) => {
                let path = path.into_iter().map(|i| if i == class { shown } else { name(i) }).collect::<Vec<_>>();
                writeln!(out, "{shown:<10} gc     (cycle {})", path.join(" -> "))
            }
            None if is_demanded(class) => writeln!(out, "{shown:<10} gc     (alias escape (demand))"),
            None => writeln!(out, "{shown:<10} owned"),
        };
    }
    out
}

/// The names along a shortest cycle through `class`, both ends included; empty if it lies on none.
pub(crate) fn shortest_cycle(program: &Program, class: ClassId) -> Vec<String> {
    let name = |i: usize| program.classes.get(i).map_or_else(String::new, |c| c.name.to_string());
    cycle(&cyclic_edges(program), class.0 as usize).unwrap_or_default().into_iter().map(name).collect()
}

/// Edges inside components only, those that can be part of a cycle; sorted by the names of their targets.
fn cyclic_edges(program: &Program) -> Vec<Vec<usize>> {
    let mut edges = edges(program);
    let components = graph::components(&edges);
    for (i, out) in edges.iter_mut().enumerate() {
        out.retain(|to| components.get(*to) == components.get(i));
        out.sort_by_key(|to| program.classes.get(*to).map_or("", |c| c.name.as_str()));
    }
    edges
}

fn edges(program: &Program) -> Vec<Vec<usize>> {
    program
        .classes
        .iter()
        .map(|class| {
            let mut out = Vec::new();
            for field in &class.fields {
                held(program, field.ty, &mut out);
            }
            out.sort_unstable();
            out.dedup();
            out
        })
        .collect()
}

/// Classes whose objects a value of this type holds itself.
fn held(program: &Program, ty: Ty, out: &mut Vec<usize>) {
    match program.types.kind(ty) {
        TyKind::Class(ClassId(class)) => out.push(class as usize),
        TyKind::Nullable(inner) | TyKind::Multi(inner) | TyKind::Maybe { inner, .. } => held(program, inner, out),
        TyKind::Map(key, value) => {
            held(program, key, out);
            held(program, value, out);
        }
        _ => {}
    }
}

/// A shortest way from `start` back to itself, both ends included; the first by names where there are several.
/// Successors are sorted by name, so a breadth-first search meets paths in that order.
fn cycle(edges: &[Vec<usize>], start: usize) -> Option<Vec<usize>> {
    let mut from: Vec<Option<usize>> = vec![None; edges.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for next in edges.get(node).into_iter().flatten() {
            if *next == start {
                let mut path = vec![start, node];
                let mut at = node;
                while at != start {
                    at = from.get(at).copied().flatten()?;
                    path.push(at);
                }
                path.reverse();
                return Some(path);
            }
            if let Some(slot) = from.get_mut(*next)
                && slot.is_none()
            {
                *slot = Some(node);
                queue.push_back(*next);
            }
        }
    }
    None
}
