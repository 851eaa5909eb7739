//! Ways in which the files of a store go wrong, one of them after the other.

use crate::samples::Sample;
use crate::seal;
use std::collections::BTreeMap;

pub type Image = BTreeMap<String, Vec<u8>>;

pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

fn number(name: &str) -> u64 {
    u64::from_str_radix(name.trim_end_matches(".log"), 16).unwrap_or(1)
}

/// The image of a sample after some mutations, with what they were.
pub fn mutate(samples: &[Sample], sample: &Sample, random: &mut Random) -> (Image, Vec<String>) {
    let mut image = sample.image.clone();
    let mut done = Vec::new();
    for _ in 0..1 + random.below(3) {
        let names: Vec<String> = image.keys().cloned().collect();
        let name = names.get(random.below(names.len())).cloned().unwrap_or_else(|| "0000000000000001.log".to_owned());
        if random.below(5) == 0 {
            done.push(replace_files(samples, &mut image, &name, random));
            continue;
        }
        let bytes = image.entry(name.clone()).or_default();
        let what = match random.below(3) {
            0 => raw(bytes, random),
            _ => sealed(bytes, number(&name), random),
        };
        done.push(format!("{name}: {what}"));
    }
    (image, done)
}

/// A file is gone, another one's, or anything at all.
fn replace_files(samples: &[Sample], image: &mut Image, name: &str, random: &mut Random) -> String {
    let other = &samples[random.below(samples.len())].image;
    let others: Vec<&String> = other.keys().collect();
    let from = others[random.below(others.len())];
    match random.below(6) {
        0 => drop(image.remove(name)),
        1 => drop(image.insert(name.to_owned(), other[from].clone())),
        2 => drop(image.insert(from.clone(), other[from].clone())),
        3 => {
            let len = random.below(3000);
            drop(image.insert(name.to_owned(), random.bytes(len)));
        }
        4 => {
            let bytes = image.remove(name).unwrap_or_default();
            let to = random.below(12) as u64;
            let mut bytes = bytes;
            if bytes.len() >= 64 && random.below(2) == 0 {
                bytes[24..32].copy_from_slice(&to.to_le_bytes());
                seal::all(&mut bytes, to);
            }
            let names = [format!("{to:016x}.log"), format!("{:016x}.log", u64::MAX - to), format!("{to:016x}.tmp")];
            drop(image.insert(names[random.below(3)].clone(), bytes));
        }
        _ => {
            let odd = ["lock", "x.log", "00000000000000AB.log", "0000000000000000.log", "000000000000000001.log"];
            drop(image.insert(odd[random.below(odd.len())].to_owned(), other[from].clone()));
        }
    }
    format!("files: {name}, {from}")
}

/// Bytes change, go, come twice, or change their places; no checksum is made right.
fn raw(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    let (at, len) = (random.below(bytes.len() + 1), 1 + random.below(200));
    let end = (at + len).min(bytes.len());
    match random.below(6) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
        1 => bytes.truncate(at),
        2 => {
            let block = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            drop(bytes.splice(to..to, block));
        }
        3 => drop(bytes.drain(at..end)),
        4 => {
            let block: Vec<u8> = bytes.drain(at..end).collect();
            let to = random.below(bytes.len() + 1);
            drop(bytes.splice(to..to, block));
        }
        _ => {
            let noise = random.bytes(end - at);
            bytes[at..end].copy_from_slice(&noise);
        }
    }
    format!("raw at {at}, {len}")
}

const EXTREMES: [u64; 14] =
    [0, 1, 2, 3, 28, 29, 255, 65_535, 1 << 31, 0xFFFF_FFFF, (1 << 62) - 1, 1 << 62, i64::MAX as u64, u64::MAX];

/// Something changes behind the checksums, which are made right.
fn sealed(bytes: &mut Vec<u8>, number: u64, random: &mut Random) -> String {
    let places = seal::places(bytes);
    let (begin, end) = match random.below(8) {
        0 => (0, 64),
        1 | 2 => (64, seal::records(bytes)),
        // A record, its body in most cases.
        _ => match places.get(random.below(places.len())) {
            Some(at) => {
                let len = u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
                (at + if random.below(4) == 0 { 4 } else { 28 }, (at + len).min(bytes.len()))
            }
            None => (0, bytes.len()),
        },
    };
    let at = begin + random.below(end.saturating_sub(begin));
    let width = [1, 2, 4, 8][random.below(4)];
    let what = match random.below(6) {
        0 if !places.is_empty() => {
            // Records in another order, gone or twice, with numbers that follow each other.
            let mut records: Vec<Vec<u8>> = Vec::new();
            for (i, at) in places.iter().enumerate() {
                let end = places.get(i + 1).copied().unwrap_or(bytes.len()).min(bytes.len());
                records.push(bytes[*at..end].to_vec());
            }
            let (a, b) = (random.below(records.len()), random.below(records.len()));
            match random.below(3) {
                0 => records.swap(a, b),
                1 => drop(records.remove(a)),
                _ => records.insert(b, records[a].clone()),
            }
            let first = u64::from_le_bytes(bytes[32..40].try_into().unwrap());
            bytes.truncate(places[0]);
            for (seq, record) in (first..).zip(records) {
                let at = bytes.len().next_multiple_of(8);
                bytes.resize(at, 0);
                bytes.extend(record);
                if let Some(place) = bytes.get_mut(at + 8..at + 24) {
                    place[..8].copy_from_slice(&seq.to_le_bytes());
                    place[8..].copy_from_slice(&(seq.saturating_sub(1)).to_le_bytes());
                }
            }
            format!("records {a} and {b}")
        }
        1 if at < bytes.len() => {
            bytes[at] ^= 1 << random.below(8);
            format!("flip at {at}")
        }
        2 if at < bytes.len() => {
            bytes[at] = random.below(14) as u8;
            format!("small number at {at}")
        }
        _ => {
            let extreme = EXTREMES[random.below(EXTREMES.len())];
            if let Some(place) = bytes.get_mut(at..at + width) {
                place.copy_from_slice(&extreme.to_le_bytes()[..width]);
            }
            format!("{extreme} at {at}")
        }
    };
    seal::all(bytes, number);
    what
}
