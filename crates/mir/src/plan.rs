//! The access path of a query (tables specification 5.3), chosen from its conditions, its order and the declared
//! indexes alone.

use crate::shapes::count;
use abi::tables::{Access, ColumnKind, CompareOp, Condition, IndexDesc, Ordering, Path, PathEnd, QueryDesc, TableDesc};

/// Chooses the access and says which conditions it guarantees. `order` has `desc` with each key; `None`: not all keys
/// are values that the store can read. `take`: only the first rows are wanted.
pub fn choose(
    desc: &TableDesc,
    conditions: &mut [Condition],
    order: Option<&[(Path, bool)]>,
    take: bool,
) -> (Access, Ordering) {
    let order = order.unwrap_or_default();
    let sort = unordered(order, take);
    let unique = |c: &Condition| {
        let column = column(desc, c).filter(|_| c.op == CompareOp::Eq)?;
        desc.indexes.iter().position(|index| index.unique && index.columns == [column])
    };
    if let Some((at, index)) = conditions.iter().enumerate().find_map(|(at, c)| Some((at, unique(c)?))) {
        if let Some(condition) = conditions.get_mut(at) {
            condition.binds = true;
        }
        let nullable = desc.indexes.get(index).and_then(|i| desc.columns.get(*i.columns.first()? as usize));
        // A key finds one row; nil may find several.
        let ordering = if nullable.is_some_and(|c| c.nullable) { sort } else { Ordering::None };
        return (Access::Index { index: count(index), equal: 1, range: false }, ordering);
    }
    let mut best: Option<((usize, bool, bool), usize)> = None;
    for (number, index) in desc.indexes.iter().enumerate() {
        let rank = rank(desc, index, conditions, order);
        if (rank.0 > 0 || rank.1) && best.is_none_or(|(other, _)| rank > other) {
            best = Some((rank, number));
        }
    }
    let Some(((equal, range, yields), number)) = best else {
        let walk = desc.indexes.iter().position(|index| direction(index, 0, order).is_some());
        return match walk {
            Some(index) => {
                let desc = desc.indexes.get(index).and_then(|i| direction(i, 0, order)).unwrap_or(false);
                (Access::Walk { index: count(index) }, Ordering::Index { desc })
            }
            None => (Access::Scan, sort),
        };
    };
    let columns = desc.indexes.get(number).map_or(&[][..], |index| &index.columns);
    for bound in columns.iter().take(equal) {
        let binding = |c: &&mut Condition| c.op == CompareOp::Eq && column(desc, c) == Some(*bound);
        if let Some(condition) = conditions.iter_mut().find(binding) {
            condition.binds = true;
        }
    }
    if let Some(bound) = columns.get(equal).filter(|_| range) {
        for condition in conditions.iter_mut().filter(|c| is_range(c.op) && column(desc, c) == Some(*bound)) {
            condition.binds = true;
        }
    }
    let direction = desc.indexes.get(number).and_then(|index| direction(index, equal, order));
    let ordering = match direction {
        Some(desc) if yields => Ordering::Index { desc },
        _ => sort,
    };
    (Access::Index { index: count(number), equal: count(equal), range }, ordering)
}

/// The index for a backlink by its first column `column`, and the order.
pub fn backlink(desc: &TableDesc, column: u32, order: Option<&[(Path, bool)]>, take: bool) -> (Access, Ordering) {
    let order = order.unwrap_or_default();
    let fits = |index: &&IndexDesc| index.columns.first() == Some(&column);
    let yielding = desc.indexes.iter().position(|index| fits(&index) && direction(index, 1, order).is_some());
    if let Some(number) = yielding {
        let desc = desc.indexes.get(number).and_then(|index| direction(index, 1, order)).unwrap_or(false);
        return (Access::Backlink { index: count(number) }, Ordering::Index { desc });
    }
    let number = desc.indexes.iter().position(|index| fits(&index)).map_or(0, count);
    (Access::Backlink { index: number }, unordered(order, take))
}

/// Where the order comes from if the access does not yield it.
pub fn unordered(order: &[(Path, bool)], take: bool) -> Ordering {
    match (order.is_empty(), take) {
        (true, _) => Ordering::None,
        (false, true) => Ordering::Heap,
        (false, false) => Ordering::Sort,
    }
}

/// `CLASS PATH COLUMNS[, filter][, ORDER]`; `rest`: there are conditions that the store does not know of.
pub fn describe(table: &TableDesc, query: &QueryDesc, rest: bool, take: bool) -> String {
    let columns = |index: u32, n: usize| -> String {
        let columns = table.indexes.get(index as usize).map_or(&[][..], |index| &index.columns);
        let names = columns.iter().take(n).filter_map(|c| table.columns.get(*c as usize));
        names.map(|c| format!(" {}", c.name)).collect()
    };
    let mut out = format!("{} ", table.name);
    out.push_str(&match query.access {
        Access::Scan => "scan".to_owned(),
        Access::List => "list".to_owned(),
        Access::Backlink { index } => format!("equal{}", columns(index, 1)),
        Access::Index { index, equal, range } => {
            let unique = table.indexes.get(index as usize).is_some_and(|index| index.unique);
            let path = if range {
                "range"
            } else if unique {
                "unique"
            } else {
                "equal"
            };
            format!("{path}{}", columns(index, equal as usize + usize::from(range)))
        }
        Access::Walk { index } => format!("walk{}", columns(index, usize::MAX)),
    });
    if rest || query.conditions.iter().any(|c| !c.binds) {
        out.push_str(", filter");
    }
    out.push_str(match query.ordering {
        Ordering::Index { .. } => ", index",
        Ordering::Heap => ", heap",
        Ordering::Sort => ", sort",
        Ordering::None if query.computed.is_empty() => "",
        Ordering::None if take => ", heap",
        Ordering::None => ", sort",
    });
    out
}

/// Leading columns bound by `==`, whether the next one has a range, whether the order is yielded: the more the better.
fn rank(desc: &TableDesc, index: &IndexDesc, conditions: &[Condition], order: &[(Path, bool)]) -> (usize, bool, bool) {
    let bound =
        |c: &u32, ops: fn(CompareOp) -> bool| conditions.iter().any(|x| ops(x.op) && column(desc, x) == Some(*c));
    let equal = index.columns.iter().take_while(|c| bound(c, |op| op == CompareOp::Eq)).count();
    let range = index.columns.get(equal).is_some_and(|c| bound(c, is_range));
    (equal, range, direction(index, equal, order).is_some())
}

/// `desc` of an order whose keys are exactly the columns of the index from `from` on, all in one direction.
fn direction(index: &IndexDesc, from: usize, order: &[(Path, bool)]) -> Option<bool> {
    let (_, desc) = order.first()?;
    let columns = index.columns.get(from..)?;
    let fits = columns.len() == order.len()
        && columns
            .iter()
            .zip(order)
            .all(|(column, (path, d))| d == desc && path.steps.is_empty() && path.end == PathEnd::Column(*column));
    fits.then_some(*desc)
}

/// The column of the row itself that a condition is on, if it can be a key.
fn column(desc: &TableDesc, condition: &Condition) -> Option<u32> {
    match condition.path.end {
        PathEnd::Column(column) if condition.path.steps.is_empty() => {
            let kind = desc.columns.get(column as usize)?.kind;
            (kind != ColumnKind::Value).then_some(column)
        }
        _ => None,
    }
}

fn is_range(op: CompareOp) -> bool {
    matches!(op, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge)
}
