//! Diagnostics as values: a code, a title, labelled spans, notes and a help. Stages collect them; `woc` renders them
//! once, at the end (`render`).
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stderr, clippy::print_stdout)
)]

mod excerpt;
pub mod render;
pub mod span;

use span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// A code such as `WO-E301` (error) or `WO-W204` (warning). Numbers never change meaning; section 12.2 of the language
/// specification lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code {
    pub severity: Severity,
    pub number: u16,
}

impl Code {
    #[must_use]
    pub const fn error(number: u16) -> Code {
        Code { severity: Severity::Error, number }
    }

    #[must_use]
    pub const fn warning(number: u16) -> Code {
        Code { severity: Severity::Warning, number }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let letter = match self.severity {
            Severity::Error => 'E',
            Severity::Warning => 'W',
        };
        write!(f, "WO-{letter}{:03}", self.number)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub span: Span,
    pub text: String,
}

/// One report. `label` says what is wrong at `span`; `notes` say why the rule exists; `help` says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub title: String,
    pub span: Span,
    pub label: String,
    pub related: Vec<Label>,
    pub notes: Vec<String>,
    pub help: Option<String>,
}

impl Diagnostic {
    #[must_use]
    pub fn new(code: Code, span: Span, title: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            title: title.into(),
            span,
            label: String::new(),
            related: Vec::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    #[must_use]
    pub fn error(number: u16, span: Span, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::error(number), span, title)
    }

    #[must_use]
    pub fn warning(number: u16, span: Span, title: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Code::warning(number), span, title)
    }

    /// The text under the primary span.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = text.into();
        self
    }

    #[must_use]
    pub fn related(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.related.push(Label { span, text: text.into() });
        self
    }

    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    #[must_use]
    pub fn is_error(&self) -> bool {
        self.code.severity == Severity::Error
    }
}
