/* libfabric's objects for one endpoint: from a provider's name to an enabled endpoint. */
#ifndef BACKENDS_NET_OFI_FABRIC_H
#define BACKENDS_NET_OFI_FABRIC_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdint.h>

#include "backends/net/transport.h"
#include "core/parse/option.h"

#define OFI_API FI_VERSION(1, 14)

struct ofi_options {
    char provider[OPTION_TEXT_BYTES];
    char address[OPTION_TEXT_BYTES];
    uint64_t data_bytes; /* of remote completion data, at most */
    uint64_t message_max_bytes;
};

struct ofi_fabric {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_cq *cq; /* of everything */
    struct fid_av *av;
    struct fid_ep *ep;
    struct fid_mr *window, *messages;
    uint64_t key; /* of the window, where the provider lets us choose; the messages' differs in a bit */
};

/* What this needs of any provider.  NULL: no memory. */
struct fi_info *ofi_hints(const char *provider);

/* Opens everything but `messages`, for whoever has them; fills the keys of e->self. */
enum status ofi_fabric_open(struct endpoint *e, const struct ofi_options *o, struct ofi_fabric *f);
void ofi_fabric_close(struct ofi_fabric *f); /* safe on whatever open left behind */

/* Registers `bytes` at `base` for `access`, where the provider wants that; else leaves *mr NULL. */
enum status ofi_register(struct endpoint *e, struct ofi_fabric *f, void *base, uint64_t bytes, uint64_t access,
                         uint64_t key, struct fid_mr **mr);

#endif
