//! Bytes that are not what was written.

use super::*;
use codec::crc32;

/// `entries` up to and without the last batch, and all of them: each record of `sample` is a batch.
#[track_caller]
fn is_whole_or_lacks_the_last(found: &[Entry], written: &[Entry], what: &str) -> bool {
    let short = found == &written[..written.len() - 1];
    assert!(short || found == written, "{what}: {} of {} records", found.len(), written.len());
    short
}

#[test]
fn rec_3_the_last_segment_may_end_anywhere() {
    let (image, written) = sample();
    let last = last_name(&image);
    let bytes = &image[&last];
    let (collect, found) = read(&Memory::from(image.clone())).unwrap();
    let number = found.segments.last().unwrap().number;
    for len in 0..=bytes.len() {
        let complete = collect.places.iter().zip(&written).filter(|((segment, offset), (_, _, body))| {
            *segment < number || offset + 29 + body.len() as u64 <= len as u64
        });
        let expected = &written[..complete.count()];
        let mut cut = image.clone();
        let _ = cut.insert(last.clone(), bytes[..len].to_vec());
        let disk = Memory::from(cut);
        let (collect, found) = read(&disk).unwrap();
        assert_eq!(collect.entries, expected, "cut at {len}");
        assert_eq!(found.leftovers.contains(&last), len < 64 + 30, "cut at {len}");

        let log = open(&disk);
        let Extent { number, bytes, .. } = *log.segments().last().unwrap();
        assert!(disk.image()[&segment::name(number)].len() as u64 > bytes, "zeros are behind the end");
        let new = write(&log, Kind::Change, b"after the cut");
        drop(log);
        let found = entries(&disk.power_cut(&mut Random(len as u64 + 1))).unwrap();
        assert_eq!((&found[..found.len() - 1], found.last()), (expected, Some(&new)), "cut at {len}");
    }
}

#[test]
fn rec_3_a_store_whose_first_segment_is_cut_short_is_a_new_one() {
    let disk = Memory::default();
    drop(open(&disk));
    let name = segment::name(1);
    for len in 0..64 + 30 {
        let cut = Memory::from(Image::from([(name.clone(), disk.image()[&name][..len].to_vec())]));
        let (_, found) = read(&cut).unwrap();
        assert_eq!((found.segments.len(), found.torn), (0, len as u64));
        let written = write(&open(&cut), Kind::Change, b"first");
        assert_eq!(entries(&cut.image()), Ok(vec![written]));
    }
}

#[test]
fn rec_4_every_flipped_bit_is_damage_or_loses_the_last_batch_only() {
    let (mut image, mut written) = sample();
    for normal_end in [false, true] {
        if normal_end {
            let disk = Memory::from(image);
            open(&disk).close();
            written.push((written.len() as u64 + 1, Kind::End, Vec::new()));
            image = disk.image();
        }
        let last = last_name(&image);
        let preambles = read(&Memory::from(image.clone())).unwrap().0.preambles;
        let (mut damages, mut shorter) = (0, 0);
        for (name, bytes) in &image {
            for bit in 0..bytes.len() * 8 {
                let mut flipped = image.clone();
                flipped.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
                match read(&Memory::from(flipped)) {
                    Ok((found, _)) => {
                        let what = format!("bit {bit} of {name}");
                        assert_eq!(found.preambles, preambles, "{what}");
                        if is_whole_or_lacks_the_last(&found.entries, &written, &what) {
                            assert_eq!(*name, last);
                            shorter += 1;
                        }
                    }
                    Err(Error::Damage(damage)) => {
                        assert_eq!(damage.file, *name, "bit {bit}: {damage}");
                        assert!(damage.offset <= bit as u64 / 8, "bit {bit} of {name}: {damage}");
                        damages += 1;
                    }
                    Err(error) => panic!("bit {bit} of {name}: {error:?}"),
                }
            }
        }
        assert_eq!(shorter, (29 + written.last().unwrap().2.len()) * 8);
        assert!(damages > written.len() * 29 * 8);
    }
}

