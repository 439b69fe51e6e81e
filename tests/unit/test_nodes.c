/* Who started this process, and what it is told when the others are not there. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/nodes.h"
#include "stderr_capture.h"

#include "../suite.h"

static const struct row {
    const char *name, *environment[6]; /* names and values */
    const char *by;                    /* NULL: alone */
    uint32_t node, count;
} rows[] = {
    {"nobody", {0}, NULL, 0, 1},
    {"mpirun", {"OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4"}, "Open MPI", 1, 4},
    {"MPICH", {"PMI_RANK", "0", "PMI_SIZE", "2"}, "MPI", 0, 2},
    {"MVAPICH2", {"MV2_COMM_WORLD_RANK", "3", "MV2_COMM_WORLD_SIZE", "4"}, "MVAPICH2", 3, 4},
    {"srun", {"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2"}, "srun", 1, 2},
    {"flux", {"FLUX_TASK_RANK", "1", "FLUX_JOB_SIZE", "2"}, "flux", 1, 2},
    {"a batch script of two tasks, which is one process", {"SLURM_PROCID", "0", "SLURM_NTASKS", "2"}, NULL, 0, 1},
    {"mpirun within a step",
     {"SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1", "OMPI_COMM_WORLD_RANK", "1"},
     "srun",
     0,
     1},
    {"half of a pair", {"OMPI_COMM_WORLD_RANK", "1"}, NULL, 0, 1},
};

static void set_environment(const struct row *r)
{
    clearenv();
    for (int i = 0; i < 6 && r->environment[i]; i += 2)
        setenv(r->environment[i], r->environment[i + 1], 1);
}

START_TEST(the_environment_says_who_started_us)
{
    const struct row *r = &rows[_i];
    struct start s;

    set_environment(r);
    s = nodes_start();
    ck_assert_msg((s.by != NULL) == (r->by != NULL), "%s: %s", r->name, s.by ? s.by : "nobody");
    if (r->by)
        ck_assert_str_eq(s.by, r->by);
    ck_assert_uint_eq(s.node, r->node);
    ck_assert_uint_eq(s.count, r->count);
}
END_TEST

/* mpirun within a Slurm step: the inner one counts. */
START_TEST(the_innermost_launcher_counts)
{
    struct start s;

    clearenv();
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    setenv("OMPI_COMM_WORLD_RANK", "2", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "3", 1);
    s = nodes_start();
    ck_assert_str_eq(s.by, "Open MPI");
    ck_assert_uint_eq(s.node, 2);
}
END_TEST

/* ---- a launcher whose other member never says anything ---- */

static uint32_t found = 2;

static enum status silent_open(void **state, uint32_t *node, uint32_t *count, char *why, size_t why_bytes)
{
    (void)state, (void)why, (void)why_bytes;
    *node = 0;
    *count = found;
    return ST_OK;
}

static enum status silent_send(void *state, uint32_t to, const void *data, size_t bytes)
{
    (void)state, (void)to, (void)data, (void)bytes;
    return ST_OK;
}

static bool silent_receive(void *state, uint32_t *from, void **data, size_t *bytes)
{
    (void)state, (void)from, (void)data, (void)bytes;
    return false;
}

static void silent_close(void *state)
{
    (void)state;
}

static const struct launcher silent = {"silent", silent_open, silent_send, silent_receive, silent_close};

START_TEST(alone_needs_no_launcher)
{
    struct nodes n;
    uint32_t all = 0;

    clearenv();
    ck_assert_int_eq(nodes_open(&n, NULL), ST_OK);
    ck_assert_uint_eq(n.count, 1);
    ck_assert_int_eq(nodes_gather(&n, &(uint32_t){7}, sizeof all, &all), ST_OK);
    ck_assert_uint_eq(all, 7);
    ck_assert_int_eq(nodes_agree(&n, ST_HANG), ST_HANG);
    nodes_close(&n);
}
END_TEST

