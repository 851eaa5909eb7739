//! New segments and those that are not needed any more.

use super::*;

/// What the preambles must say, by the records before them.
#[test]
fn preambles_hold_the_counters_as_of_their_first_record() {
    let (image, _) = sample();
    let (collect, found) = read(&Memory::from(image)).unwrap();
    assert!(found.segments.len() >= 4);
    let mut counters = vec![1, 1];
    let mut records = collect.entries.iter().zip(&collect.places).peekable();
    for (number, preamble) in &collect.preambles {
        while let Some(((_, kind, body), _)) = records.next_if(|(_, place)| place.0 < *number) {
            if *kind == Kind::Insert {
                counters[usize::from(body[0])] = u64::from_le_bytes(*body[2..].first_chunk().unwrap()) + 1;
            }
        }
        assert_eq!(*preamble, Preamble { schema: b"two tables".to_vec(), counters: counters.clone() });
    }
}

#[test]
fn a_batch_larger_than_a_segment_is_spread_over_several() {
    let disk = Memory::default();
    let log = open(&disk);
    disk.hold();
    let mut written = vec![(log.stage(Kind::Change, |_| ()), Kind::Change, Vec::new())];
    disk.await_held_sync();
    for n in 1..=30 {
        let body = insert(1, n, &[n as u8; 50]);
        written.push((log.stage(Kind::Insert, |out| out.extend_from_slice(&body)), Kind::Insert, body));
    }
    disk.release();
    log.close();
    let segments = log.segments();
    assert!(segments.len() >= 30 * 85 / SEGMENT as usize, "{segments:?}");
    assert!(segments.iter().all(|s| s.bytes < SEGMENT + 64 + 64 + 96));
    written.push((32, Kind::End, Vec::new()));
    let (collect, found) = read(&disk).unwrap();
    assert_eq!((collect.entries, found.segments), (written, segments));
}

#[test]
fn a_roll_separates_what_was_staged_before_from_what_comes_after() {
    let disk = Memory::default();
    let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(1 << 20, &Told::default())).unwrap();
    // An empty segment is as good as a new one.
    assert_eq!(log.roll(), Some(1));
    let before = log.stage(Kind::Change, |_| ());
    assert_eq!((log.roll(), log.roll()), (Some(2), Some(2)));
    let after = log.stage(Kind::Change, |_| ());
    drop(log.wait(after).then_some(log).unwrap());
    let (collect, found) = read(&disk).unwrap();
    assert_eq!((before, after, collect.places[0].0, collect.places[1].0), (1, 2, 1, 2));
    assert_eq!(found.segments[1].first, 2);
}

#[test]
fn segments_that_are_not_needed_go() {
    let (image, written) = sample();
    let disk = Memory::from(image);
    let log = open(&disk);
    let oldest = log.roll().unwrap() - 1;
    log.discard_below(oldest).unwrap();
    let left: Vec<u64> = log.segments().iter().map(|extent| extent.number).collect();
    assert_eq!(left, [oldest, oldest + 1]);
    let _ = write(&log, Kind::Change, &[1; 600]);
    let _ = write(&log, Kind::Change, b"last");
    drop(log);

    let logs: Vec<String> = disk.image().into_keys().collect();
    assert_eq!(logs.first().unwrap(), &segment::name(oldest));
    let (collect, found) = read(&disk).unwrap();
    assert_eq!(found.segments[0].number, oldest);
    let first = found.segments[0].first;
    assert!(collect.entries.starts_with(&written[first as usize - 1..]));
    assert_eq!(collect.entries.last().unwrap().0, written.len() as u64 + 3);
}

