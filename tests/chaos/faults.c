/*
 * Makes the disk under one directory slow or broken, and sets the wall clock, for the process that has this
 * library preloaded.
 *
 * HEADRACE_FAULTS names a file of struct faults, which is mapped: whoever writes to it changes the world at once.
 * Only descriptors whose path begins with the prefix are touched. Numbers of errors are errno's. Monotonic time
 * stays true: libfaketime 0.9.10 cannot promise that, it breaks the sleep of Python 3.11.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct faults {
    int64_t clock_us;
    uint32_t write_error;
    uint32_t sync_error;
    uint32_t read_error;
    uint32_t delay_us;
    uint32_t sync_delay_us;
    char prefix[240];
};

static volatile struct faults *faults;

__attribute__((constructor)) static void map_faults(void) {
    const char *path = getenv("HEADRACE_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof(struct faults), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        faults = mapped;
}

static int concerned(int fd) {
    char link[64], path[4096], prefix[240];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    memcpy(prefix, (const char *)faults->prefix, sizeof prefix);
    prefix[sizeof prefix - 1] = 0;
    return prefix[0] && strncmp(path, prefix, strlen(prefix)) == 0;
}

/* Zero if the call may go on; otherwise errno is set. */
static int hurt(int fd, uint32_t error, uint32_t delay) {
    if ((!error && !delay) || !concerned(fd))
        return 0;
    if (delay) {
        struct timespec pause = {delay / 1000000, (long)(delay % 1000000) * 1000};
        nanosleep(&pause, NULL);
    }
    if (error)
        errno = (int)error;
    return error != 0;
}

/* What a call takes longer than all others. */
#define LATER_write_error 0
#define LATER_read_error 0
#define LATER_sync_error faults->sync_delay_us

#define FAULTY(field, result, name, parameters, arguments)                                                   \
    result name parameters {                                                                                 \
        static result(*original) parameters;                                                                 \
        if (!original)                                                                                       \
            original = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                        \
        if (faults && hurt(fd, faults->field, faults->delay_us + LATER_##field))                             \
            return -1;                                                                                       \
        return original arguments;                                                                           \
    }

FAULTY(write_error, ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size))
FAULTY(write_error, ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at))
FAULTY(write_error, ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at))
FAULTY(write_error, ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
FAULTY(write_error, ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at))
FAULTY(write_error, ssize_t, pwritev64, (int fd, const struct iovec *parts, int count, off64_t at),
       (fd, parts, count, at))
FAULTY(write_error, ssize_t, pwritev2, (int fd, const struct iovec *parts, int count, off_t at, int flags),
       (fd, parts, count, at, flags))
FAULTY(write_error, ssize_t, pwritev64v2, (int fd, const struct iovec *parts, int count, off64_t at, int flags),
       (fd, parts, count, at, flags))
FAULTY(write_error, int, ftruncate, (int fd, off_t size), (fd, size))
FAULTY(write_error, int, ftruncate64, (int fd, off64_t size), (fd, size))
FAULTY(sync_error, int, fsync, (int fd), (fd))
FAULTY(sync_error, int, fdatasync, (int fd), (fd))
FAULTY(read_error, ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
FAULTY(read_error, ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at))

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*original)(clockid_t, struct timespec *);
    if (!original)
        original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = original(clock, now);
    int64_t offset = faults ? faults->clock_us : 0;
    if (result || !offset || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return result;
    int64_t nanoseconds = now->tv_nsec + (offset % 1000000) * 1000;
    now->tv_sec += offset / 1000000 + (nanoseconds >= 1000000000) - (nanoseconds < 0);
    now->tv_nsec = (nanoseconds + 1000000000) % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out)
        *out = exact.tv_sec;
    return exact.tv_sec;
}
