#include "core/run/nodes.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/build.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/run/run.h"

#define POLL_MS 1
#define TIMEOUT_FIRST_NS 60000000000u /* to greet */

/* ---- who started us ---- */

/* The innermost comes first: mpirun within a Slurm job sets both. */
static const struct starter {
    const char *name, *rank, *size;
} starters[] = {
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
    {"MPI", "PMI_RANK", "PMI_SIZE"},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}, /* SLURM_NTASKS is set in a batch script, too */
    {"flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
};

struct start nodes_start(void)
{
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        const char *rank = getenv(starters[i].rank), *size = getenv(starters[i].size);

        if (rank && size && strtoul(size, NULL, 10) > 0)
            return (struct start){starters[i].name, (uint32_t)strtoul(rank, NULL, 10),
                                  (uint32_t)strtoul(size, NULL, 10)};
    }
    return (struct start){.by = NULL, .count = 1};
}

/* ---- messages ---- */

struct header {
    uint32_t kind, number;
};

enum status nodes_tell(struct nodes *n, enum message_kind kind, uint32_t number, const void *data, size_t bytes)
{
    struct header h = {kind, number};
    uint8_t *whole = malloc(sizeof h + bytes);
    enum status st = whole ? ST_OK : ST_MEMORY;

    if (whole) {
        memcpy(whole, &h, sizeof h);
        if (bytes > 0)
            memcpy(whole + sizeof h, data, bytes);
    }
    for (uint32_t to = 0; to < n->count && st >= 0; to++)
        if (to != n->node)
            st = n->launcher->send(n->state, to, whole, sizeof h + bytes);
    free(whole);
    if (st < 0)
        log_error("%s: a message of %zu bytes to the other nodes could not be sent", n->launcher->name, bytes);
    return st;
}

static struct message *message_create(uint32_t from, void *whole, size_t bytes)
{
    struct message *m = calloc(1, sizeof *m);
    struct header h;

    if (!m || bytes < sizeof h) {
        free(m);
        return NULL;
    }
    memcpy(&h, whole, sizeof h);
    memmove(whole, (uint8_t *)whole + sizeof h, bytes - sizeof h);
    *m = (struct message){.from = from, .kind = h.kind, .number = h.number, .bytes = bytes - sizeof h, .data = whole};
    return m;
}

void message_free(struct message *m)
{
    if (m)
        free(m->data);
    free(m);
}

static bool is_stale(const struct nodes *n, const struct message *m)
{
    return m->kind != MESSAGE_GATHER && m->number < n->runs;
}

void nodes_pump(struct nodes *n)
{
    struct message **at = &n->inbox;
    uint32_t from;
    void *whole;
    size_t bytes;

    while (*at) {
        struct message *m = *at;

        if (is_stale(n, m)) {
            *at = m->next;
            message_free(m);
        } else {
            at = &m->next;
        }
    }
    while (n->launcher->receive(n->state, &from, &whole, &bytes)) {
        *at = message_create(from, whole, bytes);
        if (*at)
            at = &(*at)->next;
        else
            free(whole);
    }
}

struct message *nodes_take(struct nodes *n, uint32_t from, enum message_kind kind, uint32_t number)
{
    for (struct message **at = &n->inbox; *at; at = &(*at)->next) {
        struct message *m = *at;

        if (m->from == from && m->kind == kind && m->number == number) {
            *at = m->next;
            return m;
        }
    }
    return NULL;
}

/* ---- gathering ---- */

static enum status await_from(struct nodes *n, uint32_t from, uint32_t number, uint64_t deadline_ns,
                              struct message **out)
{
    for (;;) {
        nodes_pump(n);
        *out = nodes_take(n, from, MESSAGE_GATHER, number);
        if (*out)
            return ST_OK;
        if (n->interrupted && *n->interrupted)
            return ST_INTERRUPTED;
        if (clock_now_ns() > deadline_ns) {
            log_error("node %u%s%s does not answer", from, n->hosts[from][0] ? " on " : "", n->hosts[from]);
            return ST_HANG;
        }
        poll(NULL, 0, POLL_MS);
    }
}

enum status nodes_gather(struct nodes *n, const void *mine, size_t bytes, void *all)
{
    uint64_t deadline_ns = clock_now_ns() + n->timeout_ns;
    uint32_t number = n->gathers++;

