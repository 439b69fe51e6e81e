#include "backends/net/verbs_queue.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define INLINE_BYTES 64
#define HOPS 64

/* An unanswered packet is sent again so many times.  Not seven: rdma_rxe takes that for "for ever". */
#define RETRIES 6

/* The field's unit is 4.096 us * 2^n. */
static uint8_t timeout_field(uint64_t ps)
{
    uint8_t n = 1;

    while (n < 31 && (4096000ull << n) < ps)
        n++;
    return n;
}

static bool to_init(struct verbs_queue *q, uint8_t port)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = port, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
    int error = ibv_modify_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    errno = error;
    return error == 0;
}

bool verbs_queue_open(struct verbs_queue *q, const struct verbs_device *d, uint8_t port)
{
    uint32_t wrs = d->attr.max_qp_wr < VERBS_WRS ? (uint32_t)d->attr.max_qp_wr : VERBS_WRS;
    struct ibv_qp_init_attr a = {
        .send_cq = d->cq,
        .recv_cq = d->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = wrs,
                .max_send_sge = 1,
                .max_recv_wr = 1,
                .max_recv_sge = 1,
                .max_inline_data = INLINE_BYTES},
    };

    q->qp = ibv_create_qp(d->pd, &a);
    if (!q->qp || getrandom(&q->psn, sizeof q->psn, 0) != sizeof q->psn)
        return false;
    q->psn &= 0xffffff;
    q->wrs_max = wrs;
    q->inline_bytes = a.cap.max_inline_data;
    if (q->inline_bytes < sizeof(uint64_t)) {
        errno = EOPNOTSUPP; /* flags are inline */
        return false;
    }
    return to_init(q, port);
}

static void set_path(struct ibv_ah_attr *ah, const struct verbs_device *d, uint8_t port,
                     const struct verbs_address *peer)
{
    ah->port_num = port;
    ah->dlid = peer->lid;
    if (d->port.link_layer == IBV_LINK_LAYER_INFINIBAND && peer->lid != 0)
        return;
    ah->is_global = 1;
    ah->grh.dgid = peer->gid;
    ah->grh.sgid_index = (uint8_t)d->gid.gid_index;
    ah->grh.hop_limit = HOPS;
}

static int to_receive(struct verbs_queue *q, const struct verbs_device *d, uint8_t port,
                      const struct verbs_address *peer, uint32_t i)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = d->port.active_mtu < peer->mtu ? d->port.active_mtu : (enum ibv_mtu)peer->mtu,
        .dest_qp_num = peer->number[i],
        .rq_psn = peer->psn[i],
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
    };

    set_path(&a.ah_attr, d, port, peer);
    return ibv_modify_qp(q->qp, &a,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int to_send(struct verbs_queue *q, uint64_t ack_timeout_ps)
{
    struct ibv_qp_attr a = {
        .qp_state = IBV_QPS_RTS,
        .timeout = timeout_field(ack_timeout_ps),
        .retry_cnt = RETRIES,
        .rnr_retry = RETRIES,
        .sq_psn = q->psn,
        .max_rd_atomic = 1,
    };

    return ibv_modify_qp(q->qp, &a,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC);
}

bool verbs_queue_connect(struct verbs_queue *q, const struct verbs_device *d, const struct verbs_options *o,
                         const struct verbs_address *peer, uint32_t i)
{
    int error = to_receive(q, d, (uint8_t)o->port, peer, i);

    if (error == 0)
        error = to_send(q, o->ack_timeout_ps);
    errno = error;
    return error == 0;
}

void verbs_queue_close(struct verbs_queue *q)
{
    if (q->qp)
        ibv_destroy_qp(q->qp);
    memset(q, 0, sizeof *q);
}
