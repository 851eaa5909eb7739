//! Token kinds, recognised by a logos automaton over bytes, and the small `Token` the parser works on. A token has no
//! text of its own: it is cut from the source when it is needed.
//!
//! Kinds up to `Operator` are names: contextual words are ordinary identifiers wherever the grammar does not look for
//! them. Kinds after `Nl` that have no pattern are made by `lex`, which also splits `>>` and `>=` in two.

use logos::Logos;

/// A kind and a byte range; always in order of position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: K,
    pub start: u32,
    pub end: u32,
}

#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[logos(utf8 = false)]
#[logos(skip(b"[ \t\r]+"))]
#[logos(skip(b"--[^\n]*", allow_greedy = true))]
#[repr(u8)]
pub enum K {
    #[regex(b"[A-Za-z_][A-Za-z0-9_\\-]*")]
    Ident,
    #[token(b"ref")]
    Ref,
    #[token(b"multi")]
    Multi,
    #[token(b"map")]
    Map,
    #[token(b"backlink")]
    Backlink,
    #[token(b"actor")]
    Actor,
    #[token(b"static")]
    Static,
    #[token(b"read")]
    Read,
    #[token(b"from")]
    From,
    #[token(b"where")]
    Where,
    #[token(b"group")]
    Group,
    #[token(b"by")]
    By,
    #[token(b"into")]
    Into,
    #[token(b"order")]
    Order,
    #[token(b"desc")]
    Desc,
    #[token(b"skip")]
    Skip,
    #[token(b"select")]
    Select,
    #[token(b"insert")]
    Insert,
    #[token(b"delete")]
    Delete,
    #[token(b"now")]
    Now,
    #[token(b"test")]
    Test,
    #[token(b"service")]
    Service,
    #[token(b"policy")]
    Policy,
    #[token(b"on")]
    On,
    #[token(b"extends")]
    Extends,
    #[token(b"implements")]
    Implements,
    #[token(b"super")]
    Super,
    #[token(b"override")]
    Override,
    #[token(b"cast")]
    Cast,
    #[token(b"Dynamic")]
    Dynamic,
    #[token(b"untyped")]
    Untyped,
    #[token(b"macro")]
    Macro,
    #[token(b"extern")]
    Extern,
    #[token(b"operator")]
    Operator,

    #[token(b"type")]
    Type,
    #[token(b"class")]
    Class,
    #[token(b"interface")]
    Interface,
    #[token(b"fn")]
    Fn,
    #[token(b"let")]
    Let,
    #[token(b"mut")]
    Mut,
    #[token(b"take")]
    Take,
    #[token(b"return")]
    Return,
    #[token(b"if")]
    If,
    #[token(b"else")]
    Else,
    #[token(b"while")]
    While,
    #[token(b"for")]
    For,
    #[token(b"in")]
    In,
    #[token(b"true")]
    True,
    #[token(b"false")]
    False,
    #[token(b"use")]
    Use,
    #[token(b"spawn")]
    Spawn,
    #[token(b"using")]
    Using,
    #[token(b"pub")]
    Pub,
    #[token(b"break")]
    Break,
    #[token(b"continue")]
    Continue,
    #[token(b"do")]
    Do,
    #[token(b"const")]
    Const,
    #[token(b"and")]
    And,
    #[token(b"or")]
    Or,
    #[token(b"not")]
    Not,
    #[token(b"inline")]
    Inline,
    #[token(b"switch")]
    Switch,
    #[token(b"case")]
    Case,
    #[token(b"default")]
    Default,
    #[token(b"typedef")]
    Typedef,
    #[token(b"try")]
    Try,
    #[token(b"catch")]
    Catch,
    #[token(b"nil")]
    Nil,
    #[token(b"as")]
    As,
    #[token(b"INSERT")]
    LegacyInsert,
    #[token(b"SELECT")]
    LegacySelect,

