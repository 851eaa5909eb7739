//! Tables and queries as plain data: what the compiler knows of them and the store works by. Columns are numbered as
//! the stored fields of the class are (`desc::ClassDesc::fields`), tables by `desc::Shapes::tables`.

use crate::desc::ClassIdx;
use serde::{Deserialize, Serialize};

/// Index into `Shapes::tables`.
pub type TableIdx = u32;
/// Index into `Shapes::queries`.
pub type QueryIdx = u32;

/// Most tables of a program, and most columns and indexes of a table, the indexes of `@unique` and `ref` columns
/// among them.
pub const MAX_TABLES: usize = 65_535;
pub const MAX_COLUMNS: usize = 1024;
pub const MAX_INDEXES: usize = 64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableDesc {
    /// The class whose values the rows are.
    pub class: ClassIdx,
    /// Name of the class.
    pub name: String,
    /// `name:` of `@table`, else the name of the class.
    pub label: String,
    pub durable: bool,
    /// In a module of the program or in one that is reachable from there; other tables are those of library modules
    /// that nothing uses.
    pub declared: bool,
    pub columns: Vec<ColumnDesc>,
    /// Those of `index:` in order, then those of `@unique`, then those of `ref` columns that no other one starts with.
    pub indexes: Vec<IndexDesc>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ColumnKind {
    /// Int, Bool, the ordinal of a bare union, a row id.
    Int,
    Float,
    /// Text and Bytes.
    Bytes,
    /// Anything else, by value, as encoded bytes; never a key.
    Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ColumnDesc {
    pub name: String,
    pub kind: ColumnKind,
    pub nullable: bool,
    /// The table whose rows a `ref` column names.
    pub refers: Option<TableIdx>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDesc {
    pub columns: Vec<u32>,
    /// Of one column, no two of whose values other than nil are equal.
    pub unique: bool,
}

/// A query as far as the store evaluates it: rows that fulfil all conditions, in order, with the values of some paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueryDesc {
    pub table: TableIdx,
    pub access: Access,
    /// Also those that the access guarantees.
    pub conditions: Vec<Condition>,
    /// With `desc`; empty: ascending id, or the order of the list.
    pub order: Vec<(Path, bool)>,
    pub ordering: Ordering,
    /// What is read of each row of the result.
    pub outputs: Vec<Path>,
    /// The tables it reads, ascending, each once.
    pub tables: Vec<TableIdx>,
    /// The class of the operands' object; `None` if there are no operands.
    pub operands: Option<ClassIdx>,
    /// Fields of the operands' object: the list or the row whose backlink is the source, `skip`, `take`.
    pub source: Option<u32>,
    pub skip: Option<u32>,
    pub take: Option<u32>,
    /// The class of the result's object: the `multi` of ids first if `ids`, then one per output. If there is one `multi`
    /// only, it is the result and there is no object.
    pub result: ClassIdx,
    pub ids: bool,
    /// For keys that the program computes: `desc` of each.
    pub computed: Vec<bool>,
}

/// How the candidates are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Access {
    /// All rows.
    Scan,
    /// The list of rows at hand.
    List,
    /// The rows whose column, the first of this index, refers to the row at hand, which must exist.
    Backlink { index: u32 },
    /// `equal` leading columns of the index are bound by `==`; `range`: the next one by comparisons. Which conditions
    /// bind them, `Condition::binds` says.
    Index { index: u32, equal: u32, range: bool },
    /// All rows in the order of the index.
    Walk { index: u32 },
}

/// Where the order comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ordering {
    /// No order is asked for.
    None,
    /// The access yields it, backwards if `desc`.
    Index {
        desc: bool,
    },
    /// The first `skip + take` rows are kept while reading.
    Heap,
    Sort,
}

/// `path op operand`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub path: Path,
    pub op: CompareOp,
    /// Field of the operands' object; `None`: nil.
    pub operand: Option<u32>,
    /// The access takes care of it.
    pub binds: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// A value that is reached from a row: along `ref` columns, which never are nil, to a column or a backlink.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Path {
    /// `ref` columns, each of the table that the one before leads to.
    pub steps: Vec<u32>,
    pub end: PathEnd,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PathEnd {
    /// The row's id.
    Id,
    Column(u32),
    /// How many rows of `table` refer to the row by the first column of `index`.
    Referrers {
        table: TableIdx,
        index: u32,
    },
}

/// Operations of compound assignment, by their number in `table.update`.
pub const UPDATE_ADD: i64 = 0;
pub const UPDATE_SUB: i64 = 1;
pub const UPDATE_MUL: i64 = 2;
pub const UPDATE_DIV: i64 = 3;
pub const UPDATE_REM: i64 = 4;
/// Words are the bits of Floats.
pub const UPDATE_FLOAT_ADD: i64 = 5;
pub const UPDATE_FLOAT_SUB: i64 = 6;
pub const UPDATE_FLOAT_MUL: i64 = 7;
pub const UPDATE_FLOAT_DIV: i64 = 8;
