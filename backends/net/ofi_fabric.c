#include "backends/net/ofi_fabric.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "backends/net/network.h"
#include "backends/net/ofi_shm.h"

struct fi_info *ofi_hints(const char *provider)
{
    struct fi_info *h = fi_allocinfo();

    if (!h)
        return NULL;
    h->caps = FI_MSG | FI_RMA;
    h->mode = 0;
    h->ep_attr->type = FI_EP_RDM;
    h->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    h->domain_attr->threading = FI_THREAD_DOMAIN;
    h->domain_attr->resource_mgmt = FI_RM_ENABLED;
    h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    if (provider[0])
        h->fabric_attr->prov_name = strdup(provider);
    return h;
}

static bool find_address(const struct fi_info *info, uint8_t out[NETWORK_ADDRESS_BYTES])
{
    bool is_ip =
        info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6;

    return is_ip && info->src_addr && network_address_of(info->src_addr, out);
}

/* Where no network is asked for, whatever is no IP address will do, and of these those that peers can reach. */
static bool suits(const struct fi_info *info, const struct network *n)
{
    uint8_t address[NETWORK_ADDRESS_BYTES];

    if (!find_address(info, address))
        return n->bits == 0;
    return n->bits == 0 ? !network_is_link_local(address) : network_holds(n, address);
}

static enum status find_providers(struct endpoint *e, const char *name, struct fi_info **found)
{
    struct fi_info *hints = ofi_hints(name);
    int error;

    if (!hints)
        return endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory");
    error = fi_getinfo(OFI_API, NULL, NULL, 0, hints, found);
    fi_freeinfo(hints);
    if (error)
        return endpoint_fail(e, ST_ENVIRONMENT, NO_PEER,
                             "no provider \"%s\" with remote writes here: %s (fi_info -l lists them)", name,
                             fi_strerror(-error));
    return ST_OK;
}

/* They are listed by address, that of the fastest interface first. */
static enum status choose_provider(struct endpoint *e, const struct ofi_options *o, struct ofi_fabric *f)
{
    struct fi_info *found, *at;
    struct network n;

    if (!network_parse(o->address, &n))
        return endpoint_fail(e, ST_INPUT, NO_PEER, "address %s: " NETWORK_EXPECTED, o->address);
    TRY(find_providers(e, o->provider, &found));
    for (at = found; at && !suits(at, &n);)
        at = at->next;
    if (!at && n.bits == 0)
        at = found;
    f->info = at ? fi_dupinfo(at) : NULL;
    fi_freeinfo(found);
    if (!at)
        return endpoint_fail(e, ST_ENVIRONMENT, NO_PEER, "provider \"%s\" has no address here that is in %s",
                             o->provider, o->address);
    return f->info ? ST_OK : endpoint_fail(e, ST_MEMORY, NO_PEER, "no memory");
}

static enum status check(struct endpoint *e, int error, const char *what)
{
    return error == 0 ? ST_OK : endpoint_fail(e, ST_IO, NO_PEER, "%s: %s", what, fi_strerror(-error));
}

static enum status open_domain(struct endpoint *e, struct ofi_fabric *f)
{
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .size = e->config.depth * 2ull + f->info->rx_attr->size};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = e->config.peers};

    TRY(check(e, fi_fabric(f->info->fabric_attr, &f->fabric, NULL), "fi_fabric"));
    TRY(check(e, fi_domain(f->fabric, f->info, &f->domain, NULL), "fi_domain"));
    TRY(check(e, fi_cq_open(f->domain, &cq, &f->cq, NULL), "fi_cq_open"));
    return check(e, fi_av_open(f->domain, &av, &f->av, NULL), "fi_av_open");
}

static enum status open_endpoint(struct endpoint *e, struct ofi_fabric *f)
{
    TRY(check(e, fi_endpoint(f->domain, f->info, &f->ep, NULL), "fi_endpoint"));
    TRY(check(e, fi_ep_bind(f->ep, &f->av->fid, 0), "fi_ep_bind"));
    TRY(check(e, fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind"));
    return check(e, fi_enable(f->ep), "fi_enable");
}

enum status ofi_register(struct endpoint *e, struct ofi_fabric *f, void *base, uint64_t bytes, uint64_t access,
                         uint64_t key, struct fid_mr **mr)
{
    bool remote = access & FI_REMOTE_WRITE;

    if (!remote && !(f->info->domain_attr->mr_mode & FI_MR_LOCAL))
        return ST_OK;
    return check(e, fi_mr_reg(f->domain, base, bytes, access, 0, key, 0, mr, NULL), "fi_mr_reg");
}

/* Where the provider lets us choose: a number that nobody has who has not been told.  A port may have been another
 * run's before, and its peers still write to it. */
static enum status choose_key(struct endpoint *e, struct ofi_fabric *f)
{
    size_t bytes = f->info->domain_attr->mr_key_size;

    if (getrandom(&f->key, sizeof f->key, 0) != sizeof f->key)
        return endpoint_fail(e, ST_IO, NO_PEER, "no random number: %s", strerror(errno));
    f->key >>= bytes < sizeof f->key ? 8 * (sizeof f->key - bytes) : 0;
    return ST_OK;
}

enum status ofi_fabric_open(struct endpoint *e, const struct ofi_options *o, struct ofi_fabric *f)
{
    const struct net_memory *w = &e->config.window;

    TRY(choose_provider(e, o, f));
    if (strcmp(o->provider, "shm") == 0)
        ofi_shm_forget_dead();
    TRY(open_domain(e, f));
    TRY(open_endpoint(e, f));
    TRY(choose_key(e, f));
    TRY(ofi_register(e, f, w->base, w->bytes, FI_WRITE | FI_REMOTE_WRITE, f->key, &f->window));
    e->self.window_key = fi_mr_key(f->window);
    if (f->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
        e->self.window_base = (uintptr_t)w->base;
    return ST_OK;
}

static void close_fid(struct fid *fid)
{
    if (fid)
        fi_close(fid);
}

void ofi_fabric_close(struct ofi_fabric *f)
{
    close_fid(f->ep ? &f->ep->fid : NULL);
    close_fid(f->messages ? &f->messages->fid : NULL);
    close_fid(f->window ? &f->window->fid : NULL);
    close_fid(f->av ? &f->av->fid : NULL);
    close_fid(f->cq ? &f->cq->fid : NULL);
    close_fid(f->domain ? &f->domain->fid : NULL);
    close_fid(f->fabric ? &f->fabric->fid : NULL);
    if (f->info)
        fi_freeinfo(f->info);
    memset(f, 0, sizeof *f);
}
