//! Words and tokens that are refused with advice: doctrine words, legacy words, habits from other languages.

use diagnostics::Diagnostic;
use diagnostics::span::Span;

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
        "let" | "global" => "state that changes lives in objects and actors; a constant is `const NAME = 1`",
        "export" | "public" | "private" => "what other modules may use is marked `pub`: `pub fn name() { … }`",
        "async" => "a call waits for its result by itself, and other fibers run meanwhile: leave `async` out",
        "impl" | "extension" => "methods stand inside of their class",
        "alias" => "a record has a name: `typedef Name = { field: Type }`",
        "actor" => "an actor is a class with a method `fn receive(m: Message)`, started by `spawn`",
        _ => return None,
    })
}
