/* NCCL's algorithms, simulated: times worked out by hand, folding against the whole, published
 * times. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "sim/nccl_flow.h"
#include "sim/pipeline.h"

#include "../suite.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

/* ---- stages and edges ---- */

static const uint8_t give[] = {PIPELINE_GIVE}, take[] = {PIPELINE_TAKE};
static const uint8_t pass[] = {PIPELINE_TAKE | PIPELINE_GIVE};

static uint32_t add_stage(struct pipeline *p, const uint8_t *pattern, uint64_t step_ps, double rate)
{
    return pipeline_add_stage(
        p, &(struct pipeline_stage){.pattern = pattern, .length = 1, .period = 1, .step_ps = step_ps, .rate = rate});
}

static struct engine *make_engine(const struct engine_port *ports, uint32_t count)
{
    struct engine_config config = {.api = ENGINE_FLUID, .ports = ports, .port_count = count};
    struct engine *engine;

    ck_assert_int_eq(engine_create(&config, &engine), ST_OK);
    return engine;
}

/* Three stages in a row, four slices of 1 MB: 10 us a slice on either link, 1 us a step, 2 us a
 * hop.  With room for slices the last stage ends after fill (11 + 2 + 11 + 2 + its own 21) and
 * three times the slowest stage, which is the last: 1 us + 20 us. */
START_TEST(a_chain_takes_its_fill_and_the_slowest_stage)
{
    static const struct engine_port ports[] = {{100e9, 0}, {100e9, 0}, {100e9, 0}};
    struct engine *engine = make_engine(ports, 3);
    struct pipeline *p = pipeline_create(engine, 4, 1000000, 1000000);
    uint32_t a = add_stage(p, give, 1000000, 0), b = add_stage(p, pass, 1000000, 0);
    uint32_t c = add_stage(p, take, 1000000, 50e9);

    pipeline_add_edge(p, &(struct pipeline_edge){a, b, 0, 1, 1, 0, 2000000, 4});
    pipeline_add_edge(p, &(struct pipeline_edge){b, c, 1, 2, 1, 0, 2000000, 4});
    pipeline_run(p);
    ck_assert_uint_eq(pipeline_loop_end_ps(p, 0), 47000000);
    ck_assert_uint_eq(pipeline_loop_end_ps(p, 3), 47000000 + 3 * 21000000);
    pipeline_destroy(p);
    engine_destroy(engine);
}
END_TEST

/* One slot: the giver waits for the taker's end and the way back. */
START_TEST(a_full_edge_holds_its_giver_up)
{
    static const struct engine_port ports[] = {{100e9, 0}, {100e9, 0}};
    struct engine *engine = make_engine(ports, 2);
    struct pipeline *p = pipeline_create(engine, 3, 1000000, 1000000);
    uint32_t a = add_stage(p, give, 0, 0), b = add_stage(p, take, 0, 100e9);

    pipeline_add_edge(p, &(struct pipeline_edge){a, b, 0, 1, 1, 0, 2000000, 1});
    pipeline_run(p);
    ck_assert_uint_eq(pipeline_loop_end_ps(p, 0), 22000000);
    ck_assert_uint_eq(pipeline_loop_end_ps(p, 2), 22000000 + 2 * 24000000);
    pipeline_destroy(p);
    engine_destroy(engine);
}
END_TEST

/* What leaves on one edge need not wait for the other. */
START_TEST(a_slice_arrives_when_its_own_bytes_have_left)
{
    static const struct engine_port ports[] = {{100e9, 0}, {10e9, 0}, {100e9, 0}, {10e9, 0}};
    struct engine *engine = make_engine(ports, 4);
    struct pipeline *p = pipeline_create(engine, 1, 1000000, 1000000);
    uint32_t a = add_stage(p, give, 0, 0), b = add_stage(p, take, 0, 10e9);
    uint32_t c = add_stage(p, take, 0, 0);

    pipeline_add_edge(p, &(struct pipeline_edge){a, b, 0, 2, 1, 0, 0, 1});
    pipeline_add_edge(p, &(struct pipeline_edge){a, c, 1, 3, 1, 0, 0, 1});
    pipeline_run(p);
    ck_assert_uint_eq(pipeline_loop_end_ps(p, 0), 110000000); /* 10 + 100, beside 100 */
    pipeline_destroy(p);
    engine_destroy(engine);
}
END_TEST

/* ---- algorithms ---- */

struct fold_row {
    uint32_t nodes, gpus;
    enum collective what;
    enum nccl_algorithm algorithm;
    enum nccl_protocol protocol;
    uint32_t channels;
    uint64_t bytes;
};

