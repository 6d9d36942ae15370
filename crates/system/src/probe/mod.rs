//! What this machine is and what it is doing, read from /proc and /sys.
//!
//! Everything here is optional: a file that isn't there or reads otherwise leaves its field absent.

pub mod collected;
mod host;
mod processor;
mod quota;

pub use host::cpus_near;
pub use host::host_facts;
pub use host::{cpus_online, memory_bytes, processors, raise_open_files_limit};
pub use processor::{MachineTimes, ThreadTime};
pub use quota::Quotas;
