//! Annotations (language specification 3.9, tables specification 2): the arguments of `@table`, `@unique`, words that
//! are not known.

use super::classes::unknown_field;
use super::{ClassSource, Decls};
use crate::env::Env;
use crate::hir::ClassId;
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use rustc_hash::FxHashMap;
use syntax::ast::{self, Annotation, AnnotationArgs, TableArg, TableValue};

/// Arguments of earlier versions of the language that chose where rows are kept.
const RETIRED: [&str; 8] = ["mode", "store", "ram", "cold", "tiered", "paged", "mmap", "buffer"];
const ACCEPTED: &str = "`name: \"…\"`, `index: [column]`, `durable: true|false`, `resident: all`";

pub(super) fn check(env: &mut Env<'_>, decls: &Decls<'_>, diags: &mut Vec<Diagnostic>) {
    for decl in &decls.classes {
        if let ClassSource::Class(class) = decl.source {
            let mut given: FxHashMap<&str, Span> = FxHashMap::default();
            for annotation in &class.annotations {
                match annotation.name.name.as_str() {
                    "table" => {
                        if let AnnotationArgs::Table(args) = &annotation.args {
                            for arg in args {
                                table_arg(env, decl.class, class, arg, &mut given, diags);
                            }
                        }
                    }
                    // Refused by the parser.
                    "gc" => {}
                    _ => diags.push(unknown(annotation)),
                }
            }
        }
        for field in decl.source.fields() {
            for annotation in &field.annotations {
                match annotation.name.name.as_str() {
                    "unique" => unique(env, decl.class, field, diags),
                    "gc" => {}
                    _ => diags.push(unknown(annotation)),
                }
            }
        }
    }
}

fn unknown(annotation: &Annotation) -> Diagnostic {
    Diagnostic::warning(205, annotation.span, format!("unknown annotation `@{}`", annotation.name.name))
        .label("this has no effect here")
        .note("annotations are `@table(…)` on classes and `@unique` on fields")
        .help("remove it, or correct its name")
}

fn bad(span: Span, title: String, label: &str) -> Diagnostic {
    Diagnostic::error(102, span, title)
        .label(label)
        .note(format!("`@table` takes {ACCEPTED}"))
        .help("remove or correct the argument")
}

fn table_arg<'a>(
    env: &Env<'_>,
    id: ClassId,
    class: &ast::Class,
    arg: &'a TableArg,
    given: &mut FxHashMap<&'a str, Span>,
    diags: &mut Vec<Diagnostic>,
) {
    let key = arg.key.name.as_str();
    if matches!(key, "name" | "durable" | "resident")
        && let Some(first) = given.insert(key, arg.span)
    {
        diags.push(
            bad(arg.span, format!("`{key}` is given twice in `@table` of `{}`", class.name.name), "given again here")
                .related(first, "first given here"),
        );
        return;
    }
    match (key, &arg.value) {
        ("name", TableValue::Text(_)) => {}
        ("name", _) => {
            diags.push(bad(arg.span, "`name` of `@table` is not a text".to_owned(), "expected a quoted text"));
        }
        ("durable", TableValue::Word(word)) if word == "true" || word == "false" => {}
        ("durable", _) => diags.push(
            Diagnostic::error(101, arg.span, "expected `true` or `false` after `durable:`")
                .label("found something else")
                .note("a table is durable unless it says `durable: false`")
                .help("write `durable: true` or `durable: false`"),
        ),
        ("resident", TableValue::Word(word)) if word == "all" => {}
        ("resident", TableValue::Word(word)) if word == "keys" => diags.push(
            bad(arg.span, "`resident: keys` is not supported yet".to_owned(), "not supported yet")
                .help("write `resident: all`, or leave it out"),
        ),
        ("resident", _) => diags.push(
            bad(arg.span, "unknown value of `resident` in `@table`".to_owned(), "expected `all` or `keys`")
                .help("write `resident: all`, or leave it out"),
        ),
        ("index", TableValue::Names(columns)) if !columns.is_empty() => {
            for column in columns {
                match env.field(id, &column.name) {
                    None => {
                        let near = env.near(&column.name, class.fields.iter().map(|f| f.name.name.as_str()));
                        diags.push(unknown_field(&class.name.name, column, near));
                    }
                    Some((_, field)) => {
                        if !env.is_column_key(field.ty) {
                            diags.push(no_key(env, class.name.name.as_str(), field, column.span, "indexed"));
                        }
                    }
                }
            }
        }
        ("index", _) => {
            let title = format!("`index` in `@table` of `{}` names no columns", class.name.name);
            diags.push(bad(arg.span, title, "expected a list such as `[column]`"));
        }
        _ if RETIRED.contains(&key) => diags.push(
            bad(arg.span, format!("`{key}` is no argument of `@table`"), "where rows are kept is said in other words")
                .help("write `durable: false` for rows that need not survive, `resident: all` for rows in memory"),
        ),
        _ => {
            let near = env.near(key, ["name", "index", "durable", "resident"].into_iter());
            let report = bad(arg.span, format!("unknown argument `{key}` of `@table`"), "unknown argument");
            diags.push(match near {
                Some(near) => report.help(format!("did you mean `{near}`?")),
                None => report,
            });
        }
    }
}

fn unique(env: &Env<'_>, class: ClassId, field: &ast::Field, diags: &mut Vec<Diagnostic>) {
    let Some(decl) = env.program.classes.get(class.0 as usize) else { return };
    if let Some((_, found)) = env.field(class, &field.name.name)
        && !env.is_column_key(found.ty)
    {
        diags.push(no_key(env, &decl.name, found, field.name.span, "`@unique`"));
    }
}

fn no_key(env: &Env<'_>, class: &str, field: &crate::hir::Field, span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(102, span, format!("the {what} column `{class}.{}` is `{}`", field.name, env.show(field.ty)))
        .label("values of this type cannot be keys")
        .note("keys are `Int`, `Bool`, `Float`, `Text`, `Bytes`, unions without payload and `ref`, each also with `?`")
        .help("index another column, or store a key of the value in a column of its own")
}

impl Env<'_> {
    /// Whether a column of this type can be indexed (tables specification 2.3).
    fn is_column_key(&self, ty: crate::types::Ty) -> bool {
        let inner = self.program.types.strip(ty);
        self.is_key(inner) && !matches!(self.program.types.kind(inner), crate::types::TyKind::Actor(_))
    }
}
