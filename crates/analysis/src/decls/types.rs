//! Source types to interned types, normalised as language specification 5.1 demands: documentation names are `Int`, a
//! table class is its row, records of equal shape are one class.

use crate::env::{Env, NamedType, TypeLookup};
use crate::habits;
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::{FileId, Span};
use syntax::ast::{self, TypeKind};

/// Builtin type names; a program may not declare them.
pub(crate) const BUILTIN_TYPES: [(&str, Ty); 7] = [
    ("Int", Types::INT),
    ("Timestamp", Types::INT),
    ("Id", Types::INT),
    ("Bool", Types::BOOL),
    ("Float", Types::FLOAT),
    ("Text", Types::TEXT),
    ("Bytes", Types::BYTES),
];

pub(crate) fn builtin_type(name: &str) -> Option<Ty> {
    BUILTIN_TYPES.iter().find(|(n, _)| *n == name).map(|(_, ty)| *ty)
}

impl Env<'_> {
    /// The type that `ty` means in this file. Reports unknown names (`WO-E225`), names of other packages without `pub`
    /// (`WO-E217`), ambiguous ones (`WO-E218`) and bad map keys (`WO-E201`); the result is then `ERROR` in that place.
    pub fn resolve_type(&mut self, file: FileId, ty: &ast::Type, diags: &mut Vec<Diagnostic>) -> Ty {
        match &ty.kind {
            TypeKind::Nullable(inner) => {
                let inner = self.resolve_type(file, inner, diags);
                self.program.types.nullable(inner)
            }
            TypeKind::Multi(item) => {
                let item = self.resolve_type(file, item, diags);
                self.program.types.intern(TyKind::Multi(item))
            }
            TypeKind::Map(key, value) => {
                let key_ty = self.resolve_type(file, key, diags);
                let value = self.resolve_type(file, value, diags);
                if self.is_key(key_ty) {
                    return self.program.types.intern(TyKind::Map(key_ty, value));
                }
                diags.push(
                    Diagnostic::error(201, key.span, format!("`{}` cannot be the key of a map", self.show(key_ty)))
                        .label("this type is no key type")
                        .note("keys are compared by value: `Text`, `Bytes`, `Int`, `Bool`, `Float`, unions without payload, `ref` and `actor`")
                        .help("use one of those types as the key, for example the object's name or id"),
                );
                self.program.types.intern(TyKind::Map(Types::ERROR, value))
            }
            TypeKind::Ref(name) => self.ref_type(file, name, diags),
            TypeKind::Actor(name) => self.actor_type(file, name, diags),
            TypeKind::Backlink(class, field) => {
                diags.push(
                    Diagnostic::error(
                        101,
                        ty.span,
                        format!("expected a type, found `backlink {}.{}`", class.name, field.name),
                    )
                    .label("`backlink` is only legal as the type of a class field")
                    .note("a backlink is a view of other rows that belongs to one row; it is not a value")
                    .help(format!("write `multi {}` for a list of rows", class.name)),
                );
                Types::ERROR
            }
            TypeKind::Named(name) => match builtin_type(&name.name) {
                Some(ty) => ty,
                None => match self.resolve_name(file, name, diags) {
                    Some(named) => self.type_of(named),
                    None => Types::ERROR,
                },
            },
            TypeKind::Qualified(module, name) => self.qualified_type(file, module, name, ty.span, diags),
        }
    }

    fn ref_type(&mut self, file: FileId, name: &ast::Ident, diags: &mut Vec<Diagnostic>) -> Ty {
        match self.resolve_name(file, name, diags) {
            Some(NamedType::Class(class)) if !self.is_record(class) => self.program.types.intern(TyKind::Row(class)),
            Some(other) => {
                diags.push(
                    Diagnostic::error(225, name.span, format!("`ref {}` does not name a class with rows", name.name))
                        .label(format!("`{}` is {}", name.name, self.describe(other)))
                        .note("`ref C` is the handle of a row, and only classes have rows")
                        .help(format!("write `{}` without `ref`, or declare a class", name.name)),
                );
                Types::ERROR
            }
            None => Types::ERROR,
        }
    }

    fn actor_type(&mut self, file: FileId, name: &ast::Ident, diags: &mut Vec<Diagnostic>) -> Ty {
        let message = match self.resolve_name(file, name, diags) {
            Some(NamedType::Class(class)) if !self.is_table(class) => TyKind::Class(class),
            Some(NamedType::Union(union)) => TyKind::Union(union),
            Some(other) => {
                diags.push(
                    Diagnostic::error(225, name.span, format!("`actor {}` does not name a message type", name.name))
                        .label(format!("`{}` is {}", name.name, self.describe(other)))
                        .note("actors receive values of a class, a record or a union")
                        .help("name the type of the parameter of the actor's `receive`"),
                );
                return Types::ERROR;
            }
            None => return Types::ERROR,
        };
        let message = self.program.types.intern(message);
        self.program.types.intern(TyKind::Actor(message))
    }

    fn qualified_type(
        &mut self,
        file: FileId,
        module: &ast::Ident,
        name: &ast::Ident,
        span: Span,
        diags: &mut Vec<Diagnostic>,
    ) -> Ty {
        let known = match (module.name.as_str(), name.name.as_str()) {
            ("net", "Conn") => Types::INT,
            ("json", "Value") => Types::JSON,
            _ => {
                let help = if matches!(self.type_lookup(file, &name.name), TypeLookup::Found(_)) {
                    format!("write `{}`: type names are visible without their module", name.name)
                } else {
                    "type names are written without a module; `net.Conn` and `json.Value` are the only dotted ones"
                        .to_owned()
                };
                diags.push(
                    Diagnostic::error(225, span, format!("unknown type `{}.{}`", module.name, name.name))
                        .label("there are no qualified type names")
                        .note("classes, records, unions and interfaces are visible by their bare name in the whole package")
                        .help(help),
                );
                return Types::ERROR;
            }
        };
        // The `use` is used.
        let _ = self.namespace(file, &module.name);
        known
    }

    /// The type of the values of a declared type; of a table, its rows.
    pub(crate) fn type_of(&mut self, named: NamedType) -> Ty {
        let kind = match named {
            NamedType::Class(class) if self.is_table(class) => TyKind::Row(class),
            NamedType::Class(class) => TyKind::Class(class),
            NamedType::Union(union) => TyKind::Union(union),
            NamedType::Iface(iface) => TyKind::Iface(iface),
        };
        self.program.types.intern(kind)
    }

    /// The declared type of a name in a type position, or a report.
    pub(crate) fn resolve_name(
        &mut self,
        file: FileId,
        name: &ast::Ident,
        diags: &mut Vec<Diagnostic>,
    ) -> Option<NamedType> {
        if let TypeLookup::Found(entry) = self.type_lookup(file, &name.name) {
            return Some(entry.named);
        }
        diags.extend(self.unknown_type(file, name));
        None
    }

    /// The report for a type name that does not resolve; `None` if another report explains it.
    #[must_use]
    pub fn unknown_type(&self, file: FileId, name: &ast::Ident) -> Option<Diagnostic> {
        Some(match self.type_lookup(file, &name.name) {
            _ if self.is_unread(&name.name) => return None,
            TypeLookup::NotExported { module, span } => not_exported(&name.name, &module, name.span, span),
            TypeLookup::Ambiguous(keys) => {
                let list = keys.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
                Diagnostic::error(218, name.span, format!("`{}` is ambiguous: {list} export a type of that name", name.name))
                    .label("which one is meant?")
                    .note("type names have no module in front, so two dependencies that export the same one cannot be told apart")
                    .help(format!("declare a type `{}` of the project's own, or drop one of the dependencies", name.name))
            }
            _ if name.name == "Dynamic" || name.name == "untyped" => Diagnostic::error(
                225,
                name.span,
                format!("there is no type `{}`", name.name),
            )
            .label("every value has a type that is known here")
            .note("the checker proves ownership and nullability from types; a value of any type would escape both")
            .help(
                "use a union for a closed set of shapes, an interface for an open one, `json.Value` for foreign JSON",
            ),
            _ => {
                let diagnostic = Diagnostic::error(225, name.span, format!("unknown type `{}`", name.name))
                    .label("no class, record, union or interface has this name")
                    .note("type names of the project resolve without `use`; those of a dependency need `pub` there");
                if let Some(help) = habits::type_name(&name.name) {
                    return Some(diagnostic.help(help));
                }
                match self.near(&name.name, self.type_candidates(file)) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help(format!("declare it: `class {} {{ … }}`, or correct the name", name.name)),
                }
            }
        })
    }

    /// All type names that a file may write, for spelling suggestions.
    pub fn type_candidates(&self, file: FileId) -> impl Iterator<Item = &str> {
        let own = self.file(file).package;
        let builtin = BUILTIN_TYPES.iter().map(|(name, _)| *name);
        let declared = self.type_names.iter().filter(move |((package, _), entry)| {
            *package == own || entry.module.is_none() || (own == 0 && entry.is_pub)
        });
        builtin.chain(declared.map(|((_, name), _)| name.as_str()))
    }

    /// Whether values of the type can be keys of a map (5.1).
    #[must_use]
    pub fn is_key(&self, ty: Ty) -> bool {
        match self.program.types.kind(ty) {
            TyKind::Error
            | TyKind::Int
            | TyKind::Bool
            | TyKind::Float
            | TyKind::Text
            | TyKind::Bytes
            | TyKind::Row(_)
            | TyKind::Actor(_) => true,
            TyKind::Union(union) => self.program.unions.get(union.0 as usize).is_some_and(|u| !u.has_payload),
            _ => false,
        }
    }

    pub(crate) fn is_table(&self, class: crate::hir::ClassId) -> bool {
        self.program.classes.get(class.0 as usize).is_some_and(|c| c.is_table)
    }

    pub(crate) fn is_record(&self, class: crate::hir::ClassId) -> bool {
        self.program.classes.get(class.0 as usize).is_some_and(|c| c.is_record)
    }

    /// `a record`, `an interface`, …
    pub(crate) fn describe(&self, named: NamedType) -> &'static str {
        match named {
            NamedType::Class(class) if self.is_table(class) => "an `@table` class",
            NamedType::Class(class) if self.is_record(class) => "a record",
            NamedType::Class(_) => "a class",
            NamedType::Union(_) => "a union",
            NamedType::Iface(_) => "an interface",
        }
    }
}

/// `WO-E217` for any kind of name.
pub(crate) fn not_exported(name: &str, module: &str, at: Span, declared: Span) -> Diagnostic {
    Diagnostic::error(217, at, format!("`{name}` of `{module}` is not exported"))
        .label("not visible here")
        .related(declared, "declared here without `pub`")
        .note("only `pub` declarations are visible outside of their module or package")
        .help(format!("write `pub` before the declaration of `{name}`"))
}
