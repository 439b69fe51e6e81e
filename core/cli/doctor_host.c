/* What this binary was built with, and the machine it runs on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/build.h"
#include "core/cli/doctor.h"
#include "core/host.h"
#include "core/shipped.h"

#define GIB (1024.0 * 1024 * 1024)
#define MEMLOCK_ENOUGH_BYTES (1ull << 30)

void doctor_look_part(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    (void)d;
    for (const struct build_part *p = build_parts; p->name; p++)
        if (strcmp(p->name, c->name) == 0 && p->version[0]) {
            out->ok = true;
            finding_add(out, "%s", p->version);
        }
}

static void look_cores(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct host h = host_read();

    (void)d, (void)c;
    out->ok = true;
    finding_add(out, "%" PRIu32 " x %s", h.cores, h.cpu);
}

static void look_memory(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    struct host h = host_read();

    (void)c;
    out->ok = h.available_bytes >= d->memory_wanted_bytes;
    finding_add(out, "%.1f of %.1f GiB free, %.1f needed", (double)h.available_bytes / GIB,
                (double)h.memory_bytes / GIB, (double)d->memory_wanted_bytes / GIB);
}

static void look_results(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    (void)d, (void)c;
    out->ok = access(".", W_OK) == 0;
    finding_add(out, "results/local below this folder");
}

static void look_shipped(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    static const char *const wanted[] = {"scenarios/machines", "results/calibration.csv"};
    char path[SHIPPED_PATH_BYTES];

    (void)d, (void)c;
    out->ok = true;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        snprintf(path, sizeof path, "%s/%s", shipped_folder(), wanted[i]);
        out->ok &= access(path, R_OK) == 0;
    }
    finding_add(out, "%s%s", shipped_folder(), out->ok ? "" : " is not there, or not whole");
}

/* "Max locked memory         8388608              8388608              bytes" */
static void look_memlock(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    char limit[128];
    uint64_t bytes;

    (void)c;
    if (!doctor_value(d, "proc/self/limits", "Max locked memory", limit, sizeof limit))
        return;
    limit[strcspn(limit, " ")] = 0;
    out->ok =
        strcmp(limit, "unlimited") == 0 || (sscanf(limit, "%" SCNu64, &bytes) == 1 && bytes >= MEMLOCK_ENOUGH_BYTES);
    finding_add(out, "%s%s", limit, strcmp(limit, "unlimited") == 0 ? "" : " bytes");
}

static void look_huge_pages(const struct doctor *d, const struct doctor_check *c, struct finding *out)
{
    char count[64] = "0", size[64] = "", transparent[128] = "";
    uint64_t pages = 0;

    (void)c;
    doctor_value(d, "proc/meminfo", "HugePages_Total", count, sizeof count);
    doctor_value(d, "proc/meminfo", "Hugepagesize", size, sizeof size);
    doctor_line(d, "sys/kernel/mm/transparent_hugepage/enabled", transparent, sizeof transparent);
    sscanf(count, "%" SCNu64, &pages);
    out->ok = pages > 0 || strstr(transparent, "[always]") || strstr(transparent, "[madvise]");
    finding_add(out, "%" PRIu64 " reserved%s%s", pages, size[0] ? " of " : "", size);
    finding_add(out, "transparent: %s", transparent[0] ? transparent : "no");
}

#define INSTALL "run scripts/install and build again"

const struct doctor_check doctor_host_checks[] = {
    {"compiler", "what this binary was built with", INSTALL, NEED_ALWAYS, false, doctor_look_part},
    {"SimGrid", "network model of the sim backend", INSTALL, NEED_ALWAYS, false, doctor_look_part},
    {"OpenBLAS", "tiles of the cpu backend", INSTALL, NEED_ALWAYS, false, doctor_look_part},
    {"libfyaml", "scenario and machine files", INSTALL, NEED_ALWAYS, false, doctor_look_part},
    {"jansson", "result files", INSTALL, NEED_ALWAYS, false, doctor_look_part},
    {"cores", "simulated points run side by side, one a core", "", 0, true, look_cores},
    {"memory", "windows, programs and simulated networks", "free some, or make the problem or the world smaller",
     NEED_ALWAYS, true, look_memory},
    {"results", "where `run` keeps results by default", "work in a folder that you may write to, or use --output",
     NEED_ALWAYS, true, look_results},
    {"shipped files", "machines by name, scenarios, measurements",
     "install again and keep bin/ and share/ together, or build again from sources that stay", 0, true, look_shipped},
    {"memlock", "RDMA locks the memory that it registers",
     "ulimit -l unlimited; for good: memlock in /etc/security/limits.conf, LimitMEMLOCK of slurmd", NEED_VERBS, false,
     look_memlock},
    {"huge pages", "fewer entries in the NIC's tables for large windows",
     "sysctl vm.nr_hugepages=N, or transparent_hugepage=madvise", 0, false, look_huge_pages},
    {0},
};
