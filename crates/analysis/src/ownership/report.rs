//! The diagnostics of the walk (language specification 12.2, `WO-E301` to `WO-E305`).

use super::classes::Kind;
use super::place::{Key, Proj, Source};
use super::state::{Access, Broken, Var};
use super::value::{Operand, Use, is_self};
use super::walk::{Dest, Walk};
use crate::hir::{Expr, LocalId};
use crate::show::show;
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;

impl Walk<'_> {
    /// Reports once for a code, a place and the local it is about.
    fn report(&mut self, about: LocalId, diagnostic: Diagnostic) {
        if self.reporting && self.reported.insert((diagnostic.code.number, diagnostic.span, about)) {
            self.diags.push(diagnostic);
        }
    }

    pub(super) fn name(&self, local: LocalId) -> String {
        let name = self.func.locals.get(local.0 as usize).map_or("", |l| l.name.as_str());
        if name.is_empty() { "the value".to_owned() } else { name.to_owned() }
    }

    /// A place as the source would write it.
    pub(super) fn describe(&self, source: &Source) -> String {
        let mut out = self.name(source.place.root);
        let mut ty = self.local_ty(source.place.root);
        for proj in &source.place.proj {
            let kind = self.program.types.kind(self.program.types.strip(ty));
            match (proj, kind) {
                (Proj::Field(at), TyKind::Class(class)) => {
                    let class = self.program.classes.get(class.0 as usize);
                    let field = class.and_then(|c| c.fields.get(*at as usize));
                    out.push('.');
                    out.push_str(field.map_or("?", |f| f.name.as_str()));
                    ty = field.map_or(Types::ERROR, |f| f.ty);
                }
                (Proj::Index(key), _) => {
                    match key {
                        Some(Key::Int(n)) => out.push_str(&format!("[{n}]")),
                        Some(Key::Bool(b)) => out.push_str(&format!("[{b}]")),
                        Some(Key::Text(t)) => out.push_str(&format!("[{:?}]", String::from_utf8_lossy(t))),
                        None => out.push_str("[…]"),
                    }
                    ty = match kind {
                        TyKind::Multi(element) | TyKind::Map(_, element) => element,
                        _ => Types::ERROR,
                    };
                }
                _ => out.push_str(".…"),
            }
        }
        out
    }

    fn show(&self, ty: Ty) -> String {
        show(self.program, self.program.types.strip(ty))
    }

    pub(super) fn report_moved(&mut self, local: LocalId, moved: Span, used: Span) {
        if !self.reporting || !self.reported.insert((301, moved, local)) {
            return;
        }
        let name = self.name(local);
        // A local of the loop's own body is new on each iteration.
        let declared = self.func.locals.get(local.0 as usize).map_or(0, |l| l.span.start);
        let previous = moved.start >= used.start && self.is_in_loop_after(declared);
        let text = if previous { "moved here, on the previous iteration" } else { "moved here" };
        let help = if previous {
            format!("make a new `{name}` on each iteration, or move it after the loop")
        } else {
            format!("use `{name}` before it is moved, or give a copy of what is needed afterwards")
        };
        self.diags.push(
            Diagnostic::error(301, used, format!("`{name}` is used after it was moved"))
                .label("no value any more")
                .related(moved, text)
                .note(format!(
                    "every `{}` has one owner: moving it leaves the local empty",
                    self.show(self.local_ty(local))
                ))
                .help(help),
        );
    }

    /// A borrow is used after its place was changed or moved.
    pub(super) fn report_broken(&mut self, local: LocalId, var: &Var, broken: &Broken, used: Span) {
        // Several borrows of one place are one defect.
        if !self.reporting || self.reported.contains(&(300, broken.span, LocalId(0))) {
            return;
        }
        let _ = self.reported.insert((300, broken.span, LocalId(0)));
        let (name, place) = (self.name(local), self.describe(&broken.source));
        let (code, title, label, help) = match broken.access {
            Access::Assign => (
                303,
                format!("`{place}` is assigned while `{name}` borrows from it"),
                "assigned here",
                format!("assign after the last use of `{name}`, or copy what `{name}` is needed for"),
            ),
            Access::Mut => (
                303,
                format!("`{place}` is passed as `mut` while `{name}` borrows from it"),
                "exclusive borrow here",
                format!("make the call after the last use of `{name}`"),
            ),
            Access::Move => (
                302,
                format!("`{place}` is moved while `{name}` borrows from it"),
                "moved here",
                format!("move it after the last use of `{name}`"),
            ),
        };
        let mut report = Diagnostic::error(code, broken.span, title).label(label);
        if let Some(borrowed) = var.borrowed {
            report = report.related(borrowed, format!("`{name}` borrows here"));
        }
        self.diags.push(
            report
                .related(used, format!("`{name}` is used here"))
                .note("a `let` borrow lives until its last use; until then its place stays as it is")
                .help(help),
        );
    }

    /// The container of a running `for`, or an element of it, is changed or moved.
    pub(super) fn report_cursor(&mut self, cursor: LocalId, access: Access, source: &Source) {
        let (name, place) = (self.name(cursor), self.describe(source));
        let (code, what, label) = match access {
            Access::Assign => (303, "assigned", "assigned here"),
            Access::Mut => (303, "passed as `mut`", "exclusive borrow here"),
            Access::Move => (302, "moved", "moved here"),
        };
        let mut report = Diagnostic::error(
            code,
            source.span,
            format!("`{place}` is {what} while the loop's `{name}` borrows from it"),
        )
        .label(label);
        if let Some(borrowed) = self.state.get(cursor).and_then(|v| v.borrowed) {
            report = report.related(borrowed, format!("`{name}` borrows from this through the loop"));
        }
        let help = match access {
            Access::Move => "move it after the loop".to_owned(),
            _ => format!("collect the changes and make them after the loop, or write through `{name}`"),
        };
        let report = report.note("the variable of a `for` borrows its element until the loop ends").help(help);
        if access == Access::Move {
            // That the loop's next turn finds it moved is the same mistake.
            let _ = self.reported.insert((301, source.span, source.place.root));
        }
        self.report(cursor, report);
    }

    /// Two operands of one `whole`, a call or an expression, that exclude each other.
    pub(super) fn report_operands(&mut self, whole: &str, first: &Operand, second: &Operand) {
        let (a, b) = (self.describe(&first.source), self.describe(&second.source));
        let moves = first.how == Use::Move || second.how == Use::Move;
        let word = |how: Use| match how {
            Use::Shared => "borrowed",
            Use::Exclusive => "exclusively borrowed",
            Use::Move => "moved",
        };
        let (code, title, note, help) = if moves {
            let (moved, other) = if second.how == Use::Move { (&b, &a) } else { (&a, &b) };
            (
                302,
                if moved == other {
                    format!("one {whole} moves `{moved}` and uses it a second time")
                } else {
                    format!("one {whole} moves `{moved}` and borrows `{other}`")
                },
                "what is borrowed must stay where it is until its call returns",
                format!("bind what is needed of `{other}` to a local first, or make two calls"),
            )
        } else {
            (
                303,
                if a == b {
                    format!("one call borrows `{a}` twice, once exclusively")
                } else {
                    format!("one call borrows `{a}` and `{b}`, which overlap, one of them exclusively")
                },
                "a place given as `mut`, or the receiver of a method that assigns to `self`, may not overlap another operand",
                "pass different places, or bind what is only read to a local first".to_owned(),
            )
        };
        let report = Diagnostic::error(code, second.source.span, title)
            .label(format!("`{b}` is {} here", word(second.how)))
            .related(first.source.span, format!("`{a}` is {} here", word(first.how)))
            .note(note)
            .help(help);
        self.report(second.source.place.root, report);
    }

    fn destination(&self, dest: &Dest) -> String {
        match dest {
            Dest::Return => format!("the result of `{}`", self.func.display),
            Dest::Local(local) => format!("the local `{}`", self.name(*local)),
            Dest::Field(class, field) => {
                let class = self.program.classes.get(class.0 as usize);
                let field = class.and_then(|c| Some((&c.name, &c.fields.get(*field as usize)?.name)));
                field.map_or_else(|| "a field".to_owned(), |(class, field)| format!("`{class}.{field}`"))
            }
            Dest::Variant(union, variant) => {
                let union = self.program.unions.get(union.0 as usize);
                let found = union.and_then(|u| Some((&u.name, &u.variants.get(*variant as usize)?.name)));
                found.map_or_else(|| "a variant".to_owned(), |(union, variant)| format!("`{union}.{variant}`"))
            }
            Dest::List => "a list".to_owned(),
            Dest::Container => "a container".to_owned(),
            Dest::Take(param, func) => format!("the `take` parameter `{param}` of `{func}`"),
            Dest::Message(builtin) => format!("the message of `{builtin}`"),
        }
    }

    /// An owned value leaves a field or element of a local that lives on.
    pub(super) fn report_projection(&mut self, source: &Source, dest: &Dest) {
        let (place, owner) = (self.describe(source), self.name(source.place.root));
        let (ty, dest) = (self.show(source.ty), self.destination(dest));
        let report = Diagnostic::error(305, source.span, format!("`{place}` cannot move out of `{owner}` into {dest}"))
            .label(format!("`{owner}` still owns this `{ty}`"))
            .note("an owned value has one owner; a part leaves a local only with the whole")
            .help(format!("move `{owner}` itself, take the part out with `pop` or `shift`, or build a fresh `{ty}`"));
        self.report(source.place.root, report);
    }

    /// A borrowed container or payload union goes somewhere for good.
    pub(super) fn report_escape(&mut self, source: &Source, dest: &Dest) {
        let (place, root) = (self.describe(source), source.place.root);
        let (name, ty, dest) = (self.name(root), self.show(source.ty), self.destination(dest));
        let mut report = Diagnostic::error(304, source.span, format!("borrowed `{place}` escapes into {dest}"))
            .label(format!("this `{ty}` belongs to somebody else"));
        let is_param = (root.0 as usize) < self.func.params.len();
        let at = source.borrowed.unwrap_or(source.span);
        if is_self(self, root) {
            report = report.related(self.func.span, "`self` is borrowed in every method");
        } else if at != source.span {
            report = report.related(at, format!("`{name}` is borrowed here"));
        }
        let help = if is_param && !is_self(self, root) {
            format!("declare the parameter `take {name}`, or build a fresh `{ty}`")
        } else {
            format!("take it from its owner (a `take` parameter, `pop`, `shift`), or build a fresh `{ty}`")
        };
        let report =
            report.note("containers and unions with payload have one owner: a borrow cannot become another").help(help);
        self.report(root, report);
    }

    /// `slice` copies elements: they must be copied or traced (11.4).
    pub(super) fn check_slice(&mut self, multi: &Expr) {
        let TyKind::Multi(element) = self.program.types.kind(multi.ty) else { return };
        if !matches!(self.kind(element), Kind::Object(_)) {
            return;
        }
        let (given, element) = (self.show(multi.ty), self.show(element));
        let report = Diagnostic::error(209, multi.span, format!("argument 1 of `slice` cannot be `{given}`"))
            .label(format!("`{element}` is owned by its element's place"))
            .note("`slice` takes a `multi` whose elements are copied or traced")
            .help("copy what is needed with a loop");
        self.report(LocalId(0), report);
    }
}
