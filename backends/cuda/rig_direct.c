/* Windows that a network card reads and writes itself.  The flags that it raises stand behind the window, in one
 * allocation: a card's writes to two memories are not ordered.  Where driver, kernel and device offer a dma-buf, that
 * is what the transport gets, else it is left to the peer-memory module. */
#include <cuda.h>
#include <string.h>
#include <unistd.h>

#include "backends/cuda/rig.h"

#define PAGE_BYTES 4096 /* what a dma-buf begins and ends at */

static uint64_t whole_pages(uint64_t bytes)
{
    return ceil_div(bytes, PAGE_BYTES) * PAGE_BYTES;
}

static uint64_t flag_bytes(const struct rig *r)
{
    return r->program->flag_count * sizeof(uint64_t);
}

/* ---- what the devices can do ---- */

/* The interpreter reads what a flag has announced, from any device of the node, and nobody flushes for it. */
static bool keeps_order(const struct rig *r, const struct device *d)
{
    int supported = 0, ordering = 0;
    int least = r->device_count > 1 ? cudaGPUDirectRDMAWritesOrderingAllDevices : cudaGPUDirectRDMAWritesOrderingOwner;

    return cudaDeviceGetAttribute(&supported, cudaDevAttrGPUDirectRDMASupported, d->index) == cudaSuccess &&
           cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, d->index) == cudaSuccess &&
           supported && ordering >= least;
}

bool rig_direct_possible(const struct rig *r)
{
    bool possible = r->way.transport->gpu;

    for (uint32_t i = 0; i < r->device_count; i++)
        possible = possible && keeps_order(r, &r->devices[i]);
    return possible;
}

/* ---- memory ---- */

enum status rig_create_window(struct rig *r, struct rig_rank *rank)
{
    uint64_t window = whole_pages(program_window_bytes(r->program)), flags = flag_bytes(r);

    rank->dmabuf = -1;
    TRY_CUDA(r, cudaMalloc(&rank->memory, window + whole_pages(flags) + PAGE_BYTES));
    rank->window = (uint8_t *)(uintptr_t)whole_pages((uintptr_t)rank->memory);
    rank->arrived = (uint64_t *)(rank->window + window);
    TRY_CUDA(r, cudaMemset(rank->arrived, 0, flags));
    return ST_OK;
}

void rig_destroy_window(struct rig_rank *rank)
{
    if (rank->memory && rank->dmabuf >= 0)
        close(rank->dmabuf);
    cudaFree(rank->memory);
}

/* -1: there is none. */
static int export_dmabuf(const void *address, uint64_t bytes)
{
    CUresult (*get_handle)(void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type,
                           unsigned long long flags);
    enum cudaDriverEntryPointQueryResult found;
    void *entry = NULL;
    int fd = -1;

    if (cudaGetDriverEntryPointByVersion("cuMemGetHandleForAddressRange", &entry, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        !entry)
        return -1;
    memcpy(&get_handle, &entry, sizeof entry);
    if (get_handle(&fd, (CUdeviceptr)(uintptr_t)address, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0) != CUDA_SUCCESS)
        return -1;
    return fd;
}

void rig_direct_memory(const struct rig *r, struct rig_rank *rank, struct net_memory *window, struct net_memory *flags)
{
    uint64_t bytes = program_window_bytes(r->program), flags_at = whole_pages(bytes);

    if (rank->dmabuf < 0)
        rank->dmabuf = export_dmabuf(rank->window, flags_at + whole_pages(flag_bytes(r)));
    *window = (struct net_memory){rank->window, bytes, true, rank->dmabuf, 0};
    *flags = (struct net_memory){rank->arrived, flag_bytes(r), true, rank->dmabuf, flags_at};
}
