//! The standard library as the checker sees it: predeclared records and signatures of builtins, read from `stdlib/`.

use crate::env::{BuiltinSig, Env, Pattern, STDLIB_FILE};
use crate::types::Ty;
use std::sync::OnceLock;
use syntax::ast::{self, Decl, Name, TypeKind};

/// Every file of `stdlib/`.
const SOURCES: [&str; 11] = [
    include_str!("../../../../stdlib/records.wo"),
    include_str!("../../../../stdlib/text.wo"),
    include_str!("../../../../stdlib/containers.wo"),
    include_str!("../../../../stdlib/bytes.wo"),
    include_str!("../../../../stdlib/actors.wo"),
    include_str!("../../../../stdlib/json.wo"),
    include_str!("../../../../stdlib/time.wo"),
    include_str!("../../../../stdlib/env.wo"),
    include_str!("../../../../stdlib/fs.wo"),
    include_str!("../../../../stdlib/net.wo"),
    include_str!("../../../../stdlib/proc.wo"),
];

/// Names that stand for any type in a signature.
const VARIABLES: [&str; 6] = ["T", "K", "V", "M", "N", "R"];

fn decls() -> impl Iterator<Item = &'static Decl> {
    static FILES: OnceLock<Vec<ast::File>> = OnceLock::new();
    let files = FILES
        .get_or_init(|| SOURCES.iter().map(|source| syntax::parse(STDLIB_FILE, source.as_bytes(), &[]).file).collect());
    files.iter().flat_map(|file| &file.decls)
}

/// The predeclared records, in order.
pub(super) fn records() -> impl Iterator<Item = &'static ast::Record> {
    decls().filter_map(|decl| match decl {
        Decl::Record(record) => Some(record),
        _ => None,
    })
}

/// Fills `env.builtins`; the names of types mean predeclared records here, whatever the program declares.
pub(super) fn declare(env: &mut Env<'_>) {
    for decl in decls() {
        let Decl::Interface(iface) = decl else { continue };
        for sig in &iface.sigs {
            let params = sig.params.iter().map(|p| (p.mode, p.name.name.clone(), pattern(env, &p.ty))).collect();
            let ret = sig.ret.as_ref().map(|ty| pattern(env, ty));
            let built = BuiltinSig {
                namespace: iface.name.name.clone(),
                name: sig.name.name.clone(),
                params,
                ret,
                available: !sig.doc.trim_start().starts_with("Not available yet"),
            };
            env.builtins.sigs.entry((built.namespace.clone(), built.name.clone())).or_default().push(built);
        }
    }
}

fn pattern(env: &mut Env<'_>, ty: &ast::Type) -> Pattern {
    match &ty.kind {
        TypeKind::Named(name) if is_variable(&name.name) => Pattern::Var(name.name.clone()),
        TypeKind::Actor(name) if is_variable(&name.name) => Pattern::Actor(Box::new(Pattern::Var(name.name.clone()))),
        TypeKind::Nullable(inner) => nested(env, inner, ty, Pattern::Nullable),
        TypeKind::Multi(inner) => nested(env, inner, ty, Pattern::Multi),
        TypeKind::Map(key, value) => Pattern::Map(Box::new(pattern(env, key)), Box::new(pattern(env, value))),
        _ => Pattern::Ty(plain(env, ty)),
    }
}

/// A type without variables stays one `Pattern::Ty`.
fn nested(env: &mut Env<'_>, inner: &ast::Type, whole: &ast::Type, wrap: fn(Box<Pattern>) -> Pattern) -> Pattern {
    match pattern(env, inner) {
        Pattern::Ty(_) => Pattern::Ty(plain(env, whole)),
        open => wrap(Box::new(open)),
    }
}

fn plain(env: &mut Env<'_>, ty: &ast::Type) -> Ty {
    // The files are part of the compiler: a test holds that they resolve without a report.
    env.resolve_type(STDLIB_FILE, ty, &mut Vec::new())
}

fn is_variable(name: &Name) -> bool {
    VARIABLES.contains(&name.as_str())
}
