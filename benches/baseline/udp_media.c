/* Frames of datagrams at a constant rate, each sent when it is due: clock_nanosleep to an absolute
 * time, or --spin. The client sends; it prints how late frames were sent, in microseconds. The server
 * counts datagrams until nothing comes for a while. */
#include "bare.h"

/* The server ends when nothing came for this long after the first datagram. */
#define IDLE_SECONDS 1
#define FRAMES_PER_SECOND 60
#define FRAME_DATAGRAMS 36 /* 25 Mbit/s in datagrams of 1448 bytes */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void wait_until(double due, int spin)
{
    struct timespec t = {.tv_sec = (time_t)due, .tv_nsec = (long)((due - (double)(time_t)due) * 1e9)};

    if (!spin)
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
            ;
    while (now_s() < due)
        ;
}

static int client(const struct options *o)
{
    size_t frames = (size_t)(o->seconds * FRAMES_PER_SECOND);
    double *late_us = calloc(frames + 1, sizeof *late_us);
    char *buffer = buffer_of(o->size);
    int s = connect_to(SOCK_DGRAM, o);
    double start = now_s();
    size_t datagrams = 0;

    if (!late_us || frames == 0)
        die("frames");
    for (size_t k = 0; k < frames; k++) {
        double due = start + (double)k / FRAMES_PER_SECOND;

        wait_until(due, o->spin);
        late_us[k] = (now_s() - due) * 1e6;
        for (int n = 0; n < FRAME_DATAGRAMS; n++)
            datagrams += send(s, buffer, o->size, 0) == (ssize_t)o->size;
    }
    double elapsed = now_s() - start;
    qsort(late_us, frames, sizeof *late_us, by_value);
    printf("{\"datagrams\": %zu, \"elapsed_s\": %.6f, \"p50_us\": %.3f, \"p99_us\": %.3f, \"max_us\": %.3f,"
           " \"cpu_s\": %.6f}\n",
           datagrams, elapsed, late_us[frames / 2], late_us[frames * 99 / 100], late_us[frames - 1],
           cpu_s());
    return 0;
}

static int server(const struct options *o)
{
    int s = bind_and_announce(SOCK_DGRAM, o->port);
    char *buffer = buffer_of(o->size);
    size_t datagrams = 0;
    double first = 0, last = 0;

    for (;;) {
        if (recv(s, buffer, o->size, 0) < 0)
            break;
        last = now_s();
        if (datagrams++ == 0) {
            struct timeval t = {.tv_sec = IDLE_SECONDS};

            first = last;
            if (setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) != 0)
                die("SO_RCVTIMEO");
        }
    }
    printf("{\"datagrams\": %zu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n", datagrams, last - first, cpu_s());
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv, 1448);

    return o.is_server ? server(&o) : client(&o);
}
