//! The tests of before 2.5, one code for each. Newer clients still send two of them: 10 for
//! TCP_SENDFILE and 300 for TCP_CC.
//!
//! Every field is a word. A layout is a list of what stands where, so that both directions come
//! from one table.

use super::message::{Form, Message, code};
use super::omni::{
    DATAGRAM_MAX_BYTES, buffer, family, family_number, port, refusal, size, unit, word,
};
use super::test::{Cpu, Dirt, Length, Part, Request, Results, Rings, Setup, Transport};

/// A classic test, by the code of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classic {
    /// TCP_STREAM.
    Stream,
    /// TCP_MAERTS.
    Maerts,
    /// TCP_RR.
    Rr,
    /// TCP_CRR.
    Crr,
    /// TCP_CC.
    Cc,
    /// UDP_STREAM.
    UdpStream,
    /// UDP_RR.
    UdpRr,
}

/// Where the fields of a request stand, as indexes of words; what a test doesn't have is `NONE`.
struct Layout {
    send_buffer: usize,
    receive_buffer: usize,
    send: usize,
    receive: usize,
    request: usize,
    response: usize,
    no_delay: usize,
    cpu: usize,
    cpu_rate: usize,
    length: usize,
    no_copy: usize,
    port: usize,
    family: usize,
}

const NONE: usize = usize::MAX;

/// TCP_STREAM and TCP_MAERTS, but for the direction of the sizes.
const STREAM: Layout = Layout {
    send_buffer: 0,
    receive_buffer: 1,
    send: NONE,
    receive: 2,
    request: NONE,
    response: NONE,
    no_delay: 5,
    cpu: 6,
    cpu_rate: 7,
    length: 8,
    no_copy: 9,
    port: 13,
    family: 14,
};

const MAERTS: Layout = Layout { send: 2, receive: NONE, ..STREAM };

const EXCHANGE: Layout = Layout {
    send_buffer: 1,
    receive_buffer: 0,
    send: NONE,
    receive: NONE,
    request: 6,
    response: 7,
    no_delay: 8,
    cpu: 9,
    cpu_rate: 10,
    length: 11,
    no_copy: 12,
    port: 14,
    family: 15,
};

const DATAGRAMS: Layout = Layout {
    send_buffer: NONE,
    receive_buffer: 0,
    send: NONE,
    receive: 1,
    request: NONE,
    response: NONE,
    no_delay: NONE,
    cpu: 6,
    cpu_rate: 7,
    length: 8,
    no_copy: 9,
    port: 11,
    family: 12,
};

/// What is asked of the server, and has no word in a classic request.
fn unsaid(request: &Request) -> Option<&'static str> {
    let wants = [
        (request.address.is_some(), "the address of its data connection"),
        (request.pacing.is_some(), "its pace"),
        (request.priority.is_some(), "the priority of its packets"),
        (request.service.is_some(), "its type of service"),
        (request.congestion.is_some(), "its congestion control"),
        (request.fill_file.is_some(), "a file to send from"),
        (request.dirt != Dirt::default(), "bytes to write to and read of its buffers"),
    ];
    wants.into_iter().find_map(|(is_wanted, what)| is_wanted.then_some(what))
}

impl Classic {
    /// The test that a code asks for.
    pub fn of(number: i32) -> Option<Self> {
        Some(match number {
            code::TCP_STREAM => Self::Stream,
            code::TCP_MAERTS => Self::Maerts,
            code::TCP_RR => Self::Rr,
            code::TCP_CRR => Self::Crr,
            code::TCP_CC => Self::Cc,
            code::UDP_STREAM => Self::UdpStream,
            code::UDP_RR => Self::UdpRr,
            _ => return None,
        })
    }

