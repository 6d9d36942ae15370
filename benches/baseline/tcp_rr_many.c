/* One byte out, one byte back on each of many TCP connections at once, over epoll: what the kernel
 * alone makes of their number. As many processes an end as its connections need file tables. */
#include "bare.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { TABLE_CONNECTIONS = 15000, BATCH_EVENTS = 1024, MAX_PROCESSES = 64 };

/* What the processes of an end share: how far each is, and its count. */
struct shared {
    int is_ready[MAX_PROCESSES];
    int may_start;
    uint64_t transactions[MAX_PROCESSES];
    double elapsed_s[MAX_PROCESSES];
    double cpu_s[MAX_PROCESSES];
};

static void add_to_poll_set(int set, int s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = s};
    int one = 1;

    if (setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        die("TCP_NODELAY");
    if (epoll_ctl(set, EPOLL_CTL_ADD, s, &event) != 0)
        die("epoll_ctl");
}

static int new_poll_set(void)
{
    int set = epoll_create1(0);

    if (set < 0)
        die("epoll_create1");
    return set;
}

/* Answers until every connection has ended. */
static void serve_share(int listener, size_t connections, const struct options *o)
{
    struct epoll_event events[BATCH_EVENTS];
    int set = new_poll_set();
    size_t open = connections;
    char byte;

    for (size_t i = 0; i < connections; i++)
        add_to_poll_set(set, accept_one(listener, o));
    while (open > 0) {
        int ready = epoll_wait(set, events, BATCH_EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int s = events[i].data.fd;
            if (recv(s, &byte, 1, MSG_DONTWAIT) == 1 && send(s, &byte, 1, MSG_NOSIGNAL) == 1)
                continue;
            close(s);
            open--;
        }
    }
}

/* A socket of its own source address: one address has too few ports for all processes. */
static int connect_from(int process, const struct options *o)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)o->port)};
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)process)};
    int one = 1;
    int s = socket(AF_INET, SOCK_STREAM, 0);

    if (s < 0)
        die("socket");
    if (inet_pton(AF_INET, o->host, &to.sin_addr) != 1)
        usage("client");
    if (setsockopt(s, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one) != 0 ||
        bind(s, (struct sockaddr *)&from, sizeof from) != 0)
        die("bind");
    if (connect(s, (struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    return s;
}

static void ask_share(int process, size_t connections, struct shared *shared, const struct options *o)
{
    struct epoll_event events[BATCH_EVENTS];
    int *sockets = calloc(connections, sizeof *sockets);
    int set = new_poll_set();
    uint64_t transactions = 0;
    double cpu, start, now;
    char byte = 0;

    if (!sockets)
        die("calloc");
    for (size_t i = 0; i < connections; i++) {
        sockets[i] = connect_from(process, o);
        add_to_poll_set(set, sockets[i]);
    }
    __atomic_store_n(&shared->is_ready[process], 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&shared->may_start, __ATOMIC_ACQUIRE))
        usleep(1000);
    cpu = cpu_s();
    now = start = now_s();
    for (size_t i = 0; i < connections; i++)
        if (send(sockets[i], &byte, 1, MSG_NOSIGNAL) != 1)
            die("send");
    while (now - start < o->seconds) {
        int ready = epoll_wait(set, events, BATCH_EVENTS, 100);
        for (int i = 0; i < ready; i++) {
            int s = events[i].data.fd;
            if (recv(s, &byte, 1, MSG_DONTWAIT) != 1 || send(s, &byte, 1, MSG_NOSIGNAL) != 1)
                die("transaction");
            transactions++;
        }
        now = now_s();
    }
    shared->transactions[process] = transactions;
    shared->elapsed_s[process] = now - start;
    shared->cpu_s[process] = cpu_s() - cpu;
}

/* The connections of one process: an even share. */
static size_t share_of(int process, int processes, size_t connections)
{
    return connections / (size_t)processes + ((size_t)process < connections % (size_t)processes);
}

static void start_together(struct shared *shared, int processes)
{
    for (int process = 0; process < processes; process++)
        while (!__atomic_load_n(&shared->is_ready[process], __ATOMIC_ACQUIRE))
            if (waitpid(-1, NULL, WNOHANG) > 0)
                exit(1);
            else
                usleep(1000);
    __atomic_store_n(&shared->may_start, 1, __ATOMIC_RELEASE);
}

int main(int argc, char **argv)
{
    struct options o = parse_options(argc, argv, 1);
    int processes = (int)((o.connections + TABLE_CONNECTIONS - 1) / TABLE_CONNECTIONS);
    int listener = o.is_server ? bind_and_announce(SOCK_STREAM, o.port) : -1;
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t transactions = 0;
    double elapsed = 0, cpu = 0;
    int status, failed = 0;

    if (shared == MAP_FAILED || processes > MAX_PROCESSES)
        die("processes");
    if (o.is_server && listen(listener, 4096) != 0)
        die("listen");
    for (int process = 0; process < processes; process++) {
        size_t share = share_of(process, processes, o.connections);
        pid_t child = fork();
        if (child < 0)
            die("fork");
        if (child > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (o.is_server)
            serve_share(listener, share, &o);
        else
            ask_share(process, share, shared, &o);
        _exit(0);
    }
    if (!o.is_server)
        start_together(shared, processes);
    while (wait(&status) > 0)
        failed |= status;
    for (int process = 0; process < processes; process++) {
        transactions += shared->transactions[process];
        cpu += shared->cpu_s[process];
        if (shared->elapsed_s[process] > elapsed)
            elapsed = shared->elapsed_s[process];
    }
    printf("{\"role\": \"%s\", \"transactions\": %llu, \"elapsed_s\": %.6f, \"cpu_s\": %.6f}\n",
           o.is_server ? "server" : "client", (unsigned long long)transactions, elapsed, cpu);
    return failed != 0;
}
