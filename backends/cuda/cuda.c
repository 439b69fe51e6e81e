#include "backends/cuda/cuda.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/baseline.h"
#include "backends/cuda/loopback.h"
#include "backends/cuda/rig.h"

static const struct option options[] = {
    {"devices", OPTION_COUNT, offsetof(struct cuda_options, devices), "0", 0, DEVICES_MAX, NULL,
     "devices to use at most; 0: all there are.  Ranks share them evenly, with SMs of their own"},
    {"shares", OPTION_COUNT, offsetof(struct cuda_options, shares), "1", 1, SHARES_MAX, NULL,
     "devices that a GPU counts as, each with its share of the SMs: tries on one GPU what takes several"},
    {"prefetch", OPTION_COUNT, offsetof(struct cuda_options, prefetch), "2", 1, GPU_PREFETCH_MAX, NULL,
     "tasks that a worker fetches ahead"},
    {"fifo", OPTION_COUNT, offsetof(struct cuda_options, fifo), "64", 1, 65536, NULL,
     "puts that may wait for a rank's proxy"},
    {"timeout", OPTION_TIME, offsetof(struct cuda_options, timeout_ps), "10s", 1e9, 3.6e15, NULL,
     "give up when no flag has moved for so long"},
    WAY_OPTION_ROWS(struct cuda_options, way),
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

/* CUDA does not work in the children of a process that has used it, and runs happen in children. So
 * a child looks. */
static void look_and_tell(int pipe_end)
{
    char why[256] = "";

    devices_usable(why, sizeof why);
    _exit(write(pipe_end, why, sizeof why) != sizeof why);
}

static bool ask_child(int ends[2], char *why, size_t why_bytes)
{
    char answer[256];
    pid_t child = fork();
    bool told;

    if (child == 0)
        look_and_tell(ends[1]);
    close(ends[1]);
    told = child > 0 && read(ends[0], answer, sizeof answer) == sizeof answer;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    snprintf(why, why_bytes, "%s", told ? answer : "looking for a CUDA device failed");
    return told && answer[0] == '\0';
}

static enum status available(char *why, size_t why_bytes)
{
    int ends[2];

    if (pipe(ends) != 0) {
        snprintf(why, why_bytes, "no pipe to look for a CUDA device with");
        return ST_ENVIRONMENT;
    }
    return ask_child(ends, why, why_bytes) ? ST_OK : ST_ENVIRONMENT;
}

static enum status check_options(const void *given, struct complaint *c)
{
    const struct cuda_options *o = given;

    return way_check_options(&o->way, &cuda_loopback_transport, c);
}

static enum status run(const struct job *job, struct run_result *result)
{
    struct rig *r = calloc(1, sizeof *r);

    memset(result, 0, sizeof *result);
    snprintf(result->model, sizeof result->model, "cuda");
    if (!r)
        return result->status = ST_MEMORY;
    result->status = rig_create(job, r);
    if (result->status == ST_OK)
        result->status = rig_run(r, result);
    if (r->broken || result->status == ST_HANG)
        rig_report_hang(r, result->report, sizeof result->report);
    else if (result->status < 0)
        snprintf(result->report, sizeof result->report, "%s", r->why);
    rig_destroy(r);
    if (!r->way.stuck)
        free(r);
    return result->status;
}

static enum status baseline(const struct job *job, enum baseline which, struct run_result *result)
{
    memset(result, 0, sizeof *result);
    return result->status = baseline_measure(job, which, result);
}

const struct backend cuda_backend = {
    .name = "cuda",
    .title = "one persistent kernel per GPU, real data and real times",
    .options = options,
    .options_size = sizeof(struct cuda_options),
    .exclusive = true,
    .per_node = true,
    .check_options = check_options,
    .available = available,
    .memory_bytes = rig_memory_bytes,
    .run = run,
    .baseline = baseline,
};
