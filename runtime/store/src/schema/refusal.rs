//! Why a program may not have a store: changes of the schema that would lose or invent values.

use std::fmt;

/// Classes and columns by name, kinds as a program writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The program has no such table.
    Gone {
        class: String,
        rows: u64,
    },
    /// The program's table is `durable: false`.
    Volatile {
        class: String,
        rows: u64,
    },
    Kind {
        class: String,
        column: String,
        old: String,
        new: String,
    },
    /// A variant of a union in the column is gone.
    Variant {
        class: String,
        column: String,
        union: String,
        variant: String,
    },
    /// A record, class or variant in the column has other fields.
    Fields {
        class: String,
        column: String,
        of: String,
    },
    Renamed {
        class: String,
        dropped: String,
        added: String,
        kind: String,
    },
    /// A new column has no value for the rows that there are.
    NoFill {
        class: String,
        column: String,
        kind: String,
        rows: u64,
        /// Its kind is a union, for which no default can be declared.
        is_union: bool,
    },
    /// A column that may not be nil any longer is.
    Nil {
        class: String,
        column: String,
        kind: String,
    },
    NotUnique {
        class: String,
        column: String,
        value: String,
    },
    /// The default of a new column names no row.
    NoTarget {
        class: String,
        column: String,
        kind: String,
        value: String,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Gone { class, rows } => write!(
                f,
                "the store holds {} of `{class}`, which is no table of this program; declare the class again, or delete \
                 its rows with a program that has it",
                Rows(*rows)
            ),
            Refusal::Volatile { class, rows } => write!(
                f,
                "the store holds {} of `{class}`, which is `durable: false` now; declare it durable again, or delete its \
                 rows before",
                Rows(*rows)
            ),
            Refusal::Kind { class, column, old, new } => write!(
                f,
                "`{class}.{column}` is `{old}` in the store and `{new}` in this program; a column with values keeps its \
                 kind: add a column of another name, fill it from this one, then remove this one"
            ),
            Refusal::Variant { class, column, union, variant } => write!(
                f,
                "`{class}.{column}` may hold `{variant}` in the store, a variant that `{union}` lacks in this program; \
                 declare the variant again, or put the values into a new column first"
            ),
            Refusal::Fields { class, column, of } => write!(
                f,
                "`{class}.{column}` holds `{of}` in the store, whose fields are others in this program; restore the fields, \
                 or put the values into a new column first"
            ),
            Refusal::Renamed { class, dropped, added, kind } => write!(
                f,
                "`{class}` has lost the column `{dropped}` and gained `{added}` of the same kind, `{kind}`, which looks \
                 like a new name; values are moved in two steps: a program with both columns that copies them, then one \
                 without `{dropped}`"
            ),
            Refusal::NoFill { class, column, kind, rows, is_union } => write!(
                f,
                "`{class}.{column}` is a new column of kind `{kind}` without a default, and the store holds {} without a \
                 value in it; {}declare it as `?{kind}`",
                Rows(*rows),
                if *is_union { "" } else { "give it a default, or " }
            ),
            Refusal::Nil { class, column, kind } => write!(
                f,
                "`{class}.{column}` is `?{kind}` in the store and `{kind}` in this program, but nil in some row; give those \
                 rows a value first"
            ),
            Refusal::NotUnique { class, column, value } => write!(
                f,
                "`{class}.{column}` is `@unique` now, but several rows in the store have {value} there; make the values \
                 different first"
            ),
            Refusal::NoTarget { class, column, kind, value } => write!(
                f,
                "`{class}.{column}` is a new column of kind `{kind}` whose default, {value}, names no row; insert the row \
                 first, or declare the column as nullable"
            ),
        }
    }
}

/// `1 row`, `2 rows`.
struct Rows(u64);

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} row{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}