/// In each alignment: a body copies everything that was written before it.
#[test]
fn fmt_3_copies_of_the_log_are_not_taken_for_records() {
    let disk = Memory::default();
    let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(1 << 20, &Told::default())).unwrap();
    let name = segment::name(1);
    let mut written = vec![write(&log, Kind::Change, b"original"), write(&log, Kind::Change, b"another")];
    for shift in 0..8 {
        let mut body = vec![0; shift];
        let end = log.segments()[0].bytes.min(600) as usize;
        body.extend_from_slice(&disk.image()[&name][..end]);
        body.push(1);
        written.push(write(&log, Kind::Change, &body));
    }
    drop(log);
    let (collect, found) = read(&disk).unwrap();
    let mut bytes = disk.image()[&name].clone();
    bytes.truncate(found.segments[0].bytes as usize + 100);
    for torn in 64 + 30..bytes.len() {
        let complete = collect.places.iter().zip(&written);
        let complete = complete.filter(|((_, offset), (_, _, body))| offset + 29 + body.len() as u64 <= torn as u64);
        let expected = &written[..complete.count()];
        let cut = Image::from([(name.clone(), bytes[..torn].to_vec())]);
        assert_eq!(entries(&cut).unwrap(), expected, "cut at {torn}");
        let mut zeroed = bytes.clone();
        zeroed[torn..].fill(0);
        assert_eq!(entries(&Image::from([(name.clone(), zeroed)])).unwrap(), expected, "zeros from {torn}");
    }
}

/// The first record of a batch is lost in a crash, the others are whole: they must not follow a new one in its place.
#[test]
fn rec_5_old_bytes_never_come_back() {
    let disk = Memory::default();
    let log = open(&disk);
    disk.hold();
    let first = (log.stage(Kind::Change, |_| ()), Kind::Change, Vec::new());
    disk.await_held_sync();
    for n in 0..3u8 {
        let _ = log.stage(Kind::Change, |out| out.extend_from_slice(&[n; 20]));
    }
    disk.release();
    assert!(log.wait(4));
    drop(log);
    let mut image = disk.image();
    let place = read(&disk).unwrap().0.places[1];
    let bytes = image.get_mut(&segment::name(place.0)).unwrap();
    bytes[place.1 as usize + 3] ^= 1;
    assert_eq!(entries(&image), Ok(vec![first.clone()]));

    let disk = Memory::from(image);
    assert_eq!(read(&disk).unwrap().1.torn, 3 * 56);
    let new = write(&open(&disk), Kind::Change, &[9; 20]);
    assert_eq!(new.0, 2);
    for seed in 1..20 {
        assert_eq!(entries(&disk.power_cut(&mut Random(seed))), Ok(vec![first.clone(), new.clone()]));
    }
}

/// A batch that follows proves that the one before was durable, even if that is all that is left of it.
#[test]
fn rec_4_a_later_head_alone_tells_damage_from_a_tear() {
    let (image, written) = sample();
    let (collect, found) = read(&Memory::from(image.clone())).unwrap();
    let last = found.segments.last().unwrap();
    let mine: Vec<u64> = collect.places.iter().filter(|p| p.0 == last.number).map(|p| p.1).collect();
    let [first, .., end] = mine[..] else { panic!("{mine:?}") };
    let mut lost = image.clone();
    let bytes = lost.get_mut(&segment::name(last.number)).unwrap();
    bytes[first as usize..end as usize].fill(0);
    bytes[end as usize + 29..].fill(0);
    let damage = entries(&lost).unwrap_err();
    assert_eq!((damage.file, damage.offset), (segment::name(last.number), first));
    // Without that head it is a tear.
    lost.get_mut(&segment::name(last.number)).unwrap()[end as usize..].fill(0);
    assert_eq!(entries(&lost).unwrap(), written[..last.first as usize - 1]);
}

/// Only the first segment of a store can have been about to be made with none before it.
#[test]
fn rec_4_a_short_segment_without_the_one_before_is_damage() {
    let (mut image, _) = sample();
    let last = last_name(&image);
    image.get_mut(&last).unwrap().truncate(10);
    let number = segment::number(&last).unwrap();
    let _ = image.remove(&segment::name(number - 1));
    assert_eq!(entries(&image).unwrap_err().file, segment::name(number - 1));
    image.retain(|name, _| *name == last);
    assert_eq!(entries(&image).unwrap_err().file, segment::name(number - 1));
}

