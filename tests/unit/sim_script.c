#include "sim_script.h"

#include <check.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { X, Y }; /* buffers */

static uint64_t queue_length(const struct program *p, uint32_t rank, uint32_t queue)
{
    const struct script *s = p->state;

    return s->lengths[rank][queue];
}

static void task(const struct program *p, uint32_t rank, uint32_t queue, uint64_t index, struct task *t)
{
    const struct script *s = p->state;

    *t = s->tasks[rank][queue][index];
}

static uint64_t flag_total(const struct program *p, uint32_t rank, uint32_t flag)
{
    const struct script *s = p->state;
    uint64_t total = 0;

    for (uint32_t from = 0; from < world_ranks(p->world); from++)
        for (uint32_t q = 0; q < p->queue_count; q++)
            for (uint64_t i = 0; i < s->lengths[from][q]; i++)
                for (uint32_t g = 0; g < s->tasks[from][q][i].signal_count; g++) {
                    const struct signal *x = &s->tasks[from][q][i].signals[g];
                    uint32_t first, count = program_target_ranks(p, from, x->rank, &first);

                    if (x->flag == flag && rank >= first && rank - first < count)
                        total += x->add;
                }
    return total;
}

static uint32_t io(const struct program *p, uint32_t rank, struct io_slice out[PROGRAM_IO_MAX])
{
    const struct script *s = p->state;

    (void)rank;
    out[0] = s->input;
    return s->input.rows > 0;
}

static uint32_t segment_table_size(const struct program *p, uint32_t rank, uint32_t table)
{
    const struct script *s = p->state;

    (void)rank;
    (void)table;
    return s->segment_count;
}

static void segment(const struct program *p, uint32_t rank, uint32_t table, uint32_t index, struct segment *out)
{
    const struct script *s = p->state;

    (void)rank;
    (void)table;
    *out = s->segments[index];
}

static const struct program_ops script_ops = {
    .queue_length = queue_length,
    .task = task,
    .flag_total = flag_total,
    .io = io,
    .segment_table_size = segment_table_size,
    .segment = segment,
};

static const struct machine round_machine = {
    .name = "round",
    .nodes_max = 4,
    .gpus_per_node = 4,
    .gpu = {.sms = 4},
    .gemm = {.tile_m = 128,
             .tile_n = 256,
             .step_k = 64,
             .fixed_ps = US,
             .step_count = 1,
             .steps = {{.duration_ps = 0, .step_ps = US}}},
    .copy =
        {.push_rate = 65536e6, .pull_rate = 32768e6, .drained_ps = 3 * US, .pipelined_ps = US, .reduce_rate = 65536e6},
    .program = {.gemm = 1, .attention = 1, .attention_64 = 1},
    .flag = {.dispatch_ps = US / 2, .local_ps = US / 4, .peer_ps = US * 3 / 2},
    .host = {.launch_ps = 5 * US, .issue_ps = 100 * US},
    .nvlink = {.rate = 262144e6, .latency_ps = US},
    .nic = {.per_gpu = 1, .rate = 32768e6, .latency_ps = 4 * US, .message_ps = US, .kind = NIC_RC},
    .proxy = {.push_ps = US / 5, .notice_ps = 2 * US, .post_ps = US, .fifo_depth = 2},
};

static struct problem global(const struct problem *problem, struct world world)
{
    (void)world;
    return *problem;
}

static const struct kernel no_kernel = {.name = "script", .family = &problem_gemm, .global = global};

void script_init(struct script *s, uint32_t nodes, uint32_t gpus_per_node)
{
    struct program *p = &s->program;

    memset(s, 0, sizeof *s);
    *p = (struct program){.world = {nodes, gpus_per_node}, .ops = &script_ops, .state = s};
    program_add_buffer(p, (struct buffer){"X", DTYPE_BF16, 1024, 1024, 1});
    program_add_buffer(p, (struct buffer){"Y", DTYPE_BF16, 1024, 1024, 1});
    program_add_flags(p, "ready", 4);
    program_add_flags(p, "done", 4);
    program_crew_drains(p, program_add_crew(p, "compute", 1), program_add_queue(p, "compute"));
    program_crew_drains(p, program_add_crew(p, "comm", 1), program_add_queue(p, "comm"));
    s->machine = round_machine;
    s->problem = (struct problem){.m = 128, .n = 256, .k = 64};
    s->job = (struct job){.program = p,
                          .world = p->world,
                          .kernel = &no_kernel,
                          .problem = &s->problem,
                          .machine = &s->machine,
                          .options = &s->options,
                          .seed = 1,
                          .timing = {.mode = TIMING_ISOLATED, .iterations = 1}};
}

struct task *script_add(struct script *s, uint32_t rank, uint32_t queue)
{
    struct task *t = &s->tasks[rank][queue][s->lengths[rank][queue]++];

    ck_assert_uint_le(s->lengths[rank][queue], SCRIPT_TASKS);
    t->segment_table = NO_TABLE;
    return t;
}

static struct operand at(uint32_t rank, uint32_t buffer, uint64_t row)
{
    return (struct operand){.rank = rank, .buffer = buffer, .offset = row * 1024, .ld = 1024};
}

struct task *script_gemm(struct script *s, uint32_t rank, uint32_t queue, uint64_t k, uint32_t target)
{
    struct task *t = script_add(s, rank, queue);

    t->op = OP_GEMM;
    t->m = 128;
    t->n = 256;
    t->k = k;
    t->a = at(rank, X, 0);
    t->b = at(rank, X, 512);
    task_store_to(t, at(target, Y, 0));
    return t;
}

struct task *script_copy(struct script *s, uint32_t rank, uint32_t queue, uint64_t row, uint32_t target)
{
    struct task *t = script_add(s, rank, queue);

    t->op = OP_COPY;
    t->m = 32;
    t->n = 1024;
    t->a = at(rank, X, row);
    task_store_to(t, at(target, Y, row));
    return t;
}

struct task *script_put(struct script *s, uint32_t rank, uint32_t queue, uint64_t row, uint32_t target, uint32_t flag)
{
    struct task *t = script_copy(s, rank, queue, row, target);

    t->op = OP_PUT;
    task_signal(t, target, flag, 1);
    return t;
}

struct task *script_nop(struct script *s, uint32_t rank, uint32_t queue, uint32_t flag, uint64_t value)
{
    struct task *t = script_add(s, rank, queue);

    t->op = OP_NOP;
    task_wait(t, flag, 1, value);
    return t;
}

struct run_result script_run(struct script *s)
{
    struct run_result r;
    char *at_byte = (char *)&r;
    size_t left = sizeof r;
    int ends[2], status;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        sim_backend.run(&s->job, &r);
        _exit(write(ends[1], &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
    }
    close(ends[1]);
    while (left > 0) {
        ssize_t n = read(ends[0], at_byte, left);

        ck_assert_msg(n > 0, "the run ended without a result");
        at_byte += n;
        left -= (size_t)n;
    }
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return r;
}

uint64_t script_time_ps(struct script *s)
{
    struct run_result r = script_run(s);

    ck_assert_msg(r.status == ST_OK, "%s", r.report);
    ck_assert_uint_eq(r.sample_count, 1);
    return r.sample_ps[0];
}
