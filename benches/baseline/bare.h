/* What the bare loops share: options, sockets, the clock, CPU time, and the one line of JSON that
 * each end prints. Header only, so that each loop is one file and one compiler call. */
#ifndef BARE_H
#define BARE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct options {
    int is_server;
    const char *host;
    int port;
    size_t size;         /* bytes of a call, a message or a datagram */
    double seconds;      /* how long the client sends */
    int cpu;             /* processor to pin to, -1: none */
    size_t connections;  /* tcp_rr_many, tcp_short: how many at once */
    int spin;            /* poll with MSG_DONTWAIT instead of sleeping */
    const char *mode;    /* udp_stream: single, batch or offload; tcp_crr: fin, rst or server;
                            tcp_stream: ask, or any other for a receiver that only sleeps */
    const char *congestion;
};

__attribute__((noreturn, unused)) static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

__attribute__((noreturn, unused)) static void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s server PORT [options] | client HOST PORT [options]\n"
            "  --size BYTES  --time SECONDS  --cpu N  --spin  --congestion NAME\n"
            "  --connections N (tcp_rr_many, tcp_short)\n"
            "  --mode single|batch|offload (udp_stream), fin|rst|server (tcp_crr), single|ask (tcp_stream)\n"
            "HOST is an IPv4 address; port 0 takes a free one. The server serves one client,\n"
            "prints its port first and its figures last.\n",
            program);
    exit(2);
}

__attribute__((unused)) static struct options parse_options(int argc, char **argv, size_t size)
{
    struct options o = {.size = size, .seconds = 2, .cpu = -1, .connections = 1, .mode = "single"};
    int at = 3;

    if (argc < 3)
        usage(argv[0]);
    o.is_server = strcmp(argv[1], "server") == 0;
    if (o.is_server) {
        o.port = atoi(argv[2]);
    } else {
        if (strcmp(argv[1], "client") != 0 || argc < 4)
            usage(argv[0]);
        o.host = argv[2];
        o.port = atoi(argv[3]);
        at = 4;
    }
    for (; at < argc; at++) {
        if (strcmp(argv[at], "--spin") == 0) {
            o.spin = 1;
            continue;
        }
        if (at + 1 >= argc)
            usage(argv[0]);
        if (strcmp(argv[at], "--size") == 0)
            o.size = strtoul(argv[++at], NULL, 10);
        else if (strcmp(argv[at], "--time") == 0)
            o.seconds = strtod(argv[++at], NULL);
        else if (strcmp(argv[at], "--cpu") == 0)
            o.cpu = atoi(argv[++at]);
        else if (strcmp(argv[at], "--connections") == 0)
            o.connections = strtoul(argv[++at], NULL, 10);
        else if (strcmp(argv[at], "--mode") == 0)
            o.mode = argv[++at];
        else if (strcmp(argv[at], "--congestion") == 0)
            o.congestion = argv[++at];
        else
            usage(argv[0]);
    }
    if (o.size == 0 || o.seconds <= 0 || o.connections == 0)
        usage(argv[0]);
    if (o.cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(o.cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0)
            die("sched_setaffinity");
    }
    return o;
}

__attribute__((unused)) static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((unused)) static double cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* A server's socket on the loopback-or-any address; the port it got is printed as a line. */
__attribute__((unused)) static int bind_and_announce(int type, int port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof a;
    int one = 1;
    int s = socket(AF_INET, type, 0);

    if (s < 0)
        die("socket");
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s, (struct sockaddr *)&a, sizeof a) != 0)
        die("bind");
    if (type == SOCK_STREAM && listen(s, 8) != 0)
        die("listen");
    if (getsockname(s, (struct sockaddr *)&a, &length) != 0)
        die("getsockname");
    printf("{\"port\": %d}\n", ntohs(a.sin_port));
    fflush(stdout);
    return s;
}

__attribute__((unused)) static int connect_to(int type, const struct options *o)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    int s = socket(AF_INET, type, 0);

    if (s < 0)
        die("socket");
    if (inet_pton(AF_INET, o->host, &a.sin_addr) != 1)
        usage("client");
    if (o->congestion && type == SOCK_STREAM &&
        setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, o->congestion, strlen(o->congestion)) != 0)
        die("TCP_CONGESTION");
    if (connect(s, (struct sockaddr *)&a, sizeof a) != 0)
        die("connect");
    return s;
}

__attribute__((unused)) static int accept_one(int listener, const struct options *o)
{
    int s = accept(listener, NULL, NULL);

    if (s < 0)
        die("accept");
    if (o->congestion &&
        setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, o->congestion, strlen(o->congestion)) != 0)
        die("TCP_CONGESTION");
    return s;
}

__attribute__((unused)) static void *buffer_of(size_t size)
{
    void *buffer = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    if (!buffer)
        die("aligned_alloc");
    memset(buffer, 0x5a, (size + 4095) / 4096 * 4096);
    return buffer;
}

/* Reads without sleeping until something comes. */
__attribute__((unused)) static ssize_t spin_recv(int s, void *buffer, size_t size)
{
    for (;;) {
        ssize_t n = recv(s, buffer, size, MSG_DONTWAIT);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n;
    }
}
#endif
