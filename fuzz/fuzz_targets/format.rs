//! Any bytes: the formatter refuses them for what the parser reports, or its result is a fixed point.
#![no_main]

use diagnostics::span::FileId;
use syntax::format::Refusal;

libfuzzer_sys::fuzz_target!(|source: &[u8]| {
    match syntax::format(FileId(0), source, &[]) {
        Ok(once) => match syntax::format(FileId(0), &once, &[]) {
            Ok(twice) => assert!(once == twice, "not a fixed point"),
            Err(e) => panic!("the result is refused: {e:?}"),
        },
        Err(Refusal::Errors(found)) => assert!(!found.is_empty(), "refused without a report"),
        Err(Refusal::TooLong) => {}
        Err(Refusal::Internal(what)) => panic!("{what}"),
    }
});
