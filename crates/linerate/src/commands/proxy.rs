//! `proxy`: carry clients' connections on to a target.

use std::time::{Duration, Instant};

use linerate_engine::error::Error;
use linerate_engine::event::Cancel;
use linerate_engine::relay::{
    Carries, Congestion, Proxy, ProxyLimits, ProxyOutcome, ProxyPlan, QuicSides, Sending,
    SideOptions, Totals,
};
use linerate_engine::{resolve_host, unknown_host};
use linerate_measure::run::exit;

use super::{Failure, await_file};
use crate::args::{ProxyArgs, ProxyCongestionName};
use crate::certificates::read_authority;
use crate::identity::identity_of;
use crate::output::{
    ProxyLine, ProxyWords, UntoldEvents, narrate, render_proxy_begin, render_proxy_event,
    render_proxy_summary,
};

/// How often the live line and a request to stop are looked at.
const LOOK: Duration = Duration::from_millis(100);

const WORDS: ProxyWords = ProxyWords {
    program: "linerate",
    most_clients: "--max-connections",
    most_of_address: "--max-per-client",
};

/// Carries connections on until a signal comes.
pub(super) fn carry(args: &ProxyArgs, cancel: &Cancel) -> Result<u8, Failure> {
    let plan = plan_of(args, cancel)?;
    let is_checked = args.ca.is_some();
    let target = plan.target;
    let proxy = Proxy::start(&plan)?;
    let (began, mut before) = (Instant::now(), Totals::default());
    super::print(&render_proxy_begin(proxy.address(), target, proxy.fingerprint(), is_checked))?;
    let mut line = ProxyLine::of_terminal().filter(|_| !args.quiet);
    let (mut fault, mut untold) = (None, UntoldEvents::default());
    while !cancel.requested() && fault.is_none() {
        let event = proxy.next_event(LOOK);
        let mut text = event.map_or_else(String::new, |event| render_proxy_event(&WORDS, &event));
        text += &untold.render_in_time(Instant::now(), &WORDS, &proxy.totals());
        if !args.quiet && !text.is_empty() {
            let cleared = line.as_mut().map_or("", ProxyLine::give_way);
            narrate(&format!("{cleared}{text}"));
        }
        fault = proxy.fault();
        if let Some(line) = &mut line {
            narrate(&line.refresh(Instant::now(), &mut before, &proxy.totals()));
        }
    }
    narrate(line.as_mut().map_or("", ProxyLine::give_way));
    let ProxyOutcome { totals, events, .. } = proxy.end();
    if !args.quiet {
        for event in &events {
            narrate(&render_proxy_event(&WORDS, event));
        }
        narrate(&untold.render(&WORDS, &totals));
    }
    super::print(&render_proxy_summary(&totals, began.elapsed()))?;
    fault.map_or(Ok(exit::VALID), |why| Err(Failure::here(why)))
}

fn plan_of(args: &ProxyArgs, cancel: &Cancel) -> Result<ProxyPlan, Failure> {
    let (host, port) = args.target.clone();
    let found = {
        let host = host.clone();
        await_file(cancel, move || {
            let found = resolve_host(&host, port, None);
            found.map_err(|error| unknown_host(&host, &error).into())
        })?
    };
    let target = found.first().copied().ok_or_else(|| {
        let text = format!("the host \"{host}\" has no address: give another host");
        Failure::from(Error::Unreachable(text))
    })?;
    let carries = if args.tcp {
        Carries::Tcp
    } else {
        Carries::Quic(Box::new(sides_of(args, host, cancel)?))
    };
    let processors = || std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    Ok(ProxyPlan {
        bind: args.bind.clone(),
        port: args.port,
        target,
        threads: args.threads.unwrap_or_else(processors),
        limits: ProxyLimits {
            buffer_bytes: args.buffer,
            window_bytes: args.window,
            streams: args.streams,
            connections: args.max_connections,
            connections_per_origin: args.max_per_client.unwrap_or(u32::MAX),
        },
        connect_timeout: Duration::from_nanos(args.connect_timeout),
        carries,
    })
}

fn sides_of(args: &ProxyArgs, target_name: String, cancel: &Cancel) -> Result<QuicSides, Failure> {
    let (flags, ca) = (args.identity.clone(), args.ca.clone());
    let (kept, authority) = await_file(cancel, move || {
        let kept = identity_of(&flags);
        let authority = ca.as_deref().map(read_authority).transpose();
        Ok((kept.map_err(Failure::here)?, authority.map_err(Failure::here)?))
    })?;
    if let Some(note) = kept.note.filter(|_| !args.quiet) {
        narrate(&format!("linerate: {note}\n"));
    }
    Ok(QuicSides {
        target_name,
        waits_for_target: args.wait_for_svr,
        alpn: args.alpn.clone(),
        early_data: args.early_data,
        identity: kept.identity,
        authority,
        sending: Sending {
            congestion: match args.congestion {
                ProxyCongestionName::Cubic => Congestion::Cubic,
                ProxyCongestionName::Reno => Congestion::Reno,
                ProxyCongestionName::Bbr => Congestion::Bbr,
            },
            first_window_packets: args.iw,
        },
        options: SideOptions::default(),
        interval_ns: None,
    })
}
