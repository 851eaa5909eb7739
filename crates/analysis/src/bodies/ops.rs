//! Operators (language 8.2): arithmetic, comparison, equality, logic with the facts it yields, `..` and interpolation.

use super::coerce::wrap;
use super::flow::Facts;
use super::site::Site;
use super::{Cx, Want, describe};
use crate::hir::{BinaryOp, Expr, ExprKind};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast::{self, BinOp};

impl<'a> Cx<'_, 'a> {
    /// A chain of binary operators of any length: down the left spine with a loop, then up.
    pub(super) fn binary(&mut self, e: &'a ast::Expr) -> (Expr, Facts) {
        let mut spine = Vec::new();
        let mut at = e;
        while let ast::ExprKind::Binary { op, op_span, lhs, rhs } = &at.kind {
            spine.push((*op, *op_span, lhs.as_ref(), rhs.as_ref(), at.span));
            at = lhs;
        }
        let (mut left, mut facts) = match (&at.kind, spine.last()) {
            (ast::ExprKind::Unary { op: ast::UnOp::Not, operand }, Some((op, ..))) if compares(*op) => {
                self.negation(operand, at.span, Some(*op))
            }
            _ => self.expr_facts(at, Want::Value),
        };
        while let Some((op, op_span, lhs, rhs, span)) = spine.pop() {
            (left, facts) = match op {
                BinOp::And | BinOp::Or => self.logic(op, left, facts, lhs, rhs, span),
                BinOp::Eq | BinOp::Ne => {
                    let right = self.expr(rhs, Want::Hint(left.ty));
                    let facts = self.nil_facts(op, lhs, rhs);
                    (self.equality(op == BinOp::Ne, left, lhs, right, rhs, span, op_span), facts)
                }
                _ => {
                    let right = self.expr(rhs, Want::Value);
                    (self.arithmetic(op, op_span, left, lhs, right, rhs, span), Facts::default())
                }
            };
        }
        (left, facts)
    }

    fn logic(
        &mut self,
        op: BinOp,
        left: Expr,
        left_facts: Facts,
        lhs: &'a ast::Expr,
        rhs: &'a ast::Expr,
        span: Span,
    ) -> (Expr, Facts) {
        let is_and = op == BinOp::And;
        let site = Site::Operand(op.symbol());
        let left = self.boolean(left, lhs, &site);
        let before = self.flow.clone();
        self.flow.narrow(if is_and { &left_facts.when_true } else { &left_facts.when_false });
        let mark = self.nil_log.len();
        let (right, right_facts) = self.expr_facts(rhs, Want::Value);
        let right = self.boolean(right, rhs, &site);
        let after = std::mem::take(&mut self.flow);
        self.flow = self.join(before, after);
        let mut facts = Facts::default();
        let kept = if is_and { &mut facts.when_true } else { &mut facts.when_false };
        *kept = if is_and { left_facts.when_true } else { left_facts.when_false };
        // What the right side may have set to nil is no longer known.
        if self.nil_log.len() > mark {
            let lost = self.nil_log.get(mark..).unwrap_or_default();
            kept.retain(|l| !lost.contains(l));
        }
        for local in if is_and { right_facts.when_true } else { right_facts.when_false } {
            if !kept.contains(&local) {
                kept.push(local);
            }
        }
        if left.ty == Types::ERROR || right.ty == Types::ERROR {
            return (self.error(span), facts);
        }
        let (left, right) = (Box::new(left), Box::new(right));
        let kind = if is_and { ExprKind::And(left, right) } else { ExprKind::Or(left, right) };
        (Expr { kind, ty: Types::BOOL, span }, facts)
    }

    /// `e` as a Bool.
    pub(super) fn boolean(&mut self, e: Expr, src: &'a ast::Expr, site: &Site) -> Expr {
        self.boolean_of(e, src, site, None)
    }

    /// `boolean`; what was meant may be the negation of what `compared` gives.
    fn boolean_of(&mut self, e: Expr, src: &'a ast::Expr, site: &Site, compared: Option<BinOp>) -> Expr {
        let e = self.need(e, src, site);
        if matches!(e.ty, Types::BOOL | Types::ERROR | Types::NEVER) {
            return e;
        }
        let (given, name) = (self.show(e.ty), describe(src));
        let help = match (compared, self.kind(e.ty)) {
            (Some(BinOp::Eq), _) => {
                format!("`not` binds tighter than `==`: write `{name} != …` or `not ({name} == …)`")
            }
            (Some(op), _) => {
                let op = op.symbol();
                format!("`not` binds tighter than `{op}`: write `not ({name} {op} …)`")
            }
            (None, TyKind::Int) => format!("compare it: `{name} != 0`"),
            (None, TyKind::Float) => format!("compare it: `{name} != 0.0`"),
            (None, TyKind::Text) => format!("compare it: `{name} != \"\"`"),
            (None, TyKind::Multi(_) | TyKind::Map(..)) => format!("compare its length: `len({name}) > 0`"),
            (None, _) => "compare it with `==` or `!=`; a value of this type is never nil".to_owned(),
        };
        self.fail(
            Diagnostic::error(201, e.span, format!("{} must be `Bool`, found `{given}`", site.text()))
                .label(format!("this is `{given}`"))
                .note("there is no truthiness: only Bool is true or false")
                .help(help),
        )
    }

    fn nil_facts(&self, op: BinOp, lhs: &ast::Expr, rhs: &ast::Expr) -> Facts {
        let name = match (&lhs.kind, &rhs.kind) {
            (ast::ExprKind::Name(name), ast::ExprKind::Nil) | (ast::ExprKind::Nil, ast::ExprKind::Name(name)) => name,
            _ => return Facts::default(),
        };
        let Some(local) = self.lookup(name) else { return Facts::default() };
        if !matches!(self.kind(self.local_ty(local)), TyKind::Nullable(_) | TyKind::Maybe { .. }) {
            return Facts::default();
        }
        match op {
            BinOp::Ne => Facts { when_true: vec![local], when_false: Vec::new() },
            _ => Facts { when_true: Vec::new(), when_false: vec![local] },
        }
    }

    /// `a == b` and `a != b` of two checked operands.
    #[expect(clippy::too_many_arguments, reason = "both operands with their syntax, and the operator")]
    pub(super) fn equality(
        &mut self,
        negated: bool,
        left: Expr,
        lhs: &'a ast::Expr,
        right: Expr,
        rhs: &'a ast::Expr,
        span: Span,
        op_span: Span,
    ) -> Expr {
        if left.ty == Types::ERROR || right.ty == Types::ERROR {
            return self.error(span);
        }
        if left.ty == Types::NEVER {
            return left;
        }
        match (left.ty == Types::NIL, right.ty == Types::NIL) {
            (true, true) => return Expr { kind: ExprKind::Bool(!negated), ty: Types::BOOL, span },
            (true, false) => return self.is_nil(right, negated, span),
            (false, true) => return self.is_nil(left, negated, span),
            (false, false) => {}
        }
        let Some(common) = self.common(left.ty, right.ty) else {
            let (a, b) = (self.show(left.ty), self.show(right.ty));
            let op = if negated { "!=" } else { "==" };
            return self.fail(
                Diagnostic::error(201, op_span, format!("`{op}` between `{a}` and `{b}`"))
                    .label("no common type")
                    .related(left.span, format!("this is `{a}`"))
                    .related(right.span, format!("this is `{b}`"))
                    .note("only values of related types can be compared")
                    .help(self.conversion(left.ty, right.ty)),
            );
        };
        let common = if common == Types::VOID { Types::INT } else { common };
        let inner = self.strip(common);
        if inner == Types::ERROR {
            return self.error(span);
        }
        let common = if inner == common { common } else { self.nullable(inner) };
        let left = self.coerce(left, lhs, common, &Site::Part);
        let right = self.coerce(right, rhs, common, &Site::Part);
        let eq = self.equality_of(inner, negated && inner == common);
        let (lhs, rhs) = (Box::new(left), Box::new(right));
        let kind = if inner == common {
            ExprKind::Binary(eq, lhs, rhs)
        } else {
            ExprKind::NullableEq { eq, negated, lhs, rhs }
        };
        Expr { kind, ty: Types::BOOL, span }
    }

    fn is_nil(&mut self, operand: Expr, negated: bool, span: Span) -> Expr {
        let operand = match self.kind(operand.ty) {
            TyKind::Nullable(_) | TyKind::Maybe { .. } => operand,
            TyKind::Never => return operand,
            _ => {
                let operand = self.settle(operand);
                if operand.ty == Types::ERROR {
                    return self.error(span);
                }
                let ty = self.nullable(operand.ty);
                wrap(operand, ty)
            }
        };
        Expr { kind: ExprKind::IsNil { operand: Box::new(operand), negated }, ty: Types::BOOL, span }
    }

    fn equality_of(&self, ty: Ty, negated: bool) -> BinaryOp {
        match self.kind(ty) {
            TyKind::Float if negated => BinaryOp::FloatNe,
            TyKind::Float => BinaryOp::FloatEq,
            TyKind::Text | TyKind::Bytes | TyKind::Json if negated => BinaryOp::TextNe,
            TyKind::Text | TyKind::Bytes | TyKind::Json => BinaryOp::TextEq,
            TyKind::Actor(_) if negated => BinaryOp::RefNe,
            TyKind::Actor(_) => BinaryOp::RefEq,
            _ if self.is_scalar(ty) && negated => BinaryOp::WordNe,
            _ if self.is_scalar(ty) => BinaryOp::WordEq,
            _ if negated => BinaryOp::RefNe,
            _ => BinaryOp::RefEq,
        }
    }

    /// Arithmetic, bitwise, shift and ordering operators.
    #[expect(clippy::too_many_arguments, reason = "both operands with their syntax, and the operator")]
    pub(super) fn arithmetic(
        &mut self,
        op: BinOp,
        op_span: Span,
        left: Expr,
        lhs: &'a ast::Expr,
        right: Expr,
        rhs: &'a ast::Expr,
        span: Span,
    ) -> Expr {
        let site = Site::Operand(op.symbol());
        let left = self.need(left, lhs, &site);
        let right = self.need(right, rhs, &site);
        if left.ty == Types::ERROR || right.ty == Types::ERROR {
            return self.error(span);
        }
        if left.ty == Types::NEVER {
            return left;
        }
        let a = self.kind(left.ty);
        let b = if right.ty == Types::NEVER { a } else { self.kind(right.ty) };
        let ordering = matches!(op, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge);
        let number = |k: TyKind| matches!(k, TyKind::Int | TyKind::Row(_)) || (k == TyKind::Bool && !ordering);
        let chosen = if a == TyKind::Float && b == TyKind::Float {
            float_op(op)
        } else if ordering && matches!(a, TyKind::Text | TyKind::Json) && matches!(b, TyKind::Text | TyKind::Json) {
            text_op(op)
        } else if number(a) && number(b) && !(a == TyKind::Bool && b == TyKind::Bool) {
            int_op(op)
        } else {
            None
        };
        let Some((hir_op, operand, result)) = chosen else {
            return self.bad_operands(op, op_span, &left, &right);
        };
        if matches!(op, BinOp::Shl | BinOp::Shr)
            && let ExprKind::Int(count) = right.kind
            && !(0..=63).contains(&count)
        {
            return self.fail(
                Diagnostic::error(223, right.span, format!("`{}` by {count}", op.symbol()))
                    .label("shift count outside 0..63")
                    .note("an Int has 64 bits; a computed count outside 0..63 traps 12")
                    .help("use a count from 0 to 63"),
            );
        }
        let left = self.coerce(left, lhs, operand, &site);
        let right = self.coerce(right, rhs, operand, &site);
        fold(hir_op, left, right, result, span)
    }

    fn bad_operands(&mut self, op: BinOp, op_span: Span, left: &Expr, right: &Expr) -> Expr {
        let (a, b, op_text) = (self.show(left.ty), self.show(right.ty), op.symbol());
        let has_text = Self::is_text(left.ty) || Self::is_text(right.ty);
        let ordering = matches!(op, BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge);
        let help = if op == BinOp::Add && has_text {
            "texts are joined with `..`: `a .. b`, or `\"${a}${b}\"`".to_owned()
        } else if has_text && !ordering {
            "texts have no arithmetic; join them with `..`, read numbers with `parse_int`".to_owned()
        } else if op == BinOp::Rem && left.ty == Types::FLOAT {
            "take the fraction apart: `a - b * float(trunc(a / b))`".to_owned()
        } else if ordering && left.ty == Types::BOOL && right.ty == Types::BOOL {
            "compare Bools with `==` and `!=`, join them with `and` and `or`".to_owned()
        } else if ordering && left.ty == Types::BOOL {
            "comparisons do not chain: write `a < b and b < c`".to_owned()
        } else {
            self.conversion(left.ty, right.ty)
        };
        let rule = if ordering {
            "two Ints, two Floats or two Texts can be ordered"
        } else if matches!(op, BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div) {
            "arithmetic takes two Ints or two Floats"
        } else {
            "this operator takes two Ints"
        };
        self.fail(
            Diagnostic::error(201, op_span, format!("`{op_text}` between `{a}` and `{b}`"))
                .label("operands do not fit")
                .related(left.span, format!("this is `{a}`"))
                .related(right.span, format!("this is `{b}`"))
                .note(rule)
                .help(help),
        )
    }

    /// How two values of different types come to one.
    fn conversion(&self, a: Ty, b: Ty) -> String {
        match (self.kind(self.strip(a)), self.kind(self.strip(b))) {
            (TyKind::Int, TyKind::Float) | (TyKind::Float, TyKind::Int) => "convert one side: `float(n)` or `trunc(f)`",
            (TyKind::Int, TyKind::Text) | (TyKind::Text, TyKind::Int) => {
                "convert one side: `parse_int(t)` or `\"${n}\"`"
            }
            (TyKind::Float, TyKind::Text) | (TyKind::Text, TyKind::Float) => {
                "convert one side: `parse_float(t)` or `\"${f}\"`"
            }
            (TyKind::Bytes, TyKind::Text) | (TyKind::Text, TyKind::Bytes) => {
                "convert one side: `text_of_bytes(b)` or `bytes_of_text(t)`"
            }
            (TyKind::Class(_) | TyKind::Iface(_), _) | (_, TyKind::Class(_) | TyKind::Iface(_)) => {
                "use a field of the object"
            }
            _ => "give two values of one type",
        }
        .to_owned()
    }

    /// `not operand`, whose result `compared` compares.
    fn negation(&mut self, operand: &'a ast::Expr, span: Span, compared: Option<BinOp>) -> (Expr, Facts) {
        let (e, facts) = self.expr_facts(operand, Want::Value);
        let e = self.boolean_of(e, operand, &Site::Operand("not"), compared);
        if e.ty == Types::ERROR {
            return (e, Facts::default());
        }
        (Expr { kind: ExprKind::Not(Box::new(e)), ty: Types::BOOL, span }, facts.swapped())
    }

    pub(super) fn unary(&mut self, op: ast::UnOp, operand: &'a ast::Expr, span: Span) -> (Expr, Facts) {
        match op {
            ast::UnOp::Not => self.negation(operand, span, None),
            ast::UnOp::Neg => {
                let e = self.expr(operand, Want::Value);
                let e = self.need(e, operand, &Site::Operand("-"));
                let kind = match (self.kind(e.ty), &e.kind) {
                    (TyKind::Error | TyKind::Never, _) => return (e, Facts::default()),
                    (TyKind::Int, ExprKind::Int(n)) => ExprKind::Int(n.wrapping_neg()),
                    (TyKind::Float, ExprKind::Float(f)) => ExprKind::Float(-f),
                    (TyKind::Int, _) => ExprKind::IntNeg(Box::new(e)),
                    (TyKind::Float, _) => ExprKind::FloatNeg(Box::new(e)),
                    _ => {
                        let given = self.show(e.ty);
                        let report = Diagnostic::error(201, span, format!("`-` of `{given}`"))
                            .label(format!("this is `{given}`"))
                            .note("only Int and Float can be negated")
                            .help(if e.ty == Types::BOOL { "`not` negates a Bool" } else { "give a number" });
                        return (self.fail(report), Facts::default());
                    }
                };
                let ty =
                    if matches!(kind, ExprKind::Float(_) | ExprKind::FloatNeg(_)) { Types::FLOAT } else { Types::INT };
                (Expr { kind, ty, span }, Facts::default())
            }
        }
    }

    /// A `..` chain.
    pub(super) fn concat(&mut self, items: &'a [ast::Expr], span: Span) -> Expr {
        let mut parts = Vec::with_capacity(items.len());
        let mut wrong = Vec::new();
        let (mut failed, mut has_text) = (false, false);
        for item in items {
            if let ast::ExprKind::Text(pieces) = &item.kind {
                has_text = true;
                failed |= !self.pieces(pieces, item.span, &mut parts);
                continue;
            }
            let e = self.expr(item, Want::Value);
            let e = self.need(e, item, &Site::Concat);
            if e.ty == Types::ERROR {
                failed = true;
            } else if Self::is_text(e.ty) || e.ty == Types::NEVER {
                has_text = true;
                push_part(&mut parts, e);
            } else {
                wrong.push((e, item));
            }
        }
        // Beside an operand that is wrong by itself, or where none fits the operator, there is one defect.
        let count = if failed { 0 } else { wrong.len().min(if has_text { usize::MAX } else { 1 }) };
        failed |= !wrong.is_empty();
        for (e, item) in wrong.into_iter().take(count) {
            let given = self.show(e.ty);
            self.report(
                Diagnostic::error(201, e.span, format!("an operand of `..` must be `Text`, found `{given}`"))
                    .label(format!("this is `{given}`"))
                    .note("`..` joins Texts only; interpolation converts")
                    .help(format!("write `\"${{{}}}\"`", describe(item))),
            );
        }
        if failed { self.error(span) } else { self.joined(parts, span) }
    }

    /// A text literal, with holes or without.
    pub(super) fn text(&mut self, pieces: &'a [ast::Piece], span: Span) -> Expr {
        if let [ast::Piece::Text(bytes)] = pieces {
            return Expr { kind: ExprKind::Text(bytes.clone()), ty: Types::TEXT, span };
        }
        let mut parts = Vec::with_capacity(pieces.len());
        if self.pieces(pieces, span, &mut parts) { self.joined(parts, span) } else { self.error(span) }
    }

    /// Appends the parts of a literal; false after an error.
    fn pieces(&mut self, pieces: &'a [ast::Piece], span: Span, parts: &mut Vec<Expr>) -> bool {
        let mut good = true;
        for piece in pieces {
            let (e, src) = match piece {
                ast::Piece::Text(bytes) => {
                    push_part(parts, Expr { kind: ExprKind::Text(bytes.clone()), ty: Types::TEXT, span });
                    continue;
                }
                ast::Piece::Hole(hole) => (self.expr(hole, Want::Value), hole),
                ast::Piece::Escaped(hole, at) => (self.escaped(hole, *at), hole),
            };
            let e = self.need(e, src, &Site::Hole);
            let fits = matches!(
                self.kind(e.ty),
                TyKind::Text
                    | TyKind::Json
                    | TyKind::Int
                    | TyKind::Bool
                    | TyKind::Float
                    | TyKind::Row(_)
                    | TyKind::Never
            );
            if fits {
                push_part(parts, e);
                continue;
            }
            good = false;
            if e.ty != Types::ERROR {
                let given = self.show(e.ty);
                self.report(
                    Diagnostic::error(403, e.span, format!("`{given}` has no text form in an interpolation"))
                        .label(format!("this is `{given}`"))
                        .note("interpolation converts Text, json.Value, Int, Float, Bool and row ids")
                        .help("name the field to print, or encode the value: `json.encode(…)`"),
                );
            }
        }
        good
    }

    fn joined(&mut self, parts: Vec<Expr>, span: Span) -> Expr {
        let mut parts = match self.until_never(parts) {
            Ok(parts) => parts,
            Err(never) => return never,
        };
        if parts.is_empty() {
            return Expr { kind: ExprKind::Text(Vec::new()), ty: Types::TEXT, span };
        }
        if let [only] = parts.as_slice()
            && only.ty == Types::TEXT
            && let Some(only) = parts.pop()
        {
            return only;
        }
        Expr { kind: ExprKind::Concat(parts), ty: Types::TEXT, span }
    }

    fn escaped(&mut self, hole: &'a ast::Expr, at: Span) -> Expr {
        let name = ast::Name::new_static("esc");
        if !self.is_function_name(&name) {
            return self.fail(
                Diagnostic::error(403, at, "`{{ … }}` calls `esc`, which is not defined here")
                    .label("needs a function `esc`")
                    .note("`{{ e }}` in a raw literal means `${esc(e)}`; no `esc` is built in")
                    .help("write `use view`, or declare `fn esc(t: Text) -> Text`"),
            );
        }
        self.call_free(&name, at, std::slice::from_ref(hole), hole.span, Want::Value)
    }
}

