//! A store at work between two crashes. The log's thread itself issues the statements, when it has told that a batch is
//! durable and while it writes and syncs the next one, so that what is in a batch follows from the seed alone.

use crate::naive::Naive;
use crate::random::Random;
use crate::workload::{Statement, program, statement};
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use store::disk::Disk;
use store::disk::simulated::{Action, Simulated, Step};
use store::log::Failure;
use store::{Compaction, OpenError, Opened, Settings, Store};

/// Small, so that the log has several segments.
pub const SEGMENT: u64 = 4 << 10;

/// What has been done, over all lives of a store.
#[derive(Clone)]
pub struct History {
    pub statements: Vec<Statement>,
    /// Of those, how many are acknowledged: a beginning.
    pub acknowledged: usize,
    /// The model after the acknowledged ones, and after all.
    pub sure: Naive,
    pub model: Naive,
}

impl History {
    pub fn new() -> History {
        let model = Naive::new(program().0.tables);
        History { statements: Vec::new(), acknowledged: 0, sure: model.clone(), model }
    }

    pub fn push(&mut self, statement: Statement) -> crate::workload::Outcome {
        let outcome = statement.on_model(&mut self.model);
        self.statements.push(statement);
        outcome
    }

    pub fn acknowledge(&mut self, count: usize) {
        while self.acknowledged < count {
            let _ = self.statements[self.acknowledged].on_model(&mut self.sure);
            self.acknowledged += 1;
        }
    }

    /// What a crash has left: the first `count` statements, which can never be lost any more.
    pub fn cut(&mut self, count: usize) {
        self.statements.truncate(count);
        self.acknowledge(count);
        self.model = self.sure.clone();
    }
}

/// What the log's thread and the test share.
pub struct Life {
    store: OnceLock<Store>,
    work: Mutex<Work>,
    changed: Condvar,
}

struct Work {
    random: Random,
    left: usize,
    history: History,
    /// The highest number of a record after each statement of this life, and how many statements were there before.
    seqs: Vec<u64>,
    before: usize,
    over: bool,
    /// The highest number that is durable, 0 if none became so.
    durable: u64,
    failures: Vec<Failure>,
    /// What must not happen.
    wrong: Option<String>,
}

impl Work {
    /// The highest number of a record.
    fn staged(&self) -> u64 {
        self.seqs.last().copied().unwrap_or(0)
    }
}

/// How a life ended.
pub struct End {
    pub history: History,
    pub failures: Vec<Failure>,
    /// Records of statements that were not told to be durable.
    pub unacknowledged: u64,
    /// Segments that compaction has dropped.
    pub compactions: u64,
}

