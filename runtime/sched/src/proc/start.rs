//! Starting a child, on a helper thread: its pipes or terminal, then a process that shares this one's memory until it
//! executes the command (as `vfork` does it), so that a large heap costs nothing and no page of it is copied.
//!
//! The system kills a child with the *thread* that started it (`PR_SET_PDEATHSIG`). Helper threads live as long as the
//! program, which is what ties the children to the program, even where that is killed itself.

use super::table::{Children, Key, Place, exit_code};
use crate::sys;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Stack of the child between its birth and the command.
const STACK: usize = 32 * 1024;
const GUARD: usize = 4096;
/// Where commands are looked for without `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";
/// What a shell answers for a command that is missing or cannot be executed.
const NO_COMMAND: c_int = 127;

/// What the child's standard streams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Inherited input, two pipes.
    Run,
    /// Three pipes.
    Pipes,
    /// A terminal of this size.
    Terminal { cols: u16, rows: u16 },
}

/// A child and this process's ends of its streams.
pub struct Started {
    pub key: Key,
    pub pidfd: OwnedFd,
    pub stdin: Option<OwnedFd>,
    pub stdout: OwnedFd,
    pub stderr: Option<OwnedFd>,
    pub guard: Guard,
}

/// Kills the child when it is dropped, unless somebody else sees to the child's end by then.
pub struct Guard(Option<(Arc<Children>, Key)>);

impl Guard {
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((children, key)) = self.0.take() {
            children.abandon(key);
        }
    }
}

/// Starts `argv`, whose first element is the command. Gives the error number of what failed; a command that is missing
/// or not executable is no failure but a child that ends with code 127. `None`: the program has ended.
pub fn start(argv: &[CString], streams: Streams, place: Place) -> Option<Result<Started, i32>> {
    let ends = match Ends::open(streams) {
        Ok(ends) => ends,
        Err(e) => return Some(Err(e)),
    };
    let (pid, pidfd) = match launch(argv, &ends.child, matches!(streams, Streams::Terminal { .. })) {
        Ok(born) => born,
        Err(e) => return Some(Err(e)),
    };
    let children = place.children();
    let key = place.fill(pid, streams == Streams::Run)?;
    let guard = Guard(Some((children, key)));
    Some(Ok(Started { key, pidfd, stdin: ends.stdin, stdout: ends.stdout, stderr: ends.stderr, guard }))
}

/// Both sides of the streams; the child's close with this.
struct Ends {
    stdin: Option<OwnedFd>,
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
    /// What becomes 0, 1 and 2 of the child; `None` is inherited.
    child: [Option<OwnedFd>; 3],
}

impl Ends {
    fn open(streams: Streams) -> Result<Ends, i32> {
        if let Streams::Terminal { cols, rows } = streams {
            let (master, slave) = super::pty::open(cols, rows)?;
            let copy = || slave.try_clone().map_err(|e| e.raw_os_error().unwrap_or(libc::EMFILE));
            let child = [Some(copy()?), Some(copy()?), Some(copy()?)];
            return Ok(Ends { stdin: None, stdout: master, stderr: None, child });
        }
        let (stdout, child_out) = pipe()?;
        let (stderr, child_err) = pipe()?;
        unblock(&stdout)?;
        unblock(&stderr)?;
        let (mut stdin, mut child_in) = (None, None);
        if streams == Streams::Pipes {
            let (read, write) = pipe()?;
            unblock(&write)?;
            (stdin, child_in) = (Some(write), Some(read));
        }
        Ok(Ends { stdin, stdout, stderr: Some(stderr), child: [child_in, Some(child_out), Some(child_err)] })
    }
}

/// A pipe's ends to read and to write.
fn pipe() -> Result<(OwnedFd, OwnedFd), i32> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which are fresh and owned from here on.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(sys::errno());
        }
        Ok((OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}

/// The ends of this process do not block; those of the child do, as programs expect.
fn unblock(fd: &OwnedFd) -> Result<(), i32> {
    // SAFETY: an open descriptor of a pipe, which has no other flags.
    if unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 { Err(sys::errno()) } else { Ok(()) }
}

/// Where the command may lie, in the order of `PATH`; a name with a slash is a path.
fn candidates(command: &CStr) -> Vec<CString> {
    let name = command.to_bytes();
    if name.is_empty() {
        return Vec::new();
    }
    if name.contains(&b'/') {
        return vec![command.to_owned()];
    }
    let path = std::env::var_os("PATH");
    let path = path.as_ref().map_or(DEFAULT_PATH, |p| p.as_bytes());
    let in_dir = |dir: &[u8]| {
        let dir = if dir.is_empty() { b"." } else { dir };
        CString::new([dir, b"/", name].concat()).ok()
    };
    path.split(|b| *b == b':').filter_map(in_dir).collect()
}

/// Pointers to the strings, then null.
fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

// SAFETY: POSIX declares it so; the runtime never changes the environment.
unsafe extern "C" {
    static environ: *const *const c_char;
}

/// What the child needs before it executes the command, in memory that both processes see.
struct Plan {
    paths: *const *const c_char,
    argv: *const *const c_char,
    /// -1: inherited.
    streams: [c_int; 3],
    terminal: bool,
    parent: libc::pid_t,
    /// Why there is no command running, where that is this process's matter.
    error: c_int,
}

/// Memory for the child's stack, above a page that faults. Not the allocator's: that would keep some for each helper
/// thread.
struct Stack(*mut c_void);

impl Stack {
    fn new() -> Result<Stack, i32> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        // SAFETY: a fresh mapping, the upper part of which is made usable.
        unsafe {
            let base = libc::mmap(std::ptr::null_mut(), GUARD + STACK, libc::PROT_NONE, flags, -1, 0);
            if base == libc::MAP_FAILED {
                return Err(sys::errno());
            }
            let stack = Stack(base);
            if libc::mprotect(base.byte_add(GUARD), STACK, libc::PROT_READ | libc::PROT_WRITE) < 0 {
                return Err(sys::errno());
            }
            Ok(stack)
        }
    }

    fn top(&self) -> *mut c_void {
        // SAFETY: one past the end of the mapping.
        unsafe { self.0.byte_add(GUARD + STACK) }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; the process that used it has left it.
        let _ = unsafe { libc::munmap(self.0, GUARD + STACK) };
    }
}

