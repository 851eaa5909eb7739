//! Helper threads for work that would block: files and name resolution. Threads start on demand and stay. A job owns
//! everything it touches; its result reaches the shard through a queue and an eventfd.

use crate::fiber::Token;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

pub type Result = Box<dyn Any + Send>;
type Work = Box<dyn FnOnce() -> Result + Send>;

/// Where finished jobs go, and how the shard is woken.
pub struct Inbox {
    done: Mutex<VecDeque<(Token, Option<Result>)>>,
    some: AtomicBool,
    pub wake_fd: i32,
}

impl Inbox {
    #[must_use]
    pub fn new(wake_fd: i32) -> Inbox {
        Inbox { done: Mutex::new(VecDeque::new()), some: AtomicBool::new(false), wake_fd }
    }

    /// Finished jobs, oldest first; a job that panicked has no result.
    pub fn take(&self) -> VecDeque<(Token, Option<Result>)> {
        if !self.some.swap(false, Ordering::Acquire) {
            return VecDeque::new();
        }
        std::mem::take(&mut *self.done.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, token: Token, result: Option<Result>) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push_back((token, result));
        self.some.store(true, Ordering::Release);
        let one = 1u64;
        // SAFETY: eight readable bytes. The inbox owns the descriptor.
        let _ = unsafe { libc::write(self.wake_fd, (&raw const one).cast(), 8) };
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        crate::sys::close(self.wake_fd);
    }
}

struct Queue {
    jobs: VecDeque<(Token, Work)>,
    threads: usize,
    idle: usize,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    ready: Condvar,
    inbox: Arc<Inbox>,
}

pub struct Pool {
    shared: Arc<Shared>,
    most: usize,
}

impl Pool {
    #[must_use]
    pub fn new(most: usize, inbox: Arc<Inbox>) -> Pool {
        let queue = Queue { jobs: VecDeque::new(), threads: 0, idle: 0, closed: false };
        Pool { shared: Arc::new(Shared { queue: Mutex::new(queue), ready: Condvar::new(), inbox }), most }
    }

    /// Queues a job; its result is delivered under `token`. False when no thread could be had at all.
    pub fn submit(&self, token: Token, work: Work) -> bool {
        let mut q = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        q.jobs.push_back((token, work));
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
        let mut q = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        q.closed = true;
        q.jobs.clear();
        self.shared.ready.notify_all();
    }
}

/// A helper thread does not end before the program does: the system kills the children that it started with it
/// (`proc::start`).
fn serve(shared: &Shared) {
    let mut q = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some((token, work)) = q.jobs.pop_front() {
            drop(q);
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok();
            shared.inbox.put(token, result);
            q = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        } else if q.closed {
            return;
        } else {
            q.idle += 1;
            q = shared.ready.wait(q).unwrap_or_else(PoisonError::into_inner);
            q.idle -= 1;
        }
    }
}
