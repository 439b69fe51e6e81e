/* Checks of `mkernel doctor`.  Every one that reads files is held against a folder that looks like a node with
 * two GPUs, an InfiniBand and a RoCE port, and against an empty one; every other is run as it is here. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cli/doctor.h"

#include "../suite.h"

static char root[] = "/tmp/mkernel-doctor-XXXXXX";

static const struct fake_file {
    const char *path, *text;
} files[] = {
    {"proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units     \n"
                         "Max processes             95970                95970                processes \n"
                         "Max locked memory         unlimited            unlimited            bytes     \n"},
    {"proc/meminfo", "MemTotal:  1000 kB\nHugePages_Total:     512\nHugepagesize:       2048 kB\n"},
    {"sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"},
    {"proc/driver/nvidia/gpus/0000:18:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 18\n"},
    {"proc/driver/nvidia/gpus/0000:2a:00.0/information", "Model: \t\t NVIDIA H200\nIRQ:   \t\t 19\n"},
    {"sys/module/nvidia/version", "570.86.15\n"},
    {"sys/module/nvidia_peermem/version", "570.86.15\n"},
    {"sys/class/infiniband/mlx5_0/hca_type", "MT4129\n"},
    {"sys/class/infiniband/mlx5_0/fw_ver", "28.39.1002\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:a088:c203:0012:3456\n"},
    {"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/0", "IB/RoCE v1\n"},
    {"sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n"},
    {"sys/class/infiniband/mlx5_1/ports/1/rate", "200 Gb/sec (4X HDR)\n"},
    {"sys/class/infiniband/mlx5_1/ports/1/link_layer", "Ethernet\n"},
    {"sys/class/infiniband/mlx5_1/ports/1/gids/0", "0000:0000:0000:0000:0000:0000:0000:0000\n"},
    {"sys/class/infiniband/mlx5_1/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a00:0001\n"},
    {"sys/class/infiniband/mlx5_1/ports/1/gid_attrs/types/3", "RoCE v2\n"},
    {"sys/class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0", "eth2\n"},
    {"sys/class/net/eth2/mtu", "9000\n"},
};

/* What each check that reads files says about that folder. */
static const struct answer {
    const char *check, *says;
} expected[] = {
    {"memlock", "unlimited"},
    {"huge pages", "512 reserved of 2048 kB, transparent: always [madvise] never"},
    {"GPUs", "2 x NVIDIA H200"},
    {"driver", "570.86.15"},
    {"peer memory", "nvidia_peermem"},
    {"NICs", "mlx5_0 MT4129 firmware 28.39.1002, mlx5_1"},
    {"ports", "mlx5_0/1 ACTIVE 400 Gb/sec (4X NDR) InfiniBand, mlx5_1/1 ACTIVE 200 Gb/sec (4X HDR) Ethernet"},
    {"GIDs", "mlx5_0/1 has one, mlx5_1/1 has one"},
    {"MTU", "mlx5_0/1 as its subnet manager says, mlx5_1/1 over eth2: 9000"},
};

static void write_file(const struct fake_file *file)
{
    char path[512];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", root, file->path);
    for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(path, 0700);
    }
    f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(file->text, f);
    fclose(f);
}

static void replace(const char *path, const char *text)
{
    write_file(&(struct fake_file){path, text});
}

static void make_root(void)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void make_node(void)
{
    make_root();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        write_file(&files[i]);
}