fn launch(argv: &[CString], streams: &[Option<OwnedFd>; 3], terminal: bool) -> Result<(libc::pid_t, OwnedFd), i32> {
    let paths = argv.first().map_or_else(Vec::new, |c| candidates(c));
    let (path_list, arg_list) = (pointers(&paths), pointers(argv));
    let mut plan = Plan {
        paths: path_list.as_ptr(),
        argv: arg_list.as_ptr(),
        streams: streams.each_ref().map(|fd| fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)),
        terminal,
        // SAFETY: plain system call.
        parent: unsafe { libc::getpid() },
        error: 0,
    };
    let stack = Stack::new()?;
    let mut pidfd: c_int = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the child runs `child` on a stack of its own while this thread is suspended, until the command is executed
    // or the child has ended; `plan` and what it points at live through that. No signal is handled meanwhile in either.
    let (pid, error) = unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        let _ = libc::sigfillset(&raw mut all);
        let _ = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let pid = libc::clone(child, stack.top(), flags, (&raw mut plan).cast(), &raw mut pidfd);
        let error = sys::errno();
        let _ = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        (pid, error)
    };
    if pid < 0 {
        return Err(error);
    }
    // SAFETY: fresh, from the kernel.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    // SAFETY: the other process is done with it.
    let failed = unsafe { (&raw const plan.error).read_volatile() };
    if failed != 0 {
        let _ = exit_code(pid, 0);
        return Err(failed);
    }
    Ok((pid, pidfd))
}

/// The child's life before the command. It shares the memory of a process whose other threads run on: it takes no lock,
/// allocates nothing and cannot panic.
extern "C" fn child(plan: *mut c_void) -> c_int {
    let plan = plan.cast::<Plan>();
    // SAFETY: `launch` keeps the plan alive and untouched meanwhile; the calls take integers and pointers out of it.
    unsafe {
        let fail = |code: c_int| {
            (&raw mut (*plan).error).write_volatile(code);
            code
        };
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            return fail(sys::errno());
        }
        // The program may have been killed before that call.
        if libc::getppid() != (*plan).parent {
            return NO_COMMAND;
        }
        if (*plan).terminal && libc::setsid() < 0 {
            return fail(sys::errno());
        }
        // Descriptors 0 to 2 of the program are never free (`sys::blank`), so no stream lies below 3.
        let [stdin, stdout, stderr] = (*plan).streams;
        for (from, to) in [(stdin, 0), (stdout, 1), (stderr, 2)] {
            if from >= 0 && libc::dup2(from, to) < 0 {
                return fail(sys::errno());
            }
        }
        if (*plan).terminal && libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
            return fail(sys::errno());
        }
        close_from(3);
        default_signals();
        let mut path = (*plan).paths;
        while !(*path).is_null() {
            let _ = libc::execve(*path, (*plan).argv.cast(), environ);
            match sys::errno() {
                e @ (libc::E2BIG | libc::ENOMEM | libc::EAGAIN | libc::EMFILE | libc::ENFILE) => return fail(e),
                _ => path = path.add(1),
            }
        }
        NO_COMMAND
    }
}

/// Closes what the program itself inherited or opened without the flag for it.
unsafe fn close_from(first: c_int) {
    // SAFETY: plain system calls; the child's table of descriptors is its own.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, c_int::MAX, 0) == 0 {
            return;
        }
        let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 0 };
        let _ = libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for fd in first..c_int::try_from(limit.rlim_cur).unwrap_or(c_int::MAX) {
            let _ = libc::close(fd);
        }
    }
}

/// Handlers of the program must not run here: they would see, and change, its memory. What it was told to ignore stays
/// ignored, but for what the program ignores for itself.
unsafe fn default_signals() {
    // SAFETY: zeroed actions and sets are valid; a child without `CLONE_SIGHAND` has its own handlers.
    unsafe {
        for signal in 1..=64 {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0
                && (action.sa_sigaction != libc::SIG_IGN || sys::IGNORED.contains(&signal))
                && action.sa_sigaction != libc::SIG_DFL
            {
                action = std::mem::zeroed();
                let _ = libc::sigaction(signal, &raw const action, std::ptr::null_mut());
            }
        }
        let none: libc::sigset_t = std::mem::zeroed();
        let _ = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}
