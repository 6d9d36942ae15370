//! Sessions with real agents: on this machine, in network namespaces, and over real ssh.

//mod fleet;
mod killing;
mod local;
mod process;
//#[path = "../../../linerate/tests/skipped/mod.rs"]
//mod skipped;
//mod ssh;
//mod starts;