impl Life {
    /// Opens the store on `disk` and issues `statements`. Each operation on the disk is what `script` says; the error is
    /// the refusal to open, with the history as it was.
    pub fn live(
        disk: &Simulated,
        seed: u64,
        statements: usize,
        ratio: u64,
        history: History,
        script: impl Fn(&Step) -> Action + Send + Sync + 'static,
    ) -> Result<End, Box<(OpenError, History)>> {
        let life = Arc::new(Life {
            store: OnceLock::new(),
            changed: Condvar::new(),
            work: Mutex::new(Work {
                random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
                left: statements,
                before: history.statements.len(),
                history,
                seqs: Vec::new(),
                over: false,
                durable: 0,
                failures: Vec::new(),
                wrong: None,
            }),
        });
        let weak = Arc::downgrade(&life);
        disk.script(move |step| {
            let action = script(step);
            if matches!(step.operation, "write" | "sync")
                && let Some(life) = weak.upgrade()
            {
                life.meanwhile();
            }
            action
        });
        let (told, failed) = (Arc::clone(&life), Arc::clone(&life));
        let settings = Settings {
            on_durable: Box::new(move |seq| told.durable(seq)),
            on_failure: Box::new(move |failure| failed.failed(failure)),
            ..settings(ratio)
        };
        let shapes = program().0;
        let opened = Store::open(Arc::new(disk.clone()) as Arc<dyn Disk>, &shapes, settings);
        match opened {
            Ok(Opened { store, .. }) => assert!(life.store.set(store).is_ok()),
            Err(error) => {
                disk.script(|_| Action::Proceed);
                let history = life.lock().history.clone();
                return Err(Box::new((error, history)));
            }
        }
        Ok(life.run())
    }

    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(self: Arc<Life>) -> End {
        let store = self.store.get().unwrap();
        let mut work = self.lock();
        // Exactly one record: whatever comes after it is issued by the log's thread.
        self.issue_a_record(&mut work);
        work.over |= work.staged() == 0;
        while !work.over {
            // The log's thread may have panicked.
            let waited = self.changed.wait_timeout(work, Duration::from_secs(120));
            let (held, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            assert!(!timeout.timed_out(), "nothing happens any more");
            work = held;
        }
        drop(work);
        store.close();
        let mut work = self.lock();
        if let Some(wrong) = &work.wrong {
            panic!("{wrong}");
        }
        let failures = std::mem::take(&mut work.failures);
        let unacknowledged = work.seqs.iter().filter(|seq| **seq > work.durable).collect::<BTreeSet<_>>().len();
        let compactions = store.stats().map_or(0, |stats| stats.compactions);
        End { history: work.history.clone(), failures, unacknowledged: unacknowledged as u64, compactions }
    }

    /// Statements up to the first one that has a record.
    fn issue_a_record(&self, work: &mut Work) {
        let staged = work.staged();
        while work.left > 0 && work.staged() == staged {
            self.issue(work);
        }
    }

    fn issue(&self, work: &mut Work) {
        let Some(store) = self.store.get() else { return };
        work.left -= 1;
        let statement = statement(&mut work.random, &work.history.model);
        let (got, seq) = statement.on_store(store);
        let expected = work.history.push(statement.clone());
        if got != expected {
            work.wrong = Some(format!("{statement:?}: {got:?}, but the model says {expected:?}"));
            self.finish(work);
        }
        let staged = work.staged().max(seq);
        work.seqs.push(staged);
    }

    fn finish(&self, work: &mut Work) {
        work.over = true;
        work.left = 0;
        self.changed.notify_all();
    }

    /// While an operation is about to be done.
    fn meanwhile(&self) {
        let mut work = self.lock();
        if self.store.get().is_some() && work.left > 0 && !work.over && work.random.one_in(4) {
            for _ in 0..=work.random.below(2).min(work.left as u64 - 1) {
                self.issue(&mut work);
            }
        }
    }

    fn durable(&self, seq: u64) {
        let mut work = self.lock();
        if !work.failures.is_empty() {
            work.wrong = Some(format!("{seq} became durable after a failure"));
        }
        let count = work.seqs.partition_point(|last| *last <= seq) + work.before;
        work.history.acknowledge(count);
        work.durable = seq;
        for _ in 0..=work.random.below(2) {
            self.issue_a_record(&mut work);
        }
        if work.staged() <= seq {
            self.finish(&mut work);
        }
    }

    fn failed(&self, failure: Failure) {
        let mut work = self.lock();
        work.failures.push(failure);
        self.finish(&mut work);
    }
}

/// `ratio`: that of compaction, which has a thread of its own: what it does does not follow from the seed alone.
fn settings(ratio: u64) -> Settings {
    Settings {
        memory: 1 << 30,
        segment_bytes: SEGMENT,
        now: 0,
        on_durable: Box::new(|_| ()),
        on_failure: Box::new(|_| ()),
        compaction: Compaction { floor: SEGMENT, ratio, on_failure: Box::new(|_| ()) },
    }
}

/// The store that is on a disk.
pub fn open(disk: &Simulated) -> Result<Store, OpenError> {
    let shapes = program().0;
    Store::open(Arc::new(disk.clone()) as Arc<dyn Disk>, &shapes, settings(0)).map(|opened| opened.store)
}