static void remove_root(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

static const struct backend *const no_backends[] = {NULL};
static const struct registry registry = {.backends = no_backends};

static struct finding look(const struct doctor_check *c, const char *below)
{
    struct doctor d = {.root = below, .registry = &registry, .memory_wanted_bytes = 1};
    struct finding f = {0};

    c->look(&d, c, &f);
    return f;
}

static const struct doctor_check *check_named(const char *name)
{
    for (size_t t = 0; doctor_tables[t]; t++)
        for (const struct doctor_check *c = doctor_tables[t]; c->name; c++)
            if (strcmp(c->name, name) == 0)
                return c;
    ck_abort_msg("no check called %s", name);
    return NULL;
}

static const char *expected_of(const struct doctor_check *c)
{
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (strcmp(expected[i].check, c->name) == 0)
            return expected[i].says;
    return NULL;
}

START_TEST(every_check_is_as_a_user_needs_it)
{
    for (size_t t = 0; doctor_tables[t]; t++)
        for (const struct doctor_check *c = doctor_tables[t]; c->name; c++) {
            ck_assert_str_ne(c->use, "");
            ck_assert_msg(c->remedy[0] || c->needed_for == 0, "%s: needed, and no remedy", c->name);
            ck_assert_ptr_eq(check_named(c->name), c); /* one of each name */
        }
}
END_TEST

START_TEST(checks_read_a_node_from_files)
{
    make_node();
    for (size_t t = 0; doctor_tables[t]; t++)
        for (const struct doctor_check *c = doctor_tables[t]; c->name; c++) {
            struct finding f;

            if (c->live || c->look == doctor_look_part)
                continue;
            f = look(c, root);
            ck_assert_msg(expected_of(c) != NULL, "%s reads files and is not tested here", c->name);
            ck_assert_msg(f.ok, "%s: not ok: %s", c->name, f.text);
            ck_assert_str_eq(f.text, expected_of(c));
        }
    remove_root();
}
END_TEST

START_TEST(checks_of_an_empty_folder_are_not_ok)
{
    make_root();
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct finding f = look(check_named(expected[i].check), root);

        ck_assert_msg(!f.ok, "%s: ok without any file: %s", expected[i].check, f.text);
    }
    remove_root();
}
END_TEST

START_TEST(live_checks_say_what_they_found)
{
    for (size_t t = 0; doctor_tables[t]; t++)
        for (const struct doctor_check *c = doctor_tables[t]; c->name; c++) {
            struct finding f = look(c, "");

            ck_assert_msg(!f.ok || f.text[0], "%s: ok, but what?", c->name);
        }
}
END_TEST

/* What can be wrong on a node that has everything. */
static const struct fault {
    const char *path, *text, *check, *says;
} faults[] = {
    {"proc/self/limits", "Max locked memory         8388608              8388608              bytes     \n", "memlock",
     "8388608 bytes"},
    {"sys/class/net/eth2/mtu", "1500\n", "MTU", "mlx5_1/1 over eth2: 1500"},
    {"sys/class/infiniband/mlx5_1/ports/1/gids/3", "0000:0000:0000:0000:0000:0000:0000:0000\n", "GIDs",
     "mlx5_1/1 has none that can be used"},
};

START_TEST(faults_are_seen)
{
    const struct fault *fault = &faults[_i];
    struct finding f;

    make_node();
    replace(fault->path, fault->text);
    f = look(check_named(fault->check), root);
    ck_assert_msg(!f.ok && strstr(f.text, fault->says), "%s: %s", fault->check, f.text);
    remove_root();
}
END_TEST

/* The driver has not taken what is on PCI. */
START_TEST(gpus_without_a_driver_are_named)
{
    struct finding f;

    make_root();
    replace("sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n");
    replace("sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n");
    replace("sys/bus/pci/devices/0000:19:00.0/vendor", "0x10de\n");
    replace("sys/bus/pci/devices/0000:19:00.0/class", "0x068000\n");
    f = look(check_named("GPUs"), root);
    ck_assert(!f.ok);
    ck_assert_str_eq(f.text, "1 NVIDIA devices on PCI, but no driver has taken them");
    remove_root();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("doctor");
    TCase *tc = tcase_create("checks");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_check_is_as_a_user_needs_it);
    tcase_add_test(tc, checks_read_a_node_from_files);
    tcase_add_test(tc, checks_of_an_empty_folder_are_not_ok);
    tcase_add_test(tc, live_checks_say_what_they_found);
    tcase_add_loop_test(tc, faults_are_seen, 0, sizeof faults / sizeof *faults);
    tcase_add_test(tc, gpus_without_a_driver_are_named);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