    /// Decimal, hexadecimal or binary.
    #[regex(b"[0-9](_?[0-9])*")]
    #[regex(b"0[xX][0-9A-Fa-f](_?[0-9A-Fa-f])*")]
    #[regex(b"0[bB][01](_?[01])*")]
    Int,
    #[regex(b"[0-9](_?[0-9])*\\.[0-9]+([eE][+\\-]?[0-9]+)?")]
    #[regex(b"[0-9](_?[0-9])*[eE][+\\-]?[0-9]+")]
    Float,

    #[token(b"{")]
    LBrace,
    #[token(b"}")]
    RBrace,
    #[token(b"(")]
    LParen,
    #[token(b")")]
    RParen,
    #[token(b"[")]
    LBracket,
    #[token(b"]")]
    RBracket,
    #[token(b",")]
    Comma,
    #[token(b";")]
    Semi,
    #[token(b":")]
    Colon,
    #[token(b".")]
    Dot,
    #[token(b"..")]
    DotDot,
    #[token(b"?")]
    Question,
    #[token(b"@")]
    At,
    #[token(b"|")]
    Pipe,
    #[token(b"->")]
    Arrow,
    #[token(b"=>")]
    FatArrow,
    #[token(b"-")]
    Minus,
    #[token(b"-=")]
    MinusEq,
    #[token(b"+")]
    Plus,
    #[token(b"+=")]
    PlusEq,
    #[token(b"*")]
    Star,
    #[token(b"*=")]
    StarEq,
    #[token(b"/")]
    Slash,
    #[token(b"/=")]
    SlashEq,
    #[token(b"%")]
    Percent,
    #[token(b"%=")]
    PercentEq,
    #[token(b"=")]
    Assign,
    #[token(b"==")]
    EqEq,
    #[token(b"!=")]
    NotEq,
    #[token(b"<")]
    Lt,
    #[token(b"<=")]
    Le,
    #[token(b"<<")]
    Shl,
    #[token(b">")]
    Gt,
    /// From `lex`: the `>` of a `>=`; its `=` is the next token.
    #[token(b">=")]
    GeHead,
    /// From `lex`: the first `>` of a `>>`; the second one is the next token.
    #[token(b">>")]
    ShrHead,
    #[token(b"&")]
    Amp,
    #[token(b"^")]
    Caret,

    #[token(b"\n")]
    Nl,

    // Seen by `lex` only.
    #[token(b"\"")]
    DoubleQuote,
    #[token(b"'")]
    SingleQuote,
    #[token(b"`")]
    Backtick,
    #[token(b"!")]
    Bang,
    #[regex(b"#[A-Za-z0-9_\\-]*")]
    Directive,

    // Made by `lex` only.
    /// A whole quoted literal without holes, delimiters included.
    Str,
    /// A whole raw literal without holes, delimiters included.
    Raw,
    /// A literal that was reported; it reads as an empty text.
    BadStr,
    /// Opening quote of a literal with holes.
    StrOpen,
    /// Opening backtick of a literal with holes.
    RawOpen,
    /// Undecoded text between holes.
    StrPart,
    /// Closing delimiter of a literal with holes.
    StrClose,
    /// `${`.
    HoleOpen,
    /// The `}` of a `${`.
    HoleClose,
    /// `{{` in a raw literal.
    EscOpen,
    /// `}}` of a `{{`.
    EscClose,
    Eof,
}

impl K {
    /// Usable as an identifier: `Ident`, contextual and doctrine words.
    pub fn is_name(self) -> bool {
        self <= K::Operator
    }

    /// A word refused at the head of an expression or declaration.
    pub fn is_doctrine(self) -> bool {
        self >= K::Extends && self <= K::Operator
    }

    /// A field name: an identifier or `type`.
    pub fn is_field_name(self) -> bool {
        self <= K::Type
    }

    /// Ends a hole.
    pub fn is_hole_close(self) -> bool {
        matches!(self, K::HoleClose | K::EscClose)
    }
}
