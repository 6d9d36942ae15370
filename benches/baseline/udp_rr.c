/* One datagram out, one back, sleeping in recv or spinning. On loopback with one datagram on its
 * way none is lost, so there is no time-out beyond the one that ends a broken run. */
#include "bare.h"

/* The server ends when nothing came for this long after the first datagram. */
#define IDLE_SECONDS 1

static ssize_t receive_datagram(int s, char *buffer, const struct options *o, double give_up)
{
    if (!o->spin)
        return recv(s, buffer, o->size, 0);
    for (unsigned tries = 1;; tries++) {
        ssize_t n = recv(s, buffer, o->size, MSG_DONTWAIT);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
            return n;
        if ((tries & 0xfff) == 0 && now_s() > give_up)
            return -1;
    }
}

static void set_time_out(int s)
{
    struct timeval t = {.tv_sec = IDLE_SECONDS};

    if (setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t) != 0)
        die("SO_RCVTIMEO");
}

static void print_result(const char *role, uint64_t transactions, double elapsed, double cpu)
{
    printf("{\"role\": \"%s\", \"transactions\": %llu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n", role,
           (unsigned long long)transactions, elapsed, cpu);
}

/* Answers the first client only, and connects to it, as a flow of a measurement does. The CPU
 * time of the idle wait at the end is not counted: it is taken at the last datagram, once in
 * 1024. */
static void serve(const struct options *o)
{
    int s = bind_and_announce(SOCK_DGRAM, o->port);
    char *buffer = buffer_of(o->size);
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    uint64_t transactions = 0;
    double cpu = cpu_s();

    ssize_t n = recvfrom(s, buffer, o->size, 0, (struct sockaddr *)&peer, &length);
    if (n < 0 || connect(s, (struct sockaddr *)&peer, length) != 0)
        die("first datagram");
    set_time_out(s);
    double start = now_s();
    double last_cpu = cpu_s();
    double give_up = start + IDLE_SECONDS;
    while (n > 0) {
        if (send(s, buffer, (size_t)n, 0) < 0)
            break;
        if ((++transactions & 1023) == 0) {
            last_cpu = cpu_s();
            give_up = now_s() + IDLE_SECONDS;
        }
        n = receive_datagram(s, buffer, o, give_up);
    }
    print_result("server", transactions, now_s() - start, last_cpu - cpu);
}

static void run_client(const struct options *o)
{
    int s = connect_to(SOCK_DGRAM, o);
    char *buffer = buffer_of(o->size);
    uint64_t transactions = 0;
    double cpu = cpu_s();
    double start = now_s();
    double now = start;

    set_time_out(s);
    while (now - start < o->seconds) {
        if (send(s, buffer, o->size, 0) < 0 || receive_datagram(s, buffer, o, now + IDLE_SECONDS) < 0)
            die("transaction");
        now = now_s();
        transactions++;
    }
    print_result("client", transactions, now - start, cpu_s() - cpu);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv, 1);

    if (o.is_server)
        serve(&o);
    else
        run_client(&o);
    return 0;
}