/// A crash during the removal leaves any of the segments that are not needed, and they may hold anything.
#[test]
fn cpt_3_what_is_not_needed_may_be_there_or_not() {
    let (image, _) = sample();
    let disk = Memory::from(image.clone());
    let log = open(&disk);
    let oldest = log.roll().unwrap();
    log.discard_below(oldest).unwrap();
    drop(log);
    let after = disk.image();
    let expected = entries(&after).unwrap();
    let old: Vec<&String> = image.keys().filter(|name| !after.contains_key(*name)).collect();
    assert!(old.len() >= 3);
    for choice in 0..1 << old.len() {
        let mut mixed = after.clone();
        for (i, name) in old.iter().enumerate() {
            if choice >> i & 1 == 1 {
                let _ = mixed.insert((*name).clone(), if i == 1 { vec![9; 700] } else { image[*name].clone() });
            }
        }
        let disk = Memory::from(mixed);
        let (collect, found) = read(&disk).unwrap();
        assert_eq!(collect.entries, expected);
        assert_eq!(found.leftovers.len(), (choice as u64).count_ones() as usize);
        drop(open(&disk));
        assert_eq!(disk.image().keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    }
}

#[test]
fn rec_4_a_missing_segment_is_damage() {
    let (image, _) = sample();
    let disk = Memory::from(image);
    let log = open(&disk);
    log.discard_below(2).unwrap();
    drop(log);
    let image = disk.image();
    let last = last_name(&image);
    for name in image.keys().filter(|name| **name != last) {
        let mut without = image.clone();
        let _ = without.remove(name);
        let damage = entries(&without).unwrap_err();
        assert_eq!((&damage.file, damage.offset), (name, 0));
    }
}

/// The record that says which segments are not needed is where the damage is, not the first of those that are gone.
#[test]
fn rec_4_damage_of_what_says_that_segments_are_not_needed() {
    let (image, _) = sample();
    let disk = Memory::from(image);
    let log = open(&disk);
    let oldest = log.roll().unwrap();
    log.discard_below(oldest).unwrap();
    drop(log);
    let last = last_name(&disk.image());
    // As the last record it could be a tear, if it were not for what is missing.
    for followed in [false, true] {
        if followed {
            let log = open(&disk);
            assert!(write(&log, Kind::Change, b"later").0 > 0);
        }
        let (collect, _) = read(&disk).unwrap();
        let at = collect.entries.iter().position(|(_, kind, _)| *kind == Kind::Oldest).unwrap();
        let (_, offset) = collect.places[at];
        for byte in 0..37 {
            let mut image = disk.image();
            image.get_mut(&last).unwrap()[offset as usize + byte] ^= 1;
            let damage = entries(&image).unwrap_err();
            assert_eq!((&damage.file, damage.offset), (&last, offset), "byte {byte}, {followed}: {damage}");
        }
    }
}

#[test]
fn dir_2_foreign_files_are_left_alone_and_begun_segments_removed() {
    let (mut image, written) = sample();
    for foreign in ["notes.tmp", "lock", "00000000000000AA.log", "1.log", "0000000000000000.log"] {
        let _ = image.insert(foreign.into(), b"mine".to_vec());
    }
    let expected = image.clone();
    let _ = image.insert("00000000000000aa.tmp".into(), b"half".to_vec());
    let disk = Memory::from(image);
    assert_eq!(read(&disk).unwrap().1.leftovers, ["00000000000000aa.tmp"]);
    drop(open(&disk));
    assert_eq!(disk.image(), expected);
    assert_eq!(entries(&disk.image()), Ok(written));
}

#[test]
fn another_schema_begins_a_segment() {
    let (image, mut written) = sample();
    let disk = Memory::from(image);
    let segments = read(&disk).unwrap().1.segments.len();
    let preamble = Preamble { schema: b"three tables".to_vec(), counters: vec![12, 13, 1] };
    let (_, found) = read(&disk).unwrap();
    let setup = Setup { preamble: preamble.clone(), ..setup(SEGMENT, &Told::default()) };
    let log = Log::start(Arc::new(disk.clone()), found, setup).unwrap();
    written.push(write(&log, Kind::Insert, &insert(2, 1, b"")));
    drop(log);
    let (collect, _) = read(&disk).unwrap();
    assert_eq!((collect.entries, collect.preambles.len()), (written, segments + 1));
    assert_eq!(collect.preambles[segments].1, preamble);
    assert_eq!(collect.preambles[0].1.schema, b"two tables");
}
