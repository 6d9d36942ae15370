/* Bulk TCP with nothing but send and recv: the bar that a bulk transfer is measured against. */
#include "bare.h"

#define ASKING_US 20

/* In mode "ask" the receiver asks again for some time before it sleeps, which saves the sender the
 * waking of its peer; where both share a processor it would only keep the sender from it. */
static ssize_t ask_recv(int s, char *buffer, size_t size)
{
    ssize_t n = recv(s, buffer, size, MSG_DONTWAIT);
    double until = 0;

    while (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        double now = now_s();
        if (until == 0)
            until = now + ASKING_US / 1e6;
        else if (now > until)
            return recv(s, buffer, size, 0);
        n = recv(s, buffer, size, MSG_DONTWAIT);
    }
    return n;
}

static void serve(const struct options *o)
{
    int listener = bind_and_announce(SOCK_STREAM, o->port);
    int s = accept_one(listener, o);
    char *buffer = buffer_of(o->size);
    uint64_t bytes = 0;
    uint64_t calls = 0;
    int asks = strcmp(o->mode, "ask") == 0;
    double cpu = cpu_s();
    double start = 0;
    double end = 0;

    for (;;) {
        ssize_t n = asks ? ask_recv(s, buffer, o->size) : recv(s, buffer, o->size, 0);
        if (n < 0)
            die("recv");
        if (n == 0)
            break;
        if (calls++ == 0)
            start = now_s();
        bytes += (uint64_t)n;
    }
    end = now_s();
    printf("{\"role\": \"server\", \"bytes\": %llu, \"calls\": %llu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n",
           (unsigned long long)bytes, (unsigned long long)calls, end - start, cpu_s() - cpu);
}

/* The clock is read once in 64 sends: at 128 KiB a send that is every 8 MiB. */
static void run_client(const struct options *o)
{
    int s = connect_to(SOCK_STREAM, o);
    char *buffer = buffer_of(o->size);
    uint64_t bytes = 0;
    uint64_t calls = 0;
    double cpu = cpu_s();
    double start = now_s();

    while ((++calls & 63) != 0 || now_s() - start < o->seconds) {
        ssize_t n = send(s, buffer, o->size, 0);
        if (n < 0)
            die("send");
        bytes += (uint64_t)n;
    }
    double elapsed = now_s() - start;
    shutdown(s, SHUT_WR);
    while (recv(s, buffer, o->size, 0) > 0)
        ;
    printf("{\"role\": \"client\", \"bytes\": %llu, \"calls\": %llu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n",
           (unsigned long long)bytes, (unsigned long long)calls, elapsed, cpu_s() - cpu);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv, 128 * 1024);

    if (o.is_server)
        serve(&o);
    else
        run_client(&o);
    return 0;
}
