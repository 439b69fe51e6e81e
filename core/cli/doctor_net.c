/* The network: RDMA devices as the kernel shows them, libfabric, MPI. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/doctor.h"

#if HAVE_LIBFABRIC
#include <rdma/fabric.h>
#endif

#define DEVICES "sys/class/infiniband/*"
#define PORTS DEVICES "/ports/*"
#define PATH_BYTES 512
#define ROCE_MTU_MIN 4200 /* of the Ethernet device: 4096 bytes and their headers */

static void read_below(const struct doctor *d, const char *folder, const char *file, char *out, size_t out_bytes)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!doctor_line(d, path, out, out_bytes))
        snprintf(out, out_bytes, "%s", "");
}

/* "sys/class/infiniband/mlx5_0/ports/1" -> "mlx5_0/1"; of a device: "mlx5_0" */
static void name_of(const char *path, char *out, size_t out_bytes)
{
    const char *device = path + strlen(DEVICES) - 1;
    int n = (int)strcspn(device, "/");
    const char *port = strstr(device, "/ports/");

    if (port)
        snprintf(out, out_bytes, "%.*s/%.*s", n, device, (int)strcspn(port + strlen("/ports/"), "/"),
                 port + strlen("/ports/"));
    else
        snprintf(out, out_bytes, "%.*s", n, device);
}

/* ---- devices and ports ---- */

static void add_device(const struct doctor *d, const char *path, void *arg)
{
    char name[64], type[64], firmware[64];

    name_of(path, name, sizeof name);
    read_below(d, path, "hca_type", type, sizeof type);
    read_below(d, path, "fw_ver", firmware, sizeof firmware);
    finding_add(arg, "%s%s%s%s%s", name, type[0] ? " " : "", type, firmware[0] ? " firmware " : "", firmware);
}

static void look_nics(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    (void)c;
    out->ok = doctor_each(d, DEVICES, add_device, out) > 0;
}

/* "4: ACTIVE" */
static bool port_is_active(const struct doctor *d, const char *path)
{
    char state[64];

    read_below(d, path, "state", state, sizeof state);
    return strstr(state, "ACTIVE") != NULL;
}

static bool port_is_ethernet(const struct doctor *d, const char *path)
{
    char layer[64];

    read_below(d, path, "link_layer", layer, sizeof layer);
    return strcmp(layer, "Ethernet") == 0;
}

static void add_port(const struct doctor *d, const char *path, void *arg)
{
    struct finding *f = arg;
    char name[64], state[64], rate[64], layer[64];
    const char *word;

    name_of(path, name, sizeof name);
    read_below(d, path, "state", state, sizeof state);
    read_below(d, path, "rate", rate, sizeof rate);
    read_below(d, path, "link_layer", layer, sizeof layer);
    word = strchr(state, ' ');
    finding_add(f, "%s %s %s %s", name, word ? word + 1 : "in an unknown state", rate, layer);
    f->ok |= port_is_active(d, path);
}

static void look_ports(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    (void)c;
    doctor_each(d, PORTS, add_port, out);
}

/* ---- GIDs ---- */

/* "0000:0000:..." */
static bool gid_is_empty(const char *gid)
{
    return strspn(gid, "0:") == strlen(gid);
}

static void add_gid(const struct doctor *d, const char *path, void *arg)
{
    char gid[64], type_path[PATH_BYTES], type[64] = "";
    const char *number = strrchr(path, '/') + 1;
    bool *usable = arg;

    if (!doctor_line(d, path, gid, sizeof gid) || gid_is_empty(gid))
        return;
    snprintf(type_path, sizeof type_path, "%.*sgid_attrs/types/%s", (int)(number - path - (ptrdiff_t)strlen("gids/")),
             path, number);
    doctor_line(d, type_path, type, sizeof type);
    *usable |= strcmp(type, "RoCE v2") == 0 || strncmp(type, "IB", 2) == 0 || type[0] == 0;
}

struct ports {
    struct finding *finding;
    uint32_t bad;
};

/* Of an active port: what can be sent from. */
static void check_gids(const struct doctor *d, const char *path, void *arg)
{
    struct ports *p = arg;
    char name[64], pattern[PATH_BYTES];
    bool usable = false;

    if (!port_is_active(d, path))
        return;
    name_of(path, name, sizeof name);
    snprintf(pattern, sizeof pattern, "%s/gids/*", path);
    doctor_each(d, pattern, add_gid, &usable);
    finding_add(p->finding, "%s %s", name, usable ? "has one" : "has none that can be used");
    p->bad += !usable;
}

