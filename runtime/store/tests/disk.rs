//! The files of a store: what both implementations do alike, the directory's lock and refusals, and what the simulated
//! one leaves after a loss of power.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::sync::mpsc;
use store::disk::simulated::{Action, EIO, ENOSPC, SECTOR, Simulated, Step};
use store::disk::{Directory, Disk, Fault, File, OpenError};

fn read(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.size().unwrap() as usize];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

fn error(result: Result<(), Fault>) -> ErrorKind {
    result.unwrap_err().error.kind()
}

/// A generator of numbers that follow from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

mod alike {
    use super::*;

    fn on_both(body: impl Fn(&dyn Disk)) {
        let parent = tempfile::tempdir().unwrap();
        body(&Directory::open(&parent.path().join("data")).unwrap());
        body(&Simulated::new(1));
    }

    fn names(disk: &dyn Disk) -> Vec<String> {
        let mut names = disk.list().unwrap();
        names.retain(|name| name != "lock");
        names.sort();
        names
    }

    #[test]
    fn a_file_holds_what_was_written() {
        on_both(|disk| {
            let file = disk.create("a").unwrap();
            file.write_at(3, b"defg").unwrap();
            file.write_at(0, b"ab").unwrap();
            file.write_at(100, b"").unwrap();
            assert_eq!(read(&*file), b"ab\0defg");
            let mut middle = [b'-'; 4];
            assert_eq!(file.read_at(5, &mut middle).unwrap(), 2);
            assert_eq!(&middle, b"fg--");
            assert_eq!(file.read_at(7, &mut middle).unwrap(), 0);
            assert_eq!(file.read_at(900, &mut middle).unwrap(), 0);
            file.set_len(4).unwrap();
            file.set_len(6).unwrap();
            file.sync().unwrap();
            assert_eq!(read(&*file), b"ab\0d\0\0");
            assert_eq!(read(&*disk.open("a").unwrap()), b"ab\0d\0\0");
            assert_eq!(disk.create("a").unwrap().size().unwrap(), 0);
            assert_eq!(file.size().unwrap(), 0, "the same file, emptied");
        });
    }

    #[test]
    fn names_lead_to_files() {
        on_both(|disk| {
            let old = disk.create("a").unwrap();
            old.write_at(0, b"old").unwrap();
            let new = disk.create("b").unwrap();
            new.write_at(0, b"new").unwrap();
            disk.rename("b", "a").unwrap();
            disk.rename("a", "a").unwrap();
            disk.sync_dir().unwrap();
            assert_eq!(names(disk), ["a"]);
            assert_eq!(read(&*disk.open("a").unwrap()), b"new");
            assert_eq!(read(&*old), b"old", "an open file outlives its name");
            disk.remove("a").unwrap();
            assert_eq!(names(disk), [""; 0]);
            new.sync().unwrap();
            assert_eq!(read(&*new), b"new");
        });
    }

    #[test]
    fn what_is_missing_is_named() {
        on_both(|disk| {
            let faults = [
                ("opening", disk.open("no").map(drop)),
                ("renaming", disk.rename("no", "name")),
                ("removal", disk.remove("no")),
            ];
            for (operation, result) in faults {
                let fault = result.unwrap_err();
                assert_eq!((fault.operation, fault.error.kind()), (operation, ErrorKind::NotFound));
                assert!(fault.path.ends_with("no"), "{fault}");
            }
        });
    }

    /// What `count` random operations on a disk answer.
    fn transcript(disk: &dyn Disk, seed: u64, count: usize) -> Vec<String> {
        let mut random = Random(seed);
        let mut said = Vec::new();
        let mut files = vec![disk.create("0").unwrap()];
        for _ in 0..count {
            let (name, other) = (random.below(4).to_string(), random.below(4).to_string());
            let number = random.below(files.len() as u64) as usize;
            let file = files[number].clone();
            let at = random.below(2000);
            let mut bytes = vec![random.below(256) as u8; random.below(1500) as usize];
            let answer = match random.below(9) {
                0 => disk.create(&name).map(|file| files.push(file)),
                1 => disk.open(&name).map(|file| files.push(file)),
                2 => disk.rename(&name, &other),
                3 => disk.remove(&name),
                4 => file.set_len(at),
                5 => file.write_at(at, &bytes),
                6 => file.read_at(at, &mut bytes).map(|n| said.push(format!("{n} {bytes:?}"))),
                7 => file.sync(),
                _ => disk.sync_dir(),
            };
            let outcome = answer.map_err(|fault| (fault.operation, fault.error.kind()));
            said.push(format!("{outcome:?} {} {:?}", file.size().unwrap(), names(disk)));
        }
        said
    }

