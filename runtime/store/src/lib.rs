//! The table store: rows of typed columns by value, ordered indexes, ids, and the statements over them. It knows
//! nothing of fibers, of objects or of code: values come and go as words and bytes.
//!
//! A statement takes the locks of all tables that it touches, in ascending order, and gives them back before it
//! returns; that makes all statements one total order. It checks everything before it changes anything, so a refused
//! one leaves no trace.
#![deny(unsafe_code)]

mod bytes;
mod compact;
pub mod disk;
mod hash;
pub mod inspect;
mod jobs;
mod key;
mod lock;
pub mod log;
mod memory;
mod order;
mod query;
mod record;
mod recovery;
mod rows;
pub mod schema;
mod store;
mod table;
mod value;
mod worker;

pub use compact::Compaction;
pub use order::{Sorter, put_key};
pub use query::{Operands, Sink};
pub use recovery::{OpenError, Opened, Settings, check_volatile};
pub use store::{Refusal, Seq, Stats, Store, UpdateError};
pub use value::{Cell, Value};

/// Most bytes that a row may take encoded.
pub const MAX_ROW: usize = 64 << 20;
