//! What the program was started with. Rust opens /dev/null in place of a standard descriptor that is closed, before `main`
//! begins; from then on nothing tells a closed one.

use std::sync::atomic::{AtomicBool, Ordering};

static STDOUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: F_GETFD takes no pointer and changes nothing, whatever the descriptor is.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
    STDOUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}

// SAFETY: the linker lists the functions of this section, and the C library calls each once before `main`. The
// function calls nothing of Rust's runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOKS: extern "C" fn() = look;

/// Whether the program was started without a standard output.
pub fn stdout_was_closed() -> bool {
    STDOUT_WAS_CLOSED.load(Ordering::Relaxed)
}
