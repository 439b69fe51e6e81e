/* GPUs: the kernel's files say what is there, NVML how they are joined, the driver what it can do. */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cli/doctor.h"

#define NVLINKS_MAX 18
#define CUDA_VERSION_MIN 12000 /* the driver's, as it counts: 12.0 */

/* The name of a function is all that a library is asked by: its headers need not be there. */
static void *find(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

#define FIND(library, function) memcpy(&(function), &(void *){find(library, #function)}, sizeof(function))

/* ---- the kernel's files ---- */

struct models {
    char name[96];
    uint32_t count;
    bool mixed;
};

static void add_model(const struct doctor *d, const char *path, void *arg)
{
    struct models *m = arg;
    char model[sizeof m->name] = "unknown model";

    doctor_value(d, path, "Model", model, sizeof model);
    m->mixed |= m->count > 0 && strcmp(m->name, model) != 0;
    snprintf(m->name, sizeof m->name, "%s", model);
    m->count++;
}

static void count_unbound(const struct doctor *d, const char *path, void *arg)
{
    char vendor[32], class_path[256], class[32];

    snprintf(class_path, sizeof class_path, "%.*sclass", (int)(strlen(path) - strlen("vendor")), path);
    if (doctor_line(d, path, vendor, sizeof vendor) && strcmp(vendor, "0x10de") == 0 &&
        doctor_line(d, class_path, class, sizeof class) && strncmp(class, "0x03", 4) == 0)
        ++*(uint32_t *)arg;
}

static void look_gpus(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct models m = {0};
    uint32_t unbound = 0;

    (void)c;
    doctor_each(d, "proc/driver/nvidia/gpus/*/information", add_model, &m);
    out->ok = m.count > 0;
    if (m.count > 0) {
        finding_add(out, "%" PRIu32 " x %s%s", m.count, m.name, m.mixed ? " and other models" : "");
        return;
    }
    doctor_each(d, "sys/bus/pci/devices/*/vendor", count_unbound, &unbound);
    if (unbound > 0)
        finding_add(out, "%" PRIu32 " NVIDIA devices on PCI, but no driver has taken them", unbound);
}

static void look_driver(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    char version[64];

    (void)c;
    out->ok = doctor_line(d, "sys/module/nvidia/version", version, sizeof version);
    if (out->ok)
        finding_add(out, "%s", version);
}

/* ---- the driver ---- */

static void look_cuda_driver(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    int (*cuDriverGetVersion)(int *version);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int version = 0;

    (void)d, (void)c;
    FIND(library, cuDriverGetVersion);
    if (cuDriverGetVersion && cuDriverGetVersion(&version) == 0) {
        out->ok = version >= CUDA_VERSION_MIN;
        finding_add(out, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    }
    if (library)
        dlclose(library);
}

#define CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED 124

static bool ask_driver_for_dma_buf(void)
{
    int (*cuInit)(unsigned flags);
    int (*cuDeviceGetAttribute)(int *value, int attribute, int device);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int value = 0;

    FIND(library, cuInit);
    FIND(library, cuDeviceGetAttribute);
    if (!cuInit || !cuDeviceGetAttribute || cuInit(0) != 0 ||
        cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 0) != 0)
        value = 0;
    return value != 0;
}

/* CUDA does not work in the children of a process that has begun it, and the cuda backend looks for devices in one. */
static bool driver_has_dma_buf(void)
{
    pid_t child = fork();
    int status;

    if (child == 0)
        _exit(ask_driver_for_dma_buf() ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void look_peer_memory(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    (void)c;
    if (d->root[0] == 0 && driver_has_dma_buf())
        finding_add(out, "dma-buf");
    if (doctor_exists(d, "sys/module/nvidia_peermem"))
        finding_add(out, "nvidia_peermem");
    if (doctor_exists(d, "sys/module/nv_peer_mem"))
        finding_add(out, "nv_peer_mem");
    out->ok = out->text[0] != 0;
}

/* It can be built for and yet not be here, and the other way round. */
static void look_nccl(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    int (*ncclGetVersion)(int *version);
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int version = 0;

    doctor_look_part(d, c, out);
    snprintf(out->text, sizeof out->text, "%s its header", out->ok ? "built with" : "built without");
    FIND(library, ncclGetVersion);
    if (ncclGetVersion && ncclGetVersion(&version) == 0)
        finding_add(out, "library %d.%d.%d", version / 10000, version % 10000 / 100, version % 100);
    else
        finding_add(out, "library not found");
    out->ok &= version > 0;
    if (library)
        dlclose(library);
}

/* ---- NVML ---- */

struct nvml {
    void *library;
    unsigned count; /* GPUs */
    int (*nvmlInit_v2)(void);
    int (*nvmlShutdown)(void);
    int (*nvmlDeviceGetCount_v2)(unsigned *count);
    int (*nvmlDeviceGetHandleByIndex_v2)(unsigned index, void **device);
    int (*nvmlDeviceGetP2PStatus)(void *a, void *b, int capability, int *status);
    int (*nvmlDeviceGetNvLinkState)(void *device, unsigned link, int *active);
};

#define FIND_NVML(n, function) memcpy(&(n)->function, &(void *){find((n)->library, #function)}, sizeof(n)->function)

static void nvml_close(struct nvml *n)
{
    if (n->nvmlShutdown)
        n->nvmlShutdown();
    if (n->library)
        dlclose(n->library);
}

/* False: there is no driver, or one that is older than these calls. */
static bool nvml_open(struct nvml *n)
{
    *n = (struct nvml){.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
    FIND_NVML(n, nvmlInit_v2);
    FIND_NVML(n, nvmlDeviceGetCount_v2);
    FIND_NVML(n, nvmlDeviceGetHandleByIndex_v2);
    FIND_NVML(n, nvmlDeviceGetP2PStatus);
    FIND_NVML(n, nvmlDeviceGetNvLinkState);
    if (n->nvmlInit_v2 && n->nvmlDeviceGetCount_v2 && n->nvmlDeviceGetHandleByIndex_v2 && n->nvmlDeviceGetP2PStatus &&
        n->nvmlDeviceGetNvLinkState && n->nvmlInit_v2() == 0) {
        FIND_NVML(n, nvmlShutdown);
        if (n->nvmlDeviceGetCount_v2(&n->count) == 0)
            return true;
    }
    nvml_close(n);
    return false;
}

#define NVML_P2P_CAPABILITY_WRITE 1

static bool reaches(struct nvml *n, unsigned from, unsigned to)
{
    void *a, *b;
    int status;

    return n->nvmlDeviceGetHandleByIndex_v2(from, &a) == 0 && n->nvmlDeviceGetHandleByIndex_v2(to, &b) == 0 &&
           n->nvmlDeviceGetP2PStatus(a, b, NVML_P2P_CAPABILITY_WRITE, &status) == 0 && status == 0;
}

static void look_p2p(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct nvml n;
    uint32_t pairs = 0, open = 0;

    (void)d, (void)c;
    if (!nvml_open(&n))
        return;
    for (unsigned i = 0; i < n.count; i++)
        for (unsigned j = 0; j < n.count; j++) {
            pairs += i != j;
            open += i != j && reaches(&n, i, j);
        }
    nvml_close(&n);
    out->ok = pairs > 0 && open == pairs;
    if (pairs > 0)
        finding_add(out, "%" PRIu32 " of %" PRIu32 " pairs", open, pairs);
    else
        finding_add(out, "one GPU, which has no peer");
}

static uint32_t count_links(struct nvml *n, unsigned index)
{
    void *device;
    uint32_t count = 0;
    int active;

    if (n->nvmlDeviceGetHandleByIndex_v2(index, &device) != 0)
        return 0;
    for (unsigned link = 0; link < NVLINKS_MAX; link++)
        count += n->nvmlDeviceGetNvLinkState(device, link, &active) == 0 && active == 1;
    return count;
}

/* The GPU with fewest links is the one that will hold the others up. */
static void look_nvlink(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct nvml n;
    uint32_t least = UINT32_MAX, most = 0;

    (void)d, (void)c;
    if (!nvml_open(&n))
        return;
    for (unsigned i = 0; i < n.count; i++) {
        uint32_t links = count_links(&n, i);

        least = links < least ? links : least;
        most = links > most ? links : most;
    }
    nvml_close(&n);
    out->ok = n.count > 0 && least > 0 && least == most;
    if (least < most)
        finding_add(out, "%" PRIu32 " to %" PRIu32 " links a GPU are up", least, most);
    else if (n.count > 0)
        finding_add(out, "%" PRIu32 " links a GPU are up", least);
}

const struct doctor_check doctor_gpu_checks[] = {
    {"GPUs", "running programs on real GPUs; simulation needs none",
     "use a machine with NVIDIA GPUs, or give the container access to them", NEED_CUDA, false, look_gpus},
    {"driver", "the NVIDIA kernel module", "install the driver, or load it: modprobe nvidia", NEED_CUDA, false,
     look_driver},
    {"CUDA driver", "the cuda backend needs a driver for CUDA 12 or later", "install a newer driver", NEED_CUDA, true,
     look_cuda_driver},
    {"CUDA", "what the cuda backend was built with", "install nvcc of CUDA 12.5 or later and build again", NEED_CUDA,
     false, doctor_look_part},
    {"NCCL", "measuring the baseline on real GPUs; simulation models it",
     "install libnccl2 and libnccl-dev and build again", 0, true, look_nccl},
    {"P2P", "stores and loads between the GPUs of a node",
     "nvidia-smi topo -p2p w shows the pairs; in a virtual machine or behind an IOMMU peers may be cut off", NEED_PEERS,
     true, look_p2p},
    {"NVLink", "the fast way between the GPUs of a node",
     "nvidia-smi nvlink --status shows what is down; with a switch, see that nvidia-fabricmanager runs", 0, true,
     look_nvlink},
    {"peer memory", "the NIC reads and writes GPU memory itself",
     "modprobe nvidia_peermem, or use an open kernel module with dma-buf (Linux 5.12 or later)", 0, false,
     look_peer_memory},
    {0},
};