    #[test]
    fn random_operations_answer_the_same() {
        for seed in 1..9 {
            let parent = tempfile::tempdir().unwrap();
            let real = transcript(&Directory::open(parent.path()).unwrap(), seed, 200);
            assert_eq!(real, transcript(&Simulated::new(seed), seed, 200), "seed {seed}");
        }
    }
}

mod directory {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn dir_1_directory_and_files_are_the_owners() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let disk = Directory::open(&path).unwrap();
        let _ = disk.create("a").unwrap();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&path.join("a")), 0o600);
        assert_eq!(mode(&path.join("lock")), 0o600);
    }

    #[test]
    fn dir_1_files_stay_with_the_lock_when_a_link_is_changed() {
        let parent = tempfile::tempdir().unwrap();
        let [first, second, link] = ["first", "second", "link"].map(|name| parent.path().join(name));
        fs::create_dir(&first).unwrap();
        fs::create_dir(&second).unwrap();
        symlink(&first, &link).unwrap();
        let disk = Directory::open(&link).unwrap();
        fs::remove_file(&link).unwrap();
        symlink(&second, &link).unwrap();
        let _ = disk.create("a").unwrap();
        assert!(first.join("a").exists());
    }

    #[test]
    fn refusal_4_no_parent() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("file"), "").unwrap();
        for above in ["missing", "file"] {
            let above = parent.path().join(above);
            let path = above.join("data");
            let refused = Directory::open(&path).unwrap_err();
            assert!(matches!(refused, OpenError::NoParent { .. }), "{refused:?}");
            let text = format!("{}: its parent {} is not an existing directory", path.display(), above.display());
            assert_eq!(refused.to_string(), text);
        }
        assert!(!parent.path().join("missing").exists());
    }

    #[test]
    fn refusal_5_not_a_directory() {
        let parent = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| parent.path().join(name));
        fs::write(&file, "mine").unwrap();
        symlink(parent.path().join("nowhere"), &link).unwrap();
        for path in [&file, &link] {
            let refused = Directory::open(path).unwrap_err();
            assert_eq!(refused.to_string(), format!("{}: not a directory", path.display()));
        }
        assert_eq!(fs::read(file).unwrap(), b"mine");
        assert!(!parent.path().join("nowhere").exists());
    }

    #[test]
    fn refusal_6_the_systems_text() {
        let parent = tempfile::tempdir().unwrap();
        let occupied = parent.path().join("lock");
        fs::create_dir(&occupied).unwrap();
        let text = Directory::open(parent.path()).unwrap_err().to_string();
        let expected = format!("{}: opening of {}: Is a directory", parent.path().display(), occupied.display());
        assert!(text.starts_with(&expected), "{text}");
        let text = Directory::open(Path::new("/proc/self/new")).unwrap_err().to_string();
        assert!(text.starts_with("/proc/self/new: creation of /proc/self/new: No such file"), "{text}");
    }

    /// Behind a link can be a file of another store, whose lock is not this directory's.
    #[test]
    fn lck_2_a_file_that_is_a_link_is_not_opened() {
        let parent = tempfile::tempdir().unwrap();
        let [store, other] = ["store", "other"].map(|name| parent.path().join(name));
        let disk = Directory::open(&store).unwrap();
        disk.create("log").unwrap().write_at(0, b"kept").unwrap();
        fs::create_dir(&other).unwrap();
        symlink(store.join("lock"), other.join("lock")).unwrap();
        for refused in [Directory::open(&other).unwrap_err(), Directory::open_read_only(&other).unwrap_err()] {
            assert!(refused.to_string().ends_with("lock: not a regular file"), "{refused}");
        }
        fs::remove_file(other.join("lock")).unwrap();
        symlink(store.join("log"), other.join("log")).unwrap();
        let linked = Directory::open(&other).unwrap();
        for refused in [linked.open("log").err().unwrap(), linked.create("log").err().unwrap()] {
            assert!(refused.to_string().contains("log: not a regular file"), "{refused}");
        }
        assert_eq!(fs::read(store.join("log")).unwrap(), b"kept");
    }

    #[test]
    fn what_is_read_has_to_be_there() {
        let missing = tempfile::tempdir().unwrap().path().join("no");
        let text = Directory::open_read_only(&missing).unwrap_err().to_string();
        assert_eq!(text, format!("{}: there is no such directory", missing.display()));
    }

    #[test]
    fn refusal_7_names_the_owner() {
        const ONE: &str = "a store is open in one process at a time";
        let parent = tempfile::tempdir().unwrap();
        let [path, link] = ["data", "link"].map(|name| parent.path().join(name));
        let disk = Directory::open(&path).unwrap();
        symlink(&path, &link).unwrap();
        let refused = Directory::open(&link).unwrap_err();
        assert_eq!(refused.to_string(), format!("{}: in use by another process; {ONE}", link.display()));
        disk.write_owner().unwrap();
        for other in [link.clone(), path.join("..").join("data")] {
            for refused in [Directory::open(&other).unwrap_err(), Directory::open_read_only(&other).unwrap_err()] {
                let text = format!("{}: in use by process {}; {ONE}", other.display(), process::id());
                assert_eq!(refused.to_string(), text);
            }
        }
        assert_eq!(fs::read_to_string(path.join("lock")).unwrap(), format!("{}\n", process::id()));
    }

    #[test]
    fn lck_1_an_owner_that_is_gone_is_not_named() {
        let parent = tempfile::tempdir().unwrap();
        // Above what the system gives to processes.
        fs::write(parent.path().join("lock"), "4194305\n").unwrap();
        let _first = Directory::open(parent.path()).unwrap();
        let refused = Directory::open(parent.path()).unwrap_err();
        assert!(matches!(refused, OpenError::InUse { owner: None, .. }), "{refused}");
    }

    /// One test, since a child has all locks of the process from its fork to its exec, those of other tests too.
    #[test]
    fn lck_1_the_lock_lasts_as_long_as_a_file_and_no_child_has_it() {
        let parent = tempfile::tempdir().unwrap();
        let file = Directory::open(parent.path()).unwrap().create("a").unwrap();
        let mut child = Command::new("sh").args(["-c", "echo; exec sleep 600"]).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let with_file = Directory::open(parent.path());
        drop(file);
        let without = Directory::open(parent.path());
        child.kill().unwrap();
        let _ = child.wait().unwrap();
        assert!(matches!(with_file, Err(OpenError::InUse { .. })), "{with_file:?}");
        assert!(without.is_ok(), "{without:?}");
    }

    #[test]
    fn a_refused_store_is_left_as_it_was() {
        let parent = tempfile::tempdir().unwrap();
        let lock = parent.path().join("lock");
        fs::write(&lock, "4194305\n").unwrap();
        drop(Directory::open(parent.path()).unwrap());
        assert_eq!(fs::read(lock).unwrap(), b"4194305\n");
    }

    #[test]
    fn reading_only_changes_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        assert!(matches!(Directory::open_read_only(&path), Err(OpenError::Missing { .. })));
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        fs::write(path.join("a"), "text").unwrap();
        let disk = Directory::open_read_only(&path).unwrap();
        let file = disk.open("a").unwrap();
        assert_eq!(read(&*file), b"text");
        assert!(file.write_at(0, b"T").is_err());
        assert!(file.set_len(0).is_err());
        assert_eq!(error(disk.create("a").map(drop)), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(error(disk.rename("a", "b")), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(error(disk.remove("a")), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(error(disk.write_owner()), ErrorKind::ReadOnlyFilesystem);
        assert_eq!(disk.list().unwrap(), ["a"]);
        assert_eq!(fs::read(path.join("a")).unwrap(), b"text");
    }
}

mod simulated {
    use super::*;

    const SEEDS: std::ops::Range<u64> = 0..400;

    /// A disk with the durable file `a` of `bytes`.
    fn with_a(seed: u64, bytes: &[u8]) -> Simulated {
        Simulated::with_files(seed, &BTreeMap::from([("a".to_owned(), bytes.to_vec())]))
    }

    /// The power is cut at one operation.
    fn cut_at(disk: &Simulated, number: u64, action: Action) {
        disk.script(move |step: &Step| if step.number == number { action } else { Action::Proceed });
    }

    #[test]
    fn what_was_synced_survives() {
        for seed in SEEDS {
            let disk = Simulated::new(seed);
            let file = disk.create("a").unwrap();
            file.write_at(0, &[1; 3 * SECTOR]).unwrap();
            file.sync().unwrap();
            disk.sync_dir().unwrap();
            file.write_at(SECTOR as u64 + 8, &[2; SECTOR * 4]).unwrap();
            let _ = disk.create("b").unwrap();
            let left = &disk.restart().files()["a"];
            assert!(left.len() >= 3 * SECTOR, "seed {seed}: {} bytes", left.len());
            assert!(left[..SECTOR + 8].iter().all(|byte| *byte == 1), "seed {seed}");
        }
    }

    /// Each sector is one of the states that it was in since the last sync, in any combination.
    #[test]
    fn what_was_not_synced_survives_by_sectors() {
        let mut seen = BTreeSet::new();
        for seed in SEEDS {
            let disk = with_a(seed, &[1; 2 * SECTOR]);
            let file = disk.open("a").unwrap();
            file.write_at(0, &[2; 2 * SECTOR]).unwrap();
            file.write_at(SECTOR as u64, &[3; SECTOR]).unwrap();
            let left = &disk.restart().files()["a"];
            let of_sectors: Vec<u8> = left.chunks(SECTOR).map(|sector| sector[0]).collect();
            assert!(left.chunks(SECTOR).all(|sector| sector.iter().all(|byte| *byte == sector[0])), "seed {seed}");
            let _ = seen.insert(of_sectors);
        }
        // Lost, torn, reordered, whole.
        assert_eq!(seen, [[1, 1], [1, 2], [1, 3], [2, 1], [2, 2], [2, 3]].map(Vec::from).into());
    }

    #[test]
    fn a_length_can_survive_without_the_bytes_and_bytes_not_without_it() {
        let mut seen = BTreeSet::new();
        for seed in SEEDS {
            let disk = with_a(seed, b"");
            disk.open("a").unwrap().write_at(0, &[1; 2 * SECTOR]).unwrap();
            let left = &disk.restart().files()["a"];
            let _ = seen.insert(left.chunks(SECTOR).map(|sector| sector[0]).collect::<Vec<_>>());
        }
        assert_eq!(seen, [&[][..], &[0, 0], &[0, 1], &[1, 0], &[1, 1]].map(Vec::from).into());
    }

    #[test]
    fn what_was_cut_off_does_not_come_back_when_the_file_grows() {
        for synced in [true, false] {
            let mut seen = BTreeSet::new();
            for seed in SEEDS {
                let disk = with_a(seed, &[1; 2 * SECTOR]);
                let file = disk.open("a").unwrap();
                file.set_len(SECTOR as u64).unwrap();
                if synced {
                    file.sync().unwrap();
                }
                file.set_len(3 * SECTOR as u64).unwrap();
                let left = &disk.restart().files()["a"];
                assert!(left.len() == 2 * SECTOR || left[SECTOR..].iter().all(|byte| *byte == 0), "seed {seed}");
                let _ = seen.insert(left.len());
            }
            let before = (!synced).then_some(2 * SECTOR);
            assert_eq!(seen, before.into_iter().chain([SECTOR, 3 * SECTOR]).collect());
        }
    }

    /// A rename happens as a whole, and no file is lost whose removal was not asked for.
    #[test]
    fn names_that_were_not_synced_can_be_lost() {
        let mut seen = BTreeSet::new();
        for seed in SEEDS {
            let disk = with_a(seed, b"old");
            let new = disk.create("a.tmp").unwrap();
            new.write_at(0, b"new").unwrap();
            new.sync().unwrap();
            disk.rename("a.tmp", "a").unwrap();
            let _ = disk.create("b").unwrap();
            let files = disk.restart().files();
            assert!([&b"old"[..], b"new"].contains(&&files["a"][..]), "seed {seed}");
            assert!(!(files["a"] == b"new" && files.contains_key("a.tmp")), "seed {seed}");
            let _ = seen.insert(files.into_keys().collect::<Vec<_>>().join(" "));
        }
        assert_eq!(seen, ["a", "a a.tmp", "a b", "a a.tmp b"].map(str::to_owned).into());
    }

    #[test]
    fn a_change_of_names_is_lost_with_what_it_builds_on() {
        for seed in SEEDS {
            let disk = with_a(seed, b"first");
            disk.rename("a", "b").unwrap();
            let _ = disk.create("a").unwrap();
            let files = disk.restart().files();
            assert!(files.values().any(|bytes| bytes == b"first"), "seed {seed}: {files:?}");
        }
    }

    #[test]
    fn names_that_were_synced_survive() {
        for seed in SEEDS {
            let disk = with_a(seed, b"");
            disk.rename("a", "b").unwrap();
            disk.sync_dir().unwrap();
            assert_eq!(disk.restart().files().into_keys().collect::<Vec<_>>(), ["b"], "seed {seed}");
        }
    }

    #[test]
    fn an_operation_can_be_cut_before_within_and_after() {
        let (mut within_a_write, mut within_a_sync) = (BTreeSet::new(), BTreeSet::new());
        for seed in SEEDS {
            let run = |number, action| {
                let disk = with_a(seed, &[0; 8]);
                cut_at(&disk, number, action);
                let file = disk.open("a").unwrap();
                let first = file.write_at(0, &[1; 8]);
                let second = file.sync();
                assert!(second.is_err() && disk.sync_dir().is_err() && disk.list().is_err());
                assert_eq!(disk.steps(), number);
                assert_eq!(first.is_ok(), number == 3);
                disk.restart().files().remove("a").unwrap()
            };
            assert_eq!(run(2, Action::CutBefore), [0; 8], "seed {seed}");
            assert_eq!(run(3, Action::CutAfter), [1; 8], "seed {seed}");
            let _ = within_a_write.insert(run(2, Action::CutWithin));
            let _ = within_a_sync.insert(run(3, Action::CutWithin));
        }
        assert_eq!(within_a_write.len(), 9, "any part of it");
        assert_eq!(within_a_sync, [vec![0; 8], vec![1; 8]].into());
    }

    #[test]
    fn power_can_be_cut_again_and_again() {
        for seed in SEEDS {
            let mut disk = with_a(seed, b"kept");
            for life in 1..4_u8 {
                disk = disk.restart();
                assert_eq!(disk.steps(), 0);
                cut_at(&disk, u64::from(life) + 1, Action::CutAfter);
                let file = disk.open("a").unwrap();
                while file.write_at(4, &[life]).is_ok() {}
                assert_eq!(disk.steps(), u64::from(life) + 1);
            }
            let left = disk.restart().files().remove("a").unwrap();
            assert_eq!(&left[..4], b"kept");
            assert!(left.len() <= 5 && left.get(4).is_none_or(|life| (0..4).contains(life)), "seed {seed}: {left:?}");
        }
    }

    #[test]
    fn a_failed_operation_has_no_effect_and_a_write_has_a_part() {
        let mut written = BTreeSet::new();
        for seed in SEEDS {
            let disk = with_a(seed, b"");
            let file = disk.open("a").unwrap();
            disk.script(|_| Action::Fail(ENOSPC));
            let faults = [
                disk.create("b").map(drop),
                disk.rename("a", "b"),
                disk.remove("a"),
                file.set_len(9),
                file.size().map(drop),
                file.write_at(0, b"abc"),
            ];
            assert!(faults.into_iter().all(|fault| error(fault) == ErrorKind::StorageFull));
            disk.script(|_| Action::Proceed);
            assert_eq!(disk.list().unwrap(), ["a"]);
            let _ = written.insert(read(&*file));
        }
        assert_eq!(written, [&b""[..], b"a", b"ab", b"abc"].map(Vec::from).into());
    }

    /// As on systems that take for written what they could not write.
    #[test]
    fn what_a_failed_sync_dropped_no_later_sync_makes_durable() {
        let mut seen = BTreeSet::new();
        for seed in SEEDS {
            let disk = with_a(seed, b"old");
            let file = disk.open("a").unwrap();
            file.write_at(0, b"new").unwrap();
            disk.script(|step| if step.operation == "sync" { Action::Fail(EIO) } else { Action::Proceed });
            assert_eq!(file.sync().unwrap_err().error.raw_os_error(), Some(EIO));
            disk.script(|_| Action::Proceed);
            file.sync().unwrap();
            assert_eq!(read(&*file), b"new");
            let _ = seen.insert(disk.restart().files().remove("a").unwrap());
        }
        assert_eq!(seen, [b"old".to_vec(), b"new".to_vec()].into());
    }

    #[test]
    fn a_sync_waits_and_covers_only_what_was_written_before_it() {
        let mut seen = BTreeSet::new();
        for seed in SEEDS {
            let disk = with_a(seed, &[0; 2 * SECTOR]);
            let file = disk.open("a").unwrap();
            let (started, syncing) = mpsc::channel();
            let (go_on, waiting) = mpsc::channel::<()>();
            let waiting = std::sync::Mutex::new(waiting);
            disk.script(move |step| {
                if step.operation == "sync" {
                    started.send(step.clone()).unwrap();
                    waiting.lock().unwrap().recv().unwrap();
                }
                Action::Proceed
            });
            file.write_at(0, &[1; SECTOR]).unwrap();
            std::thread::scope(|scope| {
                let sync = scope.spawn(|| file.sync());
                assert_eq!(syncing.recv().unwrap(), Step { number: 3, operation: "sync", name: "a".to_owned() });
                file.write_at(SECTOR as u64, &[2; SECTOR]).unwrap();
                go_on.send(()).unwrap();
                sync.join().unwrap().unwrap();
            });
            let left = disk.restart().files().remove("a").unwrap();
            assert_eq!(left[0], 1, "seed {seed}");
            let _ = seen.insert(left[SECTOR]);
        }
        assert_eq!(seen, [0, 2].into());
    }

    #[test]
    fn the_same_seed_leaves_the_same() {
        let outcome = |seed| {
            let disk = Simulated::new(seed);
            cut_at(&disk, 60, Action::CutWithin);
            let mut random = Random(7);
            let files: Vec<_> = ["a", "b"].map(|name| disk.create(name).unwrap()).into();
            disk.sync_dir().unwrap();
            while disk.steps() < 60 {
                let file = &files[random.below(2) as usize];
                let bytes = vec![random.below(256) as u8; random.below(2000) as usize];
                if file.write_at(random.below(4000), &bytes).and_then(|()| disk.rename("a", "c")).is_err() {
                    let _ = disk.rename("c", "a");
                }
            }
            let next = disk.restart();
            assert_eq!(next.files(), disk.restart().files());
            next.open("b").unwrap().write_at(0, &[9; 5000]).unwrap();
            next.restart().files()
        };
        for seed in SEEDS.take(20) {
            assert_eq!(outcome(seed), outcome(seed), "seed {seed}");
        }
        let outcomes: BTreeSet<_> = SEEDS.take(20).map(outcome).collect();
        assert!(outcomes.len() > 10, "{} outcomes", outcomes.len());
    }

    /// Threads write and sync at once; what a sync confirmed is there.
    #[test]
    fn threads_share_a_disk() {
        for seed in SEEDS.take(20) {
            let disk = Simulated::new(seed);
            let names = ["a", "b", "c", "d"];
            let files = names.map(|name| disk.create(name).unwrap());
            disk.sync_dir().unwrap();
            cut_at(&disk, 40 + seed * 5, Action::CutWithin);
            let work = |file: &dyn File| {
                let mut confirmed = 0;
                for round in 1..=u8::MAX {
                    if file.write_at(0, &[round; 2 * SECTOR]).and_then(|()| file.sync()).is_err() {
                        break;
                    }
                    confirmed = round;
                }
                confirmed
            };
            let confirmed = std::thread::scope(|scope| {
                let threads = files.each_ref().map(|file| scope.spawn(move || work(&**file)));
                threads.map(|thread| thread.join().unwrap())
            });
            let left = disk.restart().files();
            for (name, confirmed) in names.iter().zip(confirmed) {
                let left = &left[*name];
                assert!(confirmed == 0 || left.len() == 2 * SECTOR, "seed {seed}: {name}");
                assert!(left.iter().all(|r| (confirmed..=confirmed + 1).contains(r)), "seed {seed}: {name}");
            }
        }
    }
}
