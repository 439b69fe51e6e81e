/* `mkernel machine new`: what it writes loads, and what it cannot know it asks for. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cli/commands.h"
#include "stderr_capture.h"

#include "../suite.h"

static char said[4096];
static char folder[] = "/tmp/mkernel-new-XXXXXX", path[100];

static int machine_new(char *const *args)
{
    char *argv[24] = {"machine", "new"};
    int argc = 2, code;

    for (; *args; args++)
        argv[argc++] = *args;
    stderr_capture_begin();
    code = cmd_machine(argc, argv, NULL);
    stderr_capture_end(said, sizeof said);
    return code;
}

#define NEW(...) machine_new((char *const[]){__VA_ARGS__, NULL})

static void make_folder(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/box.yaml", folder);
}

static void remove_folder(void)
{
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else stayed behind */
}

START_TEST(full_order_writes_a_machine)
{
    struct machine m;

    ck_assert_int_eq(
        NEW("--gpu", "h200", "--gpus", "8", "--nics", "16", "--gbps", "200", "--nodes", "32", "--output", path), 0);
    ck_assert_int_eq(machine_load(path, &m), ST_OK);
    ck_assert_str_eq(m.title, "8 x H200, 16 x 200 Gb/s");
    ck_assert_uint_eq(m.nodes_max, 32);
    ck_assert_uint_eq(m.nic.per_gpu, 2);
    ck_assert_double_eq(m.nic.rate, 24.25e9);
    ck_assert(m.nvlink.multicast);
    ck_assert_int_eq(NEW("--gpu", "H200", "--gpus", "8", "--nics", "0", "--output", path), 2);
    ck_assert_ptr_nonnull(strstr(said, "exists already"));
}
END_TEST

START_TEST(one_gpu_has_no_peers)
{
    struct machine m;

    ck_assert_int_eq(NEW("--gpu", "H100", "--gpus", "1", "--nics", "0", "--output", path), 0);
    ck_assert_int_eq(machine_load(path, &m), ST_OK);
    ck_assert_uint_eq(m.nodes_max, 1);
    ck_assert_double_eq(m.nvlink.rate, 0);
    ck_assert_uint_eq(m.gpu.memory_bytes, 80000000000);
}
END_TEST

START_TEST(every_size_of_box_loads)
{
    for (int gpus = 1; gpus <= 8; gpus++) {
        for (int per_gpu = 0; per_gpu <= 2; per_gpu++) {
            char gpus_text[8], nics_text[8];
            struct machine m;

            snprintf(gpus_text, sizeof gpus_text, "%d", gpus);
            snprintf(nics_text, sizeof nics_text, "%d", gpus * per_gpu);
            ck_assert_int_eq(
                NEW("--gpu", "H200", "--gpus", gpus_text, "--nics", nics_text, "--gbps", "100", "--output", path), 0);
            ck_assert_int_eq(machine_load(path, &m), ST_OK);
            unlink(path);
        }
    }
}
END_TEST

START_TEST(bad_order_says_what_was_expected)
{
    ck_assert_int_eq(NEW("--gpu", "B200", "--gpus", "8", "--nics", "0"), 2);
    ck_assert_ptr_nonnull(strstr(said, "expected H100 or H200; did you mean \"H200\"?"));
    ck_assert_int_eq(NEW("--gpu", "H200", "--gpus", "8", "--nics", "4", "--gbps", "400"), 2);
    ck_assert_ptr_nonnull(strstr(said, "multiple of --gpus"));
    ck_assert_int_eq(NEW("--gpu", "H200", "--gpus", "8", "--nics", "8"), 2);
    ck_assert_ptr_nonnull(strstr(said, "expected --gbps"));
    ck_assert_int_eq(NEW("--gpu", "H200", "--gpus", "9", "--nics", "0"), 2);
    ck_assert_int_eq(NEW("--gpu", "H200"), 2);
    ck_assert_int_eq(NEW("--gpus", "-1"), 2);
    ck_assert_int_eq(NEW("--gpu", "H200", "--gpus", "8", "--nics", "0", "--nodes", "2"), 2);
    ck_assert_int_eq(NEW("--gpu", "H200", "--gpus", "18446744073709551615", "--nics", "0"), 2);
}
END_TEST

/* A stand-in for nvidia-smi in front of PATH. */
static void put_nvidia_smi(const char *script)
{
    char file[100], search[4096];
    FILE *f;

    snprintf(file, sizeof file, "%s/nvidia-smi", folder);
    f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    fputs(script, f);
    fclose(f);
    chmod(file, 0755);
    snprintf(search, sizeof search, "%s:%s", folder, getenv("PATH"));
    setenv("PATH", search, 1);
}

static void remove_nvidia_smi(void)
{
    char file[100];

    snprintf(file, sizeof file, "%s/nvidia-smi", folder);
    unlink(file);
}

START_TEST(detection_asks_nvidia_smi)
{
    struct machine m;

    put_nvidia_smi("#!/bin/sh\necho 'NVIDIA H100 80GB HBM3'\necho 'NVIDIA H100 80GB HBM3'\n");
    ck_assert_int_eq(NEW("--detect", "--nics", "0", "--output", path), 0);
    ck_assert_int_eq(machine_load(path, &m), ST_OK);
    ck_assert_str_eq(m.gpu.model, "H100");
    ck_assert_uint_eq(m.gpus_per_node, 2);
    remove_nvidia_smi();
}
END_TEST

START_TEST(detection_without_a_gpu_is_the_environment)
{
    put_nvidia_smi("#!/bin/sh\nexit 9\n");
    ck_assert_int_eq(NEW("--detect", "--output", path), 5);
    ck_assert_ptr_nonnull(strstr(said, "no GPU here"));
    remove_nvidia_smi();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("machine_new");
    TCase *tc = tcase_create("machine_new");

    tcase_add_checked_fixture(tc, make_folder, remove_folder);
    tcase_add_test(tc, full_order_writes_a_machine);
    tcase_add_test(tc, one_gpu_has_no_peers);
    tcase_add_test(tc, every_size_of_box_loads);
    tcase_add_test(tc, bad_order_says_what_was_expected);
    tcase_add_test(tc, detection_asks_nvidia_smi);
    tcase_add_test(tc, detection_without_a_gpu_is_the_environment);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
