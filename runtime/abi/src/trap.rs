//! Trap numbers and the exact texts that generated code itself raises. The full table is section 13 of the language
//! specification; texts of single builtins live beside them.

pub const DIV0: i64 = 1;
pub const STACK: i64 = 3;
pub const OOM: i64 = 4;
pub const DB: i64 = 5;
pub const BOUNDS: i64 = 6;
pub const KEY: i64 = 7;
pub const EXPLICIT: i64 = 8;
pub const IO: i64 = 9;
pub const UNIQUE: i64 = 10;
pub const FK: i64 = 11;
pub const SHIFT: i64 = 12;
pub const ACTOR: i64 = 13;
/// Not a trap: the fiber is being unwound by a stop or by the end of the program; no `catch` sees it.
pub const UNWIND: i64 = 1 << 32;

pub const DIVISION_BY_ZERO: &str = "division by zero";
pub const MIN_BY_MINUS_ONE: &str = "INT64_MIN / -1 overflows";
pub const STACK_OVERFLOW: &str = "stack overflow";
pub const OUT_OF_MEMORY: &str = "out of memory";
pub const NULL_RECEIVER: &str = "null receiver";
pub const NULL_TEXT: &str = "null text";
pub const MULTI_INDEX: &str = "multi index out of range";
pub const MAP_SLOT: &str = "map slot out of range";
pub const BYTE_INDEX: &str = "byte index out of range";
pub const MISSING_KEY: &str = "missing map key";
pub const SHIFT_COUNT: &str = "shift count out of range 0..63";
pub const NO_ROW: &str = "no such row";
pub const ROW_TOO_LARGE: &str = "row too large";
pub const OUT_OF_TABLE_MEMORY: &str = "out of memory growing a table";
pub const UNIQUE_VIOLATION: &str = "unique index violation";
pub const NO_REFERENCED_ROW: &str = "referenced row does not exist";
pub const STILL_REFERENCED: &str = "row is still referenced (restrict)";
