/* Which addresses a network holds, and that a transport takes one of them. */
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "backends/net/network.h"
#include "backends/net/transport.h"

#include "../suite.h"

static const struct {
    const char *network, *address;
    bool parses, holds;
} rows[] = {
    {"", "10.1.0.7", true, true},
    {"", "fe80::1", true, true},
    {"10.1.0.7", "10.1.0.7", true, true},
    {"10.1.0.7", "10.1.0.6", true, false},
    {"10.1.0.0/16", "10.1.255.7", true, true},
    {"10.1.0.0/16", "10.2.0.7", true, false},
    {"10.1.9.9/16", "10.1.0.7", true, true},
    {"10.1.64.0/18", "10.1.127.1", true, true},
    {"10.1.64.0/18", "10.1.128.1", true, false},
    {"10.0.0.1/32", "10.0.0.1", true, true},
    {"0.0.0.0/0", "10.1.0.7", true, true},
    {"0.0.0.0/0", "fd00::1", true, false},
    {"fd00:7::/64", "fd00:7::3", true, true},
    {"fd00:7::/64", "fd00:8::3", true, false},
    {"fd00:7::/64", "10.1.0.7", true, false},
    {"::1", "::1", true, true},
    {"10.1.0.0/33", "", false, false},
    {"fd00::/129", "", false, false},
    {"10.1.0.0/", "", false, false},
    {"10.1.0.0/-1", "", false, false},
    {"10.1.0.0/16x", "", false, false},
    {"10.1", "", false, false},
    {"eth0", "", false, false},
    {"/8", "", false, false},
    {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", "", false, false},
};

START_TEST(a_network_holds_its_addresses)
{
    struct network n, one;

    ck_assert_msg(network_parse(rows[_i].network, &n) == rows[_i].parses, "%s", rows[_i].network);
    if (!rows[_i].parses)
        return;
    ck_assert(network_parse(rows[_i].address, &one));
    ck_assert_msg(network_holds(&n, one.address) == rows[_i].holds, "%s: %s", rows[_i].network, rows[_i].address);
}
END_TEST

static const struct {
    const char *address;
    bool link_local;
} links[] = {{"169.254.7.1", true}, {"169.253.0.1", false}, {"fe80::1", true},
             {"febf::1", true},     {"fec0::1", false},     {"10.1.0.7", false}};

START_TEST(some_addresses_mean_nothing_elsewhere)
{
    struct network one;

    ck_assert(network_parse(links[_i].address, &one));
    ck_assert_msg(network_is_link_local(one.address) == links[_i].link_local, "%s", links[_i].address);
}
END_TEST

START_TEST(a_socket_address_is_in_its_network)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = 7, .sin_addr.s_addr = htonl(0x0a010007)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    uint8_t address[NETWORK_ADDRESS_BYTES];
    struct network n;

    ck_assert(network_address_of((struct sockaddr *)&v4, address));
    ck_assert(network_parse("10.1.0.7", &n) && network_holds(&n, address));
    ck_assert(network_address_of((struct sockaddr *)&v6, address));
    ck_assert(network_parse("::1", &n) && network_holds(&n, address));
    ck_assert(!network_address_of(&(struct sockaddr){.sa_family = AF_UNIX}, address));
}
END_TEST

/* ---- over TCP ---- */

static const struct {
    const char *address;
    enum status status;
    const char *says;
} wishes[] = {
    {"127.0.0.0/8", ST_OK, NULL},
    {"203.0.113.0/24", ST_ENVIRONMENT, "no address here that is in 203.0.113.0/24"}, /* of documents: nobody has it */
    {"the fast one", ST_INPUT, "expected an IP address or a network"},
};

START_TEST(ofi_takes_an_address_of_the_network)
{
    static uint64_t memory[16];
    const struct transport *t = transport_find("ofi");
    struct endpoint_config c = {.index = 0, .peers = 2, .depth = 4, .timeout_ps = 1000000000000, .name = "one"};
    struct endpoint *e = NULL;
    struct endpoint_address a;
    char why[512] = "built without libfabric";
    const uint8_t loopback[] = {127, 0, 0, 1};

    if (!t || transport_available(t, why, sizeof why) < 0) {
        fprintf(stderr, "test_network: ofi skipped: %s\n", why);
        return;
    }
    c.options = calloc(1, t->options_size);
    option_defaults(t->options, (void *)c.options);
    ck_assert_int_eq(
        option_parse(option_find(t->options, "address"), (void *)c.options, wishes[_i].address, NULL, why, sizeof why),
        ST_OK);
    c.window = (struct net_memory){.base = memory, .bytes = 64, .dmabuf = -1};
    c.flags = (struct net_memory){.base = memory + 8, .bytes = 64, .dmabuf = -1};
    ck_assert_msg(endpoint_open(t, &c, &e, why, sizeof why) == wishes[_i].status, "%s", why);
    if (e) {
        ck_assert_int_eq(endpoint_address(e, 1, &a), ST_OK);
        ck_assert_ptr_nonnull(memmem(a.own, sizeof a.own, loopback, sizeof loopback));
    } else {
        ck_assert_msg(strstr(why, wishes[_i].says), "%s", why);
    }
    endpoint_close(e);
    free((void *)c.options);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("network");
    TCase *c = tcase_create("all");

    tcase_add_loop_test(c, a_network_holds_its_addresses, 0, sizeof rows / sizeof *rows);
    tcase_add_loop_test(c, some_addresses_mean_nothing_elsewhere, 0, sizeof links / sizeof *links);
    tcase_add_test(c, a_socket_address_is_in_its_network);
    tcase_add_loop_test(c, ofi_takes_an_address_of_the_network, 0, sizeof wishes / sizeof *wishes);
    suite_add_tcase(s, c);
    return suite_run(s);
}
