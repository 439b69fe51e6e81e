/* Scenario files: sweeps, arithmetic, --set, records, and every refusal at its place. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../fuzz/fake_registry.h"
#include "../suite.h"
#include "stderr_capture.h"

#define GOOD                                                                                                           \
    "problem:  {kernel: ag_gemm, m: [4096, 8192], n: m/16, k: m}\n"                                                    \
    "machine:  hgx-h200-cx7\n"                                                                                         \
    "world:    {nodes: 2, gpus_per_node: 8}\n"                                                                         \
    "variants:\n"                                                                                                      \
    "  fused:   {comm_sms: [4, 8, 16], chunk: 1MiB}\n"                                                                 \
    "  fused_join: {program: fused, join: true}\n"                                                                     \
    "  unfused: {}\n"                                                                                                  \
    "  nccl:\n"                                                                                                        \
    "  streams: {}\n"                                                                                                  \
    "timing:   {mode: [isolated, pipelined], warmup: 3, launch: excluded}\n"

static char said[8192];

static enum status parse_with(const char *text, size_t size, const char *const *sets, uint32_t set_count,
                              struct scenario *s)
{
    enum status st;

    stderr_capture_begin();
    st = scenario_parse("dir/s.yaml", text, size, &fake_registry, NULL, sets, set_count, s);
    stderr_capture_end(said, sizeof said);
    return st;
}

static enum status parse(const char *text, struct scenario *s)
{
    return parse_with(text, strlen(text), NULL, 0, s);
}

static void ck_said(const char *part)
{
    ck_assert_msg(strstr(said, part) != NULL, "\"%s\" lacks \"%s\"", said, part);
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
}

/* ---- what a good file becomes ---- */

START_TEST(lists_multiply_in_order)
{
    struct scenario s;
    const struct point *p;

    ck_assert_int_eq(parse(GOOD, &s), ST_OK);
    ck_assert_str_eq(said, "");
    ck_assert_uint_eq(s.point_count, 2 * 2 * (3 + 1 + 1 + 1 + 1));
    ck_assert_str_eq(s.name, "s");
    p = s.points;
    ck_assert_str_eq(p[0].variant, "fused");
    ck_assert_uint_eq(((struct fake_params *)p[0].params)->comm_sms, 4);
    ck_assert_uint_eq(((struct fake_params *)p[2].params)->comm_sms, 16);
    ck_assert_str_eq(p[3].variant, "fused_join");
    ck_assert_int_eq(p[3].program, PROGRAM_FUSED);
    ck_assert(((struct fake_params *)p[3].params)->join);
    ck_assert_int_eq(p[5].program, PROGRAM_NCCL);
    ck_assert_int_eq(p[6].program, PROGRAM_STREAMS);
    ck_assert_int_eq(p[6].timing.mode, TIMING_ISOLATED);
    ck_assert_int_eq(p[7].timing.mode, TIMING_PIPELINED);
    ck_assert_uint_eq(p[13].problem.m, 4096);
    ck_assert_uint_eq(p[14].problem.m, 8192);
    scenario_fini(&s);
    scenario_fini(&s); /* safe twice */
}
END_TEST

START_TEST(a_parameter_may_be_a_table)
{
    struct scenario s;

    ck_assert_int_eq(parse("problem:  {kernel: ag_gemm, m: [64, 128], n: 1, k: 1}\n"
                           "machine:  hgx-h200-cx7\nworld:    {gpus_per_node: 8}\n"
                           "variants: {fused: {comm_sms: {64: 3, 128: 5}, order: [ring, direct]}}\n",
                           &s),
                     ST_OK);
    ck_assert_uint_eq(s.point_count, 4);
    ck_assert_uint_eq(((struct fake_params *)s.points[1].params)->comm_sms, 3);
    ck_assert_uint_eq(((struct fake_params *)s.points[2].params)->comm_sms, 5);
    scenario_fini(&s);
    ck_assert_int_eq(parse("problem:  {kernel: ag_gemm, m: [64, 128], n: 1, k: 1}\n"
                           "machine:  hgx-h200-cx7\nworld:    {gpus_per_node: 8}\n"
                           "variants: {fused: {comm_sms: {64: 3}}}\n",
                           &s),
                     ST_INPUT);
    ck_said("dir/s.yaml:4:30: variants.fused.comm_sms has no row for m 128; expected one for every problem");
    ck_assert_int_eq(parse("problem:  {kernel: ag_gemm, m: 64, n: 1, k: 1}\n"
                           "machine:  hgx-h200-cx7\nworld:    {gpus_per_node: 8}\n"
                           "variants: {fused: {comm_sms: {64: 3000}}}\n",
                           &s),
                     ST_INPUT);
    ck_said("variants.fused.comm_sms: 3000 is too large");
}
END_TEST

