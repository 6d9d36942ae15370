//! Sessions with real agents: on this machine, in network namespaces, and over real ssh.

mod killing;
mod local;
mod process;
