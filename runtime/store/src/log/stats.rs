//! What a log counts.

use std::time::Duration;

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub batches: u64,
    pub records: u64,
    /// Most records in a batch.
    pub peak_batch: u64,
    /// Of records.
    pub bytes: u64,
    /// Of files and of the directory.
    pub syncs: u64,
    /// Time of the batches' syncs: all of it, and that of single ones.
    pub sync_us: u64,
    pub sync_us_p50: u64,
    pub sync_us_p99: u64,
}

/// Each power of two is divided into this many buckets: a percentile is right to an eighth.
const STEPS: u64 = 8;

#[derive(Default)]
pub(super) struct Meter {
    totals: Stats,
    /// Syncs by their time in microseconds.
    buckets: Vec<u64>,
}

impl Meter {
    pub fn batch(&mut self, records: u64, bytes: u64, sync: Duration) {
        let totals = &mut self.totals;
        totals.batches += 1;
        totals.records += records;
        totals.peak_batch = totals.peak_batch.max(records);
        totals.bytes += bytes;
        totals.syncs += 1;
        let sync_us = u64::try_from(sync.as_micros()).unwrap_or(u64::MAX);
        totals.sync_us = totals.sync_us.saturating_add(sync_us);
        let bucket = bucket(sync_us);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
    }

    /// A segment has been made: its file was synced, and the directory.
    pub fn segment(&mut self) {
        self.totals.syncs += 2;
    }

    pub fn stats(&self) -> Stats {
        Stats { sync_us_p50: self.percentile(50), sync_us_p99: self.percentile(99), ..self.totals }
    }

    fn percentile(&self, percent: u64) -> u64 {
        let rank = (self.totals.batches * percent).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return lowest(bucket as u64);
            }
        }
        0
    }
}

/// Below `2 * STEPS` each number has a bucket of its own.
fn bucket(us: u64) -> usize {
    let shift = (u64::from(us.max(STEPS).ilog2())) - u64::from(STEPS.ilog2());
    usize::try_from(shift * STEPS + (us >> shift)).unwrap_or(usize::MAX)
}

/// The least number in a bucket.
fn lowest(bucket: u64) -> u64 {
    let shift = (bucket / STEPS).saturating_sub(1);
    (bucket - shift * STEPS) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_numbers_of_about_one_size() {
        for us in (0..5000).chain([1 << 40, (1 << 40) + 12345, u64::MAX]) {
            let low = lowest(bucket(us) as u64);
            assert!(low <= us && us - low <= us / STEPS, "{us} counts as {low}");
        }
    }

    #[test]
    fn percentiles_are_of_all_batches() {
        let mut meter = Meter::default();
        for us in 1..=100 {
            meter.batch(2, 64, Duration::from_micros(us));
        }
        let stats = meter.stats();
        assert_eq!((stats.batches, stats.records, stats.peak_batch, stats.bytes), (100, 200, 2, 6400));
        assert_eq!(stats.sync_us, 5050);
        assert!((44..=50).contains(&stats.sync_us_p50) && (88..=99).contains(&stats.sync_us_p99), "{stats:?}");
        assert_eq!(Meter::default().stats(), Stats::default());
    }
}
