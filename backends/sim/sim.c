#include "backends/sim/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/sim/collective.h"
#include "backends/sim/control.h"
#include "backends/sim/data.h"
#include "backends/sim/epoch.h"
#include "backends/sim/fault.h"
#include "backends/sim/flags.h"
#include "backends/sim/fold.h"
#include "backends/sim/hang.h"
#include "backends/sim/jitter.h"
#include "backends/sim/state.h"
#include "backends/sim/stats.h"
#include "backends/sim/symmetry.h"
#include "backends/sim/tracing.h"
#include "sim/baseline.h"
#include "sim/gemm_cost.h"
#include "sim/library_cost.h"

static const struct option options[] = {
    {"data", OPTION_BOOL, offsetof(struct sim_options, data), "false", .help = "move and check real data"},
    {"jitter", OPTION_NUMBER, offsetof(struct sim_options, jitter), "0", .min = 0, .max = 0.5,
     .help = "relative spread of tile times, flag latencies and flows, drawn from the seed"},
    {"engine", OPTION_CHOICE, offsetof(struct sim_options, engine), "auto", .choices = "auto|kernel|s4u|fluid|alone",
     .help = "how links are shared: kernel, s4u: by SimGrid's network model, driven in two ways; fluid: the same rates "
             "by our own solver; alone: not at all; auto: SimGrid, and fluid for more than 64 ranks"},
    {"unordered", OPTION_BOOL, offsetof(struct sim_options, unordered), "false",
     .help = "puts of a pair may overtake each other on every kind of NIC (shows with jitter)"},
    {"disorder", OPTION_NUMBER, offsetof(struct sim_options, disorder), "1", .min = 1, .max = 10000,
     .help = "stretch delays by up to this factor, reorder puts, do without some workers, as "
             "mkernel explore does; 1: none"},
    {"launches", OPTION_COUNT, offsetof(struct sim_options, launches), "1", .min = 1, .max = 10000,
     .help = "kernels that an epoch takes, one behind the other; each after the first costs host.issue"},
    {"streams_others", OPTION_COUNT, offsetof(struct sim_options, streams_others), "32", .min = 1, .max = 32,
     .help =
         "streams of a GEMM or attention: pieces that others' rows are cut into at most, to replay a program by hand"},
    {"streams_own", OPTION_COUNT, offsetof(struct sim_options, streams_own), "32", .min = 1, .max = 32,
     .help = "the same of a rank's own rows, which all-reduce can cut"},
    {"fold", OPTION_CHOICE, offsetof(struct sim_options, fold), "auto", .choices = FOLD_CHOICES,
     .help =
         "simulate one node for all, where all do the same: node: or refuse; auto: above 1024 ranks, where it can be"},
    {"memory", OPTION_SIZE, offsetof(struct sim_options, memory_bytes), "0B",
     .help = "refuse to run above this estimate; 0B: the run's own limit alone"},
    {"fault", OPTION_CHOICE, offsetof(struct sim_options, fault), "none", .choices = FAULT_CHOICES,
     .help = "what goes wrong; links are those between nodes (docs/exploration.md)"},
    {"fault_rank", OPTION_COUNT, offsetof(struct sim_options, fault_rank), "0",
     .help = "the rank it strikes, or whose puts"},
    {"fault_put", OPTION_COUNT, offsetof(struct sim_options, fault_put), "1", .min = 1, .max = 1e18,
     .help = "dropped_put, duplicated_put: which of the rank's puts, from 1"},
    {"fault_factor", OPTION_NUMBER, offsetof(struct sim_options, fault_factor), "10", .min = 1, .max = 10000,
     .help = "straggler, slow_link: times as long"},
    {"fault_loss", OPTION_NUMBER, offsetof(struct sim_options, fault_loss), "0.1", .min = 0, .max = 0.99,
     .help = "lossy_link: share of messages that are lost and sent again"},
    {"fault_delay", OPTION_TIME, offsetof(struct sim_options, fault_delay_ps), "500us", .min = 1, .max = 1e15,
     .help = "lossy_link: time until a lost message is sent again"},
    {"fault_time", OPTION_TIME, offsetof(struct sim_options, fault_time_ps), "0us", .min = 0, .max = 1e18,
     .help = "dead_link, stopped_rank: from when on"},
    {0},
};

/* ---- memory ---- */

#define BASE_BYTES (64u << 20) /* SimGrid itself, libraries, code */
#define PORT_BYTES 16384u      /* links and routes of one GPU and its NICs */
#define PUT_SAMPLES 16         /* tasks of a queue that are looked at to see whether it holds puts */
#define IN_FLIGHT_BYTES 768u   /* of one flow: record, engine, SimGrid's action */

#define WORKER_TIME_MAX_S 2e6 /* a ninth of what 64 bits of picoseconds hold */

