//! The commit thread: what it writes when, and what it tells.

use super::*;
use std::thread;

#[test]
fn cmt_3_a_lone_writer_waits_for_one_write_and_one_sync() {
    let disk = Memory::default();
    let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(1 << 20, &Told::default())).unwrap();
    for n in 0..50u8 {
        let before = disk.operations();
        let _ = write(&log, Kind::Change, &[n; 100]);
        assert_eq!(disk.operations() - before, 2);
    }
}

#[test]
fn cmt_5_records_go_where_zeros_are() {
    let disk = Memory::default();
    let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(4 << 20, &Told::default())).unwrap();
    for n in 0..300u64 {
        let size = |disk: &Memory| disk.image()["0000000000000001.log"].len() as u64;
        let before = size(&disk);
        let _ = write(&log, Kind::Change, &[n as u8; 9000]);
        let end = log.segments()[0].bytes;
        assert!(end <= before, "record {n} made the file longer");
    }
    drop(log);
    assert_eq!(read(&disk).unwrap().1.torn, 0);
}

#[test]
fn cmt_1_and_2_what_is_staged_during_a_sync_is_the_next_batch() {
    let disk = Memory::default();
    let told = Told::default();
    let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(1 << 20, &told)).unwrap();
    disk.hold();
    let first = log.stage(Kind::Change, |_| ());
    disk.await_held_sync();
    let last = (0..100).map(|_| log.stage(Kind::Change, |_| ())).last().unwrap();
    assert_eq!((first, last, log.durable()), (1, 101, 0));
    disk.release();
    assert!(log.wait(last));
    log.close();
    assert_eq!(told.durable(), [1, 101, 102]);
    let stats = log.stats();
    assert_eq!((stats.batches, stats.records, stats.peak_batch, stats.syncs), (3, 102, 100, 5));
    assert_eq!(stats.bytes, 102 * 32);
}

#[test]
fn con_4_order_is_kept_and_batches_are_shared() {
    let disk = Memory::default();
    let told = Told::default();
    let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(SEGMENT, &told)).unwrap();
    let staged: Mutex<Vec<Entry>> = Mutex::default();
    thread::scope(|scope| {
        for writer in 0..6u8 {
            let (log, staged) = (&log, &staged);
            let _ = scope.spawn(move || {
                let mut before = 0;
                for n in 0..200u8 {
                    let body = [writer, n];
                    let seq = log.stage(Kind::Change, |out| out.extend_from_slice(&body));
                    assert!(seq > before);
                    before = seq;
                    staged.lock().unwrap().push((seq, Kind::Change, body.to_vec()));
                    if n % 4 == 0 {
                        assert!(log.wait(seq));
                        assert!(log.durable() >= seq);
                    }
                }
            });
        }
    });
    log.close();
    let mut staged = staged.into_inner().unwrap();
    staged.sort_unstable_by_key(|entry| entry.0);
    staged.push((1201, Kind::End, Vec::new()));
    assert_eq!(entries(&disk.image()), Ok(staged));
    assert!(told.durable().is_sorted() && told.failures().is_empty());
    let stats = log.stats();
    assert_eq!(stats.records, 1201);
    assert!(stats.batches <= stats.records && stats.syncs >= stats.batches);
}

#[test]
fn cmt_6_a_close_makes_everything_durable_and_ends_the_log() {
    let disk = Memory::default();
    let log = open(&disk);
    for _ in 0..500 {
        let _ = log.stage(Kind::Change, |out| out.extend_from_slice(b"some bytes"));
    }
    log.close();
    assert_eq!(log.durable(), 501);
    let image = disk.power_cut(&mut Random(1));
    assert_eq!(entries(&image).unwrap().len(), 501);
    assert!(read(&Memory::from(image)).unwrap().1.ended);

    let after = log.stage(Kind::Change, |_| ());
    assert_eq!((after, log.wait(after), log.roll()), (502, false, None));
    assert!(log.discard_below(1).is_ok());
    log.close();
    assert_eq!(log.durable(), 501);
}

/// The failing operation succeeds if it is tried again: nothing may try it.
#[test]
fn cmt_7_nothing_is_acknowledged_after_a_failure() {
    for failing in 0.. {
        let disk = Memory::default();
        let told = Told::default();
        let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(SEGMENT, &told)).unwrap();
        let first = disk.operations();
        disk.fail_at(first + failing, false);
        let mut durable = 0;
        for n in 0..20u8 {
            let seq = log.stage(Kind::Change, |out| out.extend_from_slice(&[n; 60]));
            if log.wait(seq) {
                durable = seq;
            }
        }
        log.close();
        if told.failures().is_empty() {
            assert!(failing > 50, "rolls were among the operations");
            return;
        }
        assert_eq!(disk.operations(), first + failing + 1);
        assert_eq!((log.durable(), log.roll()), (durable, None));
        let [unacknowledged] = told.failures()[..] else { panic!("told {:?}", told.failures()) };
        assert!(unacknowledged <= 1, "each record was waited for");
        // The record whose write or sync failed may be there.
        let found = entries(&disk.image()).unwrap().len() as u64;
        assert!((durable..=durable + 1).contains(&found));
        assert!(entries(&disk.power_cut(&mut Random(failing + 1))).unwrap().len() as u64 >= durable);
    }
}

#[test]
fn cmt_7_what_is_staged_when_a_sync_fails_is_counted() {
    let disk = Memory::default();
    let told = Told::default();
    let log = Log::start(Arc::new(disk.clone()), Found::default(), setup(1 << 20, &told)).unwrap();
    let _ = write(&log, Kind::Change, b"durable");
    disk.hold();
    let _ = log.stage(Kind::Change, |_| ());
    disk.await_held_sync();
    let last = (0..9).map(|_| log.stage(Kind::Change, |_| ())).last().unwrap();
    disk.fail_at(disk.operations(), false);
    disk.release();
    assert!(!log.wait(last));
    log.close();
    assert_eq!((log.durable(), told.durable(), told.failures()), (2, vec![1, 2], vec![9]));
}

#[test]
fn a_body_that_panics_leaves_no_record() {
    let disk = Memory::default();
    let log = open(&disk);
    disk.hold();
    let first = log.stage(Kind::Change, |_| ());
    disk.await_held_sync();
    let panics = std::panic::AssertUnwindSafe(|| {
        log.stage(Kind::Change, |out| {
            out.push(1);
            panic!("asked for");
        })
    });
    assert!(std::panic::catch_unwind(panics).is_err());
    disk.release();
    assert!(log.wait(first));
    let second = write(&log, Kind::Change, b"after");
    drop(log);
    assert_eq!(entries(&disk.image()), Ok(vec![(1, Kind::Change, Vec::new()), second]));
}
