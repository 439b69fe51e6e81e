#include "backends/cpu/cpu.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "backends/cpu/fleet.h"

#define STACK_BYTES (1 << 20)

static const struct option cpu_options[] = {
    {"threads_per_crew", OPTION_COUNT, offsetof(struct cpu_options, threads_per_crew), "2", 1, 256, NULL,
     "threads that a crew gets at most; results never depend on it"},
    {"fifo", OPTION_COUNT, offsetof(struct cpu_options, fifo), "64", 1, 65536, NULL,
     "puts that may wait for a rank's proxy"},
    {"timeout", OPTION_TIME, offsetof(struct cpu_options, timeout_ps), "10s", 1e9, 3.6e15, NULL,
     "give up when no flag has moved for so long; ten times as long under a sanitizer"},
    WAY_OPTION_ROWS(struct cpu_options, way),
    {0},
};

static enum status cpu_available(char *why, size_t why_bytes)
{
    (void)why;
    (void)why_bytes;
    return ST_OK;
}

/* ---- threads ---- */

static bool start(pthread_t *thread, void *(*entry)(void *), void *arg)
{
    pthread_attr_t attributes;
    int error;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    error = pthread_create(thread, &attributes, entry, arg);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

static void open_gates(struct fleet *f)
{
    f->started_ns = clock_now_ns();
    for (uint32_t i = 0; i < f->rank_count; i++)
        f->ranks[i].started_ns[1] = f->started_ns;
    for (uint32_t i = 0; i < f->rank_count; i++)
        fleet_signal(f, f->first_rank + i, own_flag(f, OWN_BEGUN), 1);
}

/* Workers first stand at their gate, so that a thread that does not start ends the run before it
 * began.  The proxy serves the other nodes until all have ended. */
static void run_threads(struct fleet *f)
{
    uint32_t started = 0;

    if (fleet_net_start(f) < 0)
        return;
    while (started < f->worker_count && start(&f->workers[started].thread, worker_main, &f->workers[started]))
        started++;
    if (started < f->worker_count) {
        fleet_stop(f, STOP_START);
    } else if (fleet_net_meet(f) >= 0) {
        open_gates(f);
        fleet_watch(f);
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(f->workers[i].thread, NULL);
    if (!fleet_stopped(f))
        fleet_net_meet(f);
    fleet_net_stop(f);
}

/* ---- results ---- */

static uint64_t last_end_ns(const struct fleet *f, uint64_t epoch)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < f->rank_count; i++)
        last = max_u64(last, f->ranks[i].ended_ns[epoch % EPOCH_TIMES]);
    return last;
}

static uint64_t first_start_ns(const struct fleet *f, uint64_t epoch)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < f->rank_count; i++)
        first = min_u64(first, f->ranks[i].started_ns[epoch % EPOCH_TIMES]);
    return first;
}

static void fill_samples(const struct fleet *f, struct run_result *r)
{
    uint64_t count = min_u64(f->job->timing.iterations, RESULT_SAMPLES_MAX);

    for (uint64_t i = 0; i < count; i++) {
        uint64_t epoch = f->epochs - count + 1 + i;
        bool from_start = f->job->timing.mode == TIMING_ISOLATED || epoch == 1;
        uint64_t from_ns = from_start ? first_start_ns(f, epoch) : last_end_ns(f, epoch - 1);

        r->sample_ps[i] = (last_end_ns(f, epoch) - from_ns) * 1000;
    }
    r->sample_count = (uint32_t)count;
}

static void fill_crews(const struct fleet *f, struct run_result *r)
{
    const struct program *p = f->program;

    for (uint32_t i = 0; i < p->flag_group_count; i++)
        snprintf(r->causes[i], sizeof r->causes[i], "%s", p->flag_groups[i].name);
    snprintf(r->causes[p->flag_group_count], sizeof r->causes[0], BACKEND_CAUSE_PUTS);
    r->cause_count = p->flag_group_count + 1;
    r->crew_count = p->crew_count;
    for (uint32_t c = 0; c < p->crew_count; c++) {
        snprintf(r->crews[c].name, sizeof r->crews[c].name, "%s", p->crews[c].name);
        r->crews[c].workers = f->crew_threads[c];
    }
    for (uint32_t i = 0; i < f->worker_count; i++) {
        const struct worker *w = &f->workers[i];
        struct crew_result *crew = &r->crews[w->crew];

        crew->busy_ps += w->busy_ns * 1000;
        crew->idle_ps += w->idle_ns * 1000;
        for (uint32_t k = 0; k < r->cause_count; k++)
            crew->waiting_ps[k] += w->waiting_ns[k] * 1000;
        r->tasks += w->tasks;
        r->puts += w->puts;
        r->put_bytes += w->put_bytes;
        r->put_control_bytes += w->put_control_bytes;
    }
}

