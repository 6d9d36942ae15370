/* Bulk UDP as the kernel offers it: one call a datagram, one call a batch (sendmmsg, recvmmsg), or
 * one call a train of segments (UDP_SEGMENT, UDP_GRO). The receiver's count is the result. */
#include "bare.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define BATCH 64
#define MAX_TRAIN_SEGMENTS 128 /* UDP_MAX_SEGMENTS of current kernels; older ones have 64 */
#define MAX_TRAIN_BYTES 65000
#define BUFFER_BYTES (4 * 1024 * 1024)

enum mode { SINGLE, BATCHED, OFFLOAD };

static enum mode mode_of(const struct options *o)
{
    if (strcmp(o->mode, "single") == 0)
        return SINGLE;
    if (strcmp(o->mode, "batch") == 0)
        return BATCHED;
    if (strcmp(o->mode, "offload") == 0)
        return OFFLOAD;
    usage("udp_stream");
}

/* A host may refuse the large buffer; its default is used then, and the granted size is printed. */
static int grow_buffer(int s, int which)
{
    int bytes = BUFFER_BYTES;
    int granted = 0;
    socklen_t length = sizeof granted;

    (void)setsockopt(s, SOL_SOCKET, which, &bytes, sizeof bytes);
    (void)getsockopt(s, SOL_SOCKET, which, &granted, &length);
    return granted;
}

/* Receives one call's worth; returns datagrams, or -1 after the time-out. */
static int receive_some(int s, char *buffer, const struct options *o, enum mode mode, uint64_t *bytes)
{
    static struct mmsghdr messages[BATCH];
    static struct iovec parts[BATCH];

    if (mode == BATCHED) {
        for (int i = 0; i < BATCH; i++) {
            parts[i] = (struct iovec){buffer + (size_t)i * o->size, o->size};
            messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
        }
        int n = recvmmsg(s, messages, BATCH, MSG_WAITFORONE, NULL);
        for (int i = 0; i < n; i++)
            *bytes += messages[i].msg_len;
        return n;
    }
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {buffer, 65536};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                       .msg_controllen = sizeof control};
    ssize_t n = mode == OFFLOAD ? recvmsg(s, &m, 0) : recv(s, buffer, 65536, 0);
    if (n < 0)
        return -1;
    *bytes += (uint64_t)n;
    struct cmsghdr *c = mode == OFFLOAD ? CMSG_FIRSTHDR(&m) : NULL;
    if (!c || c->cmsg_type != UDP_GRO || n == 0)
        return 1;
    int segment = 0;
    memcpy(&segment, CMSG_DATA(c), sizeof segment);
    return segment > 0 ? (int)((n + segment - 1) / segment) : 1;
}

/* Ends when nothing came for half a second after the first datagram: that wait is in neither the
 * elapsed nor the CPU time. The clock is read once in 256 calls, and the rate is of what had come by
 * then: what comes after the last reading has no part in the elapsed time. */
static void serve(const struct options *o, enum mode mode)
{
    int s = bind_and_announce(SOCK_DGRAM, o->port);
    int granted = grow_buffer(s, SO_RCVBUF);
    char *buffer = buffer_of(o->size * BATCH > 65536 ? o->size * BATCH : 65536);
    uint64_t bytes = 0;
    uint64_t datagrams = 0;
    uint64_t timed_bytes = 0;
    uint64_t timed_datagrams = 0;
    uint64_t calls = 0;
    int one = 1;

    if (mode == OFFLOAD && setsockopt(s, IPPROTO_UDP, UDP_GRO, &one, sizeof one) != 0)
        die("UDP_GRO");
    double cpu = cpu_s();
    int n = receive_some(s, buffer, o, mode, &bytes);
    double start = now_s();
    double last = start;
    struct timeval t = {.tv_usec = 500000};
    setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    while (n >= 0) {
        datagrams += (uint64_t)n;
        if ((++calls & 255) == 0) {
            last = now_s();
            timed_bytes = bytes;
            timed_datagrams = datagrams;
        }
        n = receive_some(s, buffer, o, mode, &bytes);
    }
    printf("{\"role\": \"server\", \"datagrams\": %llu, \"bytes\": %llu, \"calls\": %llu, "
           "\"timed_datagrams\": %llu, \"timed_bytes\": %llu, "
           "\"elapsed_s\": %.6f, \"cpu_s\": %.6f, \"receive_buffer_bytes\": %d}\n",
           (unsigned long long)datagrams, (unsigned long long)bytes, (unsigned long long)calls,
           (unsigned long long)timed_datagrams, (unsigned long long)timed_bytes,
           last - start, cpu_s() - cpu, granted);
}

/* Sends one call's worth; returns datagrams, 0 where the stack refused them. */
static int send_some(int s, char *buffer, size_t train, const struct options *o, enum mode mode)
{
    static struct mmsghdr messages[BATCH];
    static struct iovec part;

    if (mode == BATCHED) {
        part = (struct iovec){buffer, o->size};
        for (int i = 0; i < BATCH; i++)
            messages[i].msg_hdr = (struct msghdr){.msg_iov = &part, .msg_iovlen = 1};
        int n = sendmmsg(s, messages, BATCH, 0);
        return n < 0 ? 0 : n;
    }
    return send(s, buffer, train * o->size, 0) < 0 ? 0 : (int)train;
}

/* The largest train that this kernel takes for this payload. */
static size_t probe_train(int s, char *buffer, const struct options *o)
{
    int segment = (int)o->size;
    size_t train = MAX_TRAIN_BYTES / o->size;

    if (setsockopt(s, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) != 0)
        die("UDP_SEGMENT");
    if (train > MAX_TRAIN_SEGMENTS)
        train = MAX_TRAIN_SEGMENTS;
    while (train > 1 && send(s, buffer, train * o->size, 0) < 0 && errno == EINVAL)
        train /= 2;
    return train ? train : 1;
}

static void run_client(const struct options *o, enum mode mode)
{
    int s = connect_to(SOCK_DGRAM, o);
    char *buffer = buffer_of(o->size > 65536 ? o->size : 65536);
    uint64_t datagrams = 0;
    uint64_t refused = 0;
    uint64_t calls = 0;
    size_t train = 1;

    grow_buffer(s, SO_SNDBUF);
    if (mode == OFFLOAD)
        train = probe_train(s, buffer, o);
    double cpu = cpu_s();
    double start = now_s();
    double now = start;
    while ((++calls & 15) != 0 || (now = now_s()) - start < o->seconds) {
        int n = send_some(s, buffer, train, o, mode);
        datagrams += (uint64_t)n;
        refused += n == 0;
    }
    printf("{\"role\": \"client\", \"datagrams\": %llu, \"bytes\": %llu, \"refused_calls\": %llu, "
           "\"elapsed_s\": %.6f, \"cpu_s\": %.6f, \"train_segments\": %zu}\n",
           (unsigned long long)datagrams, (unsigned long long)(datagrams * o->size),
           (unsigned long long)refused, now - start, cpu_s() - cpu, train);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv, 1400);
    enum mode mode = mode_of(&o);

    if (o.size > MAX_TRAIN_BYTES)
        usage(argv[0]);
    if (o.is_server)
        serve(&o, mode);
    else
        run_client(&o, mode);
    return 0;
}
