//! Any bytes as the files of a store, with checksums made right where the first byte says so: what is read is a store
//! that holds together or damage, for tools and for a start alike.
#![no_main]
#![allow(dead_code)]

#[path = "../../runtime/store/tests/hostile/seal.rs"]
mod seal;

use std::collections::BTreeMap;
use std::sync::Arc;
use store::disk::simulated::Simulated;
use store::inspect::Contents;
use store::{Compaction, OpenError, Settings, Store};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // Segments follow each other: a length in two bytes, then the bytes.
    let Some((flags, mut rest)) = input.split_first() else { return };
    let mut files = BTreeMap::new();
    while let Some((len, behind)) = rest.split_first_chunk() {
        let (bytes, behind) = behind.split_at(behind.len().min(usize::from(u16::from_le_bytes(*len))));
        let number = files.len() as u64 + 1;
        let mut bytes = bytes.to_vec();
        if flags & 1 == 1 {
            seal::all(&mut bytes, number);
        }
        files.insert(format!("{number:016x}.log"), bytes);
        rest = behind;
    }
    let disk = Simulated::with_files(1, &files);
    let contents = Contents::read(&disk).expect("nothing fails");
    let findings = contents.findings(&disk).expect("nothing fails");
    contents.tables().iter().for_each(|table| table.each_row(|_, _| ()));
    let settings = Settings {
        memory: 1 << 30,
        segment_bytes: 1 << 20,
        now: 0,
        on_durable: Box::new(|_| ()),
        on_failure: Box::new(|failure| panic!("{failure:?}")),
        compaction: Compaction { floor: 0, ratio: 0, on_failure: Box::new(|_| ()) },
    };
    let opened = Store::open(Arc::new(disk.clone()), &Default::default(), settings);
    match opened {
        Ok(_) => assert!(findings.is_empty()),
        Err(OpenError::Damage(damage)) => assert_eq!(Some(damage.to_string()), findings.first().map(|f| f.to_string())),
        Err(_) => assert!(findings.is_empty()),
    }
});
