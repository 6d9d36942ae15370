//! The memory that the C library holds for this process.

/// Gives freed memory back to the system. glibc keeps what lies between pieces that are in use, however much it is
/// (malloc_trim(3)); other C libraries have no such call, and give back more by themselves.
pub fn give_back_freed_memory() {
    // SAFETY: the call takes no pointer, changes no memory that is in use, and any thread may make it.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}
