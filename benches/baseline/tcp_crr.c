/* Connect, one request, one response, close; then the next, one connection at a time. --mode says
 * who closes: fin, the client with a FIN; rst, the client with a RST; server, the server. */
#include "bare.h"

/* The first byte of a request: another connection of the run, or the end of the run. */
#define REQUEST 'Z'
#define LAST 'Q'

enum closing { FIN, RST, SERVER };

static enum closing closing_of(const struct options *o)
{
    if (strcmp(o->mode, "fin") == 0)
        return FIN;
    if (strcmp(o->mode, "rst") == 0)
        return RST;
    if (strcmp(o->mode, "server") == 0)
        return SERVER;
    usage("tcp_crr");
}

/* Receives a whole message; 0 where the other end closed or reset first. */
static int receive_message(int s, char *buffer, size_t size)
{
    size_t have = 0;

    while (have < size) {
        ssize_t n = recv(s, buffer + have, size - have, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return 0;
        if (n < 0)
            die("recv");
        have += (size_t)n;
    }
    return 1;
}

static void send_message(int s, const char *buffer, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = send(s, buffer + done, size - done, MSG_NOSIGNAL);
        if (n < 0)
            die("send");
        done += (size_t)n;
    }
}

static void print_result(const char *role, uint64_t connections, double elapsed, double cpu)
{
    printf("{\"role\": \"%s\", \"transactions\": %llu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n", role,
           (unsigned long long)connections, elapsed, cpu);
}

static void serve(const struct options *o, enum closing closing)
{
    int listener = bind_and_announce(SOCK_STREAM, o->port);
    char *buffer = buffer_of(o->size);
    uint64_t connections = 0;
    double cpu = cpu_s();
    double start = 0;
    int more = 1;

    while (more) {
        int s = accept_one(listener, o);
        if (connections == 0)
            start = now_s();
        if (!receive_message(s, buffer, o->size))
            die("a client closed before its request");
        more = buffer[0] != LAST;
        send_message(s, buffer, o->size);
        if (closing != SERVER)
            while (receive_message(s, buffer, 1))
                ;
        close(s);
        connections++;
    }
    print_result("server", connections - 1, now_s() - start, cpu_s() - cpu);
}

static void one_connection(const struct options *o, char *buffer, enum closing closing)
{
    const struct linger abort_it = {.l_onoff = 1, .l_linger = 0};
    int s = connect_to(SOCK_STREAM, o);

    send_message(s, buffer, o->size);
    if (!receive_message(s, buffer, o->size))
        die("the server closed before its response");
    if (closing == SERVER && receive_message(s, buffer, 1))
        die("more bytes than the response");
    if (closing == RST && setsockopt(s, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it) != 0)
        die("SO_LINGER");
    close(s);
}

static void run_client(const struct options *o, enum closing closing)
{
    char *buffer = buffer_of(o->size);
    uint64_t connections = 0;
    double cpu = cpu_s();
    double start = now_s();
    double now = start;

    while (now - start < o->seconds) {
        buffer[0] = REQUEST;
        one_connection(o, buffer, closing);
        now = now_s();
        connections++;
    }
    double used = cpu_s() - cpu;
    buffer[0] = LAST;
    one_connection(o, buffer, closing);
    print_result("client", connections, now - start, used);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv, 1);
    enum closing closing = closing_of(&o);

    if (o.is_server)
        serve(&o, closing);
    else
        run_client(&o, closing);
    return 0;
}