    memmove((uint8_t *)all + n->node * bytes, mine, bytes);
    if (n->count == 1)
        return ST_OK;
    TRY(nodes_tell(n, MESSAGE_GATHER, number, mine, bytes));
    for (uint32_t from = 0; from < n->count; from++) {
        struct message *m;

        if (from == n->node)
            continue;
        TRY(await_from(n, from, number, deadline_ns, &m));
        if (m->bytes == bytes) {
            memcpy((uint8_t *)all + from * bytes, m->data, bytes);
            message_free(m);
            continue;
        }
        log_error("node %u on %s runs another version of mkernel", from, n->hosts[from]);
        message_free(m);
        return ST_ENVIRONMENT;
    }
    return ST_OK;
}

enum status nodes_agree(struct nodes *n, enum status st)
{
    int *all = calloc(n->count, sizeof *all);
    enum status worst = all ? nodes_gather(n, &(int){st}, sizeof *all, all) : ST_MEMORY;

    for (uint32_t i = 0; i < n->count && worst >= 0 && all; i++)
        st = status_worse(st, (enum status)all[i]);
    free(all);
    return worst < 0 ? worst : st;
}

/* ---- open and close ---- */

static enum status refuse(const struct start *s, const struct launcher *l, uint32_t count)
{
    if (!l)
        log_error("%s started this as process %u of %u, one a node, but this mkernel was built without MPI", s->by,
                  s->node, s->count);
    else
        log_error("%s started this as process %u of %u, but %s found %u: for srun, try --mpi=pmix", s->by, s->node,
                  s->count, l->name, count);
    return ST_ENVIRONMENT;
}

/* What is said first: all that follows means the same only to the same version. */
struct greeting {
    char host[NODE_HOST_BYTES];
    char version[64];
};

static enum status take_greetings(struct nodes *n, const struct greeting *all)
{
    const struct greeting *mine = &all[n->node];

    for (uint32_t i = 0; i < n->count; i++)
        memcpy(n->hosts[i], all[i].host, sizeof n->hosts[i]);
    for (uint32_t i = 0; i < n->count; i++)
        if (memcmp(all[i].version, mine->version, sizeof mine->version) != 0) {
            log_error("node %u on %s runs another version of mkernel, %.63s, than node %u on %s, %s", i, all[i].host,
                      all[i].version, n->node, mine->host, mine->version);
            return ST_ENVIRONMENT;
        }
    return ST_OK;
}

static enum status greet(struct nodes *n)
{
    struct greeting *all = calloc(n->count, sizeof *all), mine = {.host = ""};
    enum status st = ST_MEMORY;

    n->hosts = calloc(n->count, sizeof *n->hosts);
    gethostname(mine.host, sizeof mine.host - 1);
    snprintf(mine.version, sizeof mine.version, "%s %s", build_version, build_commit);
    if (all && n->hosts)
        st = nodes_gather(n, &mine, sizeof mine, all);
    if (st >= 0)
        st = take_greetings(n, all);
    free(all);
    return st;
}

/* Launchers like to give a process one core; here it has many threads, which would wait for each other. */
static void warn_of_binding(const struct start *s)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1 && online > 1)
        log_warn("%s lets this process use 1 of %ld cores: mpirun --bind-to none, srun --cpus-per-task=%ld", s->by,
                 online, online);
}

enum status nodes_open(struct nodes *n, const struct launcher *launcher)
{
    struct start s = nodes_start();
    char why[256] = "";
    enum status st;

    *n = (struct nodes){.count = 1, .timeout_ns = TIMEOUT_FIRST_NS};
    if (s.count == 1)
        return ST_OK;
    if (!launcher)
        return refuse(&s, NULL, 0);
    st = launcher->open(&n->state, &n->node, &n->count, why, sizeof why);
    if (st < 0) {
        log_error("%s: %s", launcher->name, why);
        return st;
    }
    n->launcher = launcher;
    if (n->count != s.count)
        return refuse(&s, launcher, n->count);
    warn_of_binding(&s);
    return greet(n);
}

void nodes_close(struct nodes *n)
{
    if (n->launcher)
        n->launcher->close(n->state);
    while (n->inbox) {
        struct message *m = n->inbox;

        n->inbox = m->next;
        message_free(m);
    }
    free(n->hosts);
    *n = (struct nodes){.count = 1};
}
