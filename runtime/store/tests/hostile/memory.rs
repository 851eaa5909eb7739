//! What a file makes its reader allocate is a small multiple of the file, and it is read soon.

use crate::mutate::Image;
use crate::program::Program;
use crate::{inspect, seal};
use abi::desc::{TYPE_INT, TypeDesc};
use std::fs;
use std::time::{Duration, Instant};
use store::disk::simulated::Simulated;
use store::schema::Schema;

const KEEP: u8 = 4;
const INSERT: u8 = 1;

/// A store of one segment, which need not be the first.
fn segment(number: u64, schema: &[u8], counters: &[u64], records: &[(u8, Vec<u8>)]) -> Image {
    let mut bytes = vec![0; 64];
    bytes[..8].copy_from_slice(b"wo.log\0\x01");
    bytes[24..32].copy_from_slice(&number.to_le_bytes());
    bytes[32..40].copy_from_slice(&1u64.to_le_bytes());
    bytes[40..48].copy_from_slice(&number.to_le_bytes());
    bytes.extend((schema.len() as u32).to_le_bytes());
    bytes.extend(schema);
    counters.iter().for_each(|counter| bytes.extend(counter.to_le_bytes()));
    let preamble = bytes.len() as u32 - 64;
    bytes[48..52].copy_from_slice(&preamble.to_le_bytes());
    for (seq, (kind, body)) in (1u64..).zip(records) {
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend([0; 4]);
        bytes.extend((29 + body.len() as u32).to_le_bytes());
        bytes.extend(seq.to_le_bytes());
        bytes.extend((seq - 1).to_le_bytes());
        bytes.extend([0, 0, 0, 0, *kind]);
        bytes.extend(body);
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    seal::all(&mut bytes, number);
    Image::from([(format!("{number:016x}.log"), bytes)])
}

fn row(table: u16, id: u64, values: &[u8]) -> Vec<u8> {
    [&table.to_le_bytes()[..], &id.to_le_bytes(), values].concat()
}

fn schema_of(program: &Program) -> Vec<u8> {
    let mut schema = Vec::new();
    Schema::of(&program.0, 0).encode(&mut schema);
    schema
}

/// A kibibyte count of this process, as the system has it.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn t21_memory_and_time_by_the_bytes() {
    let types = {
        let mut schema = [&100_001u32.to_le_bytes()[..], &[0]].concat();
        for n in 0..100_000u32 {
            schema.push(7);
            schema.extend(n.to_le_bytes());
        }
        schema.extend(0u32.to_le_bytes());
        segment(1, &schema, &[], &[])
    };
    let tables = {
        let mut schema = [0u32, 30_000].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        for n in 0..30_000u32 {
            schema.push(0);
            for text in [n, 0] {
                schema.extend(4u32.to_le_bytes());
                schema.extend(format!("{text:04x}").bytes().take(4));
            }
            schema.extend([0; 9]);
        }
        segment(1, &schema, &vec![1; 30_000], &[])
    };
    let chain = {
        let mut program = Program::new();
        let link = program.record("Link", &[("n", TYPE_INT, None)]);
        let TypeDesc::Object(class) = program.0.ty(link) else { panic!() };
        let next = program.nullable(link);
        program.0.classes[class as usize].fields[0].ty = next;
        let _ = program.table("Item", &[("first", next, None)]);
        let value = [vec![1; 500_000], vec![0]].concat();
        let body = [&[1][..], &(value.len() as u32).to_le_bytes(), &value].concat();
        segment(1, &schema_of(&program), &[1], &[(INSERT, row(0, 1, &body))])
    };
    let mut numbers = Program::new();
    let _ = numbers.table("Item", &[("n", TYPE_INT, None)]);
    let sparse = {
        let keep = |n: u64| (KEEP, row(0, 1 + n * 100_000, &[7; 8]));
        segment(2, &schema_of(&numbers), &[1 << 60], &(0..20_000).map(keep).collect::<Vec<_>>())
    };
    let counts = {
        let mut program = Program::new();
        let list = program.multi(TYPE_INT);
        let lists = program.multi(list);
        let _ = program.table("Item", &[("lists", lists, None)]);
        let value = [0xFFFF_FFFEu32.to_le_bytes(), 0xFFFF_FFFEu32.to_le_bytes()].concat();
        let body = [&(value.len() as u32).to_le_bytes()[..], &value].concat();
        segment(1, &schema_of(&program), &[1], &[(INSERT, row(0, 1, &body))])
    };
    let one_type_often = {
        let schema = [&400_000u32.to_le_bytes()[..], &[0; 400_000], &[0; 4]].concat();
        segment(1, &schema, &[], &[])
    };
    for (what, image, sound) in [
        ("one type often", one_type_often, false),
        ("types", types, true),
        ("tables", tables, true),
        ("a chain", chain, true),
        ("ids far from each other", sparse, true),
        ("counts of what is not there", counts, false),
    ] {
        let bytes = image.values().map(Vec::len).sum::<usize>() as u64;
        let disk = Simulated::with_files(1, &image);
        // The peak is counted anew from here on.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let (before, begun) = (status("VmRSS:"), Instant::now());
        let (findings, _) = inspect(&disk);
        let (took, more) = (begun.elapsed(), (status("VmHWM:") << 10).saturating_sub(before << 10));
        println!("{what}: {bytes} bytes, {more} of memory, {took:?}");
        assert_eq!(findings.is_empty(), sound, "{what}: {findings:?}");
        assert!(more < 100 * bytes + (16 << 20), "{what}: {more} bytes of memory for {bytes}");
        assert!(took < Duration::from_secs(10), "{what}: {took:?} for {bytes} bytes");
    }
}