static uint32_t workers_per_rank(const struct program *p)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->crew_count; i++)
        count += p->crews[i].workers;
    return count;
}

static bool has_puts(const struct program *p, uint32_t rank, uint32_t queue, uint64_t length)
{
    struct task t;

    for (uint64_t i = 0; i < PUT_SAMPLES && i < length; i++) {
        program_task(p, rank, queue, part_begin(length, min_u64(length, PUT_SAMPLES), i), &t);
        if (t.op == OP_PUT)
            return true;
    }
    return false;
}

/* Each worker has at most one task's flows and one background store's; puts may all queue up. */
static uint64_t flows_in_flight(const struct job *job, uint32_t rank)
{
    const struct program *p = job->program;
    uint64_t flows = job->machine->nvlink.multicast ? 2 : p->world.gpus_per_node;

    flows *= workers_per_rank(p);
    for (uint32_t q = 0; q < p->queue_count; q++) {
        uint64_t length = program_queue_length(p, rank, q);

        if (p->world.nodes > 1 && has_puts(p, rank, q, length))
            flows += length;
    }
    return flows;
}

static uint64_t memory_bytes(const struct job *job)
{
    const struct program *p = job->program;
    const struct sim_options *o = job->options;
    uint64_t ranks = fold_ranks(job), bytes;

    if (!p)
        return BASE_BYTES + ranks * PORT_BYTES;
    bytes = BASE_BYTES + ranks * (PORT_BYTES + sizeof(struct rank));
    bytes += ranks * workers_per_rank(p) * (sizeof(struct worker) + 64);
    if (!job->data && !(o && o->data))
        bytes += ranks * program_control_bytes(p);
    bytes += ranks * p->flag_count * (sizeof(uint64_t) + sizeof(uint32_t));
    if (ranks < world_ranks(job->world))
        bytes += symmetry_bytes(p);
    for (uint32_t rank = 0; rank < ranks; rank++)
        bytes += flows_in_flight(job, rank) * IN_FLIGHT_BYTES;
    if ((job->data || (o && o->data)) &&
        __builtin_add_overflow(bytes, data_memory_bytes(job, workers_per_rank(p)), &bytes))
        return UINT64_MAX;
    return bytes;
}

static enum status check_memory(const struct sim *s)
{
    uint64_t needed = memory_bytes(s->job), limit = s->job->memory_limit_bytes;

    if (s->options.memory_bytes && (limit == 0 || s->options.memory_bytes < limit))
        limit = s->options.memory_bytes;
    if (limit == 0 || needed <= limit)
        return ST_OK;
    snprintf(s->result->report, sizeof s->result->report,
             "sim: needs about %" PRIu64 " MiB, the limit is %" PRIu64 " MiB\n", needed >> 20, limit >> 20);
    return ST_MEMORY;
}

/* By how much faults and disorder may lengthen a worker's time. */
static double stretch(const struct sim *s)
{
    double straggler = s->options.fault == FAULT_STRAGGLER ? s->options.fault_factor : 1;

    return straggler * s->options.disorder * s->options.disorder;
}

/* What keeps a rank's tensor cores busy: the longer, the lower the clock. */
static struct problem rank_gemm(const struct sim *s)
{
    const struct problem_family *f = s->job->kernel->family;

    return f && f->rank_gemm ? f->rank_gemm(s->job->problem, s->job->world) : *s->job->problem;
}

/* Times, and their sums over all workers, must fit 64 bits of picoseconds. */
static enum status check_duration(const struct sim *s)
{
    double tile_time_s = (double)library_cost_of(s->job->kernel)->ps(s->machine, s->job->problem, s->program->world) *
                         1e-12 * stretch(s);
    double worker_s = tile_time_s * s->rank_count * max_u64(s->workers_per_rank, s->machine->gpu.sms);

    if (tile_time_s < GEMM_TIME_MAX_PS * 1e-12 && worker_s * (double)s->epochs < WORKER_TIME_MAX_S)
        return ST_OK;
    snprintf(s->result->report, sizeof s->result->report,
             "sim: %" PRIu64 " epochs of a computation of about %.0f s are too long to be timed\n", s->epochs,
             tile_time_s);
    return ST_INPUT;
}

/* ---- one run ---- */

static void open_ranks(struct sim *s)
{
    double library_ps = (double)gemm_step_ps(s->machine, rank_gemm(s), s->machine->gpu.sms);
    uint64_t step_ps = (uint64_t)(library_ps * s->machine->program.gemm + 0.5);

    for (uint32_t i = 0; i < s->rank_count; i++) {
        struct rank *r = &s->ranks[i];

        r->step_ps = step_ps;
        r->fifo.first_blocked = NO_WORKER;
        for (uint32_t q = 0; q < s->program->queue_count; q++) {
            r->lengths[q] = program_queue_length(s->program, i, q);
            r->length += r->lengths[q];
        }
    }
}

