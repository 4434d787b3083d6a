/* A disk that fails, as the C library tells it: loaded with LD_PRELOAD, asleep until armed.
 *
 * Armed with a fault, a folder and a number, it counts the calls of the fault's groups that touch the folder, and from call
 * number `at` on the fault is there: in Python, in SQLite and in tantivy alike, since all three go through the C library.
 *
 *   killed       the process dies of SIGKILL before call `at`
 *   torn         a write persists its first half, then the process dies of SIGKILL
 *   full         a write is told that half of it was taken, then ENOSPC, from then on for whatever needs room
 *   broken       a write persists its first half, then EIO, from then on for every write, sync and change of names
 *   unreadable   EIO for every read
 *   read-only    EROFS for every opening to write and every change of names
 *   short        every write takes only half of what it is given, as POSIX allows
 *   interrupted  every second call is EINTR first
 *   clock        the wall clock jumps by years, forward and back, at every look
 *
 * Real calls are made by number, not by dlsym: then nothing can call us before we are set up. What it does not see: pages
 * written through mmap, and system calls made without the C library.
 */
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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, NAME = 4, CREATE = 8, READ = 16, CHANGE = WRITE | SYNC | NAME | CREATE };
enum { DIES = 1, HALF = 2, EVERY_SECOND = 4 };

static const struct fault {
    const char *name;
    int groups, error, how;
} FAULTS[] = {
    {"killed", CHANGE, 0, DIES},
    {"torn", WRITE, 0, DIES | HALF},
    {"full", WRITE | CREATE, ENOSPC, HALF},
    {"broken", CHANGE, EIO, HALF},
    {"unreadable", READ, EIO, 0},
    {"read-only", NAME | CREATE, EROFS, 0},
    {"short", WRITE, 0, HALF},
    {"interrupted", WRITE | READ | CREATE, EINTR, EVERY_SECOND},
    {"clock", 0, 0, 0},
};

static const struct fault *armed;
static char under[PATH_MAX];
static long first;
static atomic_long seen;
static atomic_int awake, halved;

/* Called in a forked child through ctypes, or by the constructor below; 0 where the name is known. */
int shim_arm(const char *name, const char *folder, long at) {
    awake = 0;
    for (size_t n = 0; n < sizeof FAULTS / sizeof *FAULTS; n++)
        if (!strcmp(FAULTS[n].name, name)) {
            armed = &FAULTS[n];
            first = at;
            seen = halved = 0;
            snprintf(under, sizeof under, "%s", folder);
            awake = 1;
            return 0;
        }
    return -1;
}

void shim_disarm(void) { awake = 0; }

long shim_seen(void) { return seen; }

__attribute__((constructor)) static void from_environment(void) {
    const char *name = getenv("SHIM_FAULT"), *folder = getenv("SHIM_UNDER"), *at = getenv("SHIM_AT");
    if (name && folder) shim_arm(name, folder, at ? atol(at) : 1);
}

static int inside(const char *path) { return !strncmp(path, under, strlen(under)); }

static int fd_inside(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    return length > 0 && (path[length] = 0, inside(path));
}

