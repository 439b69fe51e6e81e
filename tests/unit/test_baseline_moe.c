/* The baseline of kernels that send tokens to experts, with traffic that is easy to count. */
#include <check.h>
#include <string.h>

#include "model_machines.h"
#include "sim/baseline_moe.h"
#include "sim/gemm_cost.h"

#include "../suite.h"

static struct traffic told; /* what the fake kernels say of every epoch, for a whole piece of one */

static void traffic(const struct problem *problem, struct world world, uint64_t seed, uint64_t epoch,
                    uint64_t tile_rows, struct traffic *out)
{
    uint64_t pieces = 4096 / problem->moe.tokens;

    (void)world, (void)seed, (void)tile_rows;
    *out = (struct traffic){.inter_once_max = told.inter_once_max * epoch / pieces,
                            .intra_once_max = told.intra_once_max / pieces,
                            .inter_each_max = told.inter_each_max / pieces,
                            .intra_each_max = told.intra_each_max / pieces,
                            .tile_rows_max = told.tile_rows_max / pieces};
}

static const struct kernel kernel = {.family = &problem_moe, .collective = COLLECTIVE_ALL_TO_ALL, .traffic = traffic};
static const struct kernel layer = {
    .family = &problem_moe_ffn, .collective = COLLECTIVE_ALL_TO_ALL, .traffic = traffic};

static const struct problem problem = {
    .moe = {.tokens = 4096, .hidden = 1024, .inter = 512, .experts = 64, .top_k = 4}};

static struct run_result result;

static struct job make_job(const struct machine *m, struct world w, enum timing_mode mode)
{
    told = (struct traffic){.inter_once_max = 48000000,
                            .intra_once_max = 37000000,
                            .inter_each_max = 4 * 48000000,
                            .intra_each_max = 37000000,
                            .rows_max = 0,
                            .tile_rows_max = 1024};
    return (struct job){
        .world = w, .kernel = &kernel, .problem = &problem, .machine = m, .timing = {.mode = mode, .iterations = 3}};
}

/* Reordering and messages cost nothing on this machine: what is left is fixed parts, bytes and the GEMM. */
static struct machine plain_machine(void)
{
    struct machine m = model_machine_hgx();

    m.gpu.memory_rate = 0;
    m.nic = (__typeof__(m.nic)){.per_gpu = 1, .rate = 48e9, .latency_ps = 5000000};
    m.nvlink.rate = 370e9;
    return m;
}

START_TEST(times_add_up)
{
    struct machine m = plain_machine();
    struct job job = make_job(&m, (struct world){2, 8}, TIMING_ISOLATED);
    struct problem work = {.m = 1024, .n = 512, .k = 1024};
    double gemm = (double)gemm_piece_ps(&m, work, m.gpu.sms, gemm_step_ps(&m, work, m.gpu.sms));

    /* sizes 13 us, then 1 ms over the NIC and 0.1 ms over NVLink, one by one; or 4 ms over the NIC at once */
    ck_assert_double_eq_tol(moe_baseline_ps(&job, 1, MOE_ONCE, 1), 13e6 + 13e6 + 1e9 + 8e6 + 1e8 + gemm, 1e4);
    ck_assert_double_eq_tol(moe_baseline_ps(&job, 1, MOE_EACH, 1), 13e6 + 13e6 + 4e9 + gemm, 1e4);
}
END_TEST

/* A feed-forward layer: three times the GEMM work, and the way back. */
START_TEST(results_travel_back)
{
    struct machine m = plain_machine();
    struct job job = make_job(&m, (struct world){2, 8}, TIMING_ISOLATED);
    struct problem all = {.m = 1024, .n = 3 * 512, .k = 1024}, up = {.m = 1024, .n = 2 * 512, .k = 1024};
    struct problem down = {.m = 1024, .n = 1024, .k = 512};
    uint64_t step = gemm_step_ps(&m, all, m.gpu.sms);
    double gemms;

    job.kernel = &layer;
    all.m = 4096 * 4 / 16; /* as many rows as a rank has on average */
    gemms = (double)gemm_piece_ps(&m, up, m.gpu.sms, step) + (double)gemm_piece_ps(&m, down, m.gpu.sms, step);
    ck_assert_double_eq_tol(moe_baseline_ps(&job, 1, MOE_ONCE, 1), 13e6 + 2 * (13e6 + 1e9 + 8e6 + 1e8) + gemms, 1e4);
    ck_assert_double_eq_tol(moe_baseline_ps(&job, 1, MOE_EACH, 1), 13e6 + 2 * (13e6 + 4e9) + gemms, 1e4);
}
END_TEST

/* Cut in pieces, one piece's GEMM hides behind the transfer of the others, at the price of their fixed parts. */
START_TEST(pieces_overlap)
{
    struct machine m = plain_machine();
    struct job job = make_job(&m, (struct world){2, 8}, TIMING_ISOLATED);
    double whole, four;

    told.tile_rows_max = 65536;
    whole = moe_baseline_ps(&job, 1, MOE_EACH, 1);
    four = moe_baseline_ps(&job, 1, MOE_EACH, 4);
    ck_assert_double_lt(four, whole);
    ck_assert_double_gt(four, 13e6 + 4e9 + 4 * 13e6);
    ck_assert_int_eq(moe_baseline_run(&job, BASELINE_STREAMS, &result), ST_OK);
    ck_assert_uint_lt(result.sample_ps[0], (uint64_t)whole);
    ck_assert(strstr(result.choice, " pieces, de-duplicated; expanded rows takes ") != NULL);
    told.tile_rows_max = 1; /* nothing to hide */
    ck_assert_int_eq(moe_baseline_run(&job, BASELINE_STREAMS, &result), ST_OK);
    ck_assert(strstr(result.choice, "1 piece, ") == result.choice);
}
END_TEST

START_TEST(every_epoch_has_its_own_traffic)
{
    struct machine m = plain_machine();
    struct job job = make_job(&m, (struct world){2, 8}, TIMING_ISOLATED);

    ck_assert_int_eq(moe_baseline_run(&job, BASELINE_NCCL, &result), ST_OK);
    ck_assert_uint_eq(result.sample_count, 3);
    ck_assert_uint_eq(result.sample_ps[1] - result.sample_ps[0], 1000000000);
    ck_assert(strstr(result.choice, "de-duplicated; expanded rows takes ") == result.choice);
    job.timing.mode = TIMING_PIPELINED;
    ck_assert_int_eq(moe_baseline_run(&job, BASELINE_NCCL, &result), ST_OK);
    ck_assert_uint_eq(result.sample_count, 1);
}
END_TEST

START_TEST(one_rank_exchanges_nothing)
{
    struct machine m = plain_machine();
    struct job job = make_job(&m, (struct world){1, 1}, TIMING_ISOLATED);
    double once = moe_baseline_ps(&job, 1, MOE_ONCE, 1);

    ck_assert_double_eq(once, moe_baseline_ps(&job, 1, MOE_EACH, 1));
    ck_assert_double_lt(once, 1e9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("baseline_moe");
    TCase *tc = tcase_create("baseline_moe");

    tcase_add_test(tc, times_add_up);
    tcase_add_test(tc, every_epoch_has_its_own_traffic);
    tcase_add_test(tc, one_rank_exchanges_nothing);
    tcase_add_test(tc, results_travel_back);
    tcase_add_test(tc, pieces_overlap);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
