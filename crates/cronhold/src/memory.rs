//! The allocator of the daemon. A busy node allocates and frees hundreds of thousands of records a second, many of them
//! on different threads.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns freed memory to the system. The allocator does that by itself, but only during later calls: after a load of
/// many job files, an idle daemon would keep a third more than it needs.
#[expect(unsafe_code, reason = "the safe crate of the allocator does not have this function")]
pub(crate) fn return_freed_memory() {
    // SAFETY: the allocator allows this call on every thread at any time; it only releases memory that is not in use.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
