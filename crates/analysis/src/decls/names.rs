//! The names of all types of a program, before anything is known of their members. Classes, unions and interfaces get
//! their ids here; records get provisional ones until `shapes` knows which of them are the same type.

use super::types::builtin_type;
use super::{ClassDecl, ClassSource, Decls, duplicate, stdlib};
use crate::Input;
use crate::env::{ClassInfo, Env, NamedType, Origin, PRELUDE, STDLIB_FILE, TypeEntry};
use crate::hir::{self, ClassId, IfaceId, UnionId};
use diagnostics::Diagnostic;
use diagnostics::span::FileId;
use rustc_hash::FxHashMap;
use syntax::ast::{self, Decl, Ident, Name};

/// Ids from here on are provisional: the record's index in order of declaration is added.
pub(super) const PROVISIONAL: u32 = 1 << 31;

pub(super) fn collect<'a>(env: &mut Env<'_>, input: &'a Input, diags: &mut Vec<Diagnostic>) -> Decls<'a> {
    let mut decls = Decls::default();
    let mut records = 0;
    for record in stdlib::records() {
        let class = ClassId(PROVISIONAL + records);
        records += 1;
        let entry = TypeEntry {
            named: NamedType::Class(class),
            kind: "record",
            is_pub: true,
            module: None,
            span: record.name.span,
            defaults: None,
        };
        let _ = env.type_names.insert((PRELUDE, record.name.name.clone()), entry);
        decls.classes.push(ClassDecl { file: STDLIB_FILE, class, source: ClassSource::Record(record) });
    }
    for input_file in &input.files {
        let file = input_file.id;
        for decl in &input_file.ast.decls {
            match decl {
                Decl::Class(class) => {
                    let origin = env.origin(file, class.is_pub);
                    let is_table = class.annotations.iter().any(|a| a.name.name == "table");
                    let id = new_class(env, &class.name, false, is_table, Some(origin));
                    declare(env, origin, &class.name, "class", NamedType::Class(id), diags);
                    decls.classes.push(ClassDecl { file, class: id, source: ClassSource::Class(class) });
                }
                Decl::Record(record) => {
                    let id = ClassId(PROVISIONAL + records);
                    records += 1;
                    let origin = env.origin(file, record.is_pub);
                    declare(env, origin, &record.name, "record", NamedType::Class(id), diags);
                    decls.classes.push(ClassDecl { file, class: id, source: ClassSource::Record(record) });
                }
                Decl::Union(union) => {
                    let id = UnionId(u32::try_from(env.program.unions.len()).unwrap_or(u32::MAX));
                    env.program.unions.push(hir::Union {
                        name: union.name.name.clone(),
                        span: union.name.span,
                        variants: Vec::new(),
                        has_payload: union.variants.iter().any(|v| !v.fields.is_empty()),
                    });
                    let origin = env.origin(file, union.is_pub);
                    env.unions.push(origin);
                    declare(env, origin, &union.name, "union", NamedType::Union(id), diags);
                    decls.unions.push((file, id, union));
                }
                Decl::Interface(iface) => {
                    let id = IfaceId(u32::try_from(env.program.interfaces.len()).unwrap_or(u32::MAX));
                    env.program.interfaces.push(hir::Interface {
                        name: iface.name.name.clone(),
                        span: iface.name.span,
                        sigs: Vec::new(),
                        impls: Vec::new(),
                    });
                    let origin = env.origin(file, iface.is_pub);
                    env.ifaces.push(origin);
                    declare(env, origin, &iface.name, "interface", NamedType::Iface(id), diags);
                    decls.ifaces.push((file, id, iface));
                }
                Decl::Use(_) | Decl::Test(_) | Decl::Const(_) | Decl::Fn(_) => {}
            }
        }
    }
    decls
}

pub(super) fn new_class(
    env: &mut Env<'_>,
    name: &Ident,
    is_record: bool,
    is_table: bool,
    origin: Option<Origin>,
) -> ClassId {
    let id = ClassId(u32::try_from(env.program.classes.len()).unwrap_or(u32::MAX));
    let package = origin.and_then(|o| env.packages.get(o.package as usize)?.key.as_deref().map(Name::new));
    env.program.classes.push(hir::Class {
        name: name.name.clone(),
        package,
        span: name.span,
        is_record,
        is_table,
        storage: hir::Storage::default(),
        fields: Vec::new(),
        methods: Vec::new(),
        receive: None,
    });
    env.classes.push(ClassInfo {
        origin,
        fields: FxHashMap::default(),
        methods: FxHashMap::default(),
        consts: FxHashMap::default(),
    });
    id
}

fn declare(
    env: &mut Env<'_>,
    origin: Origin,
    name: &Ident,
    kind: &'static str,
    named: NamedType,
    diags: &mut Vec<Diagnostic>,
) {
    if builtin_type(&name.name).is_some() {
        diags.push(
            Diagnostic::error(
                215,
                name.span,
                format!("{kind} `{0}` has the name of the builtin type `{0}`", name.name),
            )
            .label("this name is taken")
            .note("builtin type names mean the same in every program")
            .help(format!("choose another name for the {kind}")),
        );
        return;
    }
    let key = (origin.package, name.name.clone());
    if let Some(first) = env.type_names.get(&key) {
        diags.push(if first.span.file == origin.file {
            let kind = if first.kind == kind { kind.to_owned() } else { format!("{} and {kind}", first.kind) };
            duplicate(&kind, &name.name, name.span, first.span, "one file")
        } else {
            two_files(env, origin.file, first, kind, name)
        });
        return;
    }
    let entry =
        TypeEntry { named, kind, is_pub: origin.is_pub, module: Some(origin.module), span: name.span, defaults: None };
    let _ = env.type_names.insert(key, entry);
    if origin.package != 0 && origin.is_pub {
        env.exported_types.entry(name.name.clone()).or_default().push(origin.package);
    }
}

fn two_files(env: &Env<'_>, file: FileId, first: &TypeEntry, kind: &str, name: &ast::Ident) -> Diagnostic {
    let place = match env.packages.get(env.file(file).package as usize).and_then(|p| p.key.as_deref()) {
        Some(key) => format!("the dependency `{key}`"),
        None => "this project".to_owned(),
    };
    let title = if first.kind == kind {
        format!("{kind} `{}` is declared in two files of {place}", name.name)
    } else {
        format!("{kind} `{}` has the name of another file's {}", name.name, first.kind)
    };
    Diagnostic::error(214, name.span, title)
        .label("declared again here")
        .related(first.span, format!("the {} is first declared here", first.kind))
        .note(format!("type names are visible without `use` in all of {place}, so each must be unique there"))
        .help("rename one of the two, or keep one declaration")
}
