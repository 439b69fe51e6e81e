/* What this box is made of, as its own tools tell. */
#include "core/cli/machine_new.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

#define INFINIBAND "/sys/class/infiniband"

/* "NVIDIA H200" -> "H200"; a model of which nothing is known stays as it is. */
static void set_model(struct machine_request *r, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (strstr(line, "H200"))
        line = "H200";
    else if (strstr(line, "H100"))
        line = "H100";
    snprintf(r->gpu_found, sizeof r->gpu_found, "%.60s", line);
    r->gpu = r->gpu_found;
}

static enum status detect_gpus(struct machine_request *r)
{
    FILE *f = popen("nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null", "r");
    uint64_t gpus = 0;
    char line[256];
    bool worked;

    while (f && fgets(line, sizeof line, f)) {
        if (gpus++ == 0 && !r->gpu)
            set_model(r, line);
    }
    worked = f && pclose(f) == 0 && gpus > 0;
    if (!worked) {
        log_error("no GPU here (nvidia-smi is missing or lists none); give --gpu, "
                  "--gpus and --nics instead of --detect");
        return ST_ENVIRONMENT;
    }
    if (r->gpus == 0)
        r->gpus = gpus;
    return ST_OK;
}

/* Gb/s of a NIC's first port ("400 Gb/sec (4X NDR)"); 0: none. */
static uint64_t port_gbps(const char *device)
{
    char path[512];
    double gbps = 0;
    FILE *f;

    snprintf(path, sizeof path, INFINIBAND "/%.200s/ports/1/rate", device);
    f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "%lf", &gbps) != 1 || gbps < 0 || gbps > 1e6)
        gbps = 0;
    fclose(f);
    return (uint64_t)gbps;
}

static bool is_efa(const char *device)
{
    char path[512], target[512];
    ssize_t size;
    const char *driver;

    snprintf(path, sizeof path, INFINIBAND "/%.200s/device/driver", device);
    size = readlink(path, target, sizeof target - 1);
    if (size <= 0)
        return false;
    target[size] = '\0';
    driver = strrchr(target, '/');
    return strcmp(driver ? driver + 1 : target, "efa") == 0;
}

/* The NICs of the fastest kind: a slower one is for storage or management. */
static void detect_nics(struct machine_request *r)
{
    DIR *folder = opendir(INFINIBAND);
    uint64_t nics = 0, fastest = 0;

    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
        uint64_t gbps = e->d_name[0] == '.' ? 0 : port_gbps(e->d_name);

        if (gbps == 0 || gbps < fastest)
            continue;
        nics = gbps > fastest ? 1 : nics + 1;
        fastest = gbps;
        r->efa = is_efa(e->d_name);
    }
    if (folder)
        closedir(folder);
    if (!r->nics_known)
        r->nics = nics;
    if (r->gbps == 0)
        r->gbps = fastest;
    r->nics_known = true;
}

enum status machine_detect(struct machine_request *r)
{
    TRY(detect_gpus(r));
    detect_nics(r);
    return ST_OK;
}
