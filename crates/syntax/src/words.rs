//! Words and tokens that are refused with advice: doctrine words, legacy words, habits from other languages.

use diagnostics::Diagnostic;
use diagnostics::span::Span;

use crate::stmt::is_statement_word;
use crate::token::K;

/// Reason and idiom for a doctrine word.
fn doctrine(word: &str) -> (&'static str, &'static str) {
    match word {
        "extends" | "super" | "override" => (
            "classes do not inherit: behaviour is shared through interfaces and composition",
            "hold the other object in a field and call its methods, or declare an interface",
        ),
        "implements" => (
            "a class satisfies an interface by having its methods; nothing is declared",
            "leave the clause out and pass the object where the interface is wanted",
        ),
        "cast" => (
            "values are not reinterpreted; the compiler knows every type",
            "use a union and `switch`, `json.decode(…) as T`, or a conversion such as `float(n)`",
        ),
        "Dynamic" | "untyped" => (
            "every value has a type that is known before the program runs",
            "use a union, an interface, or `json.Value` for data of unknown shape",
        ),
        "macro" => ("programs are not rewritten while they are compiled", "write a function, or use `#if` sections"),
        "extern" => ("programs call no foreign code", "use the namespaces of the standard library"),
        _ => ("operators have one fixed meaning each", "write a method with a name"),
    }
}

/// `WO-E105` for `word`.
pub(crate) fn doctrine_error(span: Span, word: &str) -> Diagnostic {
    let (reason, idiom) = doctrine(word);
    Diagnostic::error(105, span, format!("`{word}` is not part of the language"))
        .label("this word is refused here")
        .note(reason)
        .help(idiom)
}

/// `WO-E101` for a word of the earlier language with its replacement.
pub(crate) fn legacy_error(span: Span, word: &str) -> Diagnostic {
    let (note, help) = match word {
        "INSERT" => ("rows are added by an expression", "write `insert C { field: value }`"),
        "SELECT" | "select" => {
            ("a query is an expression that starts with `from`", "write `from x in C where … select x`")
        }
        "service" => {
            ("a class holds fields, constants and methods only", "write a class with a `receive` method and `spawn` it")
        }
        "policy" => {
            ("a class holds fields, constants and methods only", "check access in the functions that use the row")
        }
        _ => ("a class holds fields, constants and methods only", "write a method and call it where the event happens"),
    };
    Diagnostic::error(101, span, format!("`{word}` is not supported here"))
        .label("a word of an earlier form of the language")
        .note(note)
        .help(help)
}

/// What a word that begins a declaration in other languages is called here.
pub(crate) fn foreign_declaration(word: &str) -> Option<&'static str> {
    Some(match word {
        "union" | "enum" | "variant" => "a union is `type Name = First | Second(field: Type)`",
        "struct" | "object" | "record" | "data" => {
            "a class is `class Name { field: Type }`, a record `typedef Name = { field: Type }`"
        }
        "trait" | "protocol" => "an interface is `interface Name { fn method(arg: Type) -> Type }`",
        "import" | "include" | "require" | "from" | "module" | "package" => {
            "a module is its directory; another one is named with `use path/to/module`"
        }
        "func" | "function" | "fun" | "def" | "sub" => "a function is `fn name(arg: Type) -> Type { … }`",
        "var" | "val" | "static" | "final" => {
            "a constant is `const NAME = 1`; state that changes lives in objects and actors"
        }
        "actor" => "an actor is a class with a method `fn receive(m: Message)`, started by `spawn`",
        _ => return None,
    })
}

/// Note and help for a plain "expected …, found …".
pub(crate) fn advice(found: K, wanted: &str) -> (&'static str, &'static str) {
    let value_wanted = wanted == "an expression";
    match found {
        K::LegacyInsert => {
            ("`INSERT` is a word of an earlier form of the language", "write `insert C { field: value }`")
        }
        K::LegacySelect => {
            ("`SELECT` is a word of an earlier form of the language", "write `from x in C where … select x`")
        }
        K::FatArrow => ("`=>` has no use in the language", "write `->` before a result type, `:` after a `case`"),
        K::Amp if value_wanted => ("`&` is the bitwise operator", "write `and` for logical conjunction"),
        K::Pipe if value_wanted => ("`|` is the bitwise operator", "write `or` for logical disjunction"),
        K::Plus | K::Star | K::Slash if value_wanted => {
            ("an operator stands between two operands", "add the missing operand; `x += 1` counts up")
        }
        K::RParen if value_wanted => (
            "an expression is missing before the parenthesis; the arguments of a call have no trailing comma",
            "remove the comma, or add the missing expression",
        ),
        K::Fn if value_wanted => {
            ("functions are not values", "declare the function at the top level, or use an interface with one method")
        }
        K::If if value_wanted => ("`if` is a statement", "use `switch` for a choice that yields a value"),
        K::Try if value_wanted => {
            ("`try … catch` binds looser than every operator", "put the whole `try … catch` into parentheses")
        }
        K::Nl if wanted.contains(')') || wanted.contains(']') => {
            ("the bracket is still open at the end of the line", "close it, or put a `,` before the line break")
        }
        K::Nl => (
            "an expression ends at the line break; only a trailing `..` continues it",
            "complete the line, or move the operator's other operand up to it",
        ),
        K::Eof => ("the file ends inside a construct", "complete it; a closing `}` may be missing"),
        K::Mut if wanted.contains("name") => ("every local can be assigned again", "leave `mut` out"),
        K::Else => ("`else` follows the `}` of an `if`", "write `if c { … } else { … }`"),
        kind if wanted == "a field name or `}`" && is_statement_word(kind) => (
            "braces behind a name hold the fields of a new object: `Name { field: value }`",
            "an arm of `switch` is `case value:` with its statements behind the colon, without braces",
        ),
        kind if wanted.contains("name") && !kind.is_name() => {
            ("reserved words and punctuation are not names", "choose another name")
        }
        _ if wanted.contains("end of the statement") => (
            "a statement ends at a line break, a `;` or the block's `}`",
            "put the rest on a line of its own, or add the missing operator",
        ),
        _ if wanted.contains("declaration") => (
            "a file holds `use`, `const`, `fn`, `class`, `type`, `typedef`, `interface` and `test` declarations",
            "move statements into a function",
        ),
        _ => ("the text does not fit the grammar here", "write what was expected, or remove what was found"),
    }
}
