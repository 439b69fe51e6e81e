/* MPI carries a few small messages before and after runs, and from the parents of children: nothing that is timed
 * goes through it.  Only the parent processes use it, never a child. */
#include "backends/net/launch_mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAG 7

/* MPI reads the bytes until it says that they are gone. */
struct sending {
    struct sending *next;
    MPI_Request request;
    uint8_t bytes[];
};

struct mpi {
    struct sending *sendings;
};

static enum status mpi_open(void **state_out, uint32_t *node_out, uint32_t *count_out, char *why, size_t why_bytes)
{
    int rank = 0, size = 0;

    *state_out = NULL;
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS || !(*state_out = calloc(1, sizeof(struct mpi)))) {
        snprintf(why, why_bytes, "it could not be initialised");
        return ST_ENVIRONMENT;
    }
    *node_out = (uint32_t)rank;
    *count_out = (uint32_t)size;
    return ST_OK;
}

static void forget_sent(struct mpi *m)
{
    struct sending **at = &m->sendings;

    while (*at) {
        struct sending *s = *at;
        int sent = 0;

        MPI_Test(&s->request, &sent, MPI_STATUS_IGNORE);
        if (!sent) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        free(s);
    }
}

static enum status mpi_send(void *state, uint32_t to, const void *data, size_t bytes)
{
    struct mpi *m = state;
    struct sending *s;

    if (bytes > INT_MAX)
        return ST_UNSUPPORTED;
    s = malloc(sizeof *s + bytes);
    if (!s)
        return ST_MEMORY;
    memcpy(s->bytes, data, bytes);
    if (MPI_Isend(s->bytes, (int)bytes, MPI_BYTE, (int)to, TAG, MPI_COMM_WORLD, &s->request) != MPI_SUCCESS) {
        free(s);
        return ST_IO;
    }
    s->next = m->sendings;
    m->sendings = s;
    return ST_OK;
}

static bool mpi_receive(void *state, uint32_t *from_out, void **data_out, size_t *bytes_out)
{
    MPI_Status status;
    int there = 0, bytes = 0;

    forget_sent(state);
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there ||
        MPI_Get_count(&status, MPI_BYTE, &bytes) != MPI_SUCCESS || !(*data_out = malloc((size_t)bytes + 1)))
        return false;
    if (MPI_Recv(*data_out, bytes, MPI_BYTE, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS) {
        free(*data_out);
        return false;
    }
    *from_out = (uint32_t)status.MPI_SOURCE;
    *bytes_out = (size_t)bytes;
    return true;
}

static void mpi_close(void *state)
{
    struct mpi *m = state;

    while (m->sendings) {
        struct sending *s = m->sendings;

        MPI_Wait(&s->request, MPI_STATUS_IGNORE);
        m->sendings = s->next;
        free(s);
    }
    free(m);
    MPI_Finalize();
}

const struct launcher mpi_launcher = {
    .name = "MPI",
    .open = mpi_open,
    .send = mpi_send,
    .receive = mpi_receive,
    .close = mpi_close,
};