static void open_workers(struct sim *s, uint32_t rank)
{
    struct worker *w = sim_worker(s, rank, 0);

    for (uint32_t crew = 0; crew < s->program->crew_count; crew++)
        for (uint32_t i = 0; i < s->program->crews[crew].workers; i++, w++) {
            w->id.rank = rank;
            w->crew = crew;
        }
}

static enum status refused_memory(struct sim *s)
{
    snprintf(s->result->report, sizeof s->result->report, "sim: the system refused memory\n");
    return ST_MEMORY;
}

static enum status open_tables(struct sim *s)
{
    uint64_t flags = (uint64_t)s->rank_count * s->program->flag_count;

    s->ranks = calloc(s->rank_count, sizeof *s->ranks);
    s->workers = calloc((size_t)s->rank_count * s->workers_per_rank + 1, sizeof *s->workers);
    s->counters = calloc(flags + 1, sizeof *s->counters);
    s->first_blocked = malloc((flags + 1) * sizeof *s->first_blocked);
    if (!s->ranks || !s->workers || !s->counters || !s->first_blocked)
        return refused_memory(s);
    for (uint64_t i = 0; i < flags; i++)
        s->first_blocked[i] = NO_WORKER;
    open_ranks(s);
    for (uint32_t rank = 0; rank < s->rank_count; rank++)
        open_workers(s, rank);
    pool_init(&s->flights, sizeof(struct flight));
    flags_open(s);
    return ST_OK;
}

static void sim_close(struct sim *s)
{
    control_close(s);
    data_close(s);
    pool_fini(&s->flights);
    pool_fini(&s->signals);
    free(s->ranks);
    free(s->workers);
    free(s->counters);
    free(s->first_blocked);
    fabric_destroy(s->fabric);
}

/* SimGrid's time for the changes of one moment grows with the square of their number, and nodes of a large world that
 * do the same do it at the same moment. */
#define SIMGRID_RANKS_MAX 64

static enum engine_api choose_engine(const struct sim *s)
{
    if (s->options.engine == ENGINE_AUTO && (s->folds || s->rank_count > SIMGRID_RANKS_MAX))
        return ENGINE_FLUID;
    return (enum engine_api)s->options.engine;
}

static enum status sim_open(struct sim *s)
{
    epoch_plan(s);
    TRY(check_memory(s));
    TRY(fold_open(s));
    TRY(fault_open(s));
    TRY(check_duration(s));
    TRY(open_tables(s));
    TRY(fabric_create(s->machine, s->program->world, s->rank_count / s->program->world.gpus_per_node, choose_engine(s),
                      &s->fabric));
    s->engine = fabric_engine(s->fabric);
    jitter_open(s, s->job->seed);
    stats_open(s);
    tracing_open(s);
    if (s->options.data && !data_open(s))
        return refused_memory(s);
    return control_open(s) ? ST_OK : refused_memory(s);
}

static void sim_run(struct sim *s)
{
    epoch_start(s);
    engine_run(s->engine);
    tracing_close(s);
    if (!s->failed && !epoch_all_done(s))
        hang_describe(s, ST_HANG, "no progress: every worker waits and nothing is in flight");
    data_verdict(s);
    stats_close(s);
    fold_close(s);
}

static enum status run(const struct job *job, struct run_result *r)
{
    struct machine machine = *job->machine;
    struct sim s = {
        .job = job,
        .program = job->program,
        .machine = &machine,
        .workers_per_rank = workers_per_rank(job->program),
        .result = r,
        .options = {.disorder = 1, .launches = 1},
    };

    if (job->options)
        s.options = *(const struct sim_options *)job->options;
    s.options.launches = max_u64(s.options.launches, 1); /* 0: filled by hand */
    s.options.data |= job->data;
    if (s.options.unordered || s.options.disorder > 1)
        machine.nic.kind = NIC_SRD;
    *r = (struct run_result){.status = ST_OK};
    enum status st = sim_open(&s);
    if (st < 0)
        r->status = st;
    else
        sim_run(&s);
    sim_close(&s);
    return r->status;
}

static enum status baseline(const struct job *job, enum baseline which, struct run_result *r)
{
    const struct sim_options *o = job->options;
    struct streams_pieces most = {0};

    if (o)
        most = (struct streams_pieces){(uint32_t)o->streams_others, (uint32_t)o->streams_own};
    return baseline_run(job, which, most, r);
}

/* SimGrid is linked in: there is nothing to look for. */
static enum status available(char *why, size_t why_bytes)
{
    (void)why;
    (void)why_bytes;
    return ST_OK;
}

const struct backend sim_backend = {
    .name = "sim",
    .title = "discrete events on a model of the machine (SimGrid)",
    .options = options,
    .options_size = sizeof(struct sim_options),
    .available = available,
    .memory_bytes = memory_bytes,
    .run = run,
    .baseline = baseline,
    .collective = collective_time,
};
