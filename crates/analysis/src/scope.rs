//! What a name means in a file: own module, used modules, the package, the program (language specification 3.8, 4.1,
//! 4.2). Every successful look-up marks the `use` it went through, so that the rest can be reported as unused.

use crate::env::{
    ConstEntry, ConstLookup, Elsewhere, Env, FileScope, FuncLookup, ModuleId, NAMESPACES, NamedType, PRELUDE,
    QualifiedConst, QualifiedLookup, TypeEntry, TypeLookup, UseEntry, UseTarget,
};
use crate::hir::{ClassId, FuncId, UnionId};
use diagnostics::span::FileId;
use syntax::ast::Name;

impl Env<'_> {
    /// The scope of a file; an empty one for an id that is not in the input.
    #[must_use]
    pub fn file(&self, file: FileId) -> &FileScope {
        self.file_index.get(&file).and_then(|i| self.files.get(*i)).unwrap_or(&self.no_file)
    }

    /// The module's path for messages.
    #[must_use]
    pub fn module_path(&self, module: ModuleId) -> &str {
        self.modules.get(module.0 as usize).map_or(".", |m| m.path.as_str())
    }

    /// Marks every `use` of the file that reaches this module.
    pub fn mark_used(&self, file: FileId, module: ModuleId) {
        let scope = self.file(file);
        if module != scope.module && self.modules.get(module.0 as usize).is_some_and(|m| m.package != 0) {
            let _ = self.reached.borrow_mut().insert((scope.module, module));
        }
        for index in scope.used_modules.get(&module).into_iter().flatten() {
            if let Some(entry) = scope.uses.get(*index) {
                entry.used.set(true);
            }
        }
    }

    /// The modules among `declaring` that the file uses, in the order of its `use`s.
    fn used_among(&self, file: FileId, declaring: Option<&Vec<ModuleId>>) -> Vec<ModuleId> {
        let scope = self.file(file);
        let uses = |m: &ModuleId| scope.used_modules.get(m);
        let mut out: Vec<ModuleId> = declaring.into_iter().flatten().filter(|m| uses(m).is_some()).copied().collect();
        out.sort_by_key(|m| uses(m).and_then(|u| u.first().copied()));
        out
    }

    /// What a bare call of `name` means before variants and builtins: the own module's function, else the one that a
    /// used module exports.
    #[must_use]
    pub fn func_in_scope(&self, file: FileId, name: &str) -> FuncLookup {
        let scope = self.file(file);
        if let Some(entry) = self.modules.get(scope.module.0 as usize).and_then(|m| m.funcs.get(name)) {
            return FuncLookup::Found(entry.func);
        }
        let mut found: Vec<(ModuleId, FuncId)> = Vec::new();
        for module in self.used_among(file, self.func_modules.get(name)) {
            if let Some(entry) = self.modules.get(module.0 as usize).and_then(|m| m.funcs.get(name))
                && entry.is_pub
            {
                found.push((module, entry.func));
            }
        }
        for (module, _) in &found {
            self.mark_used(file, *module);
        }
        match found.as_slice() {
            [] => FuncLookup::None,
            [(_, func)] => FuncLookup::Found(*func),
            several => FuncLookup::Ambiguous(several.iter().map(|(m, _)| self.module_path(*m).to_owned()).collect()),
        }
    }

    /// Whether files of `file`'s package may know of `module` at all: its own package's, and from the project those of
    /// dependencies.
    fn reaches(&self, file: FileId, module: ModuleId) -> bool {
        let own = self.file(file).package;
        own == 0 || self.modules.get(module.0 as usize).is_some_and(|m| m.package == own)
    }

    /// The path a `use` in this file would write for the module.
    #[must_use]
    pub fn use_path(&self, file: FileId, module: ModuleId) -> String {
        let own = self.file(file).package;
        match self.modules.get(module.0 as usize) {
            Some(m) if m.package == own && own != 0 && !m.inner.is_empty() => m.inner.clone(),
            Some(m) if m.package == own && m.inner.is_empty() => ".".to_owned(),
            Some(m) => m.path.clone(),
            None => ".".to_owned(),
        }
    }

    /// Where a bare function that is not in scope is declared: first a declaration without `pub` (`WO-E217`), then a
    /// module that exports it (`WO-E210`).
    #[must_use]
    pub fn func_elsewhere(&self, file: FileId, name: &str) -> Elsewhere {
        let own = self.file(file).module;
        let mut exporting = None;
        for module in self.func_modules.get(name).into_iter().flatten() {
            if *module == own || !self.reaches(file, *module) {
                continue;
            }
            let Some(entry) = self.modules.get(module.0 as usize).and_then(|m| m.funcs.get(name)) else { continue };
            if entry.is_pub {
                exporting = exporting.or(Some(*module));
            } else {
                self.mark_used(file, *module);
                return Elsewhere::NotExported { module: self.module_path(*module).to_owned(), span: entry.span };
            }
        }
        match exporting {
            Some(module) => Elsewhere::UnusedModule { module: self.use_path(file, module) },
            None => Elsewhere::Nowhere,
        }
    }

    fn uses_as(&self, file: FileId, alias: &str) -> impl Iterator<Item = &UseEntry> {
        let scope = self.file(file);
        scope.aliases.get(alias).into_iter().flatten().filter_map(|i| scope.uses.get(*i))
    }

    /// The modules that `alias` stands for in this file (two `use`s may share an alias); marks their `use`s.
    fn aliased(&self, file: FileId, alias: &str) -> Vec<ModuleId> {
        let mut out = Vec::new();
        for entry in self.uses_as(file, alias) {
            if let UseTarget::Module(module) = entry.target {
                entry.used.set(true);
                if !out.contains(&module) {
                    out.push(module);
                }
            }
        }
        out
    }

    /// `alias.name(…)`. `None`: `alias` is no used module of the file (it may still be a namespace, see `namespace`).
    #[must_use]
    pub fn func_qualified(&self, file: FileId, alias: &str, name: &str) -> Option<QualifiedLookup> {
        let modules = self.aliased(file, alias);
        let first = *modules.first()?;
        let own = self.file(file).module;
        let mut found: Vec<(ModuleId, FuncId)> = Vec::new();
        let mut hidden = None;
        for module in modules {
            let Some(entry) = self.modules.get(module.0 as usize).and_then(|m| m.funcs.get(name)) else { continue };
            if entry.is_pub || module == own {
                found.push((module, entry.func));
            } else {
                hidden = hidden.or(Some((module, entry.span)));
            }
        }
        Some(match (found.as_slice(), hidden) {
            ([(_, func)], _) => QualifiedLookup::Found(*func),
            ([], Some((module, span))) => {
                QualifiedLookup::NotExported { module: self.module_path(module).to_owned(), span }
            }
            ([], None) => QualifiedLookup::Unknown { module: self.module_path(first).to_owned() },
            (several, _) => {
                QualifiedLookup::Ambiguous(several.iter().map(|(m, _)| self.module_path(*m).to_owned()).collect())
            }
        })
    }

    /// Whether the name may be declared by what could not be read (reported already): its uses are not reported again.
    #[must_use]
    pub fn is_unread(&self, name: &str) -> bool {
        self.unread.contains(name)
    }

    /// Whether the file has a `use` with this alias that could not be resolved (reported already): names behind it are
    /// not reported again.
    #[must_use]
    pub fn alias_is_broken(&self, file: FileId, alias: &str) -> bool {
        self.uses_as(file, alias).any(|u| u.target == UseTarget::Unknown)
    }

    /// The reserved namespace that `alias` means in this file, if it is used here.
    #[must_use]
    pub fn namespace(&self, file: FileId, alias: &str) -> Option<Name> {
        let mut found = None;
        for entry in self.uses_as(file, alias) {
            if let UseTarget::Namespace(name) = &entry.target {
                entry.used.set(true);
                found = Some(name.clone());
            }
        }
        found
    }

    /// Whether the name is a reserved namespace (used or not).
    #[must_use]
    pub fn is_namespace_name(name: &str) -> bool {
        NAMESPACES.contains(&name)
    }

    /// A bare constant (3.8): of the class (in methods), the file, the module, a used module, else of the only module
    /// of the program that declares the name.
    #[must_use]
    pub fn const_in_scope(&self, file: FileId, class: Option<ClassId>, name: &str) -> ConstLookup {
        if let Some(value) = class.and_then(|c| self.class_const(c, name, false)) {
            return ConstLookup::Found(value);
        }
        let Some(declaring) = self.const_modules.get(name) else { return ConstLookup::None };
        let scope = self.file(file);
        let entries = |m: ModuleId| {
            let list = self.modules.get(m.0 as usize).and_then(|m| m.consts.get(name));
            list.map_or(&[] as &[ConstEntry], Vec::as_slice)
        };
        if let Some(own) = entries(scope.module).iter().find(|e| e.file == file) {
            return ConstLookup::Found(own.value.clone());
        }
        let own: Vec<(ModuleId, &ConstEntry)> = entries(scope.module).iter().map(|e| (scope.module, e)).collect();
        if !own.is_empty() {
            return self.one_const(file, &own);
        }
        let mut used = Vec::new();
        for module in self.used_among(file, Some(declaring)) {
            used.extend(entries(module).iter().filter(|e| e.is_pub).map(|e| (module, e)));
        }
        if !used.is_empty() {
            return self.one_const(file, &used);
        }
        let mut others = Vec::new();
        for module in declaring.iter().filter(|m| self.reaches(file, **m)) {
            let foreign = self.modules.get(module.0 as usize).is_none_or(|m| m.package != scope.package);
            others.extend(entries(*module).iter().filter(|e| e.is_pub || !foreign).map(|e| (*module, e)));
        }
        if others.is_empty() { ConstLookup::None } else { self.one_const(file, &others) }
    }

    fn one_const(&self, file: FileId, found: &[(ModuleId, &ConstEntry)]) -> ConstLookup {
        for (module, _) in found {
            self.mark_used(file, *module);
        }
        match found {
            [] => ConstLookup::None,
            [(_, entry)] => ConstLookup::Found(entry.value.clone()),
            several => ConstLookup::Ambiguous(
                several
                    .iter()
                    .map(|(m, e)| {
                        let shown = self.file(e.file).display.as_str();
                        if several.iter().all(|(other, _)| other == m) { shown } else { self.module_path(*m) }
                            .to_owned()
                    })
                    .collect(),
            ),
        }
    }

    /// `alias.NAME`: a `pub` constant of a used module.
    #[must_use]
    pub fn const_qualified(&self, file: FileId, alias: &str, name: &str) -> QualifiedConst {
        let own = self.file(file).module;
        let mut found: Vec<(ModuleId, &ConstEntry)> = Vec::new();
        let mut hidden = None;
        for module in self.aliased(file, alias) {
            let list = self.modules.get(module.0 as usize).and_then(|m| m.consts.get(name));
            for entry in list.into_iter().flatten() {
                if entry.is_pub || module == own {
                    found.push((module, entry));
                } else {
                    hidden = hidden.or(Some((module, entry.span)));
                }
            }
        }
        match (self.one_const(file, &found), hidden) {
            (ConstLookup::Found(value), _) => QualifiedConst::Found(value),
            (ConstLookup::Ambiguous(places), _) => QualifiedConst::Ambiguous(places),
            (ConstLookup::None, Some((module, span))) => {
                QualifiedConst::NotExported { module: self.module_path(module).to_owned(), span }
            }
            (ConstLookup::None, None) => QualifiedConst::Unknown,
        }
    }

    /// What a type name means in this file; builtin type names (`Int`, `Text`, …) are not looked up here.
    #[must_use]
    pub fn type_lookup(&self, file: FileId, name: &str) -> TypeLookup<'_> {
        let own = self.file(file).package;
        let key = Name::new(name);
        if let Some(entry) = self.type_names.get(&(own, key.clone())) {
            if let Some(module) = entry.module {
                self.mark_used(file, module);
            }
            return TypeLookup::Found(entry);
        }
        if own == 0
            && let Some(packages) = self.exported_types.get(name)
        {
            match packages.as_slice() {
                [package] => {
                    if let Some(entry) = self.type_names.get(&(*package, key.clone())) {
                        if let Some(module) = entry.module {
                            self.mark_used(file, module);
                        }
                        return TypeLookup::Found(entry);
                    }
                }
                [] => {}
                several => return TypeLookup::Ambiguous(several.iter().map(|p| self.package_key(*p)).collect()),
            }
        }
        if let Some(entry) = self.type_names.get(&(PRELUDE, key.clone()))
            && !self.is_unread(name)
        {
            return TypeLookup::Found(entry);
        }
        if own == 0 {
            for package in 1..self.packages.len() {
                let package = u32::try_from(package).unwrap_or(PRELUDE);
                if let Some(entry) = self.type_names.get(&(package, key.clone())) {
                    if let Some(module) = entry.module {
                        self.mark_used(file, module);
                    }
                    let module = entry.module.map_or_else(String::new, |m| self.module_path(m).to_owned());
                    return TypeLookup::NotExported { module, span: entry.span };
                }
            }
        }
        TypeLookup::None
    }

    fn package_key(&self, package: u32) -> String {
        self.packages.get(package as usize).and_then(|p| p.key.clone()).unwrap_or_default()
    }

    /// The declared type of that name, if the file sees exactly one.
    #[must_use]
    pub fn named_type(&self, file: FileId, name: &str) -> Option<NamedType> {
        match self.type_lookup(file, name) {
            TypeLookup::Found(TypeEntry { named, .. }) => Some(*named),
            _ => None,
        }
    }

    /// Functions that `recv.name(…)` may mean as extension methods in this file, with the paths of their modules; the
    /// caller compares the type of the first parameter.
    #[must_use]
    pub fn extensions(&self, file: FileId, name: &str) -> Vec<(FuncId, String)> {
        let mut out: Vec<(FuncId, String)> = Vec::new();
        for entry in self.file(file).uses.iter().filter(|u| u.extensions) {
            let UseTarget::Module(module) = entry.target else { continue };
            let Some(found) = self.modules.get(module.0 as usize).and_then(|m| m.funcs.get(name)) else { continue };
            let takes_receiver = self.program.funcs.get(found.func.0 as usize).is_some_and(|f| !f.params.is_empty());
            if found.is_pub && takes_receiver {
                entry.used.set(true);
                if !out.iter().any(|(f, _)| *f == found.func) {
                    out.push((found.func, self.module_path(module).to_owned()));
                }
            }
        }
        out
    }

    /// The unions that declare a variant of this name, as far as this file's package sees them.
    #[must_use]
    pub fn variant(&self, file: FileId, name: &str) -> &[(UnionId, u32)] {
        let found = self.variants.get(&(self.file(file).package, Name::new(name)));
        for (union, _) in found.into_iter().flatten() {
            if let Some(origin) = self.unions.get(union.0 as usize) {
                self.mark_used(file, origin.module);
            }
        }
        found.map_or(&[], Vec::as_slice)
    }

    /// The candidate nearest in spelling, if one is near enough to be meant; ties go to the alphabetically first.
    pub fn near<'s>(&self, name: &str, candidates: impl Iterator<Item = &'s str>) -> Option<String> {
        if self.suggestions.get() == 0 {
            return None;
        }
        nearest(name, candidates.inspect(|_| self.suggestions.set(self.suggestions.get().saturating_sub(1))))
    }
}

/// See `Env::near`.
#[must_use]
pub fn nearest<'s>(name: &str, candidates: impl Iterator<Item = &'s str>) -> Option<String> {
    // Comparing is quadratic in the length, and nobody mistypes a name this long.
    if name.len() > 64 {
        return None;
    }
    let limit = (name.len() / 3).clamp(1, 3);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate == name || candidate.len().abs_diff(name.len()) > limit {
            continue;
        }
        let distance = edit_distance(name, candidate);
        // A name of one or two letters has every other such name one edit away.
        let close = distance <= limit && distance < name.len();
        if close && best.is_none_or(|b| (distance, candidate) < b) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, text)| text.to_owned())
}

/// Insertions, deletions, substitutions and swaps of neighbours; letter case costs nothing. Names are short.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.to_ascii_lowercase().into_bytes(), b.to_ascii_lowercase().into_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let at = |r: &[usize], k: usize| r.get(k).copied().unwrap_or(usize::MAX / 2);
            let mut cost = (at(&last, j) + usize::from(x != y)).min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                cost = cost.min(at(&before, j - 1) + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(0)
}