/// No crash makes a sound record that means nothing.
#[test]
fn rec_4_a_sound_record_that_cannot_be_decoded_is_damage() {
    let bodies = [(9, vec![]), (7, vec![]), (0, vec![]), (5, vec![1; 7]), (5, vec![0; 8]), (5, vec![9; 8])];
    for (kind, body) in bodies {
        let disk = Memory::default();
        let log = open(&disk);
        let written = write(&log, Kind::Change, b"sound");
        drop(log);
        let mut image = disk.image();
        let bytes = image.get_mut(&segment::name(1)).unwrap();
        let end = read(&disk).unwrap().1.segments[0].bytes;

        let mut record = Vec::new();
        frame::put(&mut record, written.0 + 1, Kind::Change, |out| out.extend_from_slice(&body));
        record[28] = kind;
        let _ = frame::Seal::new(bytes[8..24].first_chunk().unwrap(), 1).close(end, written.0, &mut record);
        bytes[end as usize..end as usize + record.len()].copy_from_slice(&record);
        let damage = entries(&image).unwrap_err();
        assert_eq!((damage.offset, damage.reason.as_str()), (end, "record 2 cannot be decoded"), "kind {kind}");
    }
}

/// A header with these bytes at `at`, and the checksum that makes it sound.
fn forge(image: &mut Image, name: &str, at: usize, bytes: &[u8]) {
    let file = image.get_mut(name).unwrap();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32::update(0, &file[..60]);
    file[60..64].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn rec_4_headers_must_fit_each_other() {
    let (image, _) = sample();
    let names: Vec<String> = image.keys().cloned().collect();
    let word = |n: u64| n.to_le_bytes();
    // Format; number, first record, oldest segment, length of the preamble; first record in another segment.
    let cases: [(usize, usize, &[u8]); 10] = [
        (1, 32, &word(u64::MAX)),
        (1, 24, &word((1 << 62) + 1)),
        (1, 7, &[2]),
        (1, 24, &word(3)),
        (1, 32, &word(0)),
        (1, 40, &word(0)),
        (1, 40, &word(3)),
        (1, 48, &word(u64::MAX)),
        (2, 32, &word(1)),
        (2, 32, &word(1 << 62)),
    ];
    for (file, at, bytes) in cases {
        let mut forged = image.clone();
        forge(&mut forged, &names[file], at, bytes);
        let damage = entries(&forged).unwrap_err();
        // A first record that is too late is one that the segment before lacks.
        let expected = &names[if bytes == word(1 << 62) { file - 1 } else { file }];
        assert_eq!(damage.file, *expected, "{at}: {damage}");
    }
}

#[test]
fn segments_of_two_stores_do_not_mix() {
    let (mut image, _) = sample();
    let name = segment::name(2);
    let _ = image.insert(name.clone(), sample().0[&name].clone());
    let damage = entries(&image).unwrap_err();
    assert_eq!((damage.file, damage.reason.as_str()), (name, "the file belongs to another store"));
}

/// Headers whose checksums are right may say anything.
#[test]
fn fmt_5_any_bytes_are_answered() {
    let (sound, _) = sample();
    let names: Vec<String> = sound.keys().cloned().collect();
    for seed in 1..=4000 {
        let random = &mut Random(seed);
        let mut image = if seed % 8 == 0 { Image::new() } else { sound.clone() };
        for _ in 0..1 + random.below(3) {
            let name = names[random.below(names.len())].clone();
            let bytes = image.entry(name).or_default();
            match random.below(4) {
                0 => bytes.truncate(random.below(bytes.len() + 1)),
                1 => bytes.extend((0..random.below(400)).map(|_| random.below(256) as u8)),
                _ => {
                    let at = random.below(bytes.len() + 1);
                    for byte in bytes.iter_mut().skip(at).take(1 + random.below(12)) {
                        *byte = [0, 1, 255, random.below(256) as u8][random.below(4)];
                    }
                }
            }
            if bytes.len() >= 64 && random.below(2) == 0 {
                let crc = crc32::update(0, &bytes[..60]);
                bytes[60..64].copy_from_slice(&crc.to_le_bytes());
            }
        }
        let disk = Memory::from(image);
        if let Ok((_, found)) = read(&disk) {
            let log = Log::start(Arc::new(disk), found, setup(SEGMENT, &Told::default())).unwrap();
            let _ = write(&log, Kind::Change, b"goes on");
        }
    }
}
