/* Machine files: the shipped ones, what is refused, the GEMM cost curve, and files written anew. */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/machine/machine.h"
#include "stderr_capture.h"

#include "../suite.h"

static char said[4096];

static enum status parse(const char *text, struct machine *m)
{
    enum status st;

    stderr_capture_begin();
    st = machine_parse("m.yaml", text, strlen(text), m);
    stderr_capture_end(said, sizeof said);
    return st;
}

/* ---- shipped files ---- */

static const struct {
    const char *name;
    uint64_t nodes_max, gpus, nics;
    bool multicast;
    uint32_t kind;
} shipped[] = {
    {"hgx-h100-cx7", 1024, 8, 1, true, NIC_RC},  {"hgx-h200-cx7", 1024, 8, 1, true, NIC_RC},
    {"hgx-h200-efa", 1024, 8, 2, true, NIC_SRD}, {"h200-nvlink2", 1, 2, 0, false, NIC_RC},
    {"h200-1", 1, 1, 0, false, NIC_RC},
};
static const int shipped_count = sizeof shipped / sizeof shipped[0];

START_TEST(shipped_machine_loads)
{
    struct machine m;

    ck_assert_int_eq(machine_load(shipped[_i].name, &m), ST_OK);
    ck_assert_str_eq(m.name, shipped[_i].name);
    ck_assert_uint_eq(m.nodes_max, shipped[_i].nodes_max);
    ck_assert_uint_eq(m.gpus_per_node, shipped[_i].gpus);
    ck_assert_uint_eq(m.nic.per_gpu, shipped[_i].nics);
    ck_assert_uint_eq(m.nic.kind, shipped[_i].kind);
    ck_assert(m.nvlink.multicast == shipped[_i].multicast);
    ck_assert_uint_eq(m.gpu.sms, 132);
    ck_assert_uint_ge(m.gemm.step_count, 3);
}
END_TEST

static void count_machine(void *arg, const char *name, const char *path)
{
    int *found = arg;

    for (int i = 0; i < shipped_count; i++)
        *found += strcmp(name, shipped[i].name) == 0 && path[0] != '\0';
}

START_TEST(every_shipped_machine_is_listed_once)
{
    int found = 0;

    machine_each("scenarios", count_machine, &found); /* several of its folders are the same one */
    ck_assert_int_eq(found, shipped_count);
}
END_TEST

START_TEST(unknown_machine_is_guessed)
{
    char path[PATH_MAX], why[1000];

    ck_assert_int_eq(machine_find("hgx-h200-cx6", NULL, path, sizeof path, why, sizeof why), ST_INPUT);
    ck_assert_ptr_nonnull(strstr(why, "no machine \"hgx-h200-cx6\"; expected"));
    ck_assert_ptr_nonnull(strstr(why, "did you mean \"hgx-h200-cx7\"?"));
    ck_assert_int_eq(machine_find("../secrets", NULL, path, sizeof path, why, sizeof why), ST_INPUT);
}
END_TEST

START_TEST(environment_names_a_folder)
{
    char folder[] = "/tmp/mkernel-machines-XXXXXX", file[100], path[PATH_MAX], why[1000];
    FILE *f;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/mine.yaml", folder);
    f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    setenv("MKERNEL_MACHINES", folder, 1);
    ck_assert_int_eq(machine_find("mine", NULL, path, sizeof path, why, sizeof why), ST_OK);
    ck_assert_str_eq(path, file);
    unlink(file);
    rmdir(folder);
}
END_TEST

/* ---- refusals ---- */

#define GPU "gpu: {model: X, sms: 132, memory: 80GB}\n"
#define GEMM "gemm: {fixed: 0.8us, steps: {0.1ms: 0.7us}}\n"
#define REST                                                                                                           \
    "copy: {push_rate: 40GB/s, pull_rate: 40GB/s, drained: 4us, pipelined: 2us, reduce_rate: "                         \
    "50GB/s}\n"                                                                                                        \
    "flag: {dispatch: 0.4us, local: 0.5us, peer: 1us}\n"                                                               \
    "host: {launch: 5us, issue: 4us, event: 5us}\n"

START_TEST(smallest_machine_is_one_gpu)
{
    struct machine m;

    ck_assert_int_eq(parse(GPU GEMM REST, &m), ST_OK);
    ck_assert_str_eq(said, "");
    ck_assert_uint_eq(m.nodes_max, 1);
    ck_assert_uint_eq(m.gpus_per_node, 1);
    ck_assert_uint_eq(m.gemm.tile_n, 256);
    ck_assert_double_eq(m.copy.push_rate, 40e9);
    ck_assert_uint_eq(m.host.event_ps, 5000000);
}
END_TEST