    /// The test that does what is asked for.
    ///
    /// # Errors
    ///
    /// When no classic test does, or a server can't be told of some of it; the text says of what.
    pub fn for_request(request: &Request) -> Result<Self, String> {
        if let Some(what) = unsaid(request) {
            return Err(format!("netperf before 2.6 has no message for {what}: leave it out"));
        }
        Ok(match (request.part, request.transport) {
            (Part::Receive, Transport::Tcp) => Self::Stream,
            (Part::Send, Transport::Tcp) => Self::Maerts,
            (Part::Answer, Transport::Tcp) => Self::Rr,
            (Part::AnswerOnce, Transport::Tcp) => Self::Crr,
            (Part::Accept, Transport::Tcp) => Self::Cc,
            (Part::Receive, Transport::Udp) => Self::UdpStream,
            (Part::Answer, Transport::Udp) => Self::UdpRr,
            (Part::Send | Part::AnswerOnce | Part::Accept, Transport::Udp) => {
                let why = "netperf before 2.6 has no test in which the server sends datagrams";
                return Err(why.to_owned());
            }
        })
    }

    /// The code of its request.
    pub fn code(self) -> i32 {
        match self {
            Self::Stream => code::TCP_STREAM,
            Self::Maerts => code::TCP_MAERTS,
            Self::Rr => code::TCP_RR,
            Self::Crr => code::TCP_CRR,
            Self::Cc => code::TCP_CC,
            Self::UdpStream => code::UDP_STREAM,
            Self::UdpRr => code::UDP_RR,
        }
    }

    /// Whether the data connection says when the test is over. Where not, the server's timer does:
    /// TCP_RR closes it only when it has the results.
    pub fn marks_end(self) -> bool {
        matches!(self, Self::Stream | Self::Maerts)
    }

    fn part(self) -> (Part, Transport) {
        match self {
            Self::Stream => (Part::Receive, Transport::Tcp),
            Self::Maerts => (Part::Send, Transport::Tcp),
            Self::Rr => (Part::Answer, Transport::Tcp),
            Self::Crr => (Part::AnswerOnce, Transport::Tcp),
            Self::Cc => (Part::Accept, Transport::Tcp),
            Self::UdpStream => (Part::Receive, Transport::Udp),
            Self::UdpRr => (Part::Answer, Transport::Udp),
        }
    }

