//! Names that newcomers bring from other languages, and what they are called here. Only looked up for names that are
//! not declared: each answer is the help of a report.

/// An unknown name where a value is needed.
pub(crate) fn value(name: &str) -> Option<&'static str> {
    Some(match name {
        "null" | "None" | "NULL" | "undefined" | "nullptr" | "Nil" | "nothing" => "the absent value is `nil`",
        "this" | "Self" => "in a method its object is `self`",
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        "_" => "the arm for everything else is `default:`",
        "pass" | "noop" => "an empty block is `{}`; leave it out",
        "fallthrough" => "an arm never goes on to the next one; give one arm several values: `case 1, 2:`",
        "NaN" | "nan" => "write `parse_float(\"nan\")`",
        "Infinity" | "inf" => "write `parse_float(\"inf\")`",
        "throw" | "raise" => "failing on purpose is a call: `trap(\"message\")`",
        _ => return None,
    })
}

/// An unknown function.
pub(crate) fn function(name: &str) -> Option<&'static str> {
    Some(match name {
        "str" | "String" | "Text" | "to_string" | "toString" | "format" | "sprintf" | "itoa" | "repr" => {
            "a value becomes a Text in a hole: `\"${value}\"`"
        }
        "int" | "Int" | "parseInt" | "atoi" | "Number" => "`parse_int(t)` reads an Int, `trunc(f)` cuts a Float",
        "Float" | "double" | "parseFloat" | "atof" => "`parse_float(t)` reads a Float, `float(n)` makes one of an Int",
        "bool" | "Bool" => "compare the value: `n != 0`",
        "println" | "printf" | "puts" | "echo" | "say" | "writeln" | "log" => "`print(text)` writes a line",
        "eprintln" => "`print_err(text)` writes a line to standard error",
        "range" | "xrange" => "count with `let i = 0` and `while i < n { …; i += 1 }`",
        "enumerate" | "zip" => "keep a counter beside the loop: `let i = 0`, `for x in xs { …; i += 1 }`",
        "length" | "size" | "sizeof" | "strlen" | "cap" => "`len(x)` counts bytes or elements",
        "append" | "add" => "`push(list, value)` adds at the end",
        "delete_key" | "del" => "`remove(map, key)` takes an entry out",
        "contains" | "includes" => "`has(map, key)` asks a map, `index_of(text, part)` a Text",
        "panic" | "throw" | "raise" | "error" | "fail" | "abort" | "todo" | "unreachable" => {
            "failing on purpose is `trap(\"message\")`"
        }
        "sleep" => "write `time.sleep(ms)` with `use time`",
        "substring" | "substr_of" | "mid" => "`substr(text, start, n)` cuts `n` bytes out",
        "typeof" | "type_of" => "types are known before the program runs; `class_name(x)` names a class",
        "Some" | "Ok" | "Just" => "a value is a `?T` by itself: leave the call out",
        "Err" => "fail with `trap(\"message\")`, or return a variant of a union",
        "list" | "List" | "Array" | "Vec" | "vec" => "a list is written `[…]`, an empty one `let xs: multi T = []`",
        "dict" | "Map" | "HashMap" => "an empty map is `let m: map<K, V> = {}`",
        "make" | "malloc" => "write `let xs: multi T = []` or `let m: map<K, V> = {}`",
        "exit" => "return from `main`: its Int is the exit status",
        _ => return None,
    })
}

/// An unknown member of something that has no members of its own.
pub(crate) fn member(name: &str) -> Option<&'static str> {
    Some(match name {
        "length" | "size" | "count" | "len" => "`len(x)` counts bytes or elements",
        "append" | "add" | "push_back" => "`push(list, value)` adds at the end",
        "to_string" | "toString" | "str" | "string" | "String" | "format" => {
            "a value becomes a Text in a hole: `\"${value}\"`"
        }
        "contains" | "includes" | "has_key" | "contains_key" | "containsKey" => {
            "`has(map, key)` asks a map, `index_of(text, part)` a Text"
        }
        "insert" | "put" => "`set(map, key, value)` or `map[key] = value` stores an entry",
        "unwrap" | "expect" => "test for nil first: `if x != nil { … }`",
        "toUpperCase" | "toLowerCase" | "lower" | "lowercase" => "`to_lower(text)` has ASCII letters in lower case",
        "substring" => "`substr(text, start, n)` cuts `n` bytes out",
        "indexOf" | "find" => "`index_of(text, part)` is the offset, or -1",
        "startsWith" | "startswith" => "`starts_with(text, part)` compares the beginning",
        "endsWith" | "endswith" => "`ends_with(text, part)` compares the end",
        "clone" | "copy" => "scalars and Texts are copied by themselves; build a fresh object or list",
        "map" | "filter" | "forEach" | "for_each" | "iter" | "reduce" => "walk it with `for x in xs { … }`",
        "keys" | "values" | "entries" | "items" => "walk it with `for k, v in m { … }`",
        "first" | "last" => "`xs[0]` is the first element, `latest(xs)` the last",
        _ => return None,
    })
}

/// An unknown type.
pub(crate) fn type_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "string" | "String" | "str" | "Str" | "char" | "rune" => "text is `Text`",
        "int" | "integer" | "Integer" | "long" | "Long" | "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32"
        | "u64" | "usize" | "isize" | "int32" | "int64" | "uint" | "uint64" | "byte" | "short" => {
            "whole numbers are `Int`, signed with 64 bits"
        }
        "number" | "Number" => "whole numbers are `Int`, others `Float`",
        "float" | "double" | "Double" | "f32" | "f64" | "float64" => "numbers with a fraction are `Float`",
        "bool" | "boolean" | "Boolean" => "truth values are `Bool`",
        "void" | "Void" | "unit" | "Unit" | "None" | "never" => "a function without result has no `->`",
        "any" | "Any" | "object" | "Object" | "unknown" => {
            "use a union for a closed set of shapes, an interface for an open one"
        }
        "List" | "list" | "Array" | "array" | "Vec" | "Set" | "set" | "slice" => "a list is `multi T`",
        "Map" | "HashMap" | "Dict" | "dict" | "dictionary" => "a map is `map<K, V>`",
        "Option" | "Optional" | "Maybe" => "a type that may be nil is `?T`",
        "bytes" | "buffer" | "Buffer" => "binary data is `Bytes`",
        "error" | "Exception" => "what `catch` gives is an `Error`",
        "date" | "Date" | "DateTime" | "time" => "a moment is a `Timestamp`, in milliseconds",
        _ => return None,
    })
}
