//! Builtins. Plain ones are calls of the runtime function of their name; the others depend on the types of their
//! arguments, or are a few instructions.

use super::FnLower;
use super::call::flatten;
use super::value::{Own, Value};
use crate::ir::{InstKind, IntOp, Local, Rep};
use crate::shapes::Shape;
use abi::{layout, symbols, trap};
use analysis::hir::{Builtin, Expr, Ty, TyKind, Types};

impl<'a> FnLower<'_, 'a> {
    pub fn builtin(&mut self, builtin: &'a Builtin, args: &'a [Expr], e: &'a Expr) -> Value {
        let ty = e.ty;
        match builtin {
            Builtin::Plain(name) => self.plain(name, args, ty),
            Builtin::LenText => self.length(args, layout::TEXT_LEN),
            Builtin::LenMulti => match self.counted_rows(args) {
                Some(count) => count,
                None => self.length(args, layout::MULTI_LEN),
            },
            Builtin::LenMap => self.length(args, layout::MAP_LEN),
            Builtin::MultiNew => self.new_multi(ty, 0),
            Builtin::MapNew => self.new_map(ty),
            Builtin::Push => {
                if let [multi, value] = args {
                    let shape = self.shape(self.elem(multi.ty));
                    let values = self.operands(&[multi, value]);
                    let [m, v] = values.as_slice() else { return Value::none() };
                    let v = self.coerce(*v, shape);
                    self.push_value(m.a, v);
                    self.drop_value(*m);
                }
                Value::none()
            }
            Builtin::GetMulti => match args {
                [multi, index] => self.element(multi, index, ty),
                _ => Value::none(),
            },
            Builtin::Latest => self.latest(args, ty),
            Builtin::Pop => self.take_end("multi.pop", args),
            Builtin::Shift => self.take_end("multi.shift", args),
            Builtin::Slice => self.simple("multi.slice", args, Shape::One(Rep::Obj), ty),
            Builtin::Sort => self.simple("multi.sort", args, Shape::None, ty),
            Builtin::Reverse => self.simple("multi.reverse", args, Shape::None, ty),
            Builtin::GetMap => self.get_map(args, ty),
            Builtin::SetMap => {
                if let [map, key, value] = args {
                    self.set_entry(map, key, value);
                }
                Value::none()
            }
            Builtin::HasMap => {
                let found = self.keyed("map.find", args);
                let zero = self.b.int(0);
                Value::int(self.b.int_op(IntOp::Ne, found, zero))
            }
            Builtin::RemoveMap => Value::int(self.keyed("map.remove", args)),
            Builtin::KeyAt => self.entry_at(args, ty, layout::ENTRY_KEY),
            Builtin::ValAt => self.entry_at(args, ty, layout::ENTRY_VALUE),
            Builtin::JsonEncode => self.json_encode(args),
            Builtin::Trap => {
                let values = self.evaluate(args);
                let Some(msg) = values.first().copied() else { return Value::none() };
                let msg = self.coerce(msg, Shape::One(Rep::Obj));
                self.raise_value(trap::EXPLICIT, msg.a);
                self.drop_value(msg);
                Value::none()
            }
            Builtin::Assert => {
                if let [cond] = args {
                    let (failed, passed) = (self.b.cold_block(), self.b.block());
                    self.cond(cond, passed, failed);
                    self.b.start(failed);
                    let text = self.text_id("assertion failed");
                    self.raise(trap::EXPLICIT, text);
                    self.b.start(passed);
                }
                Value::none()
            }
            Builtin::AssertEq => self.assert_eq(args),
            Builtin::ClassName => self.simple("class_name", args, Shape::One(Rep::Obj), Types::TEXT),
            Builtin::Send => self.message("actor.send", args, 1),
            Builtin::Monitor => self.message("actor.monitor", args, 2),
            Builtin::After => self.message("actor.after", args, 2),
            Builtin::Call => self.ask("actor.call", args, ty),
            Builtin::CallDl => self.ask("actor.call_dl", args, ty),
        }
    }

    fn evaluate(&mut self, args: &'a [Expr]) -> Vec<Value> {
        let exprs: Vec<&Expr> = args.iter().collect();
        self.operands(&exprs)
    }

    /// A runtime function that borrows its arguments and gives one value of this shape.
    fn simple(&mut self, name: &str, args: &'a [Expr], shape: Shape, ty: Ty) -> Value {
        let values = self.evaluate(args);
        let result = self.fresh(shape, ty);
        self.b.runtime(name, flatten(&values), result.locals());
        self.drop_all(&values);
        self.owned(result)
    }

    /// Traps 8 where something is used that the runtime does not have; `woc` refuses such programs before.
    pub(super) fn unavailable(&mut self, what: &str, ty: Ty) -> Value {
        let text = self.text_id(&format!("{what} is not available in this version"));
        self.raise(trap::EXPLICIT, text);
        self.zero(self.shape(ty))
    }

    fn plain(&mut self, name: &str, args: &'a [Expr], ty: Ty) -> Value {
        let Some(symbol) = symbols::find(name) else {
            return self.unavailable(&format!("`{name}`"), ty);
        };
        let values = self.evaluate(args);
        let mut words = Vec::new();
        let known = self.program.well_known;
        match name {
            "time.local" | "time.utc" => words.push(self.b.int(i64::from(known.time_parts.0))),
            "fs.stat" => words.push(self.b.int(i64::from(known.stat.0))),
            "proc.run" | "proc.run_dl" => words.push(self.b.int(i64::from(known.proc.0))),
            "proc.spawn" | "proc.spawn_pty" => words.push(self.b.int(i64::from(known.child.0))),
            _ => {}
        }
        words.extend(flatten(&values));
        let result = self.fresh(self.shape(ty), ty);
        let mut dsts = result.locals();
        if dsts.len() != symbol.results.len() {
            dsts = symbol
                .results
                .iter()
                .map(|r| if *r == symbols::Rep::F { self.b.temp(Rep::Float) } else { self.b.temp(Rep::Int) })
                .collect();
        }
        self.b.runtime(symbol.name, words, dsts);
        self.drop_all(&values);
        self.owned(result)
    }

    // -- containers --------------------------------------------------------------------------------------------

    fn length(&mut self, args: &'a [Expr], offset: i32) -> Value {
        let values = self.evaluate(args);
        let Some(v) = values.first().copied() else { return self.int_value(0) };
        let len = self.b.load(Rep::Int, false, v.a, offset);
        self.drop_value(v);
        Value::int(len)
    }

    fn latest(&mut self, args: &'a [Expr], ty: Ty) -> Value {
        let values = self.evaluate(args);
        let Some(m) = values.first().copied() else { return Value::none() };
        let len = self.b.load(Rep::Int, false, m.a, layout::MULTI_LEN);
        let text = self.text_id("latest of an empty multi");
        self.b.trap_if_null(len, trap::BOUNDS, text);
        let one = self.b.int(1);
        let index = self.b.int_op(IntOp::Sub, len, one);
        let dst = self.b.temp(Rep::Int);
        let words = self.shape(ty).words();
        let unwind = self.b.unwind();
        self.b.emit(InstKind::Element { dst, multi: m.a, index, words, checked: false, unwind });
        let v = self.load_value(ty, dst, 0);
        self.out_of(m, v)
    }

    /// `pop` and `shift`: the element's words, whose reference leaves the container.
    fn take_end(&mut self, name: &str, args: &'a [Expr]) -> Value {
        let values = self.evaluate(args);
        let (Some(m), Some(arg)) = (values.first().copied(), args.first()) else { return Value::none() };
        let elem = self.elem(arg.ty);
        let shape = self.shape(elem);
        let out = self.two_words(name, vec![m.a], shape, elem);
        self.drop_value(m);
        self.owned(out)
    }

    /// Calls a function that returns two words for a value of any type.
    pub fn two_words(&mut self, name: &str, args: Vec<Local>, shape: Shape, ty: Ty) -> Value {
        let (first, second) = match shape {
            Shape::One(rep @ (Rep::Obj | Rep::Actor)) => (self.temp_of(rep, ty), self.b.temp(Rep::Int)),
            _ => (self.b.temp(Rep::Int), self.b.temp(Rep::Int)),
        };
        self.b.runtime(name, args, vec![first, second]);
        match shape {
            Shape::None => Value::none(),
            Shape::One(Rep::Float) => Value::one(Rep::Float, self.float_of(first), Own::Owned),
            Shape::One(rep) => Value::one(rep, first, Own::Owned),
            Shape::Pair(Rep::Float) => Value::pair(Rep::Float, first, self.float_of(second)),
            Shape::Pair(rep) => Value::pair(rep, first, second),
        }
    }

    fn float_of(&mut self, word: Local) -> Local {
        let dst = self.b.temp(Rep::Float);
        self.b.emit(InstKind::FromBits(dst, word));
        dst
    }

    fn get_map(&mut self, args: &'a [Expr], ty: Ty) -> Value {
        let values = self.evaluate(args);
        let [m, k] = values.as_slice() else { return Value::none() };
        let word = self.word(k.a);
        let addr = self.b.runtime1("map.find", vec![m.a, word], Rep::Int);
        let text = self.text_id(trap::MISSING_KEY);
        self.b.trap_if_null(addr, trap::KEY, text);
        let v = self.load_value(ty, addr, 0);
        let v = self.out_of(*m, v);
        self.drop_value(*k);
        v
    }

    /// A runtime function of a map and a key with an Int result.
    fn keyed(&mut self, name: &str, args: &'a [Expr]) -> Local {
        let values = self.evaluate(args);
        let [m, k] = values.as_slice() else { return self.b.int(0) };
        let word = self.word(k.a);
        let out = self.b.runtime1(name, vec![m.a, word], Rep::Int);
        self.drop_all(&values);
        out
    }

    fn entry_at(&mut self, args: &'a [Expr], ty: Ty, offset: i32) -> Value {
        let values = self.evaluate(args);
        let [m, i] = values.as_slice() else { return Value::none() };
        let entry = self.b.runtime1("map.entry", vec![m.a, i.a], Rep::Int);
        let v = self.load_value(ty, entry, offset);
        self.out_of(*m, v)
    }

    // -- by type -----------------------------------------------------------------------------------------------

    fn type_index(&mut self, ty: Ty) -> Local {
        let index = self.cx.layouts.ty(ty);
        self.b.int(i64::from(index))
    }

    fn json_encode(&mut self, args: &'a [Expr]) -> Value {
        let values = self.evaluate(args);
        let (Some(v), Some(arg)) = (values.first().copied(), args.first()) else { return self.literal(b"null") };
        let index = self.type_index(arg.ty);
        let (first, second) = self.words(v);
        let dst = self.b.runtime1("json.encode", vec![index, first, second], Rep::Obj);
        self.drop_value(v);
        self.owned(Value::one(Rep::Obj, dst, Own::Owned))
    }

    fn assert_eq(&mut self, args: &'a [Expr]) -> Value {
        let values = self.evaluate(args);
        let ([l, r], Some(arg)) = (values.as_slice(), args.first()) else { return Value::none() };
        let index = self.type_index(arg.ty);
        let ((l0, l1), (r0, r1)) = (self.words(*l), self.words(*r));
        self.b.runtime("assert_eq", vec![index, l0, l1, r0, r1], Vec::new());
        self.drop_all(&values);
        Value::none()
    }

    // -- actors ------------------------------------------------------------------------------------------------

    /// The arguments of a function that consumes the one at `message`, also where it traps.
    fn with_message(&mut self, args: &'a [Expr], message: usize) -> Vec<Value> {
        let mut values = self.evaluate(args);
        if let (Some(m), Some(arg)) = (values.get_mut(message), args.get(message)) {
            *m = self.boxed(*m, arg.ty);
            self.consume(*m);
        }
        values
    }

    /// A message as the object or null that the runtime takes it for: a bare union, which is its ordinal, in an object
    /// of a class of its own. The entry of `receive` takes it out again.
    fn boxed(&mut self, message: Value, ty: Ty) -> Value {
        let (TyKind::Union(union), Shape::One(Rep::Int)) = (self.kind(ty), message.shape) else { return message };
        let class = self.cx.layouts.box_class(union);
        let stores = [(layout::FIELDS, message)];
        if message.cst.is_some() {
            return self.allocate(class, &stores);
        }
        let object = self.b.temp(Rep::Obj);
        let (given, nil, join) = (self.b.block(), self.b.cold_block(), self.b.block());
        let zero = self.b.int(0);
        let is_given = self.b.int_op(IntOp::Ge, message.a, zero);
        self.b.branch(is_given, given, nil);
        self.b.start(given);
        let made = self.allocate(class, &stores);
        self.consume(made);
        self.b.copy(object, made.a);
        self.b.jump(join);
        self.b.start(nil);
        self.b.emit(InstKind::Null(object));
        self.b.jump(join);
        self.b.start(join);
        self.owned(Value::one(Rep::Obj, object, Own::Owned))
    }

    fn message(&mut self, name: &str, args: &'a [Expr], message: usize) -> Value {
        let values = self.with_message(args, message);
        self.b.runtime(name, flatten(&values), Vec::new());
        for (i, v) in values.iter().enumerate().rev() {
            if i != message {
                self.drop_value(*v);
            }
        }
        Value::none()
    }

    /// `call` and `call_dl`: sends, and turns the reply's words into a value.
    fn ask(&mut self, name: &str, args: &'a [Expr], ty: Ty) -> Value {
        let values = self.with_message(args, 1);
        let shape = self.shape(ty);
        let words = flatten(&values);
        let out = if shape == Shape::One(Rep::Actor) && name == "actor.call_dl" {
            self.address_in_time(words)
        } else {
            self.two_words(name, words, shape, ty)
        };
        for (i, v) in values.iter().enumerate().rev() {
            if i != 1 {
                self.drop_value(*v);
            }
        }
        self.owned(out)
    }

    /// An address as the reply of `call_dl`: tag and word become an address that may be null.
    fn address_in_time(&mut self, args: Vec<Local>) -> Value {
        let (tag, address) = (self.b.temp(Rep::Int), self.b.temp(Rep::Actor));
        self.b.runtime("actor.call_dl", args, vec![tag, address]);
        let (late, join) = (self.b.block(), self.b.block());
        self.b.branch(tag, join, late);
        self.b.start(late);
        self.b.emit(InstKind::Null(address));
        self.b.jump(join);
        self.b.start(join);
        Value::one(Rep::Actor, address, Own::Owned)
    }
}
