/* One request out, one response back over TCP, sleeping in recv or spinning. */
#include "bare.h"

/* Receives a whole message; 0 at the end of the stream. */
static int receive_message(int s, char *buffer, const struct options *o)
{
    size_t have = 0;

    while (have < o->size) {
        ssize_t n = o->spin ? spin_recv(s, buffer + have, o->size - have)
                            : recv(s, buffer + have, o->size - have, 0);
        if (n == 0)
            return 0;
        if (n < 0)
            die("recv");
        have += (size_t)n;
    }
    return 1;
}

static void send_message(int s, const char *buffer, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t n = send(s, buffer + done, size - done, MSG_NOSIGNAL);
        if (n < 0)
            die("send");
        done += (size_t)n;
    }
}

static void set_no_delay(int s)
{
    int one = 1;

    if (setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        die("TCP_NODELAY");
}

static void print_result(const char *role, uint64_t transactions, double elapsed, double cpu)
{
    printf("{\"role\": \"%s\", \"transactions\": %llu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n", role,
           (unsigned long long)transactions, elapsed, cpu);
}

static void serve(const struct options *o)
{
    int s = accept_one(bind_and_announce(SOCK_STREAM, o->port), o);
    char *buffer = buffer_of(o->size);
    uint64_t transactions = 0;
    double cpu = cpu_s();
    double start = now_s();

    set_no_delay(s);
    while (receive_message(s, buffer, o)) {
        send_message(s, buffer, o->size);
        transactions++;
    }
    print_result("server", transactions, now_s() - start, cpu_s() - cpu);
}

static void run_client(const struct options *o)
{
    int s = connect_to(SOCK_STREAM, o);
    char *buffer = buffer_of(o->size);
    uint64_t transactions = 0;
    double cpu = cpu_s();
    double start = now_s();
    double now = start;

    set_no_delay(s);
    while (now - start < o->seconds) {
        send_message(s, buffer, o->size);
        if (!receive_message(s, buffer, o))
            break;
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
