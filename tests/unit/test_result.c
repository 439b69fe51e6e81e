/* Result files: whole or not at all, never over another. */
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/results/result.h"

#include "../suite.h"

static char folder[64];

static void enter_folder(void)
{
    strcpy(folder, "/tmp/mkernel-result-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void remove_folder(void)
{
    char command[128];

    ck_assert_int_eq(chdir("/"), 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;

    ck_assert_ptr_nonnull(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static void write_one(const char *path, const char *line, char *path_out)
{
    struct result_file f;

    ck_assert_int_eq(result_open(&f, path), ST_OK);
    result_write(&f, line);
    ck_assert_int_eq(result_commit(&f, path_out), ST_OK);
}

START_TEST(a_taken_name_gets_a_number)
{
    char path[RESULT_PATH_BYTES], line[16];
    FILE *f;

    write_one("deep/er/run.jsonl", "first", path);
    ck_assert_str_eq(path, "deep/er/run.jsonl");
    write_one("deep/er/run.jsonl", "second", path);
    ck_assert_str_eq(path, "deep/er/run.jsonl.1");
    write_one("deep/er/run.jsonl", "third", path);
    ck_assert_str_eq(path, "deep/er/run.jsonl.2");
    f = fopen("deep/er/run.jsonl", "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, f));
    ck_assert_str_eq(line, "first\n");
    fclose(f);
    ck_assert_int_eq(entries("deep/er"), 3); /* and nothing temporary */
}
END_TEST

START_TEST(nothing_shows_before_commit)
{
    struct result_file f;

    ck_assert_int_eq(result_open(&f, "run.jsonl"), ST_OK);
    result_write(&f, "half");
    ck_assert_int_ne(access("run.jsonl", F_OK), 0);
    result_close(&f);
    ck_assert_int_eq(entries("."), 0);
    result_close(&f); /* safe twice */
}
END_TEST

START_TEST(a_full_disk_is_reported)
{
    struct result_file f;
    char path[RESULT_PATH_BYTES];

    ck_assert_int_eq(result_open(&f, "/dev/full"), ST_OK);
    result_write(&f, "lost");
    ck_assert_int_eq(result_commit(&f, path), ST_IO);
}
END_TEST

static const char *const refused[] = {"", "folder/", "/proc/nothing/here.jsonl", "file/below.jsonl", "/"};

START_TEST(a_place_that_cannot_be_is_refused)
{
    struct result_file f;
    FILE *in_the_way = fopen("file", "w");

    fclose(in_the_way);
    ck_assert_int_eq(result_open(&f, refused[_i]), ST_IO);
    result_write(&f, "ignored");
    result_close(&f);
    ck_assert_int_eq(entries("."), 1);
}
END_TEST

START_TEST(a_path_too_long_is_refused)
{
    struct result_file f;
    char path[2 * RESULT_PATH_BYTES];

    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = 0;
    ck_assert_int_eq(result_open(&f, path), ST_IO);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("result");
    TCase *tc = tcase_create("result");

    tcase_add_checked_fixture(tc, enter_folder, remove_folder);
    tcase_add_test(tc, a_taken_name_gets_a_number);
    tcase_add_test(tc, nothing_shows_before_commit);
    tcase_add_test(tc, a_full_disk_is_reported);
    tcase_add_loop_test(tc, a_place_that_cannot_be_is_refused, 0, sizeof(refused) / sizeof(refused[0]));
    tcase_add_test(tc, a_path_too_long_is_refused);
    suite_add_tcase(s, tc);
    return suite_run(s);
}
