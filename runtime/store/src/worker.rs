//! Threads of a store.

use crate::disk::Fault;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// A thread that is waited for before what it works on goes.
pub(crate) struct Worker(Mutex<Option<JoinHandle<()>>>);

impl Worker {
    pub fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<Worker, Fault> {
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(run);
        let thread = spawned.map_err(|error| Fault { operation: "start of a thread", path: name.to_owned(), error })?;
        Ok(Worker(Mutex::new(Some(thread))))
    }

    /// Waits for the end of the thread, which somebody has told it of. A panic of the thread goes on here.
    pub fn join(&self) {
        let thread = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Err(panic)) = thread.map(JoinHandle::join)
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}