/// Adds a part to a concatenation; neighbouring literals become one, empty ones vanish.
fn push_part(parts: &mut Vec<Expr>, e: Expr) {
    match e.kind {
        ExprKind::Concat(inner) => parts.extend(inner),
        ExprKind::Text(bytes) => match parts.last_mut() {
            Some(Expr { kind: ExprKind::Text(before), .. }) => before.extend_from_slice(&bytes),
            _ if bytes.is_empty() => {}
            _ => parts.push(Expr { kind: ExprKind::Text(bytes), ty: e.ty, span: e.span }),
        },
        _ => parts.push(e),
    }
}

type Chosen = Option<(BinaryOp, Ty, Ty)>;

fn int_op(op: BinOp) -> Chosen {
    let arithmetic = |op| Some((op, Types::INT, Types::INT));
    let ordering = |op| Some((op, Types::INT, Types::BOOL));
    match op {
        BinOp::Add => arithmetic(BinaryOp::IntAdd),
        BinOp::Sub => arithmetic(BinaryOp::IntSub),
        BinOp::Mul => arithmetic(BinaryOp::IntMul),
        BinOp::Div => arithmetic(BinaryOp::IntDiv),
        BinOp::Rem => arithmetic(BinaryOp::IntRem),
        BinOp::BitAnd => arithmetic(BinaryOp::BitAnd),
        BinOp::BitOr => arithmetic(BinaryOp::BitOr),
        BinOp::BitXor => arithmetic(BinaryOp::BitXor),
        BinOp::Shl => arithmetic(BinaryOp::Shl),
        BinOp::Shr => arithmetic(BinaryOp::Shr),
        BinOp::Lt => ordering(BinaryOp::IntLt),
        BinOp::Le => ordering(BinaryOp::IntLe),
        BinOp::Gt => ordering(BinaryOp::IntGt),
        BinOp::Ge => ordering(BinaryOp::IntGe),
        BinOp::Or | BinOp::And | BinOp::Eq | BinOp::Ne => None,
    }
}

