//! Defaults of fields (language specification 3.3): constants are replaced by their values, literals are checked
//! against the field's type, nullable fields without a default get nil.

use super::classes::distinct_fields;
use super::{ClassDecl, Decls};
use crate::env::{ConstLookup, Env, NamedType, PRELUDE, STDLIB_FILE, TypeLookup};
use crate::graph;
use crate::hir::{ClassId, Default_};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use rustc_hash::FxHashMap;
use syntax::ast::{self, DefaultKind, Ident, Literal};

/// A `Name {}` that was accepted as a default.
struct Made {
    owner: ClassId,
    class: ClassId,
    file: FileId,
    name: ast::Name,
    span: Span,
}

struct Checker<'e, 'a> {
    env: &'e mut Env<'a>,
    diags: &'e mut Vec<Diagnostic>,
    /// Which field of which declaration a construction by `Name {}` would miss.
    missing: FxHashMap<Span, Vec<String>>,
    made: Vec<Made>,
}

/// Where a default stands.
struct Site<'d> {
    file: FileId,
    owner: ClassId,
    /// `Class.field`, for messages.
    slot: &'d str,
    /// Of the field, for the reports that name no part of the default.
    span: Span,
}

pub(super) fn check(env: &mut Env<'_>, decls: &Decls<'_>, diags: &mut Vec<Diagnostic>) {
    let missing = decls.classes.iter().map(|d| (d.source.name().span, missing_fields(env, d))).collect();
    let mut checker = Checker { env, diags, missing, made: Vec::new() };
    let mut others = Vec::new();
    for decl in &decls.classes {
        let defaults = checker.defaults(decl);
        let Some(class) = checker.env.program.classes.get_mut(decl.class.0 as usize) else { continue };
        // The record that names the class need not be the first of its shape, but its defaults are the class's.
        if class.span == decl.source.name().span {
            for (field, default) in class.fields.iter_mut().zip(defaults) {
                field.default = default;
            }
        } else {
            others.push((decl, defaults));
        }
    }
    let made = std::mem::take(&mut checker.made);
    for (decl, defaults) in others {
        let class = env.program.classes.get(decl.class.0 as usize);
        let same = class.is_some_and(|c| c.fields.iter().map(|f| &f.default).eq(&defaults));
        let key = if decl.file == STDLIB_FILE { PRELUDE } else { env.file(decl.file).package };
        let name = decl.source.name();
        if let Some(entry) = env.type_names.get_mut(&(key, name.name.clone()))
            && entry.span == name.span
            && !same
        {
            entry.defaults = Some(defaults);
        }
    }
    report_aliases(env, &made, diags);
    report_cycles(env, &made, diags);
}

/// Fields without which `Name {}` is not complete.
fn missing_fields(env: &Env<'_>, decl: &ClassDecl<'_>) -> Vec<String> {
    let Some(class) = env.program.classes.get(decl.class.0 as usize) else { return Vec::new() };
    let fields = distinct_fields(decl.source);
    let required =
        fields.iter().zip(&class.fields).filter(|(source, field)| source.default.is_none() && !env.omittable(field));
    required.map(|(source, _)| source.name.name.to_string()).collect()
}

impl Checker<'_, '_> {
    fn defaults(&mut self, decl: &ClassDecl<'_>) -> Vec<Option<Default_>> {
        let mut out = Vec::new();
        for (i, field) in distinct_fields(decl.source).into_iter().enumerate() {
            let class = self.env.program.classes.get(decl.class.0 as usize);
            let ty = class.and_then(|c| c.fields.get(i)).map_or(Types::ERROR, |f| f.ty);
            let nullable = matches!(self.env.program.types.kind(ty), TyKind::Nullable(_));
            out.push(match &field.default {
                None => nullable.then_some(Default_::Nil),
                Some(default) => {
                    let slot = format!("{}.{}", decl.source.name().name, field.name.name);
                    let site = Site { file: decl.file, owner: decl.class, slot: &slot, span: field.span };
                    // A refused default still counts as one: constructors that omit the field are not at fault.
                    Some(self.default(&site, ty, default).unwrap_or(Default_::Nil))
                }
            });
        }
        out
    }