START_TEST(point_is_fully_resolved)
{
    struct scenario s;
    const struct point *p;
    const struct fake_params *params;

    ck_assert_int_eq(parse(GOOD, &s), ST_OK);
    p = &s.points[0];
    params = p->params;
    ck_assert_str_eq(p->kernel->name, "ag_gemm");
    ck_assert_uint_eq(p->problem.n, 256);
    ck_assert_uint_eq(p->problem.k, 4096);
    ck_assert_uint_eq(world_ranks(p->world), 16);
    ck_assert_ptr_eq(p->machine, &s.machine);
    ck_assert_uint_eq(params->chunk, 1 << 20);
    ck_assert_uint_eq(params->tile, 256); /* the initial value m/ranks */
    ck_assert_uint_eq(p->timing.warmup, 3);
    ck_assert_uint_eq(p->timing.iterations, 8);
    ck_assert(!p->timing.launch);
    ck_assert_uint_eq(p->seed, 1);
    ck_assert_uint_eq(p->variant_place.line, 5);
    ck_assert_uint_eq(p->variant_place.column, 3);
    ck_assert_uint_eq(p->problem_place.line, 1);
    ck_assert_str_eq(s.backend->name, "sim");
    ck_assert_uint_eq(((struct fake_options *)s.backend_options)->timeout_ps, 30000000000000);
    ck_assert(!s.check.wanted);
    scenario_fini(&s);
}
END_TEST

START_TEST(check_and_backend_sections_are_read)
{
    struct scenario s;

    ck_assert_int_eq(parse(GOOD "check: {m: 2*k, k: 64, epochs: 5}\ncpu: {timeout: 5s}\n"
                                "seed: 7\nthreshold: 1.25\nbackend: sim\n",
                           &s),
                     ST_OK);
    ck_assert(s.check.wanted);
    ck_assert_str_eq(s.check.backend->name, "cpu");
    ck_assert_uint_eq(s.check.problem.m, 128);
    ck_assert_uint_eq(s.check.problem.n, 192);
    ck_assert_uint_eq(s.check.epochs, 5);
    ck_assert_uint_eq(((struct fake_options *)s.check_options)->timeout_ps, 5000000000000);
    ck_assert_uint_eq(s.points[0].seed, 7);
    ck_assert_double_eq(s.threshold, 1.25);
    scenario_fini(&s);
}
END_TEST

START_TEST(backend_can_be_overridden)
{
    struct scenario s;

    ck_assert_int_eq(scenario_parse("s.yaml", GOOD, strlen(GOOD), &fake_registry, "cpu", NULL, 0, &s), ST_OK);
    ck_assert_str_eq(s.backend->name, "cpu");
    scenario_fini(&s);
    stderr_capture_begin();
    ck_assert_int_eq(scenario_parse("s.yaml", GOOD, strlen(GOOD), &fake_registry, "cqu", NULL, 0, &s), ST_INPUT);
    stderr_capture_end(said, sizeof said);
    ck_said("--backend cqu: backend: there is no backend \"cqu\"; expected sim, cpu; did you mean "
            "\"cpu\"?");
}
END_TEST

