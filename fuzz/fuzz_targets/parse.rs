//! Any bytes: the lexer and the parser return, and what they say points into the source.
#![no_main]

use diagnostics::span::FileId;

libfuzzer_sys::fuzz_target!(|source: &[u8]| {
    let parsed = syntax::parse(FileId(0), source, &["FAST".to_string()]);
    for d in &parsed.diagnostics {
        assert!(d.span.start <= d.span.end && d.span.end as usize <= source.len(), "span outside the source: {d:?}");
    }
});
