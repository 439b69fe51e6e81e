/* Which of a machine's addresses to use: all processes of a run are given the same options, so what chooses has to
 * mean the right one on each machine. */
#ifndef BACKENDS_NET_NETWORK_H
#define BACKENDS_NET_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#define NETWORK_ADDRESS_BYTES 16

/* IPv4 addresses are written as IPv6 has them, ::ffff:10.1.0.7, as GIDs do. */
struct network {
    uint8_t address[NETWORK_ADDRESS_BYTES];
    uint32_t bits; /* of it that count */
};

/* "10.1.0.0/16", "fd00:7::/64", one address, "10.1.0.7", or "", which holds all.  False: it is none of these. */
bool network_parse(const char *text, struct network *out);

#define NETWORK_EXPECTED "expected an IP address or a network, for example 10.1.0.0/16"

bool network_holds(const struct network *n, const uint8_t address[NETWORK_ADDRESS_BYTES]);

/* Such an address means something on one link only, and to whoever knows by which of his interfaces he reaches it. */
bool network_is_link_local(const uint8_t address[NETWORK_ADDRESS_BYTES]);

struct sockaddr;

/* False: neither an IPv4 nor an IPv6 address. */
bool network_address_of(const struct sockaddr *a, uint8_t out[NETWORK_ADDRESS_BYTES]);

#endif