START_TEST(kernels_and_worlds_sweep)
{
    struct scenario s;

    ck_assert_int_eq(parse("problem: {kernel: [ag_gemm, gemm_rs], m: 4096, n: k, k: [256, 512]}\n"
                           "machine: hgx-h200-cx7\n"
                           "world: {nodes: [1, 2], gpus_per_node: [4, 8]}\n"
                           "variants: {fused: {chunk: [1MiB, 2MiB], tile: ranks}}\n"
                           "seed: [1, 2]\n",
                           &s),
                     ST_OK);
    ck_assert_uint_eq(s.point_count, 2 * 2 * 4 * 2 * 2);
    ck_assert_str_eq(s.points[0].kernel->name, "ag_gemm");
    ck_assert_str_eq(s.points[63].kernel->name, "gemm_rs");
    ck_assert_uint_eq(((struct fake_params *)s.points[63].params)->tile, 16);
    ck_assert_uint_eq(s.points[63].seed, 2);
    scenario_fini(&s);
}
END_TEST

START_TEST(each_family_has_keys_of_its_own)
{
    static const char text[] =
        "problem: {kernel: attention, seq: [64, 128], heads: seq/16, batch: 2, causal: [false, true]}\n"
        "machine: hgx-h200-cx7\nworld: {nodes: 2, gpus_per_node: 8}\n"
        "variants: {nccl: {}}\ncheck: {heads: 4, epochs: 2}\n";
    char said_of[PROBLEM_TEXT_BYTES];
    struct scenario s;

    ck_assert_int_eq(parse(text, &s), ST_OK);
    ck_assert_uint_eq(s.point_count, 4);
    ck_assert_str_eq(problem_text(s.family, &s.points[3].problem, said_of),
                     "seq 128 batch 2 heads 8 kv_heads 8 head_dim 128 causal true");
    ck_assert_str_eq(problem_text(s.family, &s.check.problem, said_of),
                     "seq 192 batch 1 heads 4 kv_heads 1 head_dim 64 causal false");
    ck_assert(!problem_equal(s.family, &s.points[0].problem, &s.points[1].problem));
    ck_assert(problem_equal(s.family, &s.points[1].problem, &s.points[1].problem));
    scenario_fini(&s);
}
END_TEST

/* ---- the record ---- */

static char record[4096];

static void add_key(void *arg, const char *key, const char *value)
{
    size_t used = strlen(record);

    (void)arg;
    snprintf(record + used, sizeof record - used, "%s=%s\n", key, value);
}

START_TEST(record_holds_every_key_in_order)
{
    struct scenario s;

    ck_assert_int_eq(parse(GOOD, &s), ST_OK);
    record[0] = '\0';
    scenario_point_keys(&s, &s.points[3], add_key, NULL);
    ck_assert_str_eq(record, "problem.kernel=ag_gemm\nproblem.m=4096\nproblem.n=256\n"
                             "problem.k=4096\nproblem.dtype=bf16\nmachine=hgx-h200-cx7\n"
                             "world.nodes=2\nworld.gpus_per_node=8\nbackend=sim\n"
                             "sim.timeout=30s\nvariant=fused_join\nprogram=fused\n"
                             "params.comm_sms=8\nparams.chunk=1MiB\nparams.tile=256\n"
                             "params.join=true\nparams.order=ring\ntiming.mode=isolated\n"
                             "timing.warmup=3\ntiming.iterations=8\ntiming.launch=excluded\n"
                             "seed=1\n");
    record[0] = '\0';
    scenario_point_keys(&s, &s.points[5], add_key, NULL);
    ck_assert_ptr_null(strstr(record, "params."));
    scenario_fini(&s);
}
END_TEST

START_TEST(help_lists_every_section)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    scenario_help(&fake_registry, f);
    fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "gpus_per_node"));
    ck_assert_ptr_nonnull(strstr(text, "variants of gemm_rs"));
    ck_assert_ptr_nonnull(strstr(text, "threshold"));
    free(text);
}
END_TEST

