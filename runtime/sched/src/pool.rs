//! Helper threads for work that would block: files and name resolution. Threads start on demand and stay for the life of
//! the process. A job owns everything it touches; its result reaches the shard that waits for it through its port.

use crate::fiber::Token;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

pub type Result = Box<dyn Any + Send>;
/// Does the work and hands over its result.
type Job = Box<dyn FnOnce() + Send>;

struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Pool {
    shared: Arc<Shared>,
    most: usize,
}

impl Pool {
    #[must_use]
    pub fn new(most: usize) -> Pool {
        let queue = Queue { jobs: VecDeque::new(), threads: 0, idle: 0, closed: false };
        Pool { shared: Arc::new(Shared { queue: Mutex::new(queue), ready: Condvar::new() }), most }
    }

    /// Queues `work`; `done` gets the token and the result, or none if the work panicked. False when no thread could be
    /// had at all.
    pub fn submit(
        &self,
        token: Token,
        work: impl FnOnce() -> Result + Send + 'static,
        done: impl FnOnce(Token, Option<Result>) + Send + 'static,
    ) -> bool {
        let mut q = self.shared.queue();
        q.jobs.push_back(Box::new(move || {
            done(token, std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok());
        }));
        if q.jobs.len() > q.idle && q.threads < self.most {
            let shared = Arc::clone(&self.shared);
            match std::thread::Builder::new().name("wo-pool".into()).spawn(move || serve(&shared)) {
                Ok(_) => q.threads += 1,
                Err(_) if q.threads == 0 => {
                    let _ = q.jobs.pop_back();
                    return false;
                }
                Err(_) => {}
            }
        }
        drop(q);
        self.shared.ready.notify_one();
        true
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut q = self.shared.queue();
        q.closed = true;
        q.jobs.clear();
        self.shared.ready.notify_all();
    }
}

fn serve(shared: &Shared) {
    let mut q = shared.queue();
    loop {
        if let Some(job) = q.jobs.pop_front() {
            drop(q);
            job();
            q = shared.queue();
        } else if q.closed {
            return;
        } else {
            q.idle += 1;
            q = shared.ready.wait(q).unwrap_or_else(PoisonError::into_inner);
            q.idle -= 1;
        }
    }
}