static void fill_checks(const struct fleet *f, struct run_result *r)
{
    for (uint32_t i = 0; i < f->rank_count; i++) {
        const struct check_report *c = &f->ranks[i].check;

        if (c->wrong > 0 && r->elements_wrong == 0)
            snprintf(r->report, sizeof r->report, "%s", c->first);
        r->elements_checked += c->checked;
        r->elements_wrong += c->wrong;
    }
    if (r->elements_wrong > 0) {
        size_t used = strlen(r->report);

        r->status = ST_WRONG;
        snprintf(r->report + used, sizeof r->report - used, "\n%" PRIu64 " of %" PRIu64 " elements are wrong",
                 r->elements_wrong, r->elements_checked);
    }
}

static void fill_result(const struct fleet *f, struct run_result *r)
{
    r->epochs = f->epochs;
    r->rows_dropped = f->dropped;
    r->proxy = (struct proxy_result){f->puts.depth_sum, f->puts.depth_max, f->puts.latency};
    fill_crews(f, r);
    fill_checks(f, r);
    switch ((enum stop)f->stop) {
    case STOP_NOT: fill_samples(f, r); break;
    case STOP_START:
        r->status = ST_ENVIRONMENT;
        snprintf(r->report, sizeof r->report, "cpu: the system refused to start %" PRIu32 " threads", f->worker_count);
        break;
    case STOP_OVERFLOW:
        r->status = f->failed;
        snprintf(r->report, sizeof r->report, "%s", f->failure);
        break;
    case STOP_NET:
        r->status = f->failed;
        fleet_report_hang(f, r->report, sizeof r->report);
        break;
    case STOP_QUIESCENT:
    case STOP_TIMEOUT:
    case STOP_INTERRUPTED:
        r->status = f->stop == STOP_INTERRUPTED ? ST_INTERRUPTED : ST_HANG;
        fleet_report_hang(f, r->report, sizeof r->report);
        break;
    }
}

/* ---- the backend ---- */

static enum status refuse_memory(const struct job *job, uint64_t needed, struct run_result *r)
{
    const double mib = 1 << 20;

    if (job->memory_limit_bytes > 0)
        snprintf(r->report, sizeof r->report,
                 "cpu: this needs up to %.0f MiB for the windows of %" PRIu32
                 " ranks and the check, the limit is %.0f MiB",
                 (double)needed / mib, world_ranks(job->program->world), (double)job->memory_limit_bytes / mib);
    else
        snprintf(r->report, sizeof r->report, "cpu: the system did not give up to %.0f MiB", (double)needed / mib);
    return r->status = ST_MEMORY;
}

static enum status cpu_run(const struct job *job, struct run_result *r)
{
    uint64_t needed = fleet_memory_bytes(job);
    struct fleet *f;

    memset(r, 0, sizeof *r);
    snprintf(r->model, sizeof r->model, "threads");
    if (needed == UINT64_MAX || (job->memory_limit_bytes > 0 && needed > job->memory_limit_bytes))
        return refuse_memory(job, needed, r);
    f = fleet_create(job);
    if (!f)
        return refuse_memory(job, needed, r);
    if ((r->status = fleet_net_open(f)) < 0) {
        snprintf(r->report, sizeof r->report, "%s", f->failure);
    } else {
        run_threads(f);
        fleet_log_tell(f);
        fill_result(f, r);
    }
    fleet_destroy(f);
    return r->status;
}

static enum status check_options(const void *given, struct complaint *c)
{
    const struct cpu_options *o = given;

    return way_check_options(&o->way, NULL, c);
}

const struct backend cpu_backend = {
    .name = "cpu",
    .title = "threads with real data, every element checked",
    .options = cpu_options,
    .options_size = sizeof(struct cpu_options),
    .exclusive = true,
    .per_node = true,
    .check_options = check_options,
    .available = cpu_available,
    .memory_bytes = fleet_memory_bytes,
    .run = cpu_run,
};
