//! Typing of the actor builtins (language 8.9).

use super::call::arguments;
use super::site::Site;
use super::{Cx, Want};
use crate::hir::{Builtin, Expr, ExprKind};
use crate::types::{Ty, TyKind, Types};
use diagnostics::Diagnostic;
use diagnostics::span::Span;
use syntax::ast::{self, Name};

/// The help of `self` in place of an address.
pub(super) const OWN_ADDRESS: &str =
    "an actor does not know its own address: let whoever spawned it send the address in a message";

pub(super) fn is_self(e: &ast::Expr) -> bool {
    matches!(&e.kind, ast::ExprKind::Name(name) if name == "self")
}

impl<'a> Cx<'_, 'a> {
    /// `send`, `call`, `call_dl`, `monitor`, `time.after`.
    pub(super) fn call_actor(&mut self, shown: &Name, args: &'a [ast::Expr], span: Span) -> Expr {
        let form = match shown.as_str() {
            "send" | "call" => "address, message",
            "call_dl" => "address, message, ms",
            "monitor" => "watched, observer, notice",
            _ => "ms, address, message",
        };
        let wanted = form.split(", ").count();
        if args.len() != wanted {
            return self.fail(
                Diagnostic::error(203, span, format!("`{shown}` takes {}, given {}", arguments(wanted), args.len()))
                    .label(format!("{} given", arguments(args.len())))
                    .note("the actor builtins have a fixed number of arguments")
                    .help(format!("write `{shown}({form})`")),
            );
        }
        let mut values = Vec::with_capacity(wanted);
        // The message type of the last address: messages and notices follow their address.
        let mut message = Types::ERROR;
        for ((at, arg), part) in (1_usize..).zip(args).zip(form.split(", ")) {
            let value = match part {
                "ms" => {
                    let site = Site::Param(shown.clone(), at, Name::new_static("ms"));
                    self.check(arg, Types::INT, &site)
                }
                "message" | "notice" => self.check(arg, message, &Site::Message(shown.clone())),
                _ => {
                    let (value, ty) = self.address(shown, at, arg);
                    message = ty;
                    if value.ty == Types::NEVER {
                        values.push(value);
                        break;
                    }
                    value
                }
            };
            values.push(value);
        }
        let values = match self.complete(values, span) {
            Ok(values) => values,
            Err(other) => return other,
        };
        let (builtin, ty) = match shown.as_str() {
            "send" => (Builtin::Send, Types::VOID),
            "monitor" => (Builtin::Monitor, Types::VOID),
            "call" | "call_dl" => {
                let Some(reply) = self.reply_type(message, shown, span) else { return self.error(span) };
                if shown == "call" {
                    (Builtin::Call, self.call_ty(reply))
                } else {
                    let strict = self.nullable(reply);
                    (Builtin::CallDl, self.call_ty(strict))
                }
            }
            _ => (Builtin::After, Types::VOID),
        };
        Expr { kind: ExprKind::Builtin(builtin, values), ty, span }
    }

    /// An argument of type `actor M`, and `M`.
    fn address(&mut self, shown: &Name, at: usize, arg: &'a ast::Expr) -> (Expr, Ty) {
        let value = self.expr(arg, Want::Value);
        let site = Site::Param(shown.clone(), at, Name::new_static("address"));
        let inner = self.strip(value.ty);
        match self.kind(inner) {
            TyKind::Actor(message) => {
                let value = self.need(value, arg, &site);
                (value, message)
            }
            TyKind::Error | TyKind::Never => (value, Types::ERROR),
            _ if value.ty == Types::NIL => (self.need(value, arg, &site), Types::ERROR),
            _ => {
                let given = self.show(value.ty);
                let failed = self.fail(
                    Diagnostic::error(
                        201,
                        value.span,
                        format!("argument {at} of `{shown}` must be `actor M`, found `{given}`"),
                    )
                    .label(format!("this is `{given}`"))
                    .note("messages go to addresses, which `spawn` gives")
                    .help(if is_self(arg) {
                        OWN_ADDRESS
                    } else {
                        "give the value of a `spawn C { … }`"
                    }),
                );
                (failed, Types::ERROR)
            }
        }
    }

    /// The result that all `receive`s for `message` share; reported when there is none.
    fn reply_type(&mut self, message: Ty, shown: &Name, span: Span) -> Option<Ty> {
        let receivers = self.env.receivers_of(message);
        let results: Vec<(Name, Ty)> = receivers
            .iter()
            .map(|(class, func)| {
                let ret = self.env.program.funcs.get(func.0 as usize).map_or(Types::ERROR, |f| f.ret);
                (self.class_name(*class), ret)
            })
            .collect();
        let first = results.first().map(|r| r.1);
        if let Some(reply) = first
            && results.iter().all(|r| r.1 == reply)
            && (reply == Types::ERROR || self.is_scalar(self.strip(reply)))
        {
            return (reply != Types::ERROR).then_some(reply);
        }
        if results.is_empty() && self.env.files.iter().any(|f| f.is_broken) {
            // The class that receives it may not have been read.
            return None;
        }
        let message = self.show(message);
        let list = results
            .iter()
            .map(|(class, ret)| format!("`{class}` gives `{}`", self.show(*ret)))
            .collect::<Vec<_>>()
            .join(", ");
        let list = if list.is_empty() { "no class receives it".to_owned() } else { list };
        self.report(
            Diagnostic::error(226, span, format!("`{shown}` has no usable reply type for `{message}`: {list}"))
                .label("what would the reply be?")
                .note("every `receive` for one message type must give the same result: a scalar, a `ref` or an `actor`, or nullable of one; texts and objects stay with their actor")
                .help("give them one such result, or put the address of an actor into the message and `send` the answer to it"),
        );
        None
    }
}
