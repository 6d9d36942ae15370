//! The server: one thread that receives connections, and one for each test.
//!
//! The original serves one client at a time. Here each test has its cookie, by which its streams are
//! known, so that clients don't wait for each other, and a dead one holds up no other. Streams of
//! datagrams carry no cookie: they belong to the test of their address that is making streams, and of
//! each address one test makes such streams at a time.

mod acceptor;
mod awaited;
mod conversation;
mod hello;
mod listener;
mod test;
mod udp;

use std::net::SocketAddr;
use std::sync::Arc;

use linerate_wire::iperf3::Code;
use socket2::Socket;

use super::token::Gate;
use super::{Failure, Observer, ServePlan, ServerEvent};
use crate::error::Error;
use crate::event::Cancel;
use crate::probe::raise_open_files_limit;

use acceptor::Iperf3Acceptor;
use listener::Listener;

/// A server that has its port.
pub struct Server {
    plan: ServePlan,
    listener: Listener,
    /// The port over UDP, if a service manager handed it over.
    datagrams: Option<Socket>,
    gate: Option<Arc<Gate>>,
}

impl Server {
    /// Takes the port.
    ///
    /// # Errors
    ///
    /// When the port can't be had, or the keys can't be read.
    pub fn bind(plan: &ServePlan) -> Result<Self, Failure> {
        let gate = plan.authority.as_ref().map(Gate::new).transpose()?.map(Arc::new);
        let failed = |error: std::io::Error| Failure::system(Code::LISTEN, &error);
        raise_open_files_limit();
        let wrong = |error: Error| Failure::of(Code::LISTEN).because(error.to_string());
        let (listener, datagrams) = match plan.handed.port().map_err(wrong)? {
            Some(mut port) => {
                let datagrams = port.only_datagrams().map_err(wrong)?;
                (Listener::over(port.listener, port.address), datagrams)
            }
            None => (Listener::open(plan), None),
        };
        let listener = listener.map_err(failed)?;
        Ok(Self { plan: plan.clone(), listener, datagrams, gate })
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Serves until told to stop, or until the one test is over that was asked for. `observe` makes
    /// the observer of a test, by its number; tests run at the same time, each on a thread of its own.
    ///
    /// # Errors
    ///
    /// When the port is lost. With `one_off`: why its test failed.
    pub fn serve(
        self,
        observe: &dyn Fn(u64) -> Box<dyn Observer>,
        tell: &mut dyn FnMut(ServerEvent),
        cancel: &Cancel,
    ) -> Result<(), Failure> {
        Iperf3Acceptor::new(self)?.run(observe, tell, cancel)
    }
}