START_TEST(complaint_stands_at_its_key)
{
    struct scenario s;
    struct complaint c = {.key = "comm_sms", .text = "too many"};

    ck_assert_int_eq(parse(GOOD, &s), ST_OK);
    stderr_capture_begin();
    scenario_complain(&s, &s.points[0], &c);
    stderr_capture_end(said, sizeof said);
    ck_said("dir/s.yaml:5:23: comm_sms: too many");
    snprintf(c.key, sizeof c.key, "m");
    stderr_capture_begin();
    scenario_complain(&s, &s.points[0], &c);
    stderr_capture_end(said, sizeof said);
    ck_said("dir/s.yaml:1:32: m: too many");
    c.key[0] = '\0';
    stderr_capture_begin();
    scenario_complain(&s, &s.points[3], &c);
    stderr_capture_end(said, sizeof said);
    ck_said("dir/s.yaml:6:3: too many");
    scenario_fini(&s);
}
END_TEST

/* ---- --set ---- */

START_TEST(set_changes_the_file)
{
    static const char *const sets[] = {
        "variants.fused.comm_sms=[5, 6]", "problem.m=1024", "timing.mode=pipelined", "world.nodes=4",
        "variants.nccl.program=streams",  "check.m=64",     "sim.timeout=1s"};
    struct scenario s;

    ck_assert_int_eq(parse_with(GOOD, strlen(GOOD), sets, 7, &s), ST_OK);
    ck_assert_uint_eq(s.point_count, 2 + 4);
    ck_assert_uint_eq(s.points[0].problem.n, 64);
    ck_assert_uint_eq(s.points[0].world.nodes, 4);
    ck_assert_uint_eq(((struct fake_params *)s.points[1].params)->comm_sms, 6);
    ck_assert_int_eq(s.points[4].program, PROGRAM_STREAMS);
    ck_assert_uint_eq(s.points[0].problem_place.line, 0);
    ck_assert(s.check.wanted);
    ck_assert_uint_eq(s.check.problem.m, 64);
    scenario_fini(&s);
}
END_TEST

static const struct {
    const char *set, *message;
} bad_sets[] = {
    {"variants.fused.comm_smz=8", "--set variants.fused.comm_smz=8: unknown key "
                                  "\"variants.fused.comm_smz\" for kernel ag_gemm; expected "
                                  "comm_sms, chunk, tile, join, order, program; did you mean "
                                  "\"comm_sms\"?"},
    {"variants.fsed.comm_sms=8", "no variant \"fsed\"; expected --set variants.LABEL.KEY=VALUE; did "
                                 "you mean \"fused\"?"},
    {"variants.fsed={}", "did you mean \"fused\"?"},
    {"timng.mode=isolated", "unknown key \"timng\""},
    {"timng.mode=isolated", "did you mean \"timing\"?"},
    {"timing.mod=isolated", "unknown key \"timing.mod\"; expected mode, warmup, iterations, launch; "
                            "did you mean \"mode\"?"},
    {"machine.x=4", "not a map; expected --set key=value"},
    {"problem=5", "problem is a single value; expected a map of keys"},
    {"problem.m", "lacks a key or a value; expected --set key=value"},
    {"=5", "lacks a key or a value"},
    {"problem.m=", "lacks a key or a value"},
    {"problem.=4", "the key is empty"},
    {".m=4", "unknown key \"\""},
    {"problem.m=[1, 2", "--set problem.m=[1, 2: not valid YAML"},
    {"problem.m=0", "--set problem.m=0: problem.m: 0 is too small; expected at least 1"},
};
static const int bad_set_count = sizeof bad_sets / sizeof bad_sets[0];

START_TEST(bad_set_is_refused_by_name)
{
    struct scenario s;

    ck_assert_int_eq(parse_with(GOOD, strlen(GOOD), &bad_sets[_i].set, 1, &s), ST_INPUT);
    ck_said(bad_sets[_i].message);
}
END_TEST

/* ---- refusals ---- */

#define P "problem: {kernel: ag_gemm, m: 4096, n: 256, k: 64}\n"
#define M "machine: hgx-h200-cx7\n"
#define W "world: {nodes: 2, gpus_per_node: 8}\n"
#define V "variants: {fused: {}}\n"

