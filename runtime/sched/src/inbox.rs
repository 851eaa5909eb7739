//! What other threads hand to a shard: a lock-free stack of batches, taken whole and turned round, so that what one
//! sender pushes arrives in its order. A sender wakes the shard only when it sleeps.

use crate::atomics::{AtomicBool, AtomicPtr, Ordering, fence};

struct Batch<T> {
    next: *mut Batch<T>,
    items: Vec<T>,
}

/// An inbox: many senders, one receiver.
pub struct Inbox<T> {
    head: AtomicPtr<Batch<T>>,
    asleep: AtomicBool,
}

// SAFETY: the batches behind `head` belong to the inbox; what they hold may change threads.
unsafe impl<T: Send> Send for Inbox<T> {}
// SAFETY: senders only exchange `head`, and the receiver takes the whole list in one exchange.
unsafe impl<T: Send> Sync for Inbox<T> {}

impl<T> Default for Inbox<T> {
    fn default() -> Inbox<T> {
        Inbox { head: AtomicPtr::new(std::ptr::null_mut()), asleep: AtomicBool::new(false) }
    }
}

impl<T> Inbox<T> {
    /// Hands over `items`. True: the receiver sleeps, and this sender must wake it.
    #[must_use]
    pub fn push(&self, items: Vec<T>) -> bool {
        let batch = Box::into_raw(Box::new(Batch { next: std::ptr::null_mut(), items }));
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the batch is this function's own until the exchange succeeds.
            unsafe { (*batch).next = head };
            match self.head.compare_exchange_weak(head, batch, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(other) => head = other,
            }
        }
        // Pairs with the fence in `may_sleep`: either the receiver sees the batch, or this sees that it sleeps.
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel)
    }

    /// Nothing is there, as far as this thread can see.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Gives everything that has come to `each`, oldest batch first. The number of items.
    pub fn take(&self, mut each: impl FnMut(T)) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let mut newest = self.head.swap(std::ptr::null_mut(), Ordering::Acquire);
        let mut oldest: *mut Batch<T> = std::ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the exchange made the list this thread's own.
            unsafe {
                let next = (*newest).next;
                (*newest).next = oldest;
                oldest = newest;
                newest = next;
            }
        }
        let mut count = 0;
        while !oldest.is_null() {
            // SAFETY: made by `Box::into_raw` in `push`, and nobody else refers to it.
            let batch = unsafe { Box::from_raw(oldest) };
            oldest = batch.next;
            count += batch.items.len() as u64;
            batch.items.into_iter().for_each(&mut each);
        }
        count
    }

    /// The receiver is about to sleep. False: something has come, and it must not.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.is_empty() {
            return true;
        }
        self.asleep.store(false, Ordering::Relaxed);
        false
    }

    /// The receiver is awake: senders need not wake it.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        let _ = self.take(drop);
    }
}

#[cfg(all(test, not(feature = "explore")))]
mod tests {
    use super::Inbox;

    #[test]
    fn batches_come_out_in_the_order_they_went_in() {
        let inbox = Inbox::default();
        let mut out = Vec::new();
        assert_eq!(inbox.take(|n: i32| out.push(n)), 0);
        let _ = inbox.push(vec![1, 2]);
        let _ = inbox.push(vec![3]);
        assert_eq!(inbox.take(|n| out.push(n)), 3);
        assert_eq!(out, [1, 2, 3]);
    }

    #[test]
    fn only_the_first_sender_wakes_a_sleeper() {
        let inbox = Inbox::default();
        assert!(inbox.may_sleep());
        assert!(inbox.push(vec![1]));
        assert!(!inbox.push(vec![2]));
        assert!(!inbox.may_sleep());
    }
}

/// All orders in which two senders and the receiver may run, as far as loom explores them (`scripts/explore.sh`).
#[cfg(all(test, feature = "explore"))]
mod explore {
    use super::Inbox;
    use loom::sync::Arc;
    use loom::thread;

    #[test]
    fn what_is_pushed_is_taken_once_and_in_its_senders_order() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::default());
            let senders: Vec<_> = [10, 20]
                .into_iter()
                .map(|base| {
                    let inbox = Arc::clone(&inbox);
                    thread::spawn(move || {
                        let _ = inbox.push(vec![base]);
                        let _ = inbox.push(vec![base + 1]);
                    })
                })
                .collect();
            let mut out = Vec::new();
            let _ = inbox.take(|n: i32| out.push(n));
            for s in senders {
                s.join().unwrap();
            }
            let _ = inbox.take(|n| out.push(n));
            for base in [10, 20] {
                let of: Vec<i32> = out.iter().copied().filter(|n| n / 10 == base / 10).collect();
                assert_eq!(of, [base, base + 1]);
            }
        });
    }

    /// The receiver never sleeps with something in its inbox that nobody will wake it for.
    #[test]
    fn no_wake_up_is_lost() {
        loom::model(|| {
            let inbox = Arc::new(Inbox::default());
            let sender = {
                let inbox = Arc::clone(&inbox);
                thread::spawn(move || inbox.push(vec![1]))
            };
            let sleeps = inbox.may_sleep();
            let woken = sender.join().unwrap();
            assert!(!sleeps || woken);
            inbox.awake();
            assert_eq!(inbox.take(drop), 1);
        });
    }
}
