//! Queries, as the compiler would describe them.

use abi::tables::{Access, Ordering, Path, PathEnd, QueryDesc};

/// The value of a column of the row at hand.
pub fn column(column: u32) -> Path {
    Path { steps: Vec::new(), end: PathEnd::Column(column) }
}

/// The ids of all rows of a table that an access finds; no path leads to other tables.
pub fn query(table: u32, access: Access, ordering: Ordering) -> QueryDesc {
    QueryDesc {
        table,
        access,
        conditions: Vec::new(),
        order: Vec::new(),
        ordering,
        outputs: Vec::new(),
        tables: vec![table],
        operands: None,
        source: None,
        skip: None,
        take: None,
        result: 0,
        ids: true,
        computed: Vec::new(),
    }
}
