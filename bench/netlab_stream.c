/* netlab_stream: how many bytes a second a plain TCP stream carries.
 *
 *   netlab_stream receive PORT              prints "BYTES SECONDS MB_PER_S"
 *   netlab_stream send HOST PORT SECONDS
 *
 * bench/netlab runs one in each of two hosts; what it prints is the limit that
 * collectives over the same wire are compared with. The receiver counts what
 * its program was given (no headers, no retransmissions) and leaves out the
 * first quarter of a second, in which TCP is still finding the rate and the
 * shaper's bucket is still full. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BLOCK     (128 * 1024)
#define WARM_UP_S 0.25
#define PATIENCE  10 /* seconds without a byte, or for a connection */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int failed(const char *what)
{
    fprintf(stderr, "netlab_stream: %s: %s\n", what, strerror(errno));
    return 1;
}

/* Returns 0 for text that is no port. */
static uint16_t port_of(const char *text)
{
    char *end = NULL;
    const long n = strtol(text, &end, 10);
    return *end || n < 1 || n > 65535 ? 0 : (uint16_t)n;
}

/* Nothing waits for ever: a peer that never comes or stops is an error. */
static void limit_waits(int fd)
{
    const struct timeval t = {PATIENCE, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static int listen_at(uint16_t port)
{
    const struct sockaddr_in a = {.sin_family = AF_INET,
                                  .sin_port = htons(port)};
    const int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    limit_waits(fd);
    if (bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 &&
        listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Counts until the sender closes. */
static int count(int fd, char *block)
{
    const double start = now();
    double from = 0, last = start;
    uint64_t bytes = 0;
    for (;;) {
        const ssize_t n = recv(fd, block, BLOCK, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return failed("receiving");
        if (n == 0) break;
        last = now();
        if (from > 0)
            bytes += (uint64_t)n;
        else if (last - start > WARM_UP_S)
            from = last;
    }
    const double s = last - from;
    if (from == 0 || bytes == 0 || s <= 0) {
        fprintf(stderr, "netlab_stream: the stream ended within %g s\n",
                WARM_UP_S);
        return 1;
    }
    printf("%llu %.6f %.3f\n", (unsigned long long)bytes, s,
           1e-6 * (double)bytes / s);
    return 0;
}

static int receive(const char *port_text, char *block)
{
    const uint16_t port = port_of(port_text);
    const int listener = port ? listen_at(port) : -1;
    if (listener < 0) return failed("listening");
    const int fd = accept(listener, NULL, NULL);
    close(listener);
    if (fd < 0) return failed("waiting for the sender");
    limit_waits(fd);
    const int rc = count(fd, block);
    close(fd);
    return rc;
}

/* The receiver may be a moment late. */
static int connect_to(const char *host, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    const double until = now() + PATIENCE;
    if (inet_pton(AF_INET, host, &a.sin_addr) != 1) {
        errno = EINVAL;
        return -1;
    }
    do {
        const struct timespec pause = {0, 20000000};
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) return -1;
        if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0) return fd;
        close(fd);
        if (errno != ECONNREFUSED) return -1;
        nanosleep(&pause, NULL);
    } while (now() < until);
    return -1;
}

static int send_to(const char *host, const char *port_text, double seconds,
                   const char *block)
{
    const uint16_t port = port_of(port_text);
    const int fd = port ? connect_to(host, port) : -1;
    if (fd < 0) return failed("connecting");
    limit_waits(fd);
    const double until = now() + WARM_UP_S + seconds;
    while (now() < until)
        if (send(fd, block, BLOCK, MSG_NOSIGNAL) < 0 && errno != EINTR) {
            close(fd);
            return failed("sending");
        }
    return close(fd) ? failed("closing") : 0;
}

int main(int argc, char **argv)
{
    static char block[BLOCK];
    memset(block, 0x5a, sizeof block);
    if (argc == 3 && strcmp(argv[1], "receive") == 0)
        return receive(argv[2], block);
    if (argc == 5 && strcmp(argv[1], "send") == 0 && atof(argv[4]) > 0)
        return send_to(argv[2], argv[3], atof(argv[4]), block);
    fprintf(stderr, "usage: netlab_stream receive PORT\n"
                    "       netlab_stream send HOST PORT SECONDS\n");
    return 2;
}
