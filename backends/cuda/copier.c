#include "backends/cuda/copier.h"

#include <cuda.h>
#include <string.h>

static CUresult (*stream_write)(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags);

/* The driver is reached through the runtime: there is nothing more to link with. */
static cudaError_t find_stream_write(void)
{
    enum cudaDriverEntryPointQueryResult found;
    void *entry = NULL;
    cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry, 12000, cudaEnableDefault, &found);

    if (error == cudaSuccess && !entry)
        error = cudaErrorNotSupported;
    memcpy(&stream_write, &entry, sizeof entry);
    return error;
}

cudaError_t copier_open(struct copier *c)
{
    cudaError_t error = find_stream_write();

    if (error == cudaSuccess)
        error = cudaGetDevice(&c->device);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&c->completed, sizeof *c->completed, cudaHostAllocPortable);
    if (error == cudaSuccess)
        *c->completed = 0;
    return error;
}

void copier_close(struct copier *c)
{
    if (c->stream) {
        cudaStreamSynchronize(c->stream);
        cudaStreamDestroy(c->stream);
    }
    cudaFreeHost(c->completed);
}

/* A thread begins with the first device as its own; the driver writes by streams of the thread's. */
cudaError_t copier_copy(struct copier *c, void *to, const void *from, uint64_t bytes, enum cudaMemcpyKind kind)
{
    cudaError_t error = cudaSetDevice(c->device);

    return error == cudaSuccess ? cudaMemcpyAsync(to, from, bytes, kind, c->stream) : error;
}

cudaError_t copier_issue(struct copier *c, uint64_t *ticket_out)
{
    *ticket_out = ++c->issued;
    return stream_write((CUstream)c->stream, (CUdeviceptr)(uintptr_t)c->completed, c->issued,
                        CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS
               ? cudaSuccess
               : cudaErrorUnknown;
}

uint64_t copier_completed(const struct copier *c)
{
    return __atomic_load_n(c->completed, __ATOMIC_ACQUIRE);
}
