//! Types of the language, interned: two equal types have one `Ty`. What a source type means after normalisation
//! (language specification 5.1): `Timestamp`, `Id` and `net.Conn` are `Int`, a table class names its row, typedefs of
//! equal shape share one class id.

use rustc_hash::FxHashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ty(pub u32);

/// Index into `hir::Program::classes` (classes, records, predeclared records).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u32);
/// Index into `hir::Program::unions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnionId(pub u32);
/// Index into `hir::Program::interfaces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IfaceId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TyKind {
    /// An erroneous type: goes anywhere, raises no follow-ups.
    Error,
    /// The result of a call that yields no value.
    Void,
    /// The type of an expression that does not complete (`trap(…)`).
    Never,
    /// A bare `nil` before its type is known.
    Nil,
    /// `[]` and `multi_new()` before their type is known.
    EmptyMulti,
    /// `{}` and `map_new()` before their type is known.
    EmptyMap,
    Int,
    Bool,
    Float,
    Text,
    Bytes,
    Json,
    /// A class or record value.
    Class(ClassId),
    /// `ref C`, a row.
    Row(ClassId),
    /// `backlink C.f`, the field's index.
    Backlink(ClassId, u32),
    Union(UnionId),
    Iface(IfaceId),
    /// `actor M`.
    Actor(Ty),
    Multi(Ty),
    Map(Ty, Ty),
    /// `?T`; never nested.
    Nullable(Ty),
    /// `T~` (5.3); `noisy` decides whether a plain use warns. Same representation as `Nullable(T)`.
    Maybe {
        inner: Ty,
        noisy: bool,
    },
}

/// The interner. The constants are its first entries.
#[derive(Clone, Debug)]
pub struct Types {
    kinds: Vec<TyKind>,
    index: FxHashMap<TyKind, Ty>,
}

impl Types {
    pub const ERROR: Ty = Ty(0);
    pub const VOID: Ty = Ty(1);
    pub const NEVER: Ty = Ty(2);
    pub const NIL: Ty = Ty(3);
    pub const EMPTY_MULTI: Ty = Ty(4);
    pub const EMPTY_MAP: Ty = Ty(5);
    pub const INT: Ty = Ty(6);
    pub const BOOL: Ty = Ty(7);
    pub const FLOAT: Ty = Ty(8);
    pub const TEXT: Ty = Ty(9);
    pub const BYTES: Ty = Ty(10);
    pub const JSON: Ty = Ty(11);

    #[must_use]
    pub fn new() -> Types {
        let mut types = Types { kinds: Vec::new(), index: FxHashMap::default() };
        for kind in [
            TyKind::Error,
            TyKind::Void,
            TyKind::Never,
            TyKind::Nil,
            TyKind::EmptyMulti,
            TyKind::EmptyMap,
            TyKind::Int,
            TyKind::Bool,
            TyKind::Float,
            TyKind::Text,
            TyKind::Bytes,
            TyKind::Json,
        ] {
            let _ = types.intern(kind);
        }
        types
    }

    pub fn intern(&mut self, kind: TyKind) -> Ty {
        if let Some(ty) = self.index.get(&kind) {
            return *ty;
        }
        let ty = Ty(u32::try_from(self.kinds.len()).unwrap_or(u32::MAX));
        self.kinds.push(kind);
        let _ = self.index.insert(kind, ty);
        ty
    }

    #[must_use]
    pub fn kind(&self, ty: Ty) -> TyKind {
        self.kinds.get(ty.0 as usize).copied().unwrap_or(TyKind::Error)
    }

    /// `?T`; `?T` itself for a `T` that is nullable already.
    pub fn nullable(&mut self, inner: Ty) -> Ty {
        match self.kind(inner) {
            TyKind::Nullable(_) | TyKind::Error => inner,
            TyKind::Maybe { inner, .. } => self.intern(TyKind::Nullable(inner)),
            _ => self.intern(TyKind::Nullable(inner)),
        }
    }

    /// `T` of `?T` and `T~`, else the type itself.
    #[must_use]
    pub fn strip(&self, ty: Ty) -> Ty {
        match self.kind(ty) {
            TyKind::Nullable(inner) | TyKind::Maybe { inner, .. } => inner,
            _ => ty,
        }
    }
}

impl Default for Types {
    fn default() -> Types {
        Types::new()
    }
}
