//! Every runtime function that generated code may call. Code generation declares its signature from this table, the
//! runtime supplies the address under the same name, and a test holds the two against each other and against
//! `stdlib/`.
//!
//! Conventions. The first argument, the fiber context, is not listed. A parameter or result is one machine word (`W`:
//! Int, Bool, ordinal, row, pointer, or the bits of a Float inside a container) or one Float register (`F`). A
//! nullable scalar is two: tag, then value. Pointers are borrowed unless the comment says "consumes"; results are
//! owned by the caller unless it says "borrowed". `traps`: the function may leave a pending trap in the context; its
//! results then mean nothing and hold nothing.

/// Class of a machine value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rep {
    W,
    F,
}

use Rep::{F, W};

#[derive(Clone, Copy, Debug)]
pub struct Symbol {
    pub name: &'static str,
    pub params: &'static [Rep],
    pub results: &'static [Rep],
    pub traps: bool,
}

/// The symbol called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Symbol> {
    SYMBOLS.iter().find(|s| s.name == name)
}

const fn sym(name: &'static str, params: &'static [Rep], results: &'static [Rep]) -> Symbol {
    Symbol { name, params, results, traps: true }
}

const fn pure(name: &'static str, params: &'static [Rep], results: &'static [Rep]) -> Symbol {
    Symbol { name, params, results, traps: false }
}

/// Part kinds of `text.concat` and `text.append`: each part is two words, kind and value.
pub const PART_TEXT: i64 = 0;
pub const PART_INT: i64 = 1;
/// The value word holds the bits.
pub const PART_FLOAT: i64 = 2;
pub const PART_BOOL: i64 = 3;

