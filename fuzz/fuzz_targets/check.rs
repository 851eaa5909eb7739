//! Any tree that the parser makes: the checker returns, and a program exists exactly when there is no error.
#![no_main]

use analysis::{Input, InputFile};
use diagnostics::span::FileId;

libfuzzer_sys::fuzz_target!(|source: &[u8]| {
    let parsed = syntax::parse(FileId(0), source, &[]);
    let file = InputFile {
        id: FileId(0),
        package: None,
        module: Vec::new(),
        display: "fuzz.wo".to_string(),
        ast: parsed.file,
    };
    let output = analysis::check(&Input { files: vec![file], is_library: false });
    let errors = output.diagnostics.iter().any(diagnostics::Diagnostic::is_error);
    assert_eq!(output.program.is_some(), !errors);
});
