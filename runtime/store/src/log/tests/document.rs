//! A reader written from docs/store-format.md alone, which shares no code with the log.

use super::*;

fn crc(parts: &[&[u8]]) -> u32 {
    let mut crc = 0xFFFF_FFFF;
    for byte in parts.iter().copied().flatten() {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    crc ^ 0xFFFF_FFFF
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The preamble, and kind and body of each record with the sequence number and the barrier.
fn decode(name: &str, file: &[u8]) -> (Vec<u8>, Vec<(Entry, u64)>) {
    assert_eq!(&file[..8], b"wo.log\x00\x01");
    let (id, segment) = (&file[8..24], &file[24..32]);
    assert_eq!(name, format!("{:016x}.log", number(segment)));
    assert_eq!(number(&file[60..64]), u64::from(crc(&[&file[..60]])));
    assert_eq!(&file[56..60], &[0; 4]);
    let length = number(&file[48..52]) as usize;
    let preamble = &file[64..64 + length];
    assert_eq!(number(&file[52..56]), u64::from(crc(&[id, segment, preamble])));

    let mut records = Vec::new();
    let mut seq = number(&file[32..40]);
    let mut at = (64 + length).next_multiple_of(8);
    while at < file.len() && file[at..at + 8] != [0; 8] {
        let head = &file[at..at + 29];
        let end = at + number(&head[4..8]) as usize;
        let body = &file[at + 29..end];
        assert_eq!(number(&head[..4]), u64::from(crc(&[id, segment, &(at as u64).to_le_bytes(), &head[4..]])));
        assert_eq!(number(&head[24..28]), u64::from(crc(&[body])));
        assert_eq!(number(&head[8..16]), seq);
        let kind = Kind::from_byte(head[28]).unwrap();
        records.push(((seq, kind, body.to_vec()), number(&head[16..24])));
        at = end.next_multiple_of(8);
        assert!(file[end..at].iter().all(|byte| *byte == 0));
        seq += 1;
    }
    assert!(file[at..].iter().all(|byte| *byte == 0));
    (preamble.to_vec(), records)
}

#[test]
fn fmt_1_the_document_is_enough_to_read_a_log() {
    let (image, mut written) = sample();
    let disk = Memory::from(image);
    open(&disk).close();
    written.push((written.len() as u64 + 1, Kind::End, Vec::new()));

    let mut found = Vec::new();
    for (name, file) in disk.image() {
        let (preamble, records) = decode(&name, &file);
        let last = |table: u16| {
            let mut ids = found.iter().filter(|((_, kind, body), _): &&(Entry, u64)| {
                *kind == Kind::Insert && number(&body[..2]) == u64::from(table)
            });
            ids.next_back().map_or(0, |((_, _, body), _)| number(&body[2..10]))
        };
        let counters = [last(0) + 1, last(1) + 1].map(u64::to_le_bytes).concat();
        assert_eq!(preamble, [&10u32.to_le_bytes()[..], b"two tables", &counters].concat());
        found.extend(records);
    }
    // Each record of the sample was waited for.
    assert!(found.iter().all(|((seq, _, _), barrier)| *barrier == seq - 1));
    assert_eq!(found.into_iter().map(|(entry, _)| entry).collect::<Vec<_>>(), written);
}
