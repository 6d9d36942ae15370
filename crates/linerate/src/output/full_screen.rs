//! A run on the whole terminal, while it goes on: `--live`.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_engine::event::{Cancel, Event};
use linerate_measure::Plan;
use linerate_measure::run::exit;
use linerate_measure::units::render_percent;
use linerate_screen::{Asked, Canvas, Screen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::termios::{
    OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use rustix::time::{ClockId, clock_gettime};

use super::text::render_title;
use super::{Style, Turn, narrate};
use crate::signals;

/// The screen is drawn so often.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// Keys are looked for so often.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What a terminal has that doesn't say its size.
const USUAL_SIZE: (u16, u16) = (80, 24);
/// What is drawn at most; stty(1) takes any size.
const GREATEST_SIZE: (u16, u16) = (1000, 500);

/// Another screen than the one with the user's lines, without a cursor (xterm's private modes 1049 and 25).
const RAISE: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
const LOWER: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The terminal at standard error, and how it was before.
struct Terminal {
    before: Termios,
    is_up: AtomicBool,
}

impl Terminal {
    /// Takes the whole terminal. Keys come one by one, Ctrl-C among them.
    fn raise(&self) -> io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        // A key may have gone to another reader between the look for it and the read, which must not wait then.
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        tcsetattr(io::stderr(), OptionalActions::Now, &raw)?;
        self.is_up.store(true, Ordering::SeqCst);
        narrate(RAISE);
        Ok(())
    }

    /// Gives it back as it was, once.
    fn lower(&self) {
        if self.is_up.swap(false, Ordering::SeqCst) {
            narrate(LOWER);
            // Where the terminal has gone there is nothing to be restored.
            let _gone = tcsetattr(io::stderr(), OptionalActions::Now, &self.before);
        }
    }

    fn is_up(&self) -> bool {
        self.is_up.load(Ordering::SeqCst)
    }
}

/// What would have been printed meanwhile.
pub(super) enum Held {
    /// On standard error.
    Narration(String),
    /// Part of the result.
    Text(String),
}

/// A run on the whole terminal.
pub(crate) struct FullScreen {
    screen: Screen,
    canvas: Option<Canvas>,
    terminal: Arc<Terminal>,
    keys: Option<File>,
    began: Instant,
    drawn: Option<Instant>,
    held: Vec<Held>,
    /// When the run's drawing began: the time, and the processor time of its thread.
    since: Option<(Instant, Duration)>,
    /// What the run's drawing took, and in which time.
    cost: Option<(Duration, Duration)>,
}

impl FullScreen {
    /// The terminal at standard error.
    ///
    /// # Errors
    /// A sentence for the user where there is none.
    pub(crate) fn of_terminal() -> Result<Self, String> {
        const NONE: &str = "--live draws on the terminal at standard error, and there is none";
        const WAY_OUT: &str = "leave --live out, or redirect standard output only";
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if !io::stderr().is_terminal() || dumb {
            let why = if dumb { " that can move its cursor (TERM)" } else { "" };
            return Err(format!("{NONE}{why}: {WAY_OUT}"));
        }
        let wrong = |error: io::Error| format!("{NONE} that can be set up ({error}): {WAY_OUT}");
        let before = tcgetattr(io::stderr()).map_err(|error| wrong(error.into()))?;
        let keys = open_keys().map_err(wrong)?;
        signals::may_end_at_once().map_err(wrong)?;
        let terminal = Arc::new(Terminal { before, is_up: AtomicBool::new(false) });
        let (of_hook, hook) = (Arc::clone(&terminal), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |info| {
            of_hook.lower();
            hook(info);
        }));
        Ok(Self {
            screen: Screen::new(Style::of(&io::stderr()) == Style::Coloured),
            canvas: None,
            terminal,
            keys: Some(keys),
            began: Instant::now(),
            drawn: None,
            held: Vec::new(),
            since: None,
            cost: None,
        })
    }

    /// A run of this plan begins.
    pub(super) fn begin(&mut self, plan: &Plan, turn: Turn) {
        self.screen.begin(&render_title(plan), &turn.render());
    }

    /// Takes the terminal, in the thread that draws.
    pub(super) fn raise(&mut self) {
        self.since = Some((Instant::now(), thread_time()));
        self.canvas = None;
        self.drawn = None;
        if let Err(error) = self.terminal.raise() {
            let told = format!("linerate: --live can't set the terminal up: {error}\n");
            self.held.push(Held::Narration(told));
        }
    }

    /// Gives the terminal back, in the same thread. A signal after the one that asked to stop ends the program again.
    pub(super) fn lower(&mut self, cancel: &Cancel) {
        self.terminal.lower();
        signals::end_at_once(cancel.requested());
        let since = self.since.take();
        self.cost =
            since.map(|(began, used)| (thread_time().saturating_sub(used), began.elapsed()));
    }

    /// What drawing has cost, as a note of the run.
    pub(super) fn cost_note(&mut self) -> Option<String> {
        let (used, passed) = self.cost.take()?;
        let (used_s, passed_s) = (used.as_secs_f64(), passed.as_secs_f64());
        let share = render_percent(used_s / passed_s.max(f64::MIN_POSITIVE));
        Some(format!(
            "the screen of --live took {share} of a processor: {used_s:.3} of {passed_s:.1} s"
        ))
    }

    /// Keeps what can't be printed at the moment. False: it can be.
    pub(super) fn holds(&mut self, held: Held) -> bool {
        let is_up = self.terminal.is_up();
        let (Held::Narration(text) | Held::Text(text)) = &held;
        if is_up && !text.is_empty() {
            self.held.push(held);
        }
        is_up
    }

    /// What was kept, in order.
    pub(super) fn take_held(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }

    /// Something happened.
    pub(super) fn handle_event(&mut self, event: &Event) {
        match event {
            Event::Started { plan, .. } => self.screen.handle_started(plan, self.now_ns()),
            Event::Sample(sample) => self.screen.handle_sample(sample),
            Event::Note(text) => self.screen.handle_note(text),
            _ => {}
        }
    }

    /// Does what the keys say, and draws where it is time to.
    pub(super) fn look(&mut self, cancel: &Cancel) {
        if !self.terminal.is_up() {
            return;
        }
        // A second signal would end the program with the terminal as it is.
        signals::end_at_once(false);
        let mut is_anew = false;
        for key in self.read_keys() {
            let asked = self.screen.handle_key(key);
            is_anew = true;
            if asked == Asked::End && cancel.requested() && key != b'q' {
                // The second Ctrl-C.
                self.terminal.lower();
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
            if asked == Asked::End {
                cancel.request();
            }
        }
        let is_due = self.drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY);
        if (is_due && !self.screen.is_paused() || is_anew) && can_take_text() {
            self.draw();
        }
    }

    fn draw(&mut self) {
        let told = tcgetwinsize(io::stderr()).map_or((0, 0), |size| (size.ws_col, size.ws_row));
        let size = if told.0 == 0 || told.1 == 0 { USUAL_SIZE } else { told };
        let size = (size.0.min(GREATEST_SIZE.0), size.1.min(GREATEST_SIZE.1));
        let now_ns = self.now_ns();
        let canvas = self.canvas.get_or_insert_with(|| Canvas::new(size.0, size.1));
        let text = canvas.draw(&self.screen, size, now_ns);
        narrate(&text);
        self.drawn = Some(Instant::now());
        if !self.terminal.is_up() {
            // A panic has given the terminal back meanwhile.
            narrate(LOWER);
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The keys that were pressed. Those that send several bytes mean nothing here.
    fn read_keys(&mut self) -> Vec<u8> {
        let mut keys = [0; 64];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Some(terminal) = &mut self.keys else { return Vec::new() };
        let mut wanted = [PollFd::new(terminal, PollFlags::IN)];
        if !matches!(poll(&mut wanted, Some(&at_once)), Ok(1..)) {
            return Vec::new();
        }
        let has_gone = wanted[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
        match terminal.read(&mut keys) {
            Ok(count @ 1..) if keys[0] != b'\x1b' => keys[..count].to_vec(),
            Ok(1..) => Vec::new(),
            Ok(0) if !has_gone => Vec::new(),
            Ok(0) | Err(_) => {
                self.keys = None;
                Vec::new()
            }
        }
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.terminal.lower();
    }
}

/// Whether the terminal takes text at the moment: one that is stopped must not hold the run up.
fn can_take_text() -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let stderr = io::stderr();
    let mut wanted = [PollFd::new(&stderr, PollFlags::OUT)];
    matches!(poll(&mut wanted, Some(&at_once)), Ok(1..))
}

/// Where keys are read: from standard error, where it can be read, else from the process's own terminal.
fn open_keys() -> io::Result<File> {
    let flags = fcntl_getfl(io::stderr())?;
    if flags & OFlags::RWMODE == OFlags::RDWR {
        return Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?));
    }
    File::open("/dev/tty")
}

/// The processor time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