static const struct {
    const char *text, *message;
} refusals[] = {
    {"", "s.yaml:1:1: the file is empty"},
    {"just words", "the file is a single value; expected a map of keys"},
    {P M W V "sed: 1\n", "dir/s.yaml:5:1: unknown key \"sed\"; expected machine, backend, seed"},
    {P M W V "sed: 1\n", "did you mean \"seed\"?"},
    {P M W V "seed: 1\nseed: 2\n", "dir/s.yaml:6:1: key \"seed\" stands twice; expected it once (first "
                                   "at dir/s.yaml:5:1)"},
    {M W V, "problem.kernel is missing; expected"},
    {P W V, "machine is missing; expected"},
    {P M V, "world.gpus_per_node is missing; expected"},
    {P M W, "variants is missing; expected a map of at least one"},
    {P M W "variants: {}\n", "variants is empty"},
    {P M W "variants: [fused]\n", "dir/s.yaml:4:11: variants is a list; expected a map"},
    {P M W "variants: {fast: {}}\n", "dir/s.yaml:4:12: variant \"fast\" does not say its program; "
                                     "expected a key program: fused|unfused|nccl|streams"},
    {P M W "variants: {fused: {program: fusd}}\n", "did you mean \"fused\"?"},
    {P M W "variants: {fused: 5}\n", "variants.fused is a single value; expected a map"},
    {P M W "variants: {fused: {chunk: 5}}\n", "dir/s.yaml:4:27: variants.fused.chunk: \"5\" has no unit; "
                                              "expected a size with a unit"},
    {P M W "variants: {fused: {chunk: 5us}}\n", "\"5us\" has a wrong unit; expected a size"},
    {P M W "variants: {fused: {chunk: 0B}}\n", "0B is too small; expected at least 1B"},
    {P M W "variants: {fused: {comm_sms: 133}}\n", "133 is too large; expected at most 132"},
    {P M W "variants: {fused: {comm_sms: []}}\n", "variants.fused.comm_sms is an empty list; expected "
                                                  "at least one value"},
    {P M W "variants: {fused: {comm_sms: [8, 4, 8]}}\n",
     "dir/s.yaml:4:37: variants.fused.comm_sms lists 8 twice; expected every value once"},
    {"problem: {kernel: [ag_gemm, ag_gemm], m: 4096, n: 256, k: 64}\n" M W V,
     "dir/s.yaml:1:29: problem.kernel lists ag_gemm twice"},
    {"problem: {kernel: ag_gemm, m: [8, 16, 08], n: 16, k: 64}\n" M W V,
     "dir/s.yaml:1:39: problem.m lists 8 twice, as 8 and as 08"},
    {P M W "variants: {fused: {chunk: [1MiB, 2MiB, 1024KiB]}}\n", "chunk lists 1MiB twice, as 1MiB and as 1024KiB"},
    {"problem: {kernel: ag_gemm, m: [512, 4096], n: [256, m/16], k: 64}\n" M W V,
     "dir/s.yaml:1:53: problem.n lists 256 twice, as 256 and as m/16"},
    {P M W "variants: {fused: {comm_sms: [{4096: 4}, ranks/4]}}\n", "comm_sms lists 4 twice, as 4 and as ranks/4"},
    {P M W "variants: {fused: {comm_sms: {a: 1}}}\n", "comm_sms has no row for m 4096"},
    {P M W "variants: {fused: {comm_sms: [[1]]}}\n", "comm_sms is a list; expected a single value"},
    {P M W "variants: {nccl: {chunk: 1MiB}}\n", "unknown key \"variants.nccl.chunk\" for a baseline"},
    {"problem: {kernel: [ag_gemm, gemm_rs], m: 4096, n: 256, k: 64}\n" M W "variants: {fused: {comm_sms: 4}}\n",
     "dir/s.yaml:4:20: unknown key \"variants.fused.comm_sms\" for kernel gemm_rs; expected chunk"},
    {"problem: {kernel: [ag_gemm, attention], m: 4096, n: 256, k: 64}\n" M W V,
     "dir/s.yaml:1:29: problem.kernel: ag_gemm and attention solve problems of different kinds"},
    {"problem: {kernel: attention, m: 4096}\n" M W V,
     "dir/s.yaml:1:30: unknown key \"problem.m\"; expected kernel, seq, batch, heads, kv_heads, "
     "head_dim, causal, dtype"},
    {"problem: {kernel: attention, seq: 64, heads: 6, kv_heads: 4}\n" M W V,
     "dir/s.yaml:1:35: heads = 6 is no multiple of kv_heads = 4"},
    {"problem: {kernel: attention, seq: 64, heads: 4, head_dim: 96}\n" M W V, "head_dim = 96; expected 64 or 128"},
    {"problem: {kernel: ag_gem, m: 1, n: 1, k: 1}\n" M W V,
     "dir/s.yaml:1:19: problem.kernel: there is no kernel \"ag_gem\"; expected ag_gemm, gemm_rs, "
     "attention; "
     "did you mean \"ag_gemm\"?"},
    {"problem: {kernel: ag_gemm, m: 100, n: m/16, k: 1}\n" M W V,
     "dir/s.yaml:1:39: problem.n: m/16 is not whole for m = 100"},
    {"problem: {kernel: ag_gemm, m: 1, n: m/(k-k), k: 1}\n" M W V, "divides by zero"},
    {"problem: {kernel: ag_gemm, m: n, n: k, k: m}\n" M W V, "problem.m: \"n\" refers back to itself"},
    {"problem: {kernel: ag_gemm, m: -4, n: 1, k: 1}\n" M W V, "below zero; expected"},
    {"problem: {kernel: ag_gemm, m: 0, n: 1, k: 1}\n" M W V, "0 is too small; expected at least 1"},
    {"problem: {kernel: ag_gemm, m: 1099511627777, n: 1, k: 1}\n" M W V,
     "1099511627777 is too large; expected at most 1099511627776"},
    {"problem: {kernel: ag_gemm, m: 1099511627776, n: m, k: m}\n" M W V,
     "is too large; expected m * n * k * ranks below 2^62"},
    {"problem: {kernel: ag_gemm, m: 1, n: 1, k: 1, dtype: fp8}\n" M W V, "expected bf16"},
    {"problem: [1]\n" M W V, "problem is a list; expected a map of keys"},
    {P "machine: hgx-h200-cx6\n" W V, "dir/s.yaml:2:10: machine: no machine \"hgx-h200-cx6\"; expected"},
    {P "machine: nowhere.yaml\n" W V, "no machine file \"nowhere.yaml\""},
    {P "machine: [a, b]\n" W V, "machine is a list; expected a single name"},
    {P M "world: {nodes: 2000, gpus_per_node: 8}\n" V,

     "dir/s.yaml:3:16: world: 2000 nodes x 8 GPUs do not fit machine hgx-h200-cx7; expected at "
     "most 1024"},
    {P M "world: {nodes: 2, gpus_per_node: 9}\n" V, "dir/s.yaml:3:34: world: 2 nodes x 9 GPUs do not fit"},
    {P M W V "timing: {iterations: 257}\n", "257 is too large; expected at most 256"},
    {P M W V "timing: {launch: yes}\n", "expected included|excluded"},
    {P M W V "backend: siim\n", "did you mean \"sim\"?"},
    {P M W V "backend: [sim, cpu]\n", "backend is a list; expected a single value"},
    {P M W V "threshold: -1\n", "-1 is too small"},
    {P M W V "seed: 9007199254740992\n", "too large; expected at most 9007199254740991"},
    {P M W V "cpu: {timeot: 5s}\n", "unknown key \"cpu.timeot\"; expected timeout; did you mean"},
    {P M W V "check: {backend: gpu}\n", "check.backend: there is no backend \"gpu\""},
    {P M W V "check: {m: [1, 2]}\n", "check.m is a list; expected a single value"},
    {P M W V "check: {epochs: 0}\n", "check.epochs: 0 is too small"},
    {"a: &x [1]\nb: *x\n", "dir/s.yaml:1:7: anchors (&name) and tags"},
    {"a: !!int 5\n", "anchors (&name) and tags"},
    {P M W V "---\nseed: 1\n", "a second document begins here"},
    {"problem: {kernel: ag_gemm\n", "not valid YAML"},
    {"a: \"x\n", "not valid YAML"},
    {"a: 1\nb: }\n", "dir/s.yaml:2:4: not valid YAML"},
    {"problem:\n\tkernel: ag_gemm\n", "dir/s.yaml:2:1: not valid YAML: tab character may not"},
    {"? [1]\n: 2\n", "a list is used as a key; expected a name"},
    {"[[[[[[[[[[[[1]]]]]]]]]]]]\n", "nested deeper than"},
    {"a: |\n  x\n  y\n", "holds a line break"},
};
static const int refusal_count = sizeof refusals / sizeof refusals[0];

