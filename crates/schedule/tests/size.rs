//! Memory size of a schedule. A node holds a hundred thousand jobs, so a plain cron schedule must be one small value
//! that shares its zone. A separate binary, because it counts all allocations of the process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use cronhold_schedule::calendar::CalendarSet;
use cronhold_schedule::{CompileContext, Instant, Schedule, ScheduleSpec, ZoneRegistry};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator cannot be written without; it only counts and passes on")]
// SAFETY: every call is forwarded to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract, which is that of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract, which is that of the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A single test, because parallel tests would be counted as well.
#[test]
fn plain_cron_schedule_is_one_small_value() {
    assert!(size_of::<Schedule>() <= 128, "{} bytes", size_of::<Schedule>());
    let zones = ZoneRegistry::bundled();
    let calendars = CalendarSet::new();
    let berlin = zones.get("Europe/Berlin").expect("known");
    let around = CompileContext { zones: &zones, zone: &berlin, calendars: &calendars, job: "reports/prices" };
    for text in ["* * * * *", "0 18 * * Mon-Fri", "30 0 0 31W,LW,L-3 1-12/2 5L,7#2 2026-2030/2", "H H(0-7) * * *"] {
        let spec = ScheduleSpec::parse(text).expect(text);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let schedule = Schedule::compile(&spec, around).expect(text);
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(made, 0, "{text} allocates beside itself");
        let mut at = Instant::EPOCH;
        for _ in 0..100 {
            at = schedule.next(at).unwrap_or(Instant::EPOCH);
            schedule.prev(at);
        }
        let allocated = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(allocated, 0, "{text} allocates in a search");
    }
    // Verify that the counter itself works.
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let spec = ScheduleSpec::parse("CRON_TZ=UTC @daily").expect("a good schedule");
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > before, "{spec} is counted");
}
