//! Note and help of a plain "expected …, found …". What newcomers write out of habit from other languages is recognised
//! by the token found, by what was wanted there and by the words around it; the help then names the way of this one.

use crate::stmt::is_statement_word;
use crate::token::K;
use crate::words::foreign_declaration;

/// Why, and what to write instead.
pub(crate) type Advice = (&'static str, &'static str);

/// The token found where something else was wanted, and its surroundings.
pub(crate) struct Found<'s> {
    pub kind: K,
    pub wanted: &'static str,
    /// Its source.
    pub text: &'s str,
    /// The line before it, and behind it.
    pub before: &'s str,
    pub after: &'s str,
    /// The first word of the statement, member or declaration.
    pub head: &'s str,
}

impl Found<'_> {
    /// The word that ends right before the token or the blanks in front of it.
    fn last_word(&self) -> &str {
        let before = self.before.trim_end();
        let start = before.rfind(|c: char| !is_word(c)).map_or(0, |at| at + 1);
        before.get(start..).unwrap_or_default()
    }

    fn touches(&self, mark: &str) -> bool {
        self.before.ends_with(mark)
    }

    /// The word before looks like the name of a type.
    fn behind_type(&self) -> bool {
        self.last_word().starts_with(|c: char| c.is_ascii_uppercase())
    }

    fn starts_line(&self) -> bool {
        self.before.trim().is_empty()
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

pub(crate) fn advice(found: &Found<'_>) -> Advice {
    comment(found)
        .or_else(|| dash(found))
        .or_else(|| match found.wanted {
            "an expression" => operand(found),
            "the end of the statement" => statement(found),
            "`{`" | "`{` or `if` after `else`" => block(found),
            "a type" => no_type(found),
            "a declaration" => Some(declaration(found)),
            "the end of the hole" => hole(found),
            _ => None,
        })
        .or_else(|| type_suffix(found))
        .or_else(|| signature(found))
        .or_else(|| binding(found))
        .or_else(|| member(found))
        .or_else(|| value(found))
        .unwrap_or_else(|| general(found))
}

/// `// …`, `/* … */`.
fn comment(found: &Found<'_>) -> Option<Advice> {
    let slash = found.kind == K::Slash && (found.touches("/") || found.after.starts_with(['/', '*']));
    slash.then_some(("a comment runs from `--` to the end of its line", "write `-- …`"))
}

/// `a- 1`, which is the name `a-` and a number.
fn dash(found: &Found<'_>) -> Option<Advice> {
    let name = found.before.trim_end().strip_suffix('-')?;
    let is_operand = matches!(found.kind, K::Int | K::Float | K::Ident);
    (is_operand && name.ends_with(is_word))
        .then_some(("a dash belongs to the name before it", "to subtract, put blanks around the minus: `a - b`"))
}

/// What has no operand in front of it, or between two operators.
fn operand(found: &Found<'_>) -> Option<Advice> {
    Some(match found.kind {
        K::Amp if found.touches("&") => ("logical operators are words; `&` is the bitwise operator", "write `and`"),
        K::Pipe if found.touches("|") => ("logical operators are words; `|` is the bitwise operator", "write `or`"),
        K::Amp => (
            "a parameter borrows what it is given; its own `mut` or `take` says otherwise",
            "leave the `&` out; the bitwise operator needs an operand on both sides",
        ),
        K::Pipe | K::Fn => FUNCTIONS_ARE_NO_VALUES,
        K::Plus if found.touches("+") || found.after.starts_with('+') => {
            ("there is no `++`: counting is an assignment", "write `i += 1`")
        }
        K::Star if found.touches("*") => ("there is no power operator", "multiply: `a * a`"),
        K::Assign if found.touches("==") || found.touches("!=") => {
            ("there is one equality: it compares values of one type", "write `==` or `!=`")
        }
        K::Plus | K::Star | K::Slash if !found.starts_line() => {
            ("an operator stands between two operands", "add the missing operand")
        }
        K::Dot | K::DotDot | K::And | K::Or | K::Plus | K::Star | K::Slash | K::EqEq | K::NotEq | K::Lt | K::Gt
            if found.starts_line() =>
        {
            (
                "an expression ends at the line break; only a `..` at the end of a line continues it",
                "keep it on one line, or name a part of it with `let` first",
            )
        }
        K::Assign if found.touches("..") => NO_RANGE,
        K::Gt if found.touches("<") => ("inequality is written with one sign", "write `!=`"),
        K::Gt if found.touches("|") => ("there is no pipe", "call the function: `g(x)`"),
        K::Dot if found.after.starts_with(|c: char| c.is_ascii_digit()) => POINT,
        K::LBrace => ("the block begins before the expression in front of it ends", "complete the expression"),
        K::Mut => ("`mut` stands at the parameter, not at the argument", "leave the `mut` out"),
        K::RParen if found.before.trim_end().ends_with('(') => {
            ("`()` is no value: a function without result yields none", "leave it out")
        }
        K::RParen => (
            "an expression is missing before the parenthesis; the arguments of a call have no trailing comma",
            "remove the comma, or add the missing expression",
        ),
        K::If => (
            "`if` is a statement",
            "use `switch c { case true: a` … `case false: b }`, or assign in both branches of an `if`",
        ),
        K::Try => ("`try … catch` binds looser than every operator", "put the whole `try … catch` into parentheses"),
        K::HoleClose | K::EscClose => (
            "a hole is an expression whose value is inserted",
            "write an expression into the hole, or `\\$` for a dollar",
        ),
        _ => return None,
    })
}

const NO_RANGE: Advice = ("there is no range operator", "count with `let i = 0` and `while i < n { …; i += 1 }`");

const POINT: Advice = ("a Float has digits on both sides of its point", "write `1.0` or `0.5`");

const FUNCTIONS_ARE_NO_VALUES: Advice =
    ("functions are not values", "declare the function at the top level, or use an interface with one method");

/// What follows a complete statement on its line.
fn statement(found: &Found<'_>) -> Option<Advice> {
    if let Some(advice) = behind_query(found) {
        return Some(advice);
    }
    let word = found.last_word();
    Some(match found.kind {
        K::FatArrow if word.is_empty() && found.before.trim_end().ends_with(')') => FUNCTIONS_ARE_NO_VALUES,
        K::Question if found.after.starts_with('.') => (
            "a value that may be nil is tested before it is used",
            "write `if x != nil { … x.name … }` with a local `x`",
        ),
        K::Question if found.after.starts_with('?') => (
            "there is no `??`: a local takes its default by assignment",
            "write `let v = …` and `if v == nil { v = default }`",
        ),
        K::Question if found.after.trim_start_matches([')', ']', '}', ';', ' ']).is_empty() => {
            ("a trap goes on to the caller by itself", "leave the `?` out; to handle a trap write `try … catch (e) …`")
        }
        K::Question => (
            "there is no `? :`",
            "write `switch c { case true: a` … `case false: b }`, or assign in both branches of an `if`",
        ),
        K::Colon if found.after.starts_with(':') => (
            "`::` has no use in the language",
            "write `.` behind a module or class; a variant stands alone, without its union",
        ),
        K::Colon if found.after.starts_with('=') => ("a local is introduced by `let`", "write `let name = value`"),
        K::Assign if found.after.starts_with(['<', '>']) => ("the `=` stands last", "write `<=` or `>=`"),
        K::Assign => ("an assignment is a statement and has no value", "write each assignment as a statement"),
        K::Arrow => ("a member is reached by `.`", "write `object.field`"),
        K::Comma if found.before.contains("map<") => {
            ("an empty map takes its type from the local", "write `let m: map<K, V> = {}`")
        }
        K::Comma => ("statements are not joined by commas", "write each on a line of its own"),
        K::In | K::Not => ("`in` belongs to `for`", "look in a loop, or ask `has(m, key)` of a map"),
        K::LBrace if found.before.contains('.') => {
            ("type names stand alone, without their module", "write `Name { field: value }`")
        }
        K::Ident if found.text == "is" => ("equality is written with signs", "write `==` or `!=`"),
        K::Ident if found.text == "instanceof" => {
            ("the type of a value is known before the program runs", "use a union and `switch`")
        }
        kind if is_statement_word(kind) || matches!(kind, K::Case | K::Default) => (
            "a statement ends at a line break, a `;` or the block's `}`",
            "write it on a line of its own, or a `;` before it",
        ),
        // What is called like a function is no foreign statement further on.
        _ if matches!(found.head, "print" | "assert") => return started(word),
        _ => return started(word).or_else(|| started(found.head)),
    })
}

/// What follows a query that has ended already, or has not begun.
fn behind_query(found: &Found<'_>) -> Option<Advice> {
    if found.last_word() == "from" {
        return Some(no_row(found));
    }
    if !found.before.contains("select ") {
        return None;
    }
    Some(match found.kind {
        _ if is_clause(found.text) => (
            "the clauses of a query stand before its `select`: `where`, `order by`, `skip`, `take`",
            if found.text == "limit" { "write `take n` in front of `select`" } else { "move it in front of `select`" },
        ),
        K::Comma => ("a query selects one value of each row", "select the row, and read its columns in a loop"),
        _ if found.last_word() == "distinct" => {
            ("a query keeps values that are equal", "put what it selects into a `map` as keys")
        }
        _ => return None,
    })
}

/// `from Name`, `delete from Name`: SQL.
fn no_row(found: &Found<'_>) -> Advice {
    if found.before.contains("delete ") {
        return ("`delete` removes one row", "write `for x in from x in Name where … select x { delete x }`");
    }
    ("a query gives its rows a name", "write `from x in Name where … select x`")
}

fn is_clause(word: &str) -> bool {
    matches!(word, "where" | "order" | "orderby" | "skip" | "take" | "limit" | "group")
}

/// Statements of other languages, by their first word.
fn started(word: &str) -> Option<Advice> {
    Some(match word {
        "var" | "val" | "auto" | "final" | "int" | "string" | "bool" | "float" | "double" => {
            ("a local is introduced by `let`; it can be assigned again", "write `let name = value`")
        }
        "new" => ("an object is made by its class's name and fields", "write `Name { field: value }`"),
        "throw" | "raise" | "panic" => ("failing on purpose is a call", "write `trap(\"message\")`"),
        "match" | "when" => {
            ("choosing by value or variant is a `switch`", "write `switch x { case A: …`, one arm per line, and `}`")
        }
        "elif" | "elseif" | "elsif" => ("`else` and `if` are two words", "write `else if`"),
        "await" | "async" => {
            ("a call waits for its result by itself, and other fibers run meanwhile", "call it plainly")
        }
        "go" | "defer" => (
            "work that runs beside this is an actor",
            "write a class with a `receive` method, `spawn` it and `send` it a message",
        ),
        "foreach" => ("every loop over elements is a `for`", "write `for x in xs { … }`"),
        "until" | "unless" => ("conditions are negated by `not`", "write `while not c { … }` or `if not c { … }`"),
        "update" => ("a row is changed by assigning to its columns", "write `row.column = value`"),
        "print" | "assert" => ("functions are called with parentheses", "write `print(text)`, `assert(condition)`"),
        _ => return None,
    })
}

/// Where the `{` of a block should be.
fn block(found: &Found<'_>) -> Option<Advice> {
    if let Some(advice) = behind_query(found) {
        return Some(advice);
    }
    Some(match found.kind {
        K::Assign => ("`=` assigns and is no condition", "write `==` to compare"),
        K::Colon if matches!(found.head, "class" | "interface" | "pub") => {
            ("classes do not inherit", "hold the other object in a field, or declare an interface")
        }
        K::Ident if found.text == "is" => ("equality is written with signs", "write `==` or `!=`"),
        K::LParen if matches!(found.head, "class" | "pub" | "type") => {
            ("a class has fields, not parameters", "write `class Name { field: Type }`")
        }
        K::Nl => ("a block's `{` stands on the line of what it belongs to", "move the `{` up to the end of this line"),
        _ if matches!(found.head, "if" | "while" | "for" | "else" | "do") => {
            ("the body stands in braces, also if it is one statement", "write `{ … }`")
        }
        _ => return None,
    })
}

fn no_type(found: &Found<'_>) -> Option<Advice> {
    Some(match found.kind {
        K::LParen if found.after.starts_with(')') => {
            ("a function without result has no `->`", "leave the `->` and the `()` out")
        }
        K::LParen => ("there are no tuples", "declare a class, or a record: `typedef Pair = { a: Int, b: Int }`"),
        K::LBracket => ("a list is a `multi`", "write `multi T`"),
        K::Lt if found.last_word() == "multi" => ("`multi` takes its type without brackets", "write `multi T`"),
        K::Assign => ("a type is missing behind the `:`", "write it, or leave the `:` out"),
        K::LBrace => ("a type is named", "declare it: `typedef Name = { field: Type }`"),
        K::Amp | K::Star => (
            "a parameter borrows what it is given",
            "write `name: T`; `mut name: T` borrows exclusively, `take name: T` takes over",
        ),
        K::Mut | K::Take => ("the mode of a parameter stands before its name", "write `mut name: T`"),
        K::Fn => FUNCTIONS_ARE_NO_VALUES,
        K::Nil => ("nil is no type; `?T` is `T` or nil", "write `?T`; a function without result has no `->`"),
        _ => return None,
    })
}

fn hole(found: &Found<'_>) -> Option<Advice> {
    Some(match found.kind {
        K::Comma => ("a hole holds one expression", "write a hole for each value: `${a} ${b}`"),
        K::Colon => ("a hole holds an expression and no format", "call a function that makes the text: `${pad(n)}`"),
        _ => ("a hole holds one expression", "compute the value in a `let` first, then name it here"),
    })
}

/// What other languages write behind a type's name.
fn type_suffix(found: &Found<'_>) -> Option<Advice> {
    let in_type = found.wanted == "`<`"
        || found.wanted == "`{` and the body"
        || (found.behind_type() && found.wanted != "an expression" && found.wanted != "the end of the statement");
    if !in_type {
        return None;
    }
    Some(match found.kind {
        K::LBracket if found.wanted == "`<`" => ("the types of a map stand in angle brackets", "write `map<K, V>`"),
        K::LBracket => ("a list is a `multi`", "write `multi T`"),
        K::Question => ("the `?` stands before the type", "write `?T`"),
        K::Pipe => ("a type that may be nil is `?T`; other choices are unions", "write `?T`, or `type Name = A | B`"),
        K::Lt => match found.last_word() {
            "List" | "Array" | "Vec" | "Vector" | "ArrayList" | "Set" | "HashSet" | "Slice" | "Iterable" => {
                ("a list is a `multi`", "write `multi T`")
            }
            "Option" | "Optional" | "Maybe" | "Nullable" => ("a type that may be nil is `?T`", "write `?T`"),
            "Map" | "HashMap" | "Dict" | "Dictionary" | "Record" | "BTreeMap" => {
                ("a map is a `map`, in lower case", "write `map<K, V>`")
            }
            "Result" | "Either" => ("failure is a trap, or a variant", "return `T` and `trap(…)`, or declare a union"),
            _ => GENERICS,
        },
        _ => return None,
    })
}

const GENERICS: Advice = (
    "only `multi T` and `map<K, V>` take types; declarations do not",
    "write the type itself; what serves several classes takes an interface",
);

/// From the name of a function to its body.
fn signature(found: &Found<'_>) -> Option<Advice> {
    Some(match (found.wanted, found.kind) {
        ("`(` and the parameters", K::Lt) => GENERICS,
        ("`:` and the parameter's type", _) if found.last_word() == "self" => {
            ("every method that is not `static` has `self`", "leave the parameter out")
        }
        ("`:` and the parameter's type", K::Comma | K::RParen | K::Nl) => {
            ("every parameter has a type", "write `name: Type`")
        }
        ("`:` and the parameter's type", kind) if kind.is_name() && found.behind_type() => {
            ("a parameter's name stands before its type", "write `name: Type`")
        }
        ("`:` and the parameter's type", kind) if kind.is_name() => {
            ("a `:` stands between a parameter's name and its type", "write `name: Type`")
        }
        ("`->` and a type, or `{` and the body", K::Nl) | ("`{` and the body", K::Nl) => {
            ("a body's `{` stands on the line of its function", "move the `{` up to the end of this line")
        }
        ("`->` and a type, or `{` and the body", _) => ("the result type stands behind `->`", "write `-> Type { … }`"),
        ("`->` after the `?` of a nullable result", _) => {
            ("`?->` marks a result that may be nil", "write `?-> Type`, or leave the `?` out")
        }
        ("`,`", K::Gt) => ("a map has a type of keys and one of values", "write `map<K, V>`"),
        ("a result type, or the end of the line", K::Semi) => {
            ("each signature stands on a line of its own", "leave the `;` out")
        }
        ("a result type, or the end of the line", K::Fn) => {
            ("each signature stands on a line of its own", "break the line before `fn`")
        }
        ("a signature or `}`", _) => ("an interface holds signatures", "write `fn name(arg: Type) -> Type`"),
        ("`,` or `)`", K::Semi) => ("parameters and arguments are separated by commas", "write `,`"),
        ("`,` or `)`", K::Assign) if found.behind_type() => {
            ("parameters have no defaults", "give the argument at each call, or write a second function")
        }
        _ => return None,
    })
}

/// Locals, constants, `use`, the head of a `for`.
fn binding(found: &Found<'_>) -> Option<Advice> {
    Some(match (found.wanted, found.kind) {
        ("`=`" | "`=` or `:` and a type", K::Nl | K::RBrace | K::Semi) => {
            ("a local has a value from the start", "write `let name = value`, or `let name: ?T = nil`")
        }
        ("`=` or `:` and a type", K::Int | K::Float | K::Str | K::StrOpen) => {
            ("the `=` between the name and its value is missing", "write `let name = value`")
        }
        ("`=` or `:` and a type", K::Comma) => ("one `let` makes one local", "write a `let` for each"),
        ("`=` and a literal", K::Colon) => {
            ("a constant has the type of its literal", "leave the type out: `const NAME = value`")
        }
        ("a literal", _) => (
            "a constant is a number, a text without holes, `true` or `false`",
            "write a function that gives the value: `fn name() -> Type { return … }`",
        ),
        ("a text without holes: the name of the test", _) => {
            ("the name of a test is a text", "write `test \"name\" { … }`")
        }
        ("the name of an annotation", _) => ("an annotation is `@table`, `@unique` or a name", "leave it out"),
        ("the name of the local", K::Mut) => ("every local can be assigned again", "leave the `mut` out"),
        ("the name of the local", K::LParen | K::LBrace | K::LBracket) => {
            ("one `let` makes one local", "write a `let` for each, from a field or an element")
        }
        ("the name of the loop variable", K::LParen) if found.after.contains(" in ") => (
            "a `for` names its variables without parentheses",
            "write `for x in xs { … }` or `for key, value in m { … }`",
        ),
        ("the name of the loop variable", K::LParen) => (
            "a `for` walks a `multi` or a `map`",
            "write `for x in xs { … }`; to count, `let i = 0` and `while i < n { …; i += 1 }`",
        ),
        ("`in`", _) => ("a `for` names its variables, then `in` and what it walks", "write `for x in xs { … }`"),
        ("the name of a module", K::Str | K::StrOpen) => {
            ("a module is named by its path, without quotes", "write `use path/to/module`")
        }
        ("`/` or the end of the line", K::As) => (
            "the last part of a module's path is its name; there are no other names for it",
            "leave the `as` and the name behind it out",
        ),
        ("`/` or the end of the line", K::Dot | K::Colon) => (
            "`use` names a whole module; the parts of its path are separated by `/`",
            "write `use path/to/module` and call `module.name(…)`",
        ),
        _ => return None,
    })
}

/// Members of classes, variants of unions.
fn member(found: &Found<'_>) -> Option<Advice> {
    Some(match (found.wanted, found.kind) {
        ("`:` and the field's type", K::LParen) if found.head == "type" => return None,
        ("`:` and the field's type", K::LParen) => (
            "a method begins with `fn`; an object is made by `Name { field: value }`",
            "write `fn name(…) { … }`; what a constructor does belongs into a `static fn`",
        ),
        ("`:` and the field's type", K::RParen | K::Comma) if found.before.contains('(') => {
            ("the payload of a variant has names", "write `Variant(name: Type)`")
        }
        ("`:` and the field's type", K::Nl | K::Comma | K::RBrace) => {
            ("every field has a type", "write `name: Type`, or `name: Type = default`")
        }
        ("`:` and the field's type", kind) if kind.is_name() => match found.last_word() {
            "private" | "protected" | "public" | "readonly" | "internal" | "var" | "val" | "final" => (
                "members have no visibility of their own; `pub(read)` keeps others from assigning",
                "write `name: Type` or `pub(read) name: Type`",
            ),
            _ => ("a field's name stands before its type", "write `name: Type`"),
        },
        ("a field, `fn`, `const` or `}`", K::Question) => (
            "the mark of a field that may be nil stands at its type; before the name it is for `typedef`",
            "write `name: ?Type`",
        ),
        ("a field, `fn`, `const` or `}`", kind)
            if found.after.starts_with(':')
                && found.text.starts_with(|c: char| c.is_ascii_alphabetic())
                && !kind.is_name() =>
        {
            ("reserved words are not names of fields", "choose another name")
        }
        ("a field, `fn`, `const` or `}`", K::Let) => ("a field has no `let`", "write `name: Type = default`"),
        ("a field, `fn`, `const` or `}`", K::Semi) => ("a method ends with its block", "leave the `;` out"),
        ("`=`, `,`, the end of the line or `}`" | "`,`, the end of the line or `}`", K::Semi) => {
            ("fields are separated by line breaks or commas", "leave the `;` out")
        }
        ("`{` or `=`", _) => ("a class is `class Name { … }`, a union `type Name = A | B`", "write one of these forms"),
        ("the name of a variant", K::Nl | K::Pipe) => (
            "the first variant stands on the line of the `=`; a `|` at the end of a line continues the union",
            "write `type Name = First |`, then the next variant",
        ),
        _ => return None,
    })
}

/// Inside of calls, literals and indexes.
fn value(found: &Found<'_>) -> Option<Advice> {
    Some(match (found.wanted, found.kind) {
        ("`,` or `)`", K::Colon | K::Assign) => {
            ("arguments are given by position, without names", "write the value alone")
        }
        ("`,` or `)`", K::FatArrow) => FUNCTIONS_ARE_NO_VALUES,
        ("`)`", K::Comma) => ("there are no tuples", "declare a class or a record for several values"),
        ("`,` or `]`", K::For) => {
            ("a list literal holds its elements", "start with `let out: multi T = []` and `push` in a loop")
        }
        ("`]`", K::Comma) => ("an index is one expression", "write `a[i][j]`"),
        ("the name of a field or method", _)
            if found.before.trim_end_matches('.').ends_with(|c: char| c.is_ascii_digit()) =>
        {
            POINT
        }
        ("the name of a field or method", _) if found.text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            ("reserved words are not names of members", "look up the member's name, which is another one")
        }
        ("`,` or `:`", K::If) => ("a `case` has no condition", "test it inside of the arm"),
        ("`case`, `default` or `}`", _) => {
            ("every arm begins with `case` or `default`", "write `case value: …` or `default: …`")
        }
        ("the name of a class", K::LParen) => {
            ("`spawn` and `insert` are followed by a class and its fields", "leave the parentheses out")
        }
        ("a statement", K::Semi) => (
            "a statement ends once: `if`, `while` and `for` with their block, others at the line break or with a `;`",
            "leave the `;` out",
        ),
        ("a statement", K::Case | K::Default) => {
            ("an arm stands inside of a `switch`", "write `switch x { case 1: … }`")
        }
        ("`while` after the block of a `do`", _) => {
            ("a `do` repeats its block while a condition holds", "write `do { … } while c`")
        }
        (_, K::Str | K::StrOpen) if found.touches("f") => {
            ("every quoted text may have holes", "leave the `f` out, and write holes as `${…}`")
        }
        (_, K::Str | K::StrOpen) if found.touches("\"\"") => {
            ("a text over several lines stands between backticks", "write a raw text: one backtick at either end")
        }
        (_, kind) if kind.is_name() && found.before.ends_with(|c: char| c.is_ascii_digit()) => {
            ("a number ends before the letters, and a name does not begin with a digit", "separate the two")
        }
        ("`:` and the field's value", K::Assign) => ("a field is given with `:`", "write `name: value`"),
        ("`:` and the field's value", K::Comma | K::RBrace | K::Nl) => {
            ("every field is given a value", "write `name: name` for a local of that name")
        }
        ("`]`", K::Colon) => ("an index is one expression", "a part of a list is `slice(xs, from, to)`"),
        ("`catch` after the body of a `try`", _) => (
            "`try` needs its `catch`; a trap that nobody catches goes on to the caller by itself",
            "leave the `try` out, or write `try … catch (e) …`",
        ),
        ("`(` and the name of the error" | "the name of the error", _) => {
            ("a `catch` names the error that it gets", "write `catch (e) value` or `catch (e) { … }`")
        }
        ("a field name or `}`", kind) if is_statement_word(kind) && found.before.contains("loop") => {
            ("an endless loop is a `while`", "write `while true { … }`")
        }
        ("a field name or `}`", kind) if is_statement_word(kind) => (
            "braces behind a name hold the fields of a new object: `Name { field: value }`",
            "an arm of `switch` is `case value:` with its statements behind the colon, without braces",
        ),
        _ => return None,
    })
}