    /// The value of a default for a slot of type `ty`; `None` after a report.
    fn default(&mut self, site: &Site<'_>, ty: Ty, default: &ast::Default_) -> Option<Default_> {
        let kind = self.env.program.types.kind(ty);
        if matches!(kind, TyKind::Backlink(..)) {
            self.diags.push(
                Diagnostic::error(403, default.span, format!("the backlink `{}` has a default", site.slot))
                    .label("a backlink is computed")
                    .note("the rows of a backlink are those whose `ref` points here; nothing is stored in the field")
                    .help("remove the default"),
            );
            return None;
        }
        match &default.kind {
            DefaultKind::Nil => {
                if matches!(kind, TyKind::Nullable(_) | TyKind::Error) {
                    return Some(Default_::Nil);
                }
                self.diags.push(
                    Diagnostic::error(
                        212,
                        default.span,
                        format!("`nil` is the default of `{}`, which is `{}`", site.slot, self.env.show(ty)),
                    )
                    .label("this field is never nil")
                    .note("only fields of a type with `?` can be nil")
                    .help(format!("declare the field as `?{}`, or give it another default", self.env.show(ty))),
                );
                None
            }
            DefaultKind::Now => self.scalar(site, ty, default.span, Types::INT, Default_::Now),
            DefaultKind::Literal(literal) => self.literal(site, ty, default.span, literal),
            DefaultKind::Const(name) => {
                match self.env.const_in_scope(site.file, Some(site.owner), name) {
                    ConstLookup::Found(literal) => return self.literal(site, ty, default.span, &literal),
                    ConstLookup::Ambiguous(modules) => {
                        let list = modules.iter().map(|m| format!("`{m}`")).collect::<Vec<_>>().join(", ");
                        self.diags.push(
                            Diagnostic::error(
                                218,
                                default.span,
                                format!("constant `{name}` is ambiguous: {list} declare it"),
                            )
                            .label("which one is meant?")
                            .note("a constant is looked up in the file, its module, the used modules, then the program")
                            .help("declare the constant in this file, or rename one of them"),
                        );
                    }
                    ConstLookup::None if self.env.is_unread(name) => {}
                    ConstLookup::None => {
                        let (label, help) = if self.env.variant(site.file, name).is_empty() {
                            ("no constant has this name", format!("declare `const {name} = …`, or give"))
                        } else {
                            ("a variant is no default", "leave the default out, and give".to_owned())
                        };
                        self.diags.push(
                            Diagnostic::error(
                                403,
                                site.span,
                                format!("the default of `{}` is not a constant: `{name}`", site.slot),
                            )
                            .label(label)
                            .note(
                                "defaults are literals, constants, `nil`, `now`, `[]`, `{}`, lists of these, and `Name {}`",
                            )
                            .help(format!("{help} the field in every constructor")),
                        );
                    }
                }
                None
            }
            DefaultKind::List(items) => {
                let inner = self.env.program.types.strip(ty);
                match self.env.program.types.kind(inner) {
                    TyKind::Error => None,
                    TyKind::Multi(_) if items.is_empty() => Some(Default_::EmptyMulti),
                    TyKind::Multi(item) => {
                        let slot = format!("{}[]", site.slot);
                        let inner = Site { slot: &slot, ..*site };
                        let values: Vec<_> = items.iter().map(|i| self.default(&inner, item, i)).collect();
                        values.into_iter().collect::<Option<Vec<_>>>().map(Default_::List)
                    }
                    _ => self.mismatch(site, ty, default.span, "a list"),
                }
            }
            DefaultKind::EmptyMap => match self.env.program.types.kind(self.env.program.types.strip(ty)) {
                TyKind::Error => None,
                TyKind::Map(..) => Some(Default_::EmptyMap),
                _ => self.mismatch(site, ty, default.span, "a map"),
            },
            DefaultKind::New(name) => self.construct(site, ty, default.span, name),
            DefaultKind::Invalid => {
                self.diags.push(
                    Diagnostic::error(403, site.span, format!("`{}` has a default that is not constant", site.slot))
                        .label("this default cannot be evaluated at construction")
                        .note(
                            "defaults are literals, constants, `nil`, `now`, `[]`, `{}`, lists of these, and `Name {}`",
                        )
                        .help("give the field in the constructor, or compute it in a function that makes the object"),
                );
                None
            }
        }
    }

    fn literal(&mut self, site: &Site<'_>, ty: Ty, span: Span, literal: &Literal) -> Option<Default_> {
        let (given, value) = match literal {
            Literal::Int(n) => (Types::INT, Default_::Int(*n)),
            Literal::Float(f) => (Types::FLOAT, Default_::Float(*f)),
            Literal::Bool(b) => {
                // The one literal whose value changes on its way: Bool goes to Int.
                let to_int = self.env.program.types.strip(ty) == Types::INT;
                (Types::BOOL, if to_int { Default_::Int(i64::from(*b)) } else { Default_::Bool(*b) })
            }
            Literal::Text(t) => (Types::TEXT, Default_::Text(t.clone())),
        };
        self.scalar(site, ty, span, given, value)
    }

    fn scalar(&mut self, site: &Site<'_>, ty: Ty, span: Span, given: Ty, value: Default_) -> Option<Default_> {
        if self.env.assignable_static(given, ty) {
            return Some(value);
        }
        let given = self.env.show(given);
        self.mismatch(site, ty, span, &format!("`{given}`"))
    }

    fn mismatch(&mut self, site: &Site<'_>, ty: Ty, span: Span, given: &str) -> Option<Default_> {
        let wanted = self.env.show(ty);
        self.diags.push(
            Diagnostic::error(201, span, format!("the default of `{}` is {given}, the field is `{wanted}`", site.slot))
                .label(format!("expected `{wanted}`, found {given}"))
                .note("a default must be assignable to its field")
                .help(format!("write a default of type `{wanted}`, or change the type of the field")),
        );
        None
    }

