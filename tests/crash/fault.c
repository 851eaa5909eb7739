// Preloaded into a program under test: makes calls on the files of one directory fail, wait, or kill the process.
// cc -shared -fPIC -O1 -o fault.so fault.c
// FAULT_DIR: the directory, without links. FAULT_ON: `sync`, `write` (also growing, naming, creating), `zeros` (writes
// that make room ahead), `removal` or `any`.
// FAULT_AT: the call, from 1 on, that FAULT_DO is done to: `kill`, or an error number. FAULT_SYNC: what other syncs are:
// `free` (nothing is done) or milliseconds that they take. FAULT_COUNT: a file that grows by a byte with each sync.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int calls;

static int inside(const char *path) {
    const char *dir = getenv("FAULT_DIR");
    return dir && strncmp(path, dir, strlen(dir)) == 0;
}

static int of(int fd) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlink, link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return inside(path);
}

// Whether this call is to fail: errno says how.
static int hit(const char *kind) {
    const char *on = getenv("FAULT_ON"), *at = getenv("FAULT_AT"), *what = getenv("FAULT_DO");
    if (!on || !at || !what || (strcmp(on, "any") && strcmp(on, kind))) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != atoi(at)) return 0;
    if (!strcmp(what, "kill")) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    errno = atoi(what);
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int sync_with(int (*real)(int), int fd) {
    if (!of(fd)) return real(fd);
    if (hit("sync")) return -1;
    const char *count = getenv("FAULT_COUNT"), *how = getenv("FAULT_SYNC");
    if (count) {
        int to = syscall(SYS_openat, AT_FDCWD, count, O_WRONLY | O_APPEND | O_CREAT, 0600);
        syscall(SYS_write, to, ".", 1);
        syscall(SYS_close, to);
    }
    if (how && !strcmp(how, "free")) return 0;
    if (how) {
        struct timespec wait = {atoi(how) / 1000, atoi(how) % 1000 * 1000000L};
        nanosleep(&wait, 0);
    }
    return real(fd);
}

int fsync(int fd) { return sync_with(REAL(fsync), fd); }
int fdatasync(int fd) { return sync_with(REAL(fdatasync), fd); }

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) {
    static const char none[64];
    const char *on = getenv("FAULT_ON");
    int zeros = on && !strcmp(on, "zeros") && n >= sizeof none && !memcmp(bytes, none, sizeof none);
    return of(fd) && hit(zeros ? "zeros" : "write") ? -1 : REAL(pwrite64)(fd, bytes, n, at);
}

int ftruncate64(int fd, off64_t len) { return of(fd) && hit("write") ? -1 : REAL(ftruncate64)(fd, len); }

int rename(const char *from, const char *to) { return inside(from) && hit("write") ? -1 : REAL(rename)(from, to); }

int unlink(const char *path) { return inside(path) && hit("removal") ? -1 : REAL(unlink)(path); }

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    if (inside(path) && (flags & O_CREAT) && hit("write")) return -1;
    return REAL(open64)(path, flags, mode);
}