static void look_gids(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct ports p = {.finding = out};

    (void)c;
    doctor_each(d, PORTS, check_gids, &p);
    out->ok = out->text[0] && p.bad == 0;
}

/* ---- MTU ---- */

/* Of RoCE: the Ethernet device's.  That of InfiniBand is the subnet manager's business. */
static void check_mtu(const struct doctor *d, const char *path, void *arg)
{
    struct ports *p = arg;
    char name[64], device[64], file[PATH_BYTES], mtu[32];

    if (!port_is_active(d, path))
        return;
    name_of(path, name, sizeof name);
    if (!port_is_ethernet(d, path)) {
        finding_add(p->finding, "%s as its subnet manager says", name);
        return;
    }
    read_below(d, path, "gid_attrs/ndevs/0", device, sizeof device);
    snprintf(file, sizeof file, "sys/class/net/%s/mtu", device);
    if (!device[0] || !doctor_line(d, file, mtu, sizeof mtu))
        snprintf(mtu, sizeof mtu, "unknown");
    finding_add(p->finding, "%s over %s: %s", name, device[0] ? device : "an unknown device", mtu);
    p->bad += strtoul(mtu, NULL, 10) < ROCE_MTU_MIN;
}

static void look_mtu(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct ports p = {.finding = out};

    (void)c;
    doctor_each(d, PORTS, check_mtu, &p);
    out->ok = out->text[0] && p.bad == 0;
}

/* ---- software ---- */

#if HAVE_LIBFABRIC
/* Each provider once: libfabric lists one entry a domain and protocol. */
static void add_providers(const struct fi_info *list, struct finding *out)
{
    for (const struct fi_info *i = list; i; i = i->next) {
        bool seen = false;

        for (const struct fi_info *before = list; before != i && !seen; before = before->next)
            seen = strcmp(before->fabric_attr->prov_name, i->fabric_attr->prov_name) == 0;
        if (!seen)
            finding_add(out, "%s", i->fabric_attr->prov_name);
    }
}

static void look_providers(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct fi_info *list = NULL;

    (void)d, (void)c;
    if (fi_getinfo(FI_VERSION(1, 6), NULL, NULL, 0, NULL, &list) == 0) {
        add_providers(list, out);
        fi_freeinfo(list);
    }
    out->ok = out->text[0] != 0;
}
#else
static void look_providers(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    (void)d, (void)c;
    finding_add(out, "built without libfabric");
}
#endif

static bool in_path(const char *program)
{
    const char *from = getenv("PATH");
    char path[PATH_BYTES];

    while (from && *from) {
        int n = (int)strcspn(from, ":");

        snprintf(path, sizeof path, "%.*s/%s", n, from, program);
        if (access(path, X_OK) == 0)
            return true;
        from += n + (from[n] == ':');
    }
    return false;
}

static void look_launcher(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    static const char *const programs[] = {"mpirun", "srun"};

    (void)d, (void)c;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (in_path(programs[i]))
            finding_add(out, "%s", programs[i]);
    out->ok = out->text[0] != 0;
}

const struct doctor_check doctor_net_checks[] = {
    {"NICs", "puts over InfiniBand and RoCE", "load the driver, for example modprobe mlx5_ib; see rdma link",
     NEED_VERBS, false, look_nics},
    {"ports", "a NIC's way to the switch", "plug in the cable, start the subnet manager, ip link set DEVICE up",
     NEED_VERBS, false, look_ports},
    {"GIDs", "the address that a port sends from", "give the Ethernet device an IP address; RoCE v2 is needed",
     NEED_VERBS, false, look_gids},
    {"MTU", "large packets: RoCE carries 4096 bytes only where Ethernet has room for 4200",
     "ip link set dev DEVICE mtu 9000, and the same at the switches", 0, false, look_mtu},
    {"libibverbs", "the verbs transport", "install libibverbs-dev and build again", NEED_VERBS, false,
     doctor_look_part},
    {"libfabric", "the ofi transport: TCP, shared memory, EFA", "install libfabric-dev and build again", NEED_OFI,
     false, doctor_look_part},
    {"providers", "what libfabric can send through here", "install libfabric1; fi_info -l lists them", NEED_OFI, true,
     look_providers},
    {"MPI", "one process a node", "install libopenmpi-dev and build again", NEED_PROCESSES, false, doctor_look_part},
    {"launcher", "starts one process a node", "install openmpi-bin, or work under Slurm", NEED_PROCESSES, true,
     look_launcher},
    {0},
};