pub const SYMBOLS: &[Symbol] = &[
    // -- memory ------------------------------------------------------------------------------------------------
    // class index -> object of that class, count 1, all field words zero
    sym("rt.new", &[W], &[W]),
    // object one of whose references was just given up, leaving a count word of `layout::QUIET` or less; frees it and
    // what only it held, iteratively, or notes it as a possible part of a garbage cycle
    pure("rt.released", &[W], &[]),
    // the program's arguments as `multi Text`
    sym("rt.args", &[], &[W]),
    // actor addresses count atomically; null is allowed
    pure("rt.retain_actor", &[W], &[]),
    pure("rt.release_actor", &[W], &[]),
    // -- traps and scheduling ----------------------------------------------------------------------------------
    // code, text
    sym("trap.raise", &[W, W], &[]),
    // return address into the function at hand, its frame pointer: records the stack of a pending trap once, innermost
    // frame first
    pure("trap.site", &[W, W], &[]),
    // 1 when the pending trap may be caught, 0 for an unwind
    pure("trap.catchable", &[], &[W]),
    pure("trap.code", &[], &[W]),
    pure("trap.line", &[], &[W]),
    pure("trap.method", &[], &[W]),
    pure("trap.msg", &[], &[W]),
    // drops the pending trap; its stack stays readable through `trap_stack`
    pure("trap.clear", &[], &[]),
    // the slice is over: runs other fibers
    sym("sched.yield", &[], &[]),
    // raises trap 3
    sym("sched.overflow", &[], &[]),
    // -- text --------------------------------------------------------------------------------------------------
    // address of the parts, their number
    sym("text.concat", &[W, W], &[W]),
    // consumes the first text and appends to it, in place where it is the only reference
    sym("text.append", &[W, W, W], &[W]),
    pure("text.eq", &[W, W], &[W]),
    // -1, 0, 1
    pure("text.cmp", &[W, W], &[W]),
    pure("bool.to_text", &[W], &[W]),
    // -- containers --------------------------------------------------------------------------------------------
    // element type, capacity hint
    sym("multi.new", &[W, W], &[W]),
    // the element's words; consumes it
    sym("multi.push", &[W, W, W], &[]),
    // the element's words (the second is 0 for one-word elements)
    sym("multi.pop", &[W], &[W, W]),
    sym("multi.shift", &[W], &[W, W]),
    sym("multi.slice", &[W, W, W], &[W]),
    sym("multi.sort", &[W], &[]),
    pure("multi.reverse", &[W], &[]),
    // key type, value type
    sym("map.new", &[W, W], &[W]),
    // key -> address of the value's words, or 0; borrowed
    pure("map.find", &[W, W], &[W]),
    // key -> address of the value's words; a new entry retains the key and has zero words
    sym("map.slot", &[W, W], &[W]),
    pure("map.remove", &[W, W], &[W]),
    // i -> address of the i-th entry (`layout::ENTRY_KEY`); traps when out of range
    sym("map.entry", &[W, W], &[W]),
    // -- generic over types: type index, then the value's words -------------------------------------------------
    sym("json.encode", &[W, W, W], &[W]),
    // target type, text or null -> value or null
    sym("json.decode", &[W, W], &[W]),
    // type, left words, right words
    sym("assert_eq", &[W, W, W, W, W], &[]),
    pure("class_name", &[W], &[W]),
    // -- actors ------------------------------------------------------------------------------------------------
    // class index, state (consumed) -> address
    sym("actor.spawn", &[W, W], &[W]),
    // address, message (consumed)
    sym("actor.send", &[W, W], &[]),
    // address, message (consumed) -> the reply's words
    sym("actor.call", &[W, W], &[W, W]),
    // address, message (consumed), milliseconds -> tag, value
    sym("actor.call_dl", &[W, W, W], &[W, W]),
    // watched, observer, notice (consumed)
    sym("actor.monitor", &[W, W, W], &[]),
    // milliseconds, address, message (consumed)
    sym("actor.after", &[W, W, W], &[]),
    // -- tables: `abi::tables` says what the numbers mean -------------------------------------------------------
    // table, object of its class with the values -> id
    sym("table.insert", &[W, W], &[W]),
    // table, id, column -> the value's words
    sym("table.get", &[W, W, W], &[W, W]),
    // table, id, column, the value's words
    sym("table.set", &[W, W, W, W, W], &[]),
    // table, id, column, operation, its right operand
    sym("table.update", &[W, W, W, W, W], &[]),
    // table, id -> 0
    sym("table.delete", &[W, W], &[W]),
    // table, index whose first column refers to the row, id -> `multi` of the rows; their number
    sym("table.backlink", &[W, W, W], &[W]),
    sym("table.backlink_len", &[W, W, W], &[W]),
    // query, object of its operands or null -> object of its result; number of rows
    sym("query.run", &[W, W], &[W]),
    sym("query.count", &[W, W], &[W]),
    // query, object of computed keys (`multi Int` of positions, then a `multi` per key), rows to skip, rows to take or
    // -1 -> the positions in order
    sym("query.order", &[W, W, W, W], &[W]),
    // -- builtins that stdlib/ declares under the same name -----------------------------------------------------
    sym("print", &[W], &[]),
    sym("print_err", &[W], &[]),
    sym("print_int", &[W], &[]),
    pure("now", &[], &[W]),
    sym("byte_at", &[W, W], &[W]),
    sym("substr", &[W, W, W], &[W]),
    pure("index_of", &[W, W], &[W]),
    pure("last_index_of", &[W, W], &[W]),
    pure("starts_with", &[W, W], &[W]),
    pure("ends_with", &[W, W], &[W]),
    sym("trim", &[W], &[W]),
    sym("to_lower", &[W], &[W]),
    sym("char_of", &[W], &[W]),
    pure("words", &[W], &[W]),
    sym("split", &[W, W], &[W]),
    sym("split_ws", &[W], &[W]),
    sym("join", &[W, W], &[W]),
    sym("int_to_text", &[W], &[W]),
    pure("utf8_check", &[W], &[W]),
    pure("parse_int", &[W], &[W, W]),
    pure("float", &[W], &[F]),
    sym("trunc", &[F], &[W]),
    pure("parse_float", &[W], &[F]),
    sym("float_to_text", &[F], &[W]),
    pure("float_cmp", &[F, F], &[W]),
    pure("sqrt", &[F], &[F]),
    sym("bytes_of_text", &[W], &[W]),
    sym("text_of_bytes", &[W], &[W]),
    pure("bytes_len", &[W], &[W]),
    sym("bytes_at", &[W, W], &[W]),
    sym("bytes_slice", &[W, W, W], &[W]),
    pure("bytes_eq", &[W, W], &[W]),
    sym("bytes_concat", &[W, W], &[W]),
    sym("base64_encode", &[W], &[W]),
    // null: not base64
    sym("base64_decode", &[W], &[W]),
    sym("sha1", &[W], &[W]),
    sym("sha256", &[W], &[W]),
    sym("hmac_sha256", &[W, W], &[W]),
    sym("random_bytes", &[W], &[W]),
    sym("crc32", &[W], &[W]),
    sym("crc32_update", &[W, W], &[W]),
    sym("trap_stack", &[], &[W]),
    pure("time.now", &[], &[W]),
    pure("time.ticks", &[], &[W]),
    sym("time.boot_id", &[], &[W]),
    sym("time.sleep", &[W], &[]),
    sym("time.iso", &[W], &[W]),
    // -> class index of TimeParts comes first; the object is built by the runtime from its shape
    sym("time.local", &[W, W], &[W]),
    sym("time.utc", &[W, W], &[W]),
    sym("env.get", &[W], &[W]),
    sym("env.stopping", &[], &[W]),
    sym("env.stat", &[W], &[W, W]),
    sym("fs.exists", &[W], &[W]),
    sym("fs.list", &[W], &[W]),
    // class index of Stat, path -> object or null
    sym("fs.stat", &[W, W], &[W]),
    sym("fs.read_all", &[W, W], &[W]),
    sym("fs.read_at", &[W, W, W], &[W]),
    sym("fs.append", &[W, W], &[]),
    sym("net.listen", &[W, W], &[W]),
    sym("net.port", &[W], &[W]),
    sym("net.accept", &[W], &[W]),
    sym("net.accept_dl", &[W, W], &[W, W]),
    sym("net.read", &[W, W], &[W]),
    // null: deadline or stop
    sym("net.read_dl", &[W, W, W], &[W]),
    sym("net.write", &[W, W], &[]),
    sym("net.write_dl", &[W, W, W], &[W]),
    pure("net.close", &[W], &[]),
    pure("net.shut", &[W, W], &[]),
    sym("net.peer", &[W], &[W]),
    sym("net.connect", &[W, W], &[W]),
    sym("net.listen_unix", &[W], &[W]),
    sym("net.connect_unix", &[W], &[W]),
    sym("net.send_fd", &[W, W], &[W]),
    sym("net.recv_fd", &[W], &[W, W]),
    // class index of Proc, command, arguments -> object
    sym("proc.run", &[W, W, W], &[W]),
    // the same, then milliseconds and the caps of both outputs
    sym("proc.run_dl", &[W, W, W, W, W, W], &[W]),
    // class index of Child, command, arguments -> object
    sym("proc.spawn", &[W, W, W], &[W]),
    // the same, then columns and rows
    sym("proc.spawn_pty", &[W, W, W, W, W], &[W]),
    sym("proc.wait_dl", &[W, W], &[W, W]),
    sym("proc.signal", &[W, W], &[]),
    sym("proc.resize", &[W, W, W], &[]),
];
