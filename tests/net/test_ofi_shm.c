/* Regions in shared memory that a process of the same number has left behind. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/net/transport.h"

#include "../suite.h"

#define REGION_BYTES 65536

static void leave_region(char path[64])
{
    int fd;

    snprintf(path, 64, "/dev/shm/%d:%u:0", getpid(), getuid());
    fd = open(path, O_CREAT | O_RDWR, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, REGION_BYTES), 0);
    close(fd);
}

/* In a process of its own, as Check does it. */
START_TEST(a_dead_process_is_in_nobodys_way)
{
    static uint64_t memory[16];
    const struct transport *t = transport_find("ofi");
    struct endpoint_config c = {.index = 0, .peers = 2, .depth = 4, .timeout_ps = 1000000000000, .name = "one"};
    struct endpoint *e = NULL;
    char path[64], why[512] = "built without libfabric";
    void *options;

    if (!t || transport_available(t, why, sizeof why) < 0) {
        fprintf(stderr, "test_ofi_shm: skipped: %s\n", why);
        return;
    }
    options = calloc(1, t->options_size);
    option_defaults(t->options, options);
    ck_assert_int_eq(option_parse(option_find(t->options, "provider"), options, "shm", NULL, why, sizeof why), ST_OK);
    c.options = options;
    c.window = (struct net_memory){.base = memory, .bytes = 64, .dmabuf = -1};
    c.flags = (struct net_memory){.base = memory + 8, .bytes = 64, .dmabuf = -1};
    leave_region(path);
    ck_assert_msg(endpoint_open(t, &c, &e, why, sizeof why) == ST_OK, "%s", why);
    endpoint_close(e);
    unlink(path);
    free(options);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shared memory");
    TCase *c = tcase_create("all");

    tcase_add_test(c, a_dead_process_is_in_nobodys_way);
    suite_add_tcase(s, c);
    return suite_run(s);
}