fn declaration(found: &Found<'_>) -> Advice {
    if found.kind == K::Semi {
        return ("a declaration ends with its `}`", "leave the `;` out");
    }
    if found.kind == K::RBrace {
        return ("every `}` closes a `{`", "remove this `}`, or look for one too many above");
    }
    let help = foreign_declaration(found.text).unwrap_or("move statements into a function");
    ("a file holds `use`, `const`, `fn`, `class`, `type`, `typedef`, `interface` and `test` declarations", help)
}

fn general(found: &Found<'_>) -> Advice {
    let wanted = found.wanted;
    match found.kind {
        K::LegacyInsert => {
            ("`INSERT` is a word of an earlier form of the language", "write `insert C { field: value }`")
        }
        K::LegacySelect => {
            ("`SELECT` is a word of an earlier form of the language", "write `from x in C where … select x`")
        }
        K::FatArrow => ("`=>` has no use in the language", "write `->` before a result type, `:` after a `case`"),
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
        K::RBrace | K::Comma if wanted == "`.` and a field name" => {
            ("a backlink lists the rows whose `ref` column names this one", "write `backlink Class.column`")
        }
        K::Question if wanted == "a class name" => ("the mark of what may be nil stands first", "write `?ref Class`"),
        kind if wanted.contains("name") && !kind.is_name() => {
            ("reserved words and punctuation are not names", "choose another name")
        }
        _ if wanted.contains(')') || wanted.contains(']') => {
            ("the bracket is still open here", "close it, or put a `,` between its parts")
        }
        _ if wanted.contains("end of the statement") => (
            "a statement ends at a line break, a `;` or the block's `}`",
            "put the rest on a line of its own, or add the missing operator",
        ),
        _ => ("the text does not fit the grammar here", "write what was expected, or remove what was found"),
    }
}
