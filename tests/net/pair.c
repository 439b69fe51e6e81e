#include "pair.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/run/run_across.h"
#include "harness.h"

#define MESSAGE_BYTES 65536

uint32_t pair_node;

static int ends[2];
static const struct pair_trial *trial;

/* ---- a launcher of two ---- */

static enum status pair_open(void **state, uint32_t *node, uint32_t *count, char *why, size_t why_bytes)
{
    (void)state, (void)why, (void)why_bytes;
    *node = pair_node;
    *count = 2;
    return ST_OK;
}

static enum status pair_send(void *state, uint32_t to, const void *data, size_t bytes)
{
    uint8_t message[MESSAGE_BYTES];

    (void)state, (void)to;
    if (bytes > sizeof message)
        return ST_UNSUPPORTED;
    memcpy(message, data, bytes);
    if (pair_node == 1 && trial->tamper)
        trial->tamper(message, bytes);
    return send(ends[pair_node], message, bytes, MSG_NOSIGNAL) == (ssize_t)bytes ? ST_OK : ST_IO;
}

static bool pair_receive(void *state, uint32_t *from, void **data, size_t *bytes)
{
    uint8_t message[MESSAGE_BYTES];
    ssize_t n = recv(ends[pair_node], message, sizeof message, MSG_DONTWAIT);

    (void)state;
    if (n <= 0)
        return false;
    *from = 1 - pair_node;
    *data = malloc((size_t)n + 1);
    memcpy(*data, message, (size_t)n);
    *bytes = (size_t)n;
    return true;
}

static void pair_close(void *state)
{
    (void)state;
}

static const struct launcher pair_launcher = {
    .name = "a pair",
    .open = pair_open,
    .send = pair_send,
    .receive = pair_receive,
    .close = pair_close,
};

/* ---- a node ---- */

static void run_unit_here(struct run_unit *unit, struct pair_outcome *out)
{
    static volatile sig_atomic_t interrupted;
    struct run_config config = {.jobs = 1, .timeout_ns = 60000000000u, .interrupted = &interrupted};
    struct nodes nodes;

    if (nodes_open(&nodes, &pair_launcher) < 0)
        _exit(1);
    nodes.interrupted = &interrupted;
    out->status = run_units_across(&nodes, unit, 1, &config);
    if (unit->result) {
        out->status = unit->result->status;
        out->checked = unit->result->elements_checked;
        out->puts = unit->result->puts;
        out->puts_completed = unit->result->proxy.latency.count;
        memcpy(out->report, unit->result->report, sizeof unit->result->report);
        memcpy(out->model, unit->result->model, sizeof unit->result->model);
        free(unit->result);
    }
    nodes_close(&nodes);
}

static void run_node(struct pair_outcome *out)
{
    char params[4096] = "", backend_options[4096] = "", node[16];
    struct point point = {
        .kernel = trial->kernel,
        .problem = trial->problem,
        .world = {2, trial->gpus},
        .machine = harness_machine(),
        .variant = "fused",
        .program = PROGRAM_FUSED,
        .params = params,
    };
    struct run_unit unit = {
        .point = &point,
        .problem = point.problem,
        .backend = trial->backend,
        .options = backend_options,
        .timing = trial->timing,
        .data = true,
    };

    harness_options(trial->kernel->options, params, trial->params);
    harness_options(trial->backend->options, backend_options, trial->options);
    snprintf(node, sizeof node, "%u", pair_node);
    setenv("OMPI_COMM_WORLD_RANK", node, 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    run_unit_here(&unit, out);
}

double pair_run(const struct pair_trial *t, struct pair_outcome outcomes[2])
{
    const size_t bytes = 2 * sizeof *outcomes;
    uint64_t begin_ns = clock_now_ns();
    struct pair_outcome *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[2];

    trial = t;
    ck_assert_ptr_ne(shared, MAP_FAILED);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    for (pair_node = 0; pair_node < 2; pair_node++) {
        shared[pair_node].status = ST_UNSUPPORTED;
        pids[pair_node] = fork();
        if (pids[pair_node] == 0) {
            run_node(&shared[pair_node]);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
    close(ends[0]);
    close(ends[1]);
    memcpy(outcomes, shared, bytes);
    munmap(shared, bytes);
    return (double)(clock_now_ns() - begin_ns) / 1e9;
}
