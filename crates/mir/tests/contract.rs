//! `stdlib/` against `abi::symbols`: what a `.wo` signature says is what generated code and the runtime exchange.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;

use abi::symbols::{self, Rep, SYMBOLS};
use analysis::env::{BuiltinSig, Env, Pattern};
use analysis::types::{Ty, TyKind};
use diagnostics::span::FileId;
use syntax::ast::Decl;

/// Not generic, but lowered to instructions instead of a call of their name.
const INLINE: [&str; 3] = ["assert", "len", "trap"];

fn with_env(test: impl FnOnce(&Env<'_>)) {
    let mut diagnostics = Vec::new();
    let input = analysis::Input { files: Vec::new(), is_library: true };
    let env = analysis::decls::collect(&input, &mut diagnostics);
    assert_eq!(diagnostics, []);
    test(&env);
}

fn shown(sig: &BuiltinSig) -> String {
    if sig.namespace == "builtins" { sig.name.to_string() } else { format!("{}.{}", sig.namespace, sig.name) }
}

fn is_generic(sig: &BuiltinSig) -> bool {
    sig.params.iter().map(|p| &p.2).chain(&sig.ret).any(|p| !matches!(p, Pattern::Ty(_)))
}

/// Signatures whose symbol has their name.
fn plain<'e>(env: &'e Env<'_>) -> impl Iterator<Item = &'e BuiltinSig> {
    let all = env.builtins.sigs.values().flatten();
    all.filter(|s| s.available && !is_generic(s) && !INLINE.contains(&shown(s).as_str()))
}

fn words(env: &Env<'_>, ty: Ty) -> Vec<Rep> {
    match env.program.types.kind(ty) {
        TyKind::Float => vec![Rep::F],
        TyKind::Nullable(inner) => match env.program.types.kind(inner) {
            TyKind::Int | TyKind::Bool => vec![Rep::W, Rep::W],
            TyKind::Float => vec![Rep::W, Rep::F],
            _ => vec![Rep::W],
        },
        _ => vec![Rep::W],
    }
}

/// Parameters and results as the conventions of `abi::symbols` derive them.
fn machine(env: &Env<'_>, sig: &BuiltinSig) -> (Vec<Rep>, Vec<Rep>) {
    let of = |pattern: &Pattern| match pattern {
        Pattern::Ty(ty) => *ty,
        open => panic!("{}: {open:?}", shown(sig)),
    };
    let ret = sig.ret.as_ref().map(of);
    // The runtime builds predeclared records from their class index, which comes first.
    let makes_record = ret.is_some_and(|ty| match env.program.types.kind(ty) {
        TyKind::Class(_) => true,
        TyKind::Nullable(inner) => matches!(env.program.types.kind(inner), TyKind::Class(_)),
        _ => false,
    });
    let class = makes_record.then_some(Rep::W);
    let params = sig.params.iter().flat_map(|p| words(env, of(&p.2)));
    (class.into_iter().chain(params).collect(), ret.map_or_else(Vec::new, |ty| words(env, ty)))
}

#[test]
fn signatures_are_those_of_the_symbols() {
    with_env(|env| {
        let mut seen = 0;
        for sig in plain(env) {
            let name = shown(sig);
            let symbol = symbols::find(&name).unwrap_or_else(|| panic!("`{name}` has no symbol"));
            let (params, results) = machine(env, sig);
            assert_eq!((symbol.params, symbol.results), (params.as_slice(), results.as_slice()), "{name}");
            seen += 1;
        }
        assert!(seen > 60, "{seen}");
    });
}

#[test]
fn symbols_of_builtins_are_declared() {
    with_env(|env| {
        let declared: BTreeSet<String> = plain(env).map(shown).collect();
        // The table lists them last, from `print` on.
        let first = SYMBOLS.iter().position(|s| s.name == "print").unwrap();
        let symbols: Vec<&str> = SYMBOLS[first..].iter().map(|s| s.name).collect();
        assert_eq!(declared.iter().map(String::as_str).collect::<BTreeSet<_>>(), symbols.iter().copied().collect());
        assert_eq!(symbols.len(), declared.len(), "a symbol stands twice");
    });
}

#[test]
fn what_is_not_available_has_no_symbol() {
    with_env(|env| {
        for sig in env.builtins.sigs.values().flatten().filter(|s| !s.available) {
            assert!(symbols::find(&shown(sig)).is_none(), "{}", shown(sig));
        }
    });
}

/// Every file of the folder is compiled in, documents each function, and names a trap only where one may be pending.
#[test]
fn documentation_agrees() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stdlib");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let source = std::fs::read(entry.unwrap().path()).unwrap();
        let parsed = syntax::parse(FileId(0), &source, &[]);
        assert_eq!(parsed.diagnostics, []);
        for decl in &parsed.file.decls {
            let Decl::Interface(iface) = decl else { continue };
            let mut last = "";
            for sig in &iface.sigs {
                let name = sig.name.name.as_str();
                // Further overloads may share the first one's text.
                assert!(!sig.doc.is_empty() || last == name, "`{name}` is not documented");
                last = name;
                count += 1;
                let shown =
                    if iface.name.name == "builtins" { name.to_owned() } else { format!("{}.{name}", iface.name.name) };
                let quiet = symbols::find(&shown).is_some_and(|s| !s.traps);
                assert!(!(quiet && sig.doc.contains("Traps ")), "`{shown}` traps by its text, but not by its symbol");
            }
        }
    }
    with_env(|env| assert_eq!(env.builtins.sigs.values().flatten().count(), count));
}
