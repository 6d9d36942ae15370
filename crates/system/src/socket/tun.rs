//! TUN devices: a network device whose other end is a descriptor (Linux,
//! Documentation/networking/tuntap.rst).

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

/// Makes a TUN device without packet information in this thread's network namespace. `pattern` is
/// its name; `%d` in it becomes the first free number. Returns the descriptor, which never blocks,
/// and the name. The device is gone when the descriptor is closed.
pub fn open_tun(pattern: &str) -> io::Result<(OwnedFd, String)> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tun = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
    // SAFETY: a request of all zero bytes is valid: an empty name and no flags.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // One byte stays zero and ends the name.
    if pattern.len() >= request.ifr_name.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(pattern.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the pointer is to a request that outlives the call, of the type that TUNSETIFF
    // reads and writes; the descriptor is open.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has written a name that ends with a zero byte within the array.
    let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) };
    Ok((tun, name.to_string_lossy().into_owned()))
}