/* Sizes of few loops, where nothing is extrapolated. */
static const struct fold_row folds[] = {
    {1, 4, COLLECTIVE_ALL_GATHER, NCCL_RING, NCCL_SIMPLE, 24, 64 * MIB},
    {1, 4, COLLECTIVE_ALL_REDUCE, NCCL_RING, NCCL_LL, 24, MIB},
    {1, 4, COLLECTIVE_ALL_REDUCE, NCCL_NVLS, NCCL_SIMPLE, 16, 32 * MIB},
    {2, 4, COLLECTIVE_ALL_GATHER, NCCL_RING, NCCL_SIMPLE, 8, 64 * MIB},
    {2, 4, COLLECTIVE_ALL_REDUCE, NCCL_RING, NCCL_LL128, 8, 4 * MIB},
    {3, 4, COLLECTIVE_ALL_REDUCE, NCCL_TREE, NCCL_LL, 8, 256 * KIB},
    {4, 2, COLLECTIVE_ALL_REDUCE, NCCL_TREE, NCCL_SIMPLE, 4, 32 * MIB},
    {2, 4, COLLECTIVE_ALL_REDUCE, NCCL_NVLS_TREE, NCCL_SIMPLE, 16, 64 * MIB},
    {4, 1, COLLECTIVE_REDUCE_SCATTER, NCCL_PAT, NCCL_SIMPLE, 4, 4 * MIB},
};
#define FOLDS (int)(sizeof(folds) / sizeof(folds[0]))

static void load(const char *name, struct machine *m)
{
    ck_assert_int_eq(machine_load(name, m), ST_OK);
}

static uint64_t time_of(const struct fold_row *r, enum nccl_flow_extent extent)
{
    struct nccl_choice choice = {
        .found = true, .algorithm = r->algorithm, .protocol = r->protocol, .channels = r->channels};
    struct nccl_comm comm;
    struct machine m;

    load("hgx-h100-cx7", &m);
    nccl_comm_init(&comm, &m, (struct world){r->nodes, r->gpus});
    return nccl_flow_time_ps(&comm, &m, r->what, &choice, r->bytes, extent);
}

START_TEST(folding_changes_little)
{
    double folded = (double)time_of(&folds[_i], NCCL_FLOW_FOLDED);
    double whole = (double)time_of(&folds[_i], NCCL_FLOW_WHOLE);

    ck_assert_msg(fabs(folded / whole - 1) < 0.04, "row %d: folded %.2f us, whole %.2f us", _i, folded / 1e6,
                  whole / 1e6);
}
END_TEST

/* More bytes never take less time, up to what a change of chunk size gains. */
START_TEST(time_rises_with_size)
{
    struct fold_row r = folds[_i];
    uint64_t before = 0;

    for (r.bytes = KIB; r.bytes <= 4096 * MIB; r.bytes *= 2) {
        uint64_t time_ps = time_of(&r, NCCL_FLOW_FOLDED);
        ck_assert_msg((double)time_ps >= 0.97 * (double)before, "row %d, %lu bytes: %lu after %lu", _i, r.bytes,
                      time_ps, before);
        before = time_ps;
    }
}
END_TEST

/* One bound for all: a link carries no more than it can. */
START_TEST(no_ring_is_faster_than_its_links)
{
    struct fold_row r = {1, 8, COLLECTIVE_ALL_GATHER, NCCL_RING, NCCL_SIMPLE, 24, 16384 * MIB};
    struct machine m;

    load("hgx-h100-cx7", &m);
    double least_us = (double)r.bytes * 7 / 8 / m.nccl_flow.link_rate * 1e6;
    double us = (double)time_of(&r, NCCL_FLOW_FOLDED) / 1e6;
    ck_assert(us > least_us && us < 1.05 * least_us);
}
END_TEST

/* The largest world, in which each NIC of a tree carries the whole of its rail's part up and down. */
START_TEST(trees_go_up_to_the_largest_world)
{
    struct fold_row r = {128, 8, COLLECTIVE_ALL_REDUCE, NCCL_NVLS_TREE, NCCL_SIMPLE, 16, 4096 * MIB};
    struct machine m;

    load("hgx-h100-cx7", &m);
    ck_assert_uint_eq(r.nodes * r.gpus, NCCL_FLOW_RANKS_MAX);
    double least_us = 2 * (double)r.bytes / r.gpus / m.nic.rate * 1e6;
    double us = (double)time_of(&r, NCCL_FLOW_FOLDED) / 1e6;
    ck_assert_msg(us > least_us && us < 1.1 * least_us, "%.1f us, NICs %.1f us", us, least_us);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nccl_flow");
    TCase *tc = tcase_create("nccl_flow");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, a_chain_takes_its_fill_and_the_slowest_stage);
    tcase_add_test(tc, a_full_edge_holds_its_giver_up);
    tcase_add_test(tc, a_slice_arrives_when_its_own_bytes_have_left);
    tcase_add_loop_test(tc, folding_changes_little, 0, FOLDS);
    tcase_add_loop_test(tc, time_rises_with_size, 0, FOLDS);
    tcase_add_test(tc, no_ring_is_faster_than_its_links);
    tcase_add_test(tc, trees_go_up_to_the_largest_world);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
