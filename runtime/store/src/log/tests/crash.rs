//! Crashes at every operation on the disk: of the process, which leaves what was written, and of the machine, which
//! leaves of what was not synced any part.

use super::*;

/// What a run has staged, and up to where it was told that it is durable.
#[derive(Default)]
struct Run {
    staged: Vec<Entry>,
    acknowledged: u64,
}

/// Writes and discards until the disk fails; false if it did not.
fn run(disk: &Memory, run: &mut Run) -> bool {
    let Ok((collect, found)) = read(disk) else { panic!("unreadable") };
    run.staged.truncate(found.last as usize);
    if let Some(entry) = collect.entries.last() {
        assert_eq!(run.staged.last(), Some(entry));
    }
    let Ok(log) = Log::start(Arc::new(disk.clone()), found, setup(SEGMENT, &Told::default())) else { return true };
    for n in 0..14u64 {
        for part in 0..=n % 3 {
            let body = insert(1, n, &[part as u8; 30]);
            run.staged.push((log.stage(Kind::Insert, |out| out.extend_from_slice(&body)), Kind::Insert, body));
        }
        let last = run.staged.len() as u64;
        if !log.wait(last) {
            return true;
        }
        run.acknowledged = last;
        if n == 8 {
            let oldest = segments(&log).last().unwrap().number;
            run.staged.push((last + 1, Kind::Oldest, oldest.to_le_bytes().to_vec()));
            if log.discard_below(oldest).is_err() {
                return true;
            }
        }
    }
    log.close();
    run.staged.push((run.staged.len() as u64 + 1, Kind::End, Vec::new()));
    run.acknowledged = log.durable();
    log.durable() < run.staged.len() as u64
}

/// What is there must be a prefix of what was staged that holds all that was acknowledged.
fn verify(image: &Image, run: &Run, what: &str) -> Vec<Entry> {
    let found = entries(image).unwrap_or_else(|damage| panic!("{what}: {damage}"));
    let (first, last) = (found.first().map_or(1, |e| e.0), found.last().map_or(0, |e| e.0));
    assert!(last >= run.acknowledged, "{what}: {last} of {} acknowledged", run.acknowledged);
    assert_eq!(found, run.staged[first as usize - 1..last.max(first - 1) as usize], "{what}");
    found
}

#[test]
fn rec_6_a_crash_at_any_operation_loses_nothing_acknowledged() {
    let mut crashes = 0;
    for operation in 0.. {
        let disk = Memory::default();
        let mut history = Run::default();
        disk.fail_at(operation, true);
        if !run(&disk, &mut history) {
            break;
        }
        crashes += 1;
        let killed = ("killed", disk.image());
        let cuts = (1..6).map(|seed| ("power cut", disk.power_cut(&mut Random(operation * 8 + seed))));
        for (how, image) in std::iter::once(killed).chain(cuts) {
            let what = format!("{how} at operation {operation}");
            let _ = verify(&image, &history, &what);
            let mut again = Run { staged: history.staged.clone(), acknowledged: history.acknowledged };
            let disk = Memory::from(image);
            assert!(!run(&disk, &mut again));
            let _ = verify(&disk.power_cut(&mut Random(operation + 1)), &again, &what);
        }
    }
    assert!(crashes > 60, "{crashes}");
}

/// Starts that are themselves cut short, three deep, come to what an undisturbed one comes to.
#[test]
fn rec_6_a_start_may_be_interrupted_and_repeated() {
    let mut torn = Vec::new();
    for operation in 30.. {
        let disk = Memory::default();
        let mut history = Run::default();
        disk.fail_at(operation, true);
        if !run(&disk, &mut history) {
            break;
        }
        let images = (1..5).map(|seed| disk.power_cut(&mut Random(operation * 8 + seed)));
        let image = images.into_iter().find(|image| read(&Memory::from(image.clone())).unwrap().1.torn > 0);
        torn.extend(image.map(|image| (image, history)));
    }
    assert!(!torn.is_empty());
    torn.truncate(12);
    for (image, history) in torn {
        let expected = verify(&image, &history, "before");
        let mut pending = vec![(image, 0)];
        while let Some((image, depth)) = pending.pop() {
            for operation in 0.. {
                let disk = Memory::from(image.clone());
                disk.fail_at(operation, true);
                let (_, found) = read(&disk).unwrap();
                let told = Told::default();
                let started = Log::start(Arc::new(disk.clone()), found, setup(SEGMENT, &told)).is_ok();
                let left = disk.power_cut(&mut Random(operation + 77));
                assert_eq!(entries(&left).unwrap(), expected);
                if started {
                    break;
                }
                if depth < 2 {
                    pending.push((left, depth + 1));
                }
            }
        }
    }
}

/// A failed sync may drop what was written, and yet it can be read until the power is lost.
#[test]
fn rec_6_what_a_start_has_read_is_durable() {
    let disk = Memory::default();
    let log = open(&disk);
    let mut written = vec![write(&log, Kind::Change, b"durable")];
    disk.fail_at(disk.operations() + 1, false);
    let body = vec![5; 200];
    let seq = log.stage(Kind::Change, |out| out.extend_from_slice(&body));
    assert!(!log.wait(seq));
    drop(log);
    written.push((seq, Kind::Change, body));
    assert_eq!(entries(&disk.image()).as_ref(), Ok(&written));

    let log = open(&disk);
    for seed in 1..20 {
        assert_eq!(entries(&disk.power_cut(&mut Random(seed))).as_ref(), Ok(&written));
    }
    written.push(write(&log, Kind::Change, b"after"));
    drop(log);
    assert_eq!(entries(&disk.power_cut(&mut Random(1))), Ok(written));
}