START_TEST(bad_file_is_refused_at_its_place)
{
    struct scenario s;

    ck_assert_int_eq(parse(refusals[_i].text, &s), ST_INPUT);
    ck_said(refusals[_i].message);
    ck_assert_ptr_null(s.points); /* left zeroed */
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused)
{
    static const char nul[] = "seed: 1\n\0", latin[] = "a: \xe9\n", cut[] = "a: \xe2\x82", overlong[] = "a: \xc0\xaf\n",
                      surrogate[] = "\xed\xa0\x80";
    struct scenario s;

    ck_assert_int_eq(parse_with(nul, sizeof nul - 1, NULL, 0, &s), ST_INPUT);
    ck_said("dir/s.yaml:2:1: byte 0x00 is not text; expected a YAML file in UTF-8");
    ck_assert_int_eq(parse_with(latin, sizeof latin - 1, NULL, 0, &s), ST_INPUT);
    ck_said("dir/s.yaml:1:4: byte 0xe9 is not text");
    ck_assert_int_eq(parse_with(cut, sizeof cut - 1, NULL, 0, &s), ST_INPUT);
    ck_assert_int_eq(parse_with(overlong, sizeof overlong - 1, NULL, 0, &s), ST_INPUT);
    ck_assert_int_eq(parse_with(surrogate, sizeof surrogate - 1, NULL, 0, &s), ST_INPUT);
}
END_TEST

