#include "backends/net/network.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define V4_AT 12 /* where IPv4 stands in an address */

static const uint8_t v4_prefix[V4_AT] = {[10] = 0xff, [11] = 0xff};

static bool parse_address(const char *text, struct network *out, uint32_t *bits_max)
{
    struct network n = {.bits = 8 * V4_AT};

    memcpy(n.address, v4_prefix, sizeof v4_prefix);
    *bits_max = 32;
    if (inet_pton(AF_INET, text, n.address + V4_AT) != 1) {
        n.bits = 0;
        *bits_max = 128;
        if (inet_pton(AF_INET6, text, n.address) != 1)
            return false;
    }
    *out = n;
    return true;
}

bool network_parse(const char *text, struct network *out)
{
    char address[INET6_ADDRSTRLEN], *end;
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);
    uint32_t bits_max;
    unsigned long bits;
    struct network n;

    *out = (struct network){.bits = 0};
    if (length >= sizeof address)
        return false;
    if (text[0] == 0)
        return true;
    snprintf(address, sizeof address, "%.*s", (int)length, text);
    if (!parse_address(address, &n, &bits_max))
        return false;
    bits = bits_max;
    if (slash) {
        bits = strtoul(slash + 1, &end, 10);
        if (!isdigit((unsigned char)slash[1]) || *end || bits > bits_max)
            return false;
    }
    n.bits += (uint32_t)bits;
    *out = n;
    return true;
}

bool network_holds(const struct network *n, const uint8_t address[NETWORK_ADDRESS_BYTES])
{
    uint32_t bytes = n->bits / 8, rest = n->bits % 8;

    if (memcmp(n->address, address, bytes) != 0)
        return false;
    return rest == 0 || (n->address[bytes] ^ address[bytes]) >> (8 - rest) == 0;
}

bool network_is_link_local(const uint8_t address[NETWORK_ADDRESS_BYTES])
{
    static const struct network v4 = {{[10] = 0xff, [11] = 0xff, [12] = 169, [13] = 254}, 8 * V4_AT + 16};
    static const struct network v6 = {{0xfe, 0x80}, 10};

    return network_holds(&v4, address) || network_holds(&v6, address);
}

bool network_address_of(const struct sockaddr *a, uint8_t out[NETWORK_ADDRESS_BYTES])
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (a->sa_family == AF_INET) {
        memcpy(&v4, a, sizeof v4);
        memcpy(out, v4_prefix, sizeof v4_prefix);
        memcpy(out + V4_AT, &v4.sin_addr, sizeof v4.sin_addr);
        return true;
    }
    if (a->sa_family != AF_INET6)
        return false;
    memcpy(&v6, a, sizeof v6);
    memcpy(out, &v6.sin6_addr, sizeof v6.sin6_addr);
    return true;
}
