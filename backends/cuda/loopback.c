#include "backends/cuda/loopback.h"

#include <cuda.h>
#include <string.h>

#define BOUNCE_BYTES (4u << 20)

static CUresult (*stream_write)(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned flags);

/* The driver is reached through the runtime: there is nothing more to link with. */
static cudaError_t find_stream_write(void)
{
    enum cudaDriverEntryPointQueryResult found;
    void *entry = NULL;
    cudaError_t error = cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &entry, 12000,
                                                         cudaEnableDefault, &found);

    if (error == cudaSuccess && !entry)
        error = cudaErrorNotSupported;
    memcpy(&stream_write, &entry, sizeof entry);
    return error;
}

cudaError_t loopback_open(struct loopback *l)
{
    cudaError_t error = find_stream_write();

    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&l->bounce, BOUNCE_BYTES, cudaHostAllocPortable);
    if (error == cudaSuccess)
        error = cudaHostAlloc((void **)&l->completed, sizeof *l->completed, cudaHostAllocPortable);
    if (error == cudaSuccess)
        *l->completed = 0;
    return error;
}

void loopback_close(struct loopback *l)
{
    if (l->stream)
        cudaStreamDestroy(l->stream);
    cudaFreeHost(l->bounce);
    cudaFreeHost(l->completed);
    memset(l, 0, sizeof *l);
}

cudaError_t loopback_put(struct loopback *l, void *to, const void *from, uint64_t bytes,
                         uint64_t *ticket_out)
{
    cudaError_t error = cudaSuccess;

    for (uint64_t at = 0; at < bytes && error == cudaSuccess; at += BOUNCE_BYTES) {
        uint64_t part = bytes - at < BOUNCE_BYTES ? bytes - at : BOUNCE_BYTES;

        error = cudaMemcpyAsync(l->bounce, (const uint8_t *)from + at, part, cudaMemcpyDeviceToHost,
                                l->stream);
        if (error == cudaSuccess)
            error = cudaMemcpyAsync((uint8_t *)to + at, l->bounce, part, cudaMemcpyHostToDevice,
                                    l->stream);
    }
    if (error != cudaSuccess)
        return error;
    *ticket_out = ++l->issued;
    return stream_write((CUstream)l->stream, (CUdeviceptr)(uintptr_t)l->completed, l->issued,
                        CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS
               ? cudaSuccess
               : cudaErrorUnknown;
}

uint64_t loopback_completed(const struct loopback *l)
{
    return __atomic_load_n(l->completed, __ATOMIC_ACQUIRE);
}