/* "[1,2,3,...]" */
static char *long_list(size_t values)
{
    char *text = malloc(values * 8 + 2), *end = text;

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < values; i++)
        end += sprintf(end, "%c%zu", i ? ',' : '[', i + 1);
    memcpy(end, "]", 2);
    return text;
}

static char *with_m(const char *m)
{
    char *text;

    ck_assert_int_gt(
        asprintf(&text, "problem: {kernel: ag_gemm, m: %s, n: 1, k: 1}\n" M W "variants: {fused: {tile: 1}}\n", m), 0);
    return text;
}

START_TEST(endless_sweeps_are_refused_before_memory_is_taken)
{
    char *list = long_list(100001), *text = with_m(list);
    struct scenario s;

    ck_assert_int_eq(parse(text, &s), ST_INPUT);
    ck_said("the lists multiply to 100001 points; expected at most 100000");
    free(text);
    free(list);

    list = long_list(450000);
    text = with_m(list);
    ck_assert_int_eq(parse(text, &s), ST_INPUT);
    ck_said("more values than a file of this kind may hold");
    free(text);
    free(list);

    ck_assert_int_eq(parse("problem: {kernel: ag_gemm, m: [1,2,3,4,5,6,7,8,9,10], "
                           "n: [1,2,3,4,5,6,7,8,9,10], k: [1,2,3,4,5,6,7,8,9,10]}\n" M
                           "world: {nodes: [1,2,3,4,5,6,7,8,9,10], gpus_per_node: [1,2,3,4,5]}\n" V "seed: [1,2,3,4]\n",
                           &s),
                     ST_INPUT);
    ck_said("the lists multiply to 200000 points");
}
END_TEST