    fn construct(&mut self, site: &Site<'_>, ty: Ty, span: Span, name: &Ident) -> Option<Default_> {
        let (named, declared) = match self.env.type_lookup(site.file, &name.name) {
            TypeLookup::Found(entry) => (entry.named, entry.span),
            TypeLookup::None if self.env.is_unread(&name.name) => return None,
            TypeLookup::None => {
                let near = self.env.near(&name.name, self.env.type_candidates(site.file));
                let help = near.map_or_else(
                    || "declare the class, or correct the name".to_owned(),
                    |n| format!("did you mean `{n}`?"),
                );
                self.diags.push(
                    Diagnostic::error(207, name.span, format!("unknown class `{}` in a default", name.name))
                        .label("no class has this name")
                        .note("a default `Name {}` makes an object of the class at each construction")
                        .help(help),
                );
                return None;
            }
            _ => {
                self.diags.extend(self.env.unknown_type(site.file, name));
                return None;
            }
        };
        let NamedType::Class(class) = named else {
            self.diags.push(
                Diagnostic::error(
                    207,
                    name.span,
                    format!("`{}` in a default is {}", name.name, self.env.describe(named)),
                )
                .label("only classes and records can be constructed")
                .note("a default `Name {}` makes an object of the class at each construction")
                .help("name a class, or give the field in every constructor"),
            );
            return None;
        };
        if self.env.is_table(class) {
            self.diags.push(
                Diagnostic::error(
                    250,
                    name.span,
                    format!("the default of `{}` constructs the `@table` class `{}`", site.slot, name.name),
                )
                .label("rows are inserted, not constructed")
                .note("values of an `@table` class are rows of its table")
                .help(format!(
                    "declare the field as `?{}` and store the result of `insert {} {{ … }}`",
                    name.name, name.name
                )),
            );
            return None;
        }
        if let Some(missing) = self.missing.get(&declared).filter(|m| !m.is_empty()) {
            let list = missing.iter().map(|f| format!("`{f}`")).collect::<Vec<_>>().join(", ");
            self.diags.push(
                Diagnostic::error(
                    403,
                    site.span,
                    format!("the default of `{}` leaves out {list} of `{}`", site.slot, name.name),
                )
                .label(format!("`{} {{}}` is not complete", name.name))
                .note("a default `Name {}` needs a class all of whose fields may be omitted")
                .help(format!("give {list} defaults, or give this field in every constructor")),
            );
            return None;
        }
        let made = self.env.program.types.intern(TyKind::Class(class));
        if !self.env.assignable_static(made, ty) {
            let target = self.env.program.types.kind(self.env.program.types.strip(ty));
            let TyKind::Iface(iface) = target else {
                return self.mismatch(site, ty, span, &format!("`{}`", name.name));
            };
            let why = self.env.satisfies(class, iface).err().unwrap_or_default();
            self.diags.push(
                Diagnostic::error(
                    205,
                    span,
                    format!("`{}` does not satisfy `{}`: {why}", name.name, self.env.show(ty)),
                )
                .label(format!("expected `{}`", self.env.show(ty)))
                .note("a class satisfies an interface by having all its methods with fitting types")
                .help(format!("add or change the method in `{}`", name.name)),
            );
            return None;
        }
        if let TyKind::Iface(iface) = self.env.program.types.kind(self.env.program.types.strip(ty)) {
            let _ = self.env.satisfies(class, iface);
        }
        self.made.push(Made { owner: site.owner, class, file: site.file, name: name.name.clone(), span });
        Some(Default_::New(class))
    }
}

/// HIR has no way to construct a record by other defaults than those of its class inside of a default.
fn report_aliases(env: &Env<'_>, made: &[Made], diags: &mut Vec<Diagnostic>) {
    for made in made {
        if env.record_defaults(made.file, &made.name).is_some() {
            let class = env.program.classes.get(made.class.0 as usize).map(|c| c.name.clone()).unwrap_or_default();
            diags.push(
                Diagnostic::error(403, made.span, format!("`{} {{}}` as a default is not supported yet", made.name))
                    .label(format!("`{}` has the shape of `{class}` but other defaults", made.name))
                    .note("records of equal shape are one type, and a default constructs by the defaults of the first of them")
                    .help("give this field in the constructors"),
            );
        }
    }
}

/// A default that constructs, through further defaults, the class it belongs to would never end.
fn report_cycles(env: &Env<'_>, made: &[Made], diags: &mut Vec<Diagnostic>) {
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); env.program.classes.len()];
    for made in made {
        if let Some(list) = edges.get_mut(made.owner.0 as usize) {
            list.push(made.class.0 as usize);
        }
    }
    let components = graph::components(&edges);
    for made in made {
        let (owner, class) = (made.owner.0 as usize, made.class.0 as usize);
        if components.get(owner) == components.get(class) {
            let owner = env.program.classes.get(owner).map(|c| c.name.clone()).unwrap_or_default();
            diags.push(
                Diagnostic::error(403, made.span, format!("the default `{} {{}}` constructs `{owner}` again", made.name))
                    .label("this would never end")
                    .note("each construction evaluates the defaults of the omitted fields, and so on for the objects they make")
                    .help(format!("declare the field as `?{}`, which is nil unless given", made.name)),
            );
        }
    }
}