static const struct {
    const char *text, *message;
} refusals[] = {
    {GPU GEMM REST "nvlnk: {rate: 3GB/s}\n", "m.yaml:6:1: unknown key \"nvlnk\"; expected title, "},
    {GPU GEMM REST "nvlnk: {rate: 3GB/s}\n", "did you mean \"nvlink\"?"},
    {GPU GEMM REST "nvlink: {rat: 3GB/s}\n", "m.yaml:6:10: unknown key \"nvlink.rat\"; expected rate"},
    {GPU GEMM REST "nvlink: {rate: 3}\n", "m.yaml:6:16: nvlink.rate: \"3\" has no unit"},
    {GPU GEMM REST "nvlink: 3GB/s\n", "m.yaml:6:9: nvlink is a single value; expected a map"},
    {GPU GEMM REST "title: {a: b}\n", "title is a map; expected a single value"},
    {GPU GEMM REST "gpus_per_node: 2\n", "need nvlink.rate"},
    {GPU GEMM REST "nodes_max: 2\n", "need nic.per_gpu"},
    {GPU GEMM REST "nodes_max: 0\n", "0 is too small; expected at least 1"},
    {GPU GEMM REST "nccl: {nvls: true}\n", "nccl.nvls needs"},
    {GPU GEMM REST "nic: {kind: rd}\n", "expected rc|srd; did you mean \"rc\"?"},
    {GPU REST, "gemm.fixed is missing; expected"},
    {GPU REST "gemm: {fixed: 1us}\n", "gemm.steps is missing"},
    {GPU REST "gemm: {fixed: 1us, steps: {}}\n", "expected a map of 1 to 8 rows"},
    {GPU REST "gemm: {fixed: 1us, steps: {2ms: 1us, 1ms: 2us}}\n", "does not rise"},
    {GPU REST "gemm: {fixed: 1us, steps: {2: 1us}}\n", "gemm.steps: \"2\" has no unit"},
    {GPU REST "gemm: {fixed: 1us, steps: {2ms: 0us}}\n", "too small; expected at least 1ps"},
    {GPU REST "gemm: {fixed: 5s, steps: {2ms: 1us}}\n", "5s is too large; expected at most 1s"},
    {"", "the file is empty"},
    {"[1, 2]", "the file is a list; expected a map"},
};
static const int refusal_count = sizeof refusals / sizeof refusals[0];

START_TEST(bad_machine_is_refused_at_its_place)
{
    struct machine m;

    ck_assert_int_eq(parse(refusals[_i].text, &m), ST_INPUT);
    ck_assert_msg(strstr(said, refusals[_i].message) != NULL, "\"%s\" lacks \"%s\"", said, refusals[_i].message);
    ck_assert_ptr_eq(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
}
END_TEST

START_TEST(machine_holds_worlds_up_to_its_size)
{
    struct machine m;
    char why[300];

    ck_assert_int_eq(machine_load("hgx-h200-cx7", &m), ST_OK);
    ck_assert_int_eq(machine_holds(&m, (struct world){1024, 8}, why, sizeof why), ST_OK);
    ck_assert_int_eq(machine_holds(&m, (struct world){1, 9}, why, sizeof why), ST_INPUT);
    ck_assert_str_eq(why, "1 nodes x 9 GPUs do not fit machine hgx-h200-cx7; expected at most 1024 "
                          "nodes x 8 GPUs");
    ck_assert_int_eq(machine_holds(&m, (struct world){1025, 8}, why, sizeof why), ST_INPUT);
    ck_assert_int_eq(machine_holds(&m, (struct world){0, 8}, why, sizeof why), ST_INPUT);
}
END_TEST

/* ---- a base, and what differs ---- */

START_TEST(a_base_gives_what_the_file_does_not_hold)
{
    struct machine base, m;

    ck_assert_int_eq(machine_load("hgx-h200-cx7", &base), ST_OK);
    ck_assert_int_eq(parse("base: hgx-h200-cx7\ntitle: half\nnic: {rate: 24GB/s}\n", &m), ST_OK);
    ck_assert_str_eq(m.name, "m");
    ck_assert_str_eq(m.title, "half");
    ck_assert_double_eq(m.nic.rate, 24e9);
    ck_assert_uint_eq(m.nic.latency_ps, base.nic.latency_ps);
    ck_assert_uint_eq(m.gemm.step_count, base.gemm.step_count);
    ck_assert_int_eq(parse("base: hgx-h200-cx7\ngemm: {steps: {1ms: 1us}}\n", &m), ST_OK);
    ck_assert_uint_eq(m.gemm.step_count, 1);
    ck_assert_uint_eq(m.gemm.fixed_ps, base.gemm.fixed_ps);
}
END_TEST

static const struct {
    const char *text, *said;
} bad_bases[] = {
    {"base: hgx-h200-cx6\n", "m.yaml:1:7: no machine \"hgx-h200-cx6\""},
    {"base: [a]\n", "m.yaml:1:7: base is no name"},
    {"base: hgx-h200-cx7\nnic: {rat: 1GB/s}\n", "m.yaml:2:7: unknown key \"nic.rat\""},
    {"base: scenarios/published/machines/published-cx7.yaml\n", "a base may not have a base"},
};
static const int bad_base_count = sizeof bad_bases / sizeof bad_bases[0];

START_TEST(bad_base_is_refused)
{
    struct machine m;

    ck_assert_int_eq(parse(bad_bases[_i].text, &m), ST_INPUT);
    ck_assert_msg(strstr(said, bad_bases[_i].said) != NULL, "%s", said);
}
END_TEST

/* Keys of NCCL's models have a page of their own. */
START_TEST(every_key_is_documented)
{
    static char text[1 << 18];
    FILE *f = fopen("docs/models.md", "r");

    ck_assert_ptr_nonnull(f);
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, f), 0);
    fclose(f);
    for (const struct option *o = machine_options; o->name; o++) {
        const char *dot = strchr(o->name, '.');

        ck_assert_msg(!dot || strncmp(o->name, "nccl", 4) == 0 || strstr(text, dot + 1), "docs/models.md lacks %s",
                      o->name);
    }
}
END_TEST

