//! An API server for tests: keeps Jobs and Services, gives pods, lets attach, and fails as it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::{Message, WebSocket};

/// What runs in a pod: what it reads, and what it writes.
pub(crate) type Container = (Box<dyn Write + Send>, Box<dyn Read + Send>);

/// Starts what runs in a pod.
pub(crate) type Start = dyn Fn() -> Container + Send + Sync;

/// What becomes of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Runs,
    Unschedulable,
    NoImage,
    /// The Job's controller can't make it.
    NotMade,
    /// It ends before anyone attaches.
    Fails,
    NeverStarts,
    /// One of its volumes is not there.
    NotMounted,
    /// Its node pulls the image for ever.
    Pulled,
}

/// What load balancers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balancer {
    /// One gives this address or name, under this name of Kubernetes, when the Service is looked at again.
    Gives(&'static str, &'static str),
    /// One tells that it can't.
    Refuses,
    /// There is none.
    Silent,
}

/// What a request meets, once.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// This status, with this message and these header lines.
    Status(u16, &'static str, &'static str),
    /// The connection ends without an answer.
    Cut,
    /// The answer comes after so long.
    Slow(Duration),
    /// A watch gives half an event.
    HalfAnEvent,
    /// A watch says that its version is too old.
    Gone,
}

/// The server.
pub(crate) struct StandIn {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    start: Box<Start>,
    ends: AtomicBool,
    is_cut: AtomicBool,
    protocol: &'static str,
    fate: Fate,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Value>,
    requests: Vec<String>,
    faults: VecDeque<(&'static str, Fault)>,
    watched: bool,
    running: usize,
    next_port: u16,
    balancer: Option<Balancer>,
}

impl State {
    /// The object of a path, or the objects below it.
    fn find(&self, path: &str) -> (u16, Value) {
        if let Some(object) = self.objects.get(path) {
            let mut object = object.clone();
            if object["spec"]["type"] == "LoadBalancer" {
                object["status"] = balanced(self.balancer);
            }
            return (200, object);
        }
        let below = format!("{path}/");
        let objects = self.objects.iter();
        let items: Vec<&Value> = objects
            .filter_map(|(name, object)| name.starts_with(&below).then_some(object))
            .collect();
        let is_list = path.ends_with("/jobs") || path.ends_with("/services");
        let status = if is_list { 200 } else { 404 };
        (status, json!({ "items": items, "message": "not found" }))
    }
}

impl StandIn {
    /// A server on loopback that speaks this protocol at attaches.
    pub(crate) fn new(fate: Fate, protocol: &'static str, start: Box<Start>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Mutex::new(State { next_port: 31_000, ..State::default() });
        let (ends, is_cut) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { state, start, ends, is_cut, protocol, fate });
        let of_thread = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.ends.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || shared.serve(stream.unwrap()));
            }
        });
        Self { address, shared }
    }

    /// The next request whose line has this part meets a fault.
    pub(crate) fn fail(&self, part: &'static str, fault: Fault) {
        self.state().faults.push_back((part, fault));
    }

    /// Pods run as soon as they are made, not only once somebody watches.
    pub(crate) fn run_at_once(&self) {
        self.state().watched = true;
    }

    /// What load balancers do from now on; without a word they give 192.0.2.9.
    pub(crate) fn balance(&self, balancer: Balancer) {
        self.state().balancer = Some(balancer);
    }

    /// From now on nothing comes out of pods or gets into them, as if their node were cut off.
    pub(crate) fn cut_off(&self) {
        self.shared.is_cut.store(true, Ordering::Relaxed);
    }

    /// How many containers have not ended.
    pub(crate) fn running(&self) -> usize {
        self.state().running
    }

    /// Methods and paths of all requests.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// The objects there are, by path.
    pub(crate) fn objects(&self) -> BTreeMap<String, Value> {
        self.state().objects.clone()
    }

    /// A kubeconfig for this server.
    pub(crate) fn kubeconfig(&self) -> String {
        format!(
            "current-context: c\nclusters: [{{name: k, cluster: {{server: 'http://{}'}}}}]\n\
             users: [{{name: u, user: {{token: sesame}}}}]\n\
             contexts: [{{name: c, context: {{cluster: k, user: u, namespace: perf}}}}]\n",
            self.address
        )
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap()
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        let _woken = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn serve(self: &Arc<Self>, mut stream: TcpStream) {
        let Some(head) = peek_head(&stream) else { return };
        let line = head.lines().next().unwrap_or_default().to_owned();
        let (method, rest) = line.split_once(' ').unwrap_or_default();
        let path = rest.split(' ').next().unwrap_or_default();
        let request = format!("{method} {path}");
        let fault = {
            let mut state = self.state.lock().unwrap();
            state.requests.push(request.clone());
            let found = state.faults.iter().position(|(part, _)| request.contains(part));
            found.and_then(|place| state.faults.remove(place)).map(|(_, fault)| fault)
        };
        match &fault {
            Some(Fault::Cut) => return,
            Some(Fault::Slow(pause)) => thread::sleep(*pause),
            _ => {}
        }
        let is_attach = path.contains("/attach?");
        if is_attach && !matches!(fault, Some(Fault::Status(..))) {
            return self.attach(stream);
        }
        let body = read_request(&mut stream, &head);
        if let Some(Fault::Status(status, message, headers)) = fault {
            let answer = json!({ "kind": "Status", "code": status, "message": message });
            return write_answer(&mut stream, status, headers, &answer);
        }
        if !head.contains("Bearer sesame") && !head.contains("bearer sesame") {
            let answer = json!({ "kind": "Status", "message": "Unauthorized" });
            return write_answer(&mut stream, 401, "", &answer);
        }
        if path.contains("watch=true") {
            return self.watch(&mut stream, path, fault);
        }
        let (status, answer) = self.answer(method, path, &body);
        write_answer(&mut stream, status, "", &answer);
    }

    fn answer(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut state = self.state.lock().unwrap();
        match method {
            "POST" if path.ends_with("selfsubjectaccessreviews") => {
                let allowed = !body.contains("pods/log") && !body.contains("\"log\"");
                (201, json!({ "status": { "allowed": allowed } }))
            }
            "POST" => {
                let mut object: Value = serde_json::from_str(body).unwrap();
                let name = object["metadata"]["name"].as_str().unwrap().to_owned();
                if state.objects.contains_key(&format!("{path}/{name}")) {
                    return (409, json!({ "message": format!("\"{name}\" already exists") }));
                }
                if query.contains("dryRun") {
                    return (201, object);
                }
                object["metadata"]["uid"] = json!(format!("uid-of-{name}"));
                if path.ends_with("/services") {
                    fill_service(&mut object, &mut state.next_port);
                }
                state.objects.insert(format!("{path}/{name}"), object.clone());
                (201, object)
            }
            "DELETE" => match state.objects.remove(path) {
                Some(_) => (200, json!({ "status": "Success" })),
                None => (404, json!({ "message": "not found" })),
            },
            _ if path == "/version" => (200, json!({ "gitVersion": "v1.34.4" })),
            _ if path.ends_with("/pods") => {
                let watched = state.watched;
                drop(state);
                let pods = match self.fate {
                    Fate::NotMade => Vec::new(),
                    _ => vec![self.pod(query, watched)],
                };
                (200, json!({ "metadata": { "resourceVersion": "7" }, "items": pods }))
            }
            _ if path.contains("/pods/") => {
                let name = path.rsplit('/').next().unwrap_or_default();
                let mut pod = self.pod("", true);
                pod["metadata"]["name"] = json!(name);
                (200, pod)
            }
            _ if path.ends_with("/events") => match query.contains("involvedObject.kind=Service") {
                true => (200, events_of_service(state.balancer)),
                false => (200, self.events()),
            },
            _ => state.find(path),
        }
    }

    fn events(&self) -> Value {
        let message = "pods \"x\" is forbidden: exceeded quota: compute, requested: pods=1";
        match self.fate {
            Fate::NotMade => json!({ "items": [{ "reason": "FailedCreate", "message": message }] }),
            Fate::NotMounted | Fate::NeverStarts => json!({ "items": [{
                "type": "Warning", "reason": "FailedMount",
                "message": "configmap \"files\" not found" }] }),
            Fate::Pulled => json!({ "items": [
                { "reason": "Pulling", "message": "Pulling image \"registry/x:1\"",
                  "lastTimestamp": "2026-11-26T22:08:06Z" },
                { "reason": "Scheduled", "message": "Successfully assigned",
                  "lastTimestamp": "2026-11-26T22:08:05Z" }] }),
            _ => json!({ "items": [] }),
        }
    }

    /// The pod that a selector means. It runs once somebody has watched.
    fn pod(&self, query: &str, watched: bool) -> Value {
        let word = |name: &str| {
            let at = query.split(['&', ',']).find_map(|part| part.split_once(name));
            at.map_or_else(String::new, |(_, value)| value.trim_start_matches('=').to_owned())
        };
        let name = format!("{}-{}-abcde", word("job-name"), word("job-completion-index"));
        let waiting = |reason: &str, message: &str| {
            json!({ "phase": "Pending", "containerStatuses": [{ "state": { "waiting": {
                "reason": reason, "message": message } } }] })
        };
        let status = match self.fate {
            Fate::Runs if watched => json!({
                "phase": "Running", "podIP": "127.0.0.1", "hostIP": "127.0.0.1",
                "containerStatuses": [{ "state": { "running": {} } }],
            }),
            Fate::Unschedulable => json!({ "phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/2 nodes are available: 2 Insufficient cpu." }] }),
            Fate::NoImage if watched => waiting("ErrImagePull", "registry/x:1: not found"),
            Fate::Fails if watched => json!({ "phase": "Failed", "containerStatuses": [{ "state":
                { "terminated": { "reason": "StartError", "exitCode": 128 } } }] }),
            _ => waiting("ContainerCreating", ""),
        };
        json!({ "metadata": { "name": name }, "spec": { "nodeName": "w0" }, "status": status })
    }

    fn watch(&self, stream: &mut TcpStream, path: &str, fault: Option<Fault>) {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n";
        let _reader_gone = stream.write_all(head.as_bytes());
        let event = match fault {
            Some(Fault::HalfAnEvent) => r#"{"type":"MODIFIED","object":{"status"#.to_owned(),
            Some(Fault::Gone) => {
                r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#.to_owned() + "\n"
            }
            _ => {
                self.state.lock().unwrap().watched = true;
                let query = path.split_once('?').unwrap_or_default().1;
                json!({ "type": "MODIFIED", "object": self.pod(query, true) }).to_string() + "\n"
            }
        };
        let _reader_gone = stream.write_all(event.as_bytes());
        thread::sleep(Duration::from_millis(200));
    }

    fn attach(self: &Arc<Self>, stream: TcpStream) {
        let mut is_known = false;
        let protocol = self.protocol;
        #[expect(clippy::result_large_err, reason = "the callback's type is tungstenite's")]
        let answer =
            |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
                let header = request.headers().get("Authorization");
                is_known = header.is_some_and(|value| value == "Bearer sesame");
                let value = protocol.parse().unwrap();
                response.headers_mut().insert("Sec-WebSocket-Protocol", value);
                Ok(response)
            };
        let Ok(socket) = tungstenite::accept_hdr(stream, answer) else { return };
        assert!(is_known);
        let (stdin, mut stdout) = (self.start)();
        let (sender, output) = channel();
        self.state.lock().unwrap().running += 1;
        let shared = Arc::clone(self);
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut bytes) {
                let mut message = vec![1];
                message.extend_from_slice(&bytes[..count]);
                // Nobody takes the last words of a container whose attach is gone.
                let _unsent = sender.send(message);
            }
            shared.state.lock().unwrap().running -= 1;
        });
        self.carry(socket, Some(stdin), &output);
    }

    fn carry(
        &self,
        mut socket: WebSocket<TcpStream>,
        mut stdin: Option<Box<dyn Write + Send>>,
        output: &Receiver<Vec<u8>>,
    ) {
        for channel in 0..4 {
            let _reader_gone = socket.send(Message::binary(vec![channel]));
        }
        let pause = Some(Duration::from_millis(5));
        socket.get_ref().set_read_timeout(pause).unwrap();
        while !self.ends.load(Ordering::Relaxed) {
            if self.is_cut.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            match output.recv_timeout(Duration::from_millis(5)) {
                Ok(message) => {
                    if socket.send(Message::binary(message)).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let status = b"\x03{\"status\":\"Success\"}".to_vec();
                    let _reader_gone = socket.send(Message::binary(status));
                    let _reader_gone = socket.close(None);
                    return;
                }
            }
            match socket.read() {
                Ok(Message::Binary(bytes)) if bytes.first() == Some(&0) => {
                    if let Some(stdin) = &mut stdin {
                        let _reader_gone =
                            stdin.write_all(&bytes[1..]).and_then(|()| stdin.flush());
                    }
                }
                Ok(Message::Binary(bytes)) if bytes[..] == [255, 0] => stdin = None,
                Ok(_) => {}
                Err(tungstenite::Error::Io(error)) if is_pause(&error) => {}
                Err(_) => return,
            }
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// What a cluster adds to a Service.
fn fill_service(service: &mut Value, next_port: &mut u16) {
    service["spec"]["clusterIP"] = json!("127.0.0.1");
    *next_port += 1;
    let is_outside = service["spec"]["type"] != "ClusterIP";
    for port in service["spec"]["ports"].as_array_mut().unwrap() {
        // Where the pod is a process of this machine, a port of the node is the server's own.
        let is_own = port["port"].as_u64().is_some_and(|port| port >= 10_000);
        if is_outside {
            port["nodePort"] = if is_own { port["port"].clone() } else { json!(*next_port) };
        }
    }
}

/// What load balancers tell of a Service.
fn events_of_service(balancer: Option<Balancer>) -> Value {
    match balancer {
        Some(Balancer::Refuses) => json!({ "items": [{
            "type": "Warning", "reason": "SyncLoadBalancerFailed",
            "message": "no address is left in the pool" }] }),
        _ => json!({ "items": [] }),
    }
}

/// The status of a Service of type LoadBalancer.
fn balanced(balancer: Option<Balancer>) -> Value {
    match balancer.unwrap_or(Balancer::Gives("ip", "192.0.2.9")) {
        Balancer::Gives(kind, word) => json!({ "loadBalancer": { "ingress": [{ kind: word }] } }),
        Balancer::Refuses | Balancer::Silent => json!({ "loadBalancer": {} }),
    }
}

/// The head of a request, which stays unread: an upgrade is read by the WebSocket.
fn peek_head(stream: &TcpStream) -> Option<String> {
    let mut bytes = vec![0; 16 << 10];
    let until = Instant::now() + Duration::from_secs(60);
    while Instant::now() < until {
        let count = stream.peek(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes[..count]);
        match text.find("\r\n\r\n") {
            Some(end) => return text.get(..end + 4).map(str::to_owned),
            None if count == 0 => return None,
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
    None
}

fn read_request(stream: &mut TcpStream, head: &str) -> String {
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
    });
    let mut all = vec![0; head.len() + length.unwrap_or(0)];
    let _cut = stream.read_exact(&mut all);
    String::from_utf8_lossy(&all[head.len()..]).into_owned()
}

fn write_answer(stream: &mut TcpStream, status: u16, headers: &str, answer: &Value) {
    let text = answer.to_string();
    let length = text.len();
    let _reader_gone = write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n{headers}\r\n{text}"
    );
}