START_TEST(largest_sweep_is_accepted)
{
    char *list = long_list(100000), *text = with_m(list);
    struct scenario s;

    ck_assert_int_eq(parse(text, &s), ST_OK);
    ck_assert_uint_eq(s.point_count, 100000);
    scenario_fini(&s);
    free(text);
    free(list);
}
END_TEST

/* ---- files ---- */

static enum status load(const char *path)
{
    struct scenario s;
    enum status st;

    stderr_capture_begin();
    st = scenario_load(path, &fake_registry, NULL, NULL, 0, &s);
    stderr_capture_end(said, sizeof said);
    return st;
}

START_TEST(what_is_no_file_is_refused)
{
    char fifo[] = "/tmp/mkernel-fifo-XXXXXX";

    ck_assert_int_eq(load("/nonexistent.yaml"), ST_INPUT);
    ck_said("/nonexistent.yaml: No such file or directory; expected a YAML file");
    ck_assert_int_eq(load("/tmp"), ST_INPUT);
    ck_said("/tmp: is a folder; expected");
    ck_assert_int_eq(load("/dev/zero"), ST_INPUT);
    ck_said("is a device, pipe or socket");
    ck_assert_ptr_nonnull(mkdtemp(fifo));
    ck_assert_int_eq(rmdir(fifo), 0);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(load(fifo), ST_INPUT); /* and does not wait for a writer */
    unlink(fifo);
}
END_TEST

START_TEST(huge_file_is_refused)
{
    char path[] = "/tmp/mkernel-huge-XXXXXX";
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, 1l << 40), 0); /* sparse */
    close(fd);
    ck_assert_int_eq(load(path), ST_INPUT);
    ck_said("is too large; expected a YAML file of at most 1 MiB");
    unlink(path);
}
END_TEST

START_TEST(machine_is_found_beside_the_scenario)
{
    char folder[] = "/tmp/mkernel-scn-XXXXXX", path[100], machine[100];
    FILE *f;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/s.yaml", folder);
    snprintf(machine, sizeof machine, "%s/own.yaml", folder);
    f = fopen(path, "w");
    fputs(P "machine: own.yaml\n" W V, f);
    fclose(f);
    ck_assert_int_eq(load(path), ST_INPUT);
    f = fopen(machine, "w");
    fputs("gpu: {model: X}\n", f);
    fclose(f);
    ck_assert_int_eq(load(path), ST_INPUT); /* found; its own mistake is what is reported */
    ck_said("own.yaml:1:1: gpu.sms is missing");
    unlink(machine);
    unlink(path);
    rmdir(folder);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scenario");
    TCase *tc = tcase_create("scenario");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, lists_multiply_in_order);
    tcase_add_test(tc, a_parameter_may_be_a_table);
    tcase_add_test(tc, point_is_fully_resolved);
    tcase_add_test(tc, check_and_backend_sections_are_read);
    tcase_add_test(tc, backend_can_be_overridden);
    tcase_add_test(tc, kernels_and_worlds_sweep);
    tcase_add_test(tc, each_family_has_keys_of_its_own);
    tcase_add_test(tc, record_holds_every_key_in_order);
    tcase_add_test(tc, help_lists_every_section);
    tcase_add_test(tc, complaint_stands_at_its_key);
    tcase_add_test(tc, set_changes_the_file);
    tcase_add_loop_test(tc, bad_set_is_refused_by_name, 0, bad_set_count);
    tcase_add_loop_test(tc, bad_file_is_refused_at_its_place, 0, refusal_count);
    tcase_add_test(tc, bytes_that_are_no_text_are_refused);
    tcase_add_test(tc, endless_sweeps_are_refused_before_memory_is_taken);
    tcase_add_test(tc, largest_sweep_is_accepted);
    tcase_add_test(tc, what_is_no_file_is_refused);
    tcase_add_test(tc, huge_file_is_refused);
    tcase_add_test(tc, machine_is_found_beside_the_scenario);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