/* ---- GEMM cost ---- */

START_TEST(step_cost_is_piecewise_linear)
{
    struct machine m = {.gemm = {.step_count = 3, .steps = {{100, 10}, {200, 20}, {400, 10}}}};

    ck_assert_uint_eq(machine_gemm_step_ps(&m, 0), 10);
    ck_assert_uint_eq(machine_gemm_step_ps(&m, 100), 10);
    ck_assert_uint_eq(machine_gemm_step_ps(&m, 150), 15);
    ck_assert_uint_eq(machine_gemm_step_ps(&m, 200), 20);
    ck_assert_uint_eq(machine_gemm_step_ps(&m, 300), 15);
    ck_assert_uint_eq(machine_gemm_step_ps(&m, 400), 10);
    ck_assert_uint_eq(machine_gemm_step_ps(&m, UINT64_MAX), 10);
}
END_TEST

START_TEST(step_cost_does_not_overflow)
{
    struct machine m = {.gemm = {.step_count = 2, .steps = {{0, UINT64_MAX / 2}, {UINT64_MAX, UINT64_MAX}}}};

    ck_assert_uint_eq(machine_gemm_step_ps(&m, UINT64_MAX / 2), UINT64_MAX / 2 + UINT64_MAX / 4);
}
END_TEST

/* ---- writing ---- */

START_TEST(written_machine_reads_back)
{
    char folder[] = "/tmp/mkernel-machine-XXXXXX", path[100];
    struct machine m, again;
    struct stat info;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/copy.yaml", folder);
    ck_assert_int_eq(machine_load(shipped[_i].name, &m), ST_OK);
    memset(m.title, 0, sizeof m.title); /* memcmp() below sees what stands behind a text, too */
    memset(m.name, 0, sizeof m.name);
    snprintf(m.title, sizeof m.title, "%s", "a \"title\": with \\ # signs");
    snprintf(m.name, sizeof m.name, "copy");
    ck_assert_int_eq(machine_write(&m, "line one\nline two", path), ST_OK);
    ck_assert_int_eq(machine_load(path, &again), ST_OK);
    ck_assert_int_eq(memcmp(&m, &again, sizeof m), 0);

    stderr_capture_begin();
    ck_assert_int_eq(machine_write(&m, "", path), ST_INPUT); /* never over another file */
    stderr_capture_end(said, sizeof said);
    ck_assert_ptr_nonnull(strstr(said, "exists already"));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* no temporary file stays behind */
    ck_assert_int_ne(stat(path, &info), 0);
}
END_TEST

START_TEST(unwritable_folder_is_reported)
{
    struct machine m;

    ck_assert_int_eq(machine_load("h200-1", &m), ST_OK);
    stderr_capture_begin();
    ck_assert_int_eq(machine_write(&m, "", "/nonexistent/folder/m.yaml"), ST_IO);
    stderr_capture_end(said, sizeof said);
    ck_assert_ptr_nonnull(strstr(said, "cannot write"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine");
    TCase *tc = tcase_create("machine");

    tcase_add_loop_test(tc, shipped_machine_loads, 0, shipped_count);
    tcase_add_test(tc, every_shipped_machine_is_listed_once);
    tcase_add_test(tc, unknown_machine_is_guessed);
    tcase_add_test(tc, environment_names_a_folder);
    tcase_add_test(tc, smallest_machine_is_one_gpu);
    tcase_add_loop_test(tc, bad_machine_is_refused_at_its_place, 0, refusal_count);
    tcase_add_test(tc, machine_holds_worlds_up_to_its_size);
    tcase_add_test(tc, a_base_gives_what_the_file_does_not_hold);
    tcase_add_loop_test(tc, bad_base_is_refused, 0, bad_base_count);
    tcase_add_test(tc, every_key_is_documented);
    tcase_add_test(tc, step_cost_is_piecewise_linear);
    tcase_add_test(tc, step_cost_does_not_overflow);
    tcase_add_loop_test(tc, written_machine_reads_back, 0, shipped_count);
    tcase_add_test(tc, unwritable_folder_is_reported);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