    fn layout(self) -> &'static Layout {
        match self {
            Self::Stream => &STREAM,
            Self::Maerts => &MAERTS,
            Self::Rr | Self::Crr | Self::Cc | Self::UdpRr => &EXCHANGE,
            Self::UdpStream => &DATAGRAMS,
        }
    }

    /// A request as a message; `cpu` is the processor that the server shall run on.
    pub fn encode_request(self, form: Form, request: &Request, cpu: Option<u32>) -> Message {
        let mut message = Message::new(form, self.code(), word(cpu).cast_signed());
        let layout = self.layout();
        let Rings { send_alignment, send_offset, .. } = request.rings;
        let Rings { receive_alignment, receive_offset, .. } = request.rings;
        let (rings_at, rings) = match self {
            Self::Rr | Self::Crr | Self::Cc | Self::UdpRr => {
                (2, vec![receive_alignment, receive_offset, send_alignment, send_offset])
            }
            Self::Stream | Self::UdpStream => (3, vec![receive_alignment, receive_offset]),
            Self::Maerts => (3, vec![send_alignment, send_offset]),
        };
        message.put_words(8 + 4 * rings_at, &rings);
        let transactions = request.part == Part::Answer || request.part == Part::AnswerOnce;
        let fields = [
            (layout.send_buffer, word(request.send_buffer_bytes)),
            (layout.receive_buffer, word(request.receive_buffer_bytes)),
            (layout.send, request.send_bytes.unwrap_or(0)),
            (layout.receive, request.receive_bytes.unwrap_or(0)),
            (layout.request, if transactions { request.request_bytes } else { 1 }),
            (layout.response, if transactions { request.response_bytes } else { 1 }),
            (layout.no_delay, request.no_delay.into()),
            (layout.cpu, request.cpu.into()),
            (layout.cpu_rate, request.cpu_rate.to_bits()),
            (layout.length, request.length.number().cast_unsigned()),
            (layout.no_copy, request.no_copy.into()),
            (layout.port, request.port.into()),
            (layout.family, family_number(request.family)),
        ];
        for (index, number) in fields {
            if index != NONE {
                message.put_words(8 + 4 * index, &[number]);
            }
        }
        message
    }

    /// What a message asks for.
    ///
    /// # Errors
    ///
    /// The error to answer with, see [`refusal`].
    pub fn decode_request(self, message: &Message) -> Result<Request, i32> {
        let layout = self.layout();
        let (part, transport) = self.part();
        let number = |index| if index == NONE { 0 } else { message.i32_at(8 + 4 * index) };
        let buffer_at = |index| if index == NONE { Ok(None) } else { buffer(number(index)) };
        let asks = matches!(part, Part::Answer | Part::AnswerOnce);
        let unit_at = |index| if asks { unit(number(index), transport) } else { Ok(1) };
        let length = Length::of(number(layout.length));
        if self == Self::UdpStream && matches!(length, Length::Units(_)) {
            // No netperf has ever asked for it in this message: it had but a timer.
            return Err(refusal::EINVAL);
        }
        let receive_bytes = size(number(layout.receive))?;
        if transport == Transport::Udp
            && receive_bytes.is_some_and(|bytes| bytes > DATAGRAM_MAX_BYTES)
        {
            return Err(refusal::EMSGSIZE);
        }
        let cpu_rate = Some(layout.cpu_rate).filter(|index| *index != NONE);
        let cpu_rate = cpu_rate.and_then(|index| message.f32_at(8 + 4 * index));
        Ok(Request {
            length,
            family: family(number(layout.family).cast_unsigned())?,
            request_bytes: unit_at(layout.request)?,
            response_bytes: unit_at(layout.response)?,
            send_bytes: size(number(layout.send))?,
            receive_bytes,
            send_buffer_bytes: buffer_at(layout.send_buffer)?,
            receive_buffer_bytes: buffer_at(layout.receive_buffer)?,
            port: port(number(layout.port).cast_unsigned())?,
            no_delay: number(layout.no_delay) != 0,
            cpu: number(layout.cpu) != 0,
            cpu_rate: cpu_rate.unwrap_or(0.0),
            no_copy: number(layout.no_copy) != 0,
            ..Request::new(part, transport)
        })
    }

    /// A set-up answer as a message.
    pub fn encode_setup(self, form: Form, setup: &Setup) -> Message {
        let mut message = Message::new(form, self.code() + 1, 0);
        let (receive, send) =
            (setup.receive_buffer_bytes.cast_unsigned(), setup.send_buffer_bytes.cast_unsigned());
        let (no_delay, cpu) = (u32::from(setup.no_delay), u32::from(setup.cpu));
        let (port, rate) = (u32::from(setup.data_port), setup.cpu_rate.to_bits());
        match self {
            Self::Stream | Self::Maerts => {
                let unit = match self {
                    Self::Maerts => setup.send_bytes,
                    _ => setup.receive_bytes,
                };
                let unit = unit.cast_unsigned();
                message.put_words(8, &[receive, unit, no_delay, cpu, 0, send, port, rate]);
            }
            Self::UdpStream => message.put_words(8, &[receive, send, cpu, 0, port, rate]),
            _ => message.put_words(8, &[receive, no_delay, cpu, 0, send, port, rate]),
        }
        message
    }

    /// What a set-up answer says.
    ///
    /// # Errors
    ///
    /// When its port is none.
    pub fn decode_setup(self, message: &Message) -> Result<Setup, String> {
        let number = |index: usize| message.i32_at(8 + 4 * index);
        let (unit, no_delay, cpu, send, port) = match self {
            Self::Stream | Self::Maerts => (number(1), number(2), number(3), number(5), 6),
            Self::UdpStream => (-1, 0, number(2), number(1), 4),
            _ => (-1, number(1), number(2), number(4), 5),
        };
        let data_port = u16::try_from(number(port)).ok().filter(|port| *port > 0);
        let sends = self == Self::Maerts;
        Ok(Setup {
            data_port: data_port
                .ok_or_else(|| format!("{} as the port of its data", number(port)))?,
            receive_buffer_bytes: number(0),
            send_buffer_bytes: send,
            receive_bytes: if sends { -1 } else { unit },
            send_bytes: if sends { unit } else { -1 },
            no_delay: no_delay != 0,
            cpu: cpu != 0,
            cpu_rate: message.f32_at(8 + 4 * (port + 1)).unwrap_or(0.0),
            ..Setup::default()
        })
    }

    /// Results as a message.
    pub fn encode_results(self, form: Form, results: &Results) -> Message {
        let mut message = Message::new(form, self.code() + 2, 0);
        let elapsed = results.elapsed_s.unwrap_or(0.0).to_bits();
        let util = results.cpu.map_or(0.0, |cpu| cpu.util).to_bits();
        let method = results.cpu.map_or(0, |cpu| cpu.method);
        let received = results.bytes_received as u32;
        match self {
            Self::Stream | Self::Maerts => {
                let (bytes, calls) = match self {
                    Self::Maerts => (results.bytes_sent, results.send_calls),
                    _ => (results.bytes_received, results.receive_calls),
                };
                message.put(8, &(bytes as f64).to_bits().to_be_bytes());
                let (receive, send) = (results.receive_buffer_bytes, results.send_buffer_bytes);
                #[rustfmt::skip]
                message.put_words(16, &[
                    calls, elapsed, util, 0, method, results.cpus,
                    receive.cast_unsigned(), send.cast_unsigned(),
                ]);
            }
            Self::UdpStream => message.put_words(
                8,
                &[results.receive_calls, received, elapsed, util, method, results.cpus],
            ),
            _ => {
                let (calls, transactions) = (results.receive_calls, results.transactions);
                #[rustfmt::skip]
                message.put_words(8, &[
                    received, calls, transactions, elapsed, util, 0, method, results.cpus,
                ]);
            }
        }
        message
    }

    /// What results say.
    pub fn decode_results(self, message: &Message, cpu: bool) -> Results {
        let mut results = Results { retransmits: -1, ..Results::default() };
        let elapsed_at = match self {
            Self::Stream | Self::Maerts => {
                let bytes = message.f64_at(8).unwrap_or(0.0) as u64;
                let calls = message.u32_at(16);
                if self == Self::Maerts {
                    (results.bytes_sent, results.send_calls) = (bytes, calls);
                } else {
                    (results.bytes_received, results.receive_calls) = (bytes, calls);
                    results.receive_buffer_bytes = message.i32_at(40);
                    results.send_buffer_bytes = message.i32_at(44);
                }
                20
            }
            Self::UdpStream => {
                results.receive_calls = message.u32_at(8);
                results.bytes_received = message.u32_at(12).into();
                16
            }
            _ => {
                results.bytes_received = message.u32_at(8).into();
                results.receive_calls = message.u32_at(12);
                results.transactions = message.u32_at(16);
                20
            }
        };
        // UDP_STREAM alone has no service demand behind the use.
        let method_at = elapsed_at + if self == Self::UdpStream { 8 } else { 12 };
        results.elapsed_s = message.f32_at(elapsed_at);
        results.cpus = message.u32_at(method_at + 4);
        results.cpu = message.f32_at(elapsed_at + 4).filter(|_| cpu).map(|util| Cpu {
            util,
            method: message.u32_at(method_at),
            ..Cpu::unshared()
        });
        results
    }
}
