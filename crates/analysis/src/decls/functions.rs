//! Signatures of functions and methods, constants of files, test blocks.

use super::{ClassSource, Decls, duplicate};
use crate::Input;
use crate::env::{Body, ConstEntry, Env, FuncEntry};
use crate::hir::{self, ClassId, FuncId};
use crate::types::{TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use rustc_hash::FxHashMap;
use syntax::ast::{self, Decl, Mode, Name};

pub(super) fn signatures<'a>(env: &mut Env<'a>, input: &'a Input, decls: &Decls<'a>, diags: &mut Vec<Diagnostic>) {
    let mut tests: FxHashMap<(u32, &[u8]), Span> = FxHashMap::default();
    for input_file in &input.files {
        let file = input_file.id;
        for decl in &input_file.ast.decls {
            match decl {
                Decl::Fn(func) => free_function(env, file, func, diags),
                Decl::Const(item) => constant(env, file, item, diags),
                Decl::Test(test) => {
                    let module = env.file(file).module.0;
                    let shown = String::from_utf8_lossy(&test.name).into_owned();
                    match tests.get(&(module, test.name.as_slice())) {
                        Some(first) => {
                            diags.push(duplicate("test", &shown, test.name_span, *first, "one module"));
                        }
                        None => {
                            let _ = tests.insert((module, test.name.as_slice()), test.name_span);
                        }
                    }
                    let id = test_function(env, file, test, &shown);
                    env.program.tests.push((shown, id));
                }
                _ => {}
            }
        }
    }
    for decl in &decls.classes {
        let ClassSource::Class(class) = decl.source else { continue };
        for method in &class.methods {
            let id = function(env, decl.file, &method.sig, Some((decl.class, method.is_static)), &method.body, diags);
            if let Some(origin) = env.funcs.get_mut(id.0 as usize) {
                origin.is_pub = method.is_pub;
            }
            if let Some(info) = env.classes.get_mut(decl.class.0 as usize) {
                let _ = info.methods.entry(method.sig.name.name.clone()).or_insert(id);
            }
            if let Some(slot) = env.program.classes.get_mut(decl.class.0 as usize) {
                slot.methods.push(id);
            }
        }
    }
}

fn free_function<'a>(env: &mut Env<'a>, file: FileId, func: &'a ast::Fn, diags: &mut Vec<Diagnostic>) {
    let id = function(env, file, &func.sig, None, &func.body, diags);
    if let Some(origin) = env.funcs.get_mut(id.0 as usize) {
        origin.is_pub = func.is_pub;
    }
    let module_id = env.file(file).module;
    let Some(module) = env.modules.get_mut(module_id.0 as usize) else { return };
    let name = &func.sig.name;
    if let Some(first) = module.funcs.get(&name.name) {
        let place = if module.path == "." { "the root module".to_owned() } else { format!("module `{}`", module.path) };
        diags.push(duplicate("function", &name.name, name.span, first.span, &place));
        return;
    }
    let entry = FuncEntry { func: id, is_pub: func.is_pub, span: name.span };
    let _ = module.funcs.insert(name.name.clone(), entry);
    env.func_modules.entry(name.name.clone()).or_default().push(module_id);
}

/// Declares a function or method; parameters are its first locals, `self` before them.
fn function<'a>(
    env: &mut Env<'a>,
    file: FileId,
    sig: &'a ast::Sig,
    method: Option<(ClassId, bool)>,
    block: &'a ast::Block,
    diags: &mut Vec<Diagnostic>,
) -> FuncId {
    let mut params = Vec::with_capacity(sig.params.len() + 1);
    let mut locals = Vec::with_capacity(sig.params.len() + 1);
    let mut names = Vec::with_capacity(sig.params.len() + 1);
    if let Some((class, false)) = method {
        let kind = if env.is_table(class) { TyKind::Row(class) } else { TyKind::Class(class) };
        let ty = env.program.types.intern(kind);
        params.push(Mode::Mut);
        names.push((Name::new_static("self"), sig.name.span));
        locals.push(hir::Local { name: Name::new_static("self"), ty, span: sig.name.span });
    }
    for param in &sig.params {
        let ty = env.resolve_type(file, &param.ty, diags);
        params.push(param.mode);
        names.push((param.name.name.clone(), param.name.span));
        locals.push(hir::Local { name: param.name.name.clone(), ty, span: param.name.span });
    }
    let ret = sig.ret.as_ref().map_or(Types::VOID, |ty| env.resolve_type(file, ty, diags));
    let name = sig.name.name.clone();
    let display = match method.and_then(|(class, _)| env.program.classes.get(class.0 as usize)) {
        Some(class) => Name::from(format!("{}.{name}", class.name)),
        None => name.clone(),
    };
    let func = hir::Func {
        name,
        display,
        span: sig.name.span,
        class: method.map(|(class, _)| class),
        is_static: method.is_some_and(|(_, is_static)| is_static),
        params,
        locals,
        ret,
        body: hir::Block::default(),
        never_returns: false,
    };
    add(env, file, func, Body { file, block, params: names })
}

fn test_function<'a>(env: &mut Env<'a>, file: FileId, test: &'a ast::Test, shown: &str) -> FuncId {
    let func = hir::Func {
        name: Name::new(shown),
        display: Name::from(format!("test \"{shown}\"")),
        span: test.name_span,
        class: None,
        is_static: false,
        params: Vec::new(),
        locals: Vec::new(),
        ret: Types::VOID,
        body: hir::Block::default(),
        never_returns: false,
    };
    add(env, file, func, Body { file, block: &test.body, params: Vec::new() })
}

fn add<'a>(env: &mut Env<'a>, file: FileId, func: hir::Func, body: Body<'a>) -> FuncId {
    let id = FuncId(u32::try_from(env.program.funcs.len()).unwrap_or(u32::MAX));
    env.program.funcs.push(func);
    env.bodies.push(Some(body));
    let origin = env.origin(file, false);
    env.funcs.push(origin);
    id
}

fn constant(env: &mut Env<'_>, file: FileId, item: &ast::Const, diags: &mut Vec<Diagnostic>) {
    let module_id = env.file(file).module;
    let Some(module) = env.modules.get_mut(module_id.0 as usize) else { return };
    let entries = module.consts.entry(item.name.name.clone()).or_default();
    // The entries of one file follow each other: files are read one after another.
    if let Some(first) = entries.last().filter(|e| e.file == file) {
        diags.push(duplicate("constant", &item.name.name, item.name.span, first.span, "one file"));
        return;
    }
    if entries.is_empty() {
        env.const_modules.entry(item.name.name.clone()).or_default().push(module_id);
    }
    entries.push(ConstEntry { file, is_pub: item.is_pub, value: item.value.clone(), span: item.name.span });
}