static int path_inside(int folder, const char *path) {
    return path && (path[0] == '/' ? inside(path) : folder != AT_FDCWD && fd_inside(folder));
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

/* Whether the fault strikes this call. A death that leaves no half strikes here. */
static int strikes(void) {
    long now = atomic_fetch_add(&seen, 1) + 1;
    if (now < first || ((armed->how & EVERY_SECOND) && now % 2)) return 0;
    if ((armed->how & DIES) && !(armed->how & HALF)) die();
    return 1;
}

static int strikes_fd(int group, int fd) { return awake && (armed->groups & group) && fd_inside(fd) && strikes(); }

static int strikes_path(int group, int folder, const char *path) {
    return awake && (armed->groups & group) && path_inside(folder, path) && strikes();
}

/* What a struck write returns, after it has put down the half that it puts down. */
static ssize_t struck(ssize_t put) {
    if (armed->how & DIES) die();
    if (!armed->error || (put > 0 && armed->error == ENOSPC)) return put;
    errno = armed->error;
    return -1;
}

/* How much of a struck write is put down: half; of an error that lasts only the first time. */
static size_t part(size_t length) {
    if (!(armed->how & HALF) || (armed->error && atomic_exchange(&halved, 1))) return 0;
    return (length + 1) / 2;
}

#define FAIL_IF(condition) \
    if (condition) return errno = armed->error, -1

/* ------------------------------------------------------------------------------------------------------- writes */

ssize_t write(int fd, const void *from, size_t length) {
    if (!strikes_fd(WRITE, fd)) return syscall(SYS_write, fd, from, length);
    size_t some = part(length);
    return struck(some ? syscall(SYS_write, fd, from, some) : 0);
}

ssize_t pwrite64(int fd, const void *from, size_t length, off64_t at) {
    if (!strikes_fd(WRITE, fd)) return syscall(SYS_pwrite64, fd, from, length, at);
    size_t some = part(length);
    return struck(some ? syscall(SYS_pwrite64, fd, from, some, at) : 0);
}

ssize_t pwrite(int fd, const void *from, size_t length, off_t at) { return pwrite64(fd, from, length, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (!strikes_fd(WRITE, fd)) return syscall(SYS_writev, fd, parts, count);
    size_t some = count ? part(parts[0].iov_len) : 0;
    return struck(some ? syscall(SYS_write, fd, parts[0].iov_base, some) : 0);
}

size_t fwrite(const void *from, size_t size, size_t count, FILE *stream) {
    static size_t (*real)(const void *, size_t, size_t, FILE *);
    if (!real) real = dlsym(RTLD_NEXT, "fwrite");
    /* A stream loops over short writes and EINTR itself: only what it passes on is of interest. */
    if (!awake || !(armed->groups & WRITE) || !(armed->error || (armed->how & DIES)) || armed->error == EINTR ||
        !strikes_fd(WRITE, fileno(stream)))
        return real(from, size, count, stream);
    size_t put = real(from, size, part(count), stream);
    fflush(stream);
    struck(0);
    return put;
}

ssize_t sendfile64(int out, int in, off64_t *at, size_t length) {
    if (!strikes_fd(WRITE, out)) return syscall(SYS_sendfile, out, in, at, length);
    size_t some = part(length);
    return struck(some ? syscall(SYS_sendfile, out, in, at, some) : 0);
}

ssize_t sendfile(int out, int in, off_t *at, size_t length) { return sendfile64(out, in, at, length); }

/* Growing a file either works or does not: no half, and no harm in a short or interrupted world. */
int ftruncate64(int fd, off64_t length) {
    if (strikes_fd(WRITE, fd) && armed->error != EINTR && (armed->error || armed->how & DIES)) return (int)struck(0);
    return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

int fsync(int fd) {
    FAIL_IF(strikes_fd(SYNC, fd));
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    FAIL_IF(strikes_fd(SYNC, fd));
    return (int)syscall(SYS_fdatasync, fd);
}

/* -------------------------------------------------------------------------------------------------------- reads */

ssize_t read(int fd, void *into, size_t length) {
    FAIL_IF(strikes_fd(READ, fd));
    return syscall(SYS_read, fd, into, length);
}

ssize_t pread64(int fd, void *into, size_t length, off64_t at) {
    FAIL_IF(strikes_fd(READ, fd));
    return syscall(SYS_pread64, fd, into, length, at);
}

ssize_t pread(int fd, void *into, size_t length, off_t at) { return pread64(fd, into, length, at); }

/* -------------------------------------------------------------------------------------------------------- names */

static int opened(int folder, const char *path, int flags, mode_t mode) {
    int group = flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR) ? CREATE : 0;
    if (armed && (armed->how & EVERY_SECOND)) group = CREATE;
    FAIL_IF(group && strikes_path(group, folder, path));
    return (int)syscall(SYS_openat, folder, path, flags, mode);
}

#define MODE_OF(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags), mode = va_arg(more, mode_t), va_end(more); \
    }

int open(const char *path, int flags, ...) { MODE_OF(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE_OF(flags) return opened(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE_OF(flags) return opened(folder, path, flags, mode); }
int __open_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return opened(AT_FDCWD, path, flags | O_LARGEFILE, 0); }

int mkdirat(int folder, const char *path, mode_t mode) { /* which nothing interrupts */
    FAIL_IF(awake && armed->error != EINTR && strikes_path(CREATE, folder, path));
    return (int)syscall(SYS_mkdirat, folder, path, mode);
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int renameat(int from, const char *old, int to, const char *new) {
    FAIL_IF(strikes_path(NAME, to, new));
    return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }

int unlinkat(int folder, const char *path, int flags) {
    FAIL_IF(strikes_path(NAME, folder, path));
    return (int)syscall(SYS_unlinkat, folder, path, flags);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int chmod(const char *path, mode_t mode) {
    FAIL_IF(strikes_path(NAME, AT_FDCWD, path));
    return (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

int access(const char *path, int mode) { /* asking changes nothing: it is answered, not counted */
    FAIL_IF((mode & W_OK) && awake && armed->error == EROFS && path_inside(AT_FDCWD, path));
    return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

/* -------------------------------------------------------------------------------------------------------- clock */

static long leap(void) {
    static const long YEARS[] = {0, 9, -9, 25, -3};
    return awake && !armed->groups ? YEARS[atomic_fetch_add(&seen, 1) % 5] * 31557600L : 0;
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, which, now);
    if (!failed && which == CLOCK_REALTIME) now->tv_sec += leap();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec, now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}
