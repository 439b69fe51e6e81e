/* Puts by way of pinned host memory, where a transport does not reach a GPU's.  A rank has, on the host, a copy of that
 * part of its window which puts touch:
 *
 *   out   a copy engine brings the bytes there, then the transport takes them from there
 *   in    the transport brings bytes there and raises a flag of the stage's own; a copy engine takes them to the
 *         device, and once they are there, the flag is raised that the GPU polls
 *   back  whoever waits for a put to be complete waits until its bytes are on the device, of which the transport knows
 *         nothing: so the receiver's stage puts an acknowledgement, a bare one
 *
 * A put's bytes in the copy are touched while that put is on its way and at no other time, just as those in the window:
 * a program without races needs no more order than that.  (Two puts of one source write the same bytes there.)
 *
 * All of it happens in the rank's proxy, none of it waits: between stage_open() and stage_close() only that thread
 * calls, but for stage_error(). */
#ifndef BACKENDS_CUDA_STAGE_H
#define BACKENDS_CUDA_STAGE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/cuda/copier.h"
#include "backends/net/transport.h"
#include "core/program.h"

/* The part of every rank's window that puts of a program touch, the same for all ranks. */
struct stage_part {
    uint64_t first, end; /* bytes */
};

/* Makes *part larger by what a put of this task reads and writes. */
void stage_part_add(struct stage_part *part, const struct program *p, const struct task *t);

struct stage_config {
    const struct program *program;
    struct stage_part part;
    uint32_t rank;
    uint32_t put_count;  /* that the rank makes in an epoch */
    uint32_t depth;      /* puts of the rank on their way at a time */
    uint8_t *window;     /* on the device */
    uint64_t *put_flags; /* that the GPU polls: pinned */
};

/* A put of another rank to this one. */
struct stage_arrival {
    struct operand to;
    uint64_t rows, row_bytes; /* rows: at most */
    uint64_t add;
    uint32_t flag;
    uint32_t from, ack; /* rank, and its flag for acknowledgements; NO_FLAG: it asks for none */
    uint64_t epoch;     /* of the last one seen */
    uint64_t ticket;    /* of its copy */
};

struct stage_out {
    struct put put;
    uint64_t ticket;
};

/* Its acknowledgement is awaited. */
struct stage_sent {
    uint32_t number;
    uint64_t epoch;
};

struct stage {
    struct stage_config config;
    uint8_t *host;   /* pinned: the part */
    uint64_t *flags; /* the stage's own: the program's, by number, and one for each put that the rank makes */
    struct copier out_copier, in_copier;
    struct stage_arrival *arrivals;
    uint32_t arrival_count, arrivals_max;
    struct stage_out *outs;   /* rings */
    uint32_t *ins, *acks;     /* arrivals: their copies are on their way; they are to be acknowledged */
    struct stage_sent *sents; /* in no order */
    uint64_t outs_first, outs_end, ins_first, ins_end, acks_first, acks_end;
    uint32_t sent_count;
    int error; /* enum cudaError */
};

/* On the current device; close is safe on a zeroed stage and on whatever open left behind. */
cudaError_t stage_open(struct stage *s, const struct stage_config *c);
void stage_close(struct stage *s);

/* Before anything arrives: rank `from`'s put number `number`, which raises a flag of this rank with `signal`.
 * False: out of memory. */
bool stage_expect(struct stage *s, uint32_t from, uint32_t number, const struct task *t, const struct signal *signal);

/* What the transport is to show to peers. */
struct net_memory stage_window(const struct stage *s);
struct net_memory stage_flags(const struct stage *s);

/* The value that a put gives the receiving stage's flag: it grows by the epoch, and says the rows. */
uint64_t stage_value(const struct task *t, uint64_t epoch, uint64_t rows);

#define STAGE_ACK_ID UINT64_MAX /* of puts that the stage makes by itself */

bool stage_has_room(const struct stage *s);
/* A put of the rank, with offsets in the window.  True: take it, it needs no copy. */
bool stage_send(struct stage *s, struct put *p, const struct task *t, uint64_t epoch);
/* The next put for the endpoint. */
bool stage_next(struct stage *s, struct put *out);

/* For what arrives; false: nothing is on its way here. */
bool stage_look(struct stage *s);
/* The endpoint has completed it.  True: so it is, for nobody awaits an acknowledgement. */
bool stage_is_complete(const struct stage *s, const struct task *t);
/* One that has been acknowledged since the last time. */
bool stage_acknowledged(struct stage *s, uint32_t *number_out);

cudaError_t stage_error(const struct stage *s); /* of a copy: the stage stands still since then */

#endif
