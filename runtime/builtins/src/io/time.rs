//! Clocks, sleeping, calendar.

use super::{Ptr, shim};
use sched::sys;
use std::sync::OnceLock;
use values::ctx::{Ctx, entry};
use values::object::Obj;

/// A civil date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// 0 = Sunday.
    dow: i64,
}

/// Proleptic Gregorian parts of seconds since 1970 in UTC.
fn civil(secs: i64) -> Parts {
    let days = secs.div_euclid(86_400);
    let rest = secs.rem_euclid(86_400);
    // Years start in March, so that leap days come last; eras of 400 years have equal length.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let m = (5 * day_of_year + 2) / 153;
    let month = if m < 10 { m + 3 } else { m - 9 };
    Parts {
        year: year_of_era + era * 400 + i64::from(month <= 2),
        month,
        day: day_of_year - (153 * m + 2) / 5 + 1,
        hour: rest / 3600,
        minute: rest / 60 % 60,
        second: rest % 60,
        dow: (days + 4).rem_euclid(7),
    }
}

/// First second of year 0 and first second after year 9999.
const RANGE: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

/// Seconds of an instant within the supported years; `None` with a pending trap 6.
fn seconds(ctx: &mut Ctx, ms: i64, offset: impl FnOnce(&Ctx, i64) -> i64) -> Option<i64> {
    let secs = ms.div_euclid(1000);
    if RANGE.contains(&secs) {
        let shifted = secs + offset(ctx, secs);
        if RANGE.contains(&shifted) {
            return Some(shifted);
        }
    }
    ctx.raise(abi::trap::BOUNDS, "instant out of range");
    None
}

/// Seconds east of UTC of the process's time zone at an instant.
fn local_offset(ctx: &Ctx, secs: i64) -> i64 {
    // Reading zone files wants more stack than a fiber keeps in reserve.
    sched::wait::on_shard_stack(ctx, move || {
        // What lies in the first and last days of `RANGE` is no `Timestamp`; offsets do not change there.
        let secs = secs.clamp(jiff::Timestamp::MIN.as_second(), jiff::Timestamp::MAX.as_second());
        let Ok(t) = jiff::Timestamp::from_second(secs) else { return 0 };
        i64::from(jiff::tz::TimeZone::system().to_offset(t).seconds())
    })
}

fn parts(ctx: &mut Ctx, class: i64, secs: i64) -> *mut Obj {
    let p = civil(secs);
    let fields = [
        ("year", p.year),
        ("month", p.month),
        ("day", p.day),
        ("hour", p.hour),
        ("minute", p.minute),
        ("second", p.second),
        ("dow", p.dow),
    ];
    shim::object(ctx, u32::try_from(class).unwrap_or(u32::MAX), &fields)
}

extern "C" fn now(_ctx: *mut Ctx) -> i64 {
    sys::wall_ms()
}

extern "C" fn ticks(_ctx: *mut Ctx) -> i64 {
    sys::boot_us()
}

/// No process outlives its boot, so one read is enough: rows are compared with this all the time.
static BOOT_ID: OnceLock<String> = OnceLock::new();

extern "C" fn boot_id(ctx: *mut Ctx) -> *mut Obj {
    entry(ctx, |ctx| {
        if BOOT_ID.get().is_none() {
            match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
                Ok(id) => drop(BOOT_ID.set(id.trim_end().to_owned())),
                Err(e) => ctx.raise(abi::trap::IO, &sys::text(e.raw_os_error().unwrap_or(libc::EIO))),
            }
        }
        BOOT_ID.get().map_or_else(Ptr::default, |id| Ptr(shim::text(ctx, id.as_bytes())))
    })
    .0
}

extern "C" fn sleep(ctx: *mut Ctx, ms: i64) {
    entry(ctx, |ctx| sched::wait::sleep(ctx, ms));
}

extern "C" fn iso(ctx: *mut Ctx, ms: i64) -> *mut Obj {
    entry(ctx, |ctx| {
        let Some(secs) = seconds(ctx, ms, |_, _| 0) else { return Ptr::default() };
        let p = civil(secs);
        let text = format!("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", p.year, p.month, p.day, p.hour, p.minute, p.second);
        Ptr(shim::text(ctx, text.as_bytes()))
    })
    .0
}

extern "C" fn utc(ctx: *mut Ctx, class: i64, ms: i64) -> *mut Obj {
    entry(ctx, |ctx| seconds(ctx, ms, |_, _| 0).map_or_else(Ptr::default, |s| Ptr(parts(ctx, class, s)))).0
}

extern "C" fn local(ctx: *mut Ctx, class: i64, ms: i64) -> *mut Obj {
    entry(ctx, |ctx| seconds(ctx, ms, local_offset).map_or_else(Ptr::default, |s| Ptr(parts(ctx, class, s)))).0
}

pub fn functions() -> Vec<(&'static str, *const u8)> {
    vec![
        ("now", now as *const u8),
        ("time.now", now as *const u8),
        ("time.ticks", ticks as *const u8),
        ("time.boot_id", boot_id as *const u8),
        ("time.sleep", sleep as *const u8),
        ("time.iso", iso as *const u8),
        ("time.utc", utc as *const u8),
        ("time.local", local as *const u8),
    ]
}

#[cfg(test)]
mod tests {
    use super::{RANGE, civil};

    fn ymd(secs: i64) -> (i64, i64, i64, i64, i64, i64, i64) {
        let p = civil(secs);
        (p.year, p.month, p.day, p.hour, p.minute, p.second, p.dow)
    }

    #[test]
    fn time_2_civil_dates() {
        assert_eq!(ymd(0), (1970, 1, 1, 0, 0, 0, 4));
        assert_eq!(ymd(-1), (1969, 12, 31, 23, 59, 59, 3));
        assert_eq!(ymd(951_782_400), (2000, 2, 29, 0, 0, 0, 2));
        assert_eq!(ymd(4_107_542_400), (2100, 3, 1, 0, 0, 0, 1));
        assert_eq!(ymd(RANGE.start), (0, 1, 1, 0, 0, 0, 6));
        assert_eq!(ymd(RANGE.end - 1), (9999, 12, 31, 23, 59, 59, 5));
    }
}