fn float_op(op: BinOp) -> Chosen {
    let arithmetic = |op| Some((op, Types::FLOAT, Types::FLOAT));
    let ordering = |op| Some((op, Types::FLOAT, Types::BOOL));
    match op {
        BinOp::Add => arithmetic(BinaryOp::FloatAdd),
        BinOp::Sub => arithmetic(BinaryOp::FloatSub),
        BinOp::Mul => arithmetic(BinaryOp::FloatMul),
        BinOp::Div => arithmetic(BinaryOp::FloatDiv),
        BinOp::Lt => ordering(BinaryOp::FloatLt),
        BinOp::Le => ordering(BinaryOp::FloatLe),
        BinOp::Gt => ordering(BinaryOp::FloatGt),
        BinOp::Ge => ordering(BinaryOp::FloatGe),
        _ => None,
    }
}

fn text_op(op: BinOp) -> Chosen {
    let ordering = |op| Some((op, Types::TEXT, Types::BOOL));
    match op {
        BinOp::Lt => ordering(BinaryOp::TextLt),
        BinOp::Le => ordering(BinaryOp::TextLe),
        BinOp::Gt => ordering(BinaryOp::TextGt),
        BinOp::Ge => ordering(BinaryOp::TextGe),
        _ => None,
    }
}

fn compares(op: BinOp) -> bool {
    matches!(op, BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge)
}

/// Folds two literal Ints where nothing can trap; everything else is left to the program.
fn fold(op: BinaryOp, left: Expr, right: Expr, ty: Ty, span: Span) -> Expr {
    if let (ExprKind::Int(a), ExprKind::Int(b)) = (&left.kind, &right.kind) {
        let value = match op {
            BinaryOp::IntAdd => Some(a.wrapping_add(*b)),
            BinaryOp::IntSub => Some(a.wrapping_sub(*b)),
            BinaryOp::IntMul => Some(a.wrapping_mul(*b)),
            _ => None,
        };
        if let Some(value) = value {
            return Expr { kind: ExprKind::Int(value), ty, span };
        }
    }
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), ty, span }
}
