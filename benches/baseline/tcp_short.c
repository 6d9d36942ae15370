/* Short connections, --connections at once, as ctsTraffic has them with -pattern:push -shutdown:rude: the server
 * sends an id of 37 bytes, the client --size bytes, the server "DONE"; then the client resets the connection and
 * begins the next one. One thread at either end, with a level-triggered poll set. */
#include "bare.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define ID_BYTES 37
#define DONE_BYTES 4
#define EVENTS 256
#define BACKLOG 4096
/* The first byte of a client's data: another connection of the run, or the end of the run. */
#define DATA 'Z'
#define LAST 'Q'

struct connection {
    size_t have; /* bytes received of the message that is awaited */
    int has_answered;
    int is_last;
};

static struct connection *connections;
static size_t room;
static int set;
static char *data, *into;

static struct connection *connection_of(int s)
{
    if ((size_t)s >= room) {
        size_t more = (size_t)s * 2 + 64;
        connections = realloc(connections, more * sizeof *connections);
        if (!connections)
            die("realloc");
        room = more;
    }
    return &connections[s];
}

static void begin(int s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = s};

    *connection_of(s) = (struct connection){0};
    if (epoll_ctl(set, EPOLL_CTL_ADD, s, &event) != 0)
        die("epoll_ctl");
}

static void send_all(int s, const char *bytes, size_t size)
{
    /* Less than a send buffer holds. */
    if (send(s, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        die("send");
}

/* Receives up to the end of a message of so many bytes: 1 when it is whole, 0 when more is to come, -1 at the end of
 * the connection. */
static int receive(int s, size_t size)
{
    struct connection *one = connection_of(s);
    ssize_t n = recv(s, into, size - one->have, 0);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n == 0 || (n < 0 && errno == ECONNRESET))
        return -1;
    if (n < 0)
        die("recv");
    one->have += (size_t)n;
    return one->have == size;
}

static int wait_for(struct epoll_event *events)
{
    int count = epoll_wait(set, events, EVENTS, -1);

    if (count < 0 && errno != EINTR)
        die("epoll_wait");
    return count < 0 ? 0 : count;
}

static void print_result(const char *role, uint64_t count, double elapsed, double cpu)
{
    printf("{\"role\": \"%s\", \"transactions\": %llu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n", role,
           (unsigned long long)count, elapsed, cpu);
}

static void accept_all(int listener)
{
    static const char id[ID_BYTES] = "00000000-0000-4000-8000-000000000000";
    int s;

    while ((s = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        begin(s);
        send_all(s, id, ID_BYTES);
    }
    if (errno != EAGAIN && errno != ECONNABORTED)
        die("accept4");
}

static void serve(const struct options *o)
{
    struct epoll_event events[EVENTS];
    int listener = bind_and_announce(SOCK_STREAM, o->port);
    uint64_t count = 0;
    double cpu = cpu_s(), start = now_s();
    int more = 1;

    if (listen(listener, BACKLOG) != 0 || fcntl(listener, F_SETFL, O_NONBLOCK) != 0)
        die("listen");
    begin(listener);
    while (more) {
        int ready = wait_for(events);
        for (int at = 0; at < ready; at++) {
            int s = events[at].data.fd;
            struct connection *one = connection_of(s);
            int received;

            if (s == listener) {
                accept_all(listener);
                continue;
            }
            received = receive(s, one->has_answered ? o->size + 1 : o->size);
            if (received > 0 && !one->has_answered) {
                one->is_last = into[0] == LAST;
                one->has_answered = 1;
                send_all(s, "DONE", DONE_BYTES);
            } else if (received < 0) {
                if (!one->has_answered)
                    die("a client ended before its data");
                more = more && !one->is_last;
                close(s);
                count++;
            }
        }
    }
    print_result("server", count - 1, now_s() - start, cpu_s() - cpu);
}

static void connect_another(const struct sockaddr_in *server)
{
    int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    if (s < 0)
        die("socket");
    if (connect(s, (const struct sockaddr *)server, sizeof *server) != 0 && errno != EINPROGRESS)
        die("connect");
    begin(s);
}

/* One step of a connection of the client; 1 when it is over. */
static int advance(int s, const struct options *o)
{
    static const struct linger abort_it = {.l_onoff = 1, .l_linger = 0};
    struct connection *one = connection_of(s);
    int received = receive(s, one->has_answered ? DONE_BYTES : ID_BYTES);

    if (received < 0)
        die("the server ended a connection before DONE");
    if (received == 0)
        return 0;
    if (!one->has_answered) {
        one->has_answered = 1;
        one->have = 0;
        send_all(s, data, o->size);
        return 0;
    }
    if (setsockopt(s, SOL_SOCKET, SO_LINGER, &abort_it, sizeof abort_it) != 0)
        die("SO_LINGER");
    close(s);
    return 1;
}

static void run_client(const struct options *o)
{
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    struct epoll_event events[EVENTS];
    uint64_t count = 0;
    size_t open = 0;
    double cpu = cpu_s(), start = now_s(), now = start, used;

    if (inet_pton(AF_INET, o->host, &server.sin_addr) != 1)
        usage("tcp_short");
    data[0] = DATA;
    for (; open < o->connections; open++)
        connect_another(&server);
    while (open > 0) {
        int ready = wait_for(events);
        now = now_s();
        for (int at = 0; at < ready; at++) {
            if (!advance(events[at].data.fd, o))
                continue;
            count++;
            if (now - start < o->seconds)
                connect_another(&server);
            else
                open--;
        }
    }
    used = cpu_s() - cpu;
    data[0] = LAST;
    connect_another(&server);
    for (int is_over = 0; !is_over;)
        is_over = wait_for(events) > 0 && advance(events[0].data.fd, o);
    print_result("client", count, now - start, used);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv, 64);

    data = buffer_of(o.size);
    into = buffer_of(o.size + ID_BYTES + 1);
    set = epoll_create1(0);
    if (set < 0)
        die("epoll_create1");
    if (o.is_server)
        serve(&o);
    else
        run_client(&o);
    return 0;
}