START_TEST(what_was_started_has_to_be_found)
{
    struct nodes n;
    char said[512];

    clearenv();
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    stderr_capture_begin();
    ck_assert_int_eq(nodes_open(&n, NULL), ST_ENVIRONMENT);
    found = 1;
    ck_assert_int_eq(nodes_open(&n, &silent), ST_ENVIRONMENT);
    stderr_capture_end(said, sizeof said);
    nodes_close(&n);
    ck_assert_ptr_nonnull(strstr(said, "srun started this as process 0 of 2"));
    ck_assert_ptr_nonnull(strstr(said, "built without MPI"));
    ck_assert_ptr_nonnull(strstr(said, "but silent found 1: for srun, try --mpi=pmix"));
}
END_TEST

/* ---- a launcher whose other member says what this one says, or nearly ---- */

static uint8_t echo[4096];
static size_t echo_bytes;
static bool speaks_otherwise;

static enum status echo_send(void *state, uint32_t to, const void *data, size_t bytes)
{
    (void)state, (void)to;
    ck_assert_uint_le(bytes, sizeof echo);
    memcpy(echo, data, echo_bytes = bytes);
    for (size_t i = bytes; speaks_otherwise && i-- > 0;)
        if (echo[i] != 0) {
            echo[i] ^= 1; /* the end of its version */
            break;
        }
    return ST_OK;
}

static bool echo_receive(void *state, uint32_t *from, void **data, size_t *bytes)
{
    (void)state;
    if (echo_bytes == 0)
        return false;
    *from = 1;
    *data = malloc(echo_bytes);
    memcpy(*data, echo, echo_bytes);
    *bytes = echo_bytes;
    echo_bytes = 0;
    return true;
}

static const struct launcher echoing = {"echoing", silent_open, echo_send, echo_receive, silent_close};

START_TEST(only_the_same_version_will_do)
{
    struct nodes n;
    char said[512];

    clearenv();
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    speaks_otherwise = _i;
    stderr_capture_begin();
    ck_assert_int_eq(nodes_open(&n, &echoing), _i ? ST_ENVIRONMENT : ST_OK);
    stderr_capture_end(said, sizeof said);
    ck_assert_int_eq(strstr(said, "runs another version of mkernel") != NULL, _i);
    nodes_close(&n);
}
END_TEST

START_TEST(who_does_not_answer_is_named)
{
    char hosts[2][NODE_HOST_BYTES] = {"a", "b"}, said[512];
    struct nodes n = {.count = 2, .launcher = &silent, .hosts = hosts, .timeout_ns = 20000000};
    uint32_t all[2];

    stderr_capture_begin();
    ck_assert_int_eq(nodes_gather(&n, &(uint32_t){7}, sizeof *all, all), ST_HANG);
    ck_assert_int_eq(nodes_agree(&n, ST_OK), ST_HANG);
    stderr_capture_end(said, sizeof said);
    ck_assert_ptr_nonnull(strstr(said, "node 1 on b does not answer"));
}
END_TEST

START_TEST(an_interrupt_ends_waiting)
{
    static volatile sig_atomic_t interrupted = 1;
    char hosts[2][NODE_HOST_BYTES] = {"a", "b"};
    struct nodes n = {
        .count = 2, .launcher = &silent, .hosts = hosts, .timeout_ns = 3600000000000u, .interrupted = &interrupted};
    uint32_t all[2];

    ck_assert_int_eq(nodes_gather(&n, &(uint32_t){7}, sizeof *all, all), ST_INTERRUPTED);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("nodes");
    TCase *tc = tcase_create("nodes");

    tcase_add_loop_test(tc, the_environment_says_who_started_us, 0, sizeof rows / sizeof *rows);
    tcase_add_test(tc, the_innermost_launcher_counts);
    tcase_add_test(tc, alone_needs_no_launcher);
    tcase_add_test(tc, what_was_started_has_to_be_found);
    tcase_add_loop_test(tc, only_the_same_version_will_do, 0, 2);
    tcase_add_test(tc, who_does_not_answer_is_named);
    tcase_add_test(tc, an_interrupt_ends_waiting);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
