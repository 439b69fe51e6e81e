/* Where machine files are. */
#include "core/machine/machine.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"
#include "core/parse/nearest.h"
#include "core/shipped.h"

#define FOLDERS_MAX 5
#define PATH_BYTES 1024

struct folders {
    char paths[FOLDERS_MAX][PATH_BYTES];
    uint32_t count;
};

static void add_folder(struct folders *f, const char *folder, const char *below)
{
    int size = snprintf(f->paths[f->count], PATH_BYTES, "%s%s", folder, below);

    if (size > 0 && size < PATH_BYTES)
        f->count++;
}

static void list_folders(const char *near, struct folders *f)
{
    const char *env = getenv("MKERNEL_MACHINES");

    f->count = 0;
    if (env && env[0])
        add_folder(f, env, "");
    if (near) {
        add_folder(f, near, "/../machines");
        add_folder(f, near, "/machines");
    }
    add_folder(f, "scenarios/machines", "");
    add_folder(f, shipped_folder(), "/scenarios/machines");
}

static bool ends_in_yaml(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".yaml") == 0;
}

static int is_machine_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_in_yaml(entry->d_name);
}

/* Was a machine of this name found in an earlier folder? */
static bool shadowed(const struct folders *f, uint32_t folder, const char *file)
{
    char path[2 * PATH_BYTES];

    for (uint32_t i = 0; i < folder; i++) {
        snprintf(path, sizeof path, "%s/%s", f->paths[i], file);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

void machine_each(const char *near, machine_fn *fn, void *arg)
{
    struct folders f;

    list_folders(near, &f);
    for (uint32_t i = 0; i < f.count; i++) {
        struct dirent **entries;
        int count = scandir(f.paths[i], &entries, is_machine_file, alphasort);

        for (int j = 0; j < count; j++) {
            const char *file = entries[j]->d_name;
            char path[2 * PATH_BYTES], name[256];

            snprintf(path, sizeof path, "%s/%s", f.paths[i], file);
            snprintf(name, sizeof name, "%.*s", (int)(strlen(file) - 5), file);
            if (!shadowed(&f, i, file))
                fn(arg, name, path);
            free(entries[j]);
        }
        if (count >= 0)
            free(entries);
    }
}

struct guess {
    struct nearest near;
    char names[400];
    size_t used;
};

static void offer_machine(void *arg, const char *name, const char *path)
{
    struct guess *g = arg;

    (void)path;
    nearest_offer(&g->near, name);
    if (g->used < sizeof g->names)
        g->used += (size_t)snprintf(g->names + g->used, sizeof g->names - g->used, "%s%s", g->used ? ", " : "", name);
}

static enum status not_found(const char *name, const char *near, char *why, size_t why_bytes)
{
    struct guess g = {.names = ""};
    char text[300];

    nearest_begin(&g.near, name);
    machine_each(near, offer_machine, &g);
    snprintf(why, why_bytes, "no machine%s \"%.100s\"; expected a path ending in .yaml or one of %s%s",
             ends_in_yaml(name) ? " file" : "", name,
             g.used ? g.names : "(no machines folder was found: see mkernel doctor)",
             nearest_text(&g.near, text, sizeof text));
    return ST_INPUT;
}

static bool readable(const char *folder, const char *name, const char *suffix, char *path_out, size_t path_bytes)
{
    int size = snprintf(path_out, path_bytes, "%s%s%s%s", folder, folder[0] ? "/" : "", name, suffix);

    return size > 0 && (size_t)size < path_bytes && access(path_out, R_OK) == 0;
}

enum status machine_find(const char *name, const char *near, char *path_out, size_t path_bytes, char *why,
                         size_t why_bytes)
{
    struct folders f;

    if (ends_in_yaml(name)) {
        if (near && name[0] != '/' && readable(near, name, "", path_out, path_bytes))
            return ST_OK;
        if (readable("", name, "", path_out, path_bytes))
            return ST_OK;
        return not_found(name, near, why, why_bytes);
    }
    list_folders(near, &f);
    for (uint32_t i = 0; i < f.count && name[0] && !strchr(name, '/'); i++)
        if (readable(f.paths[i], name, ".yaml", path_out, path_bytes))
            return ST_OK;
    return not_found(name, near, why, why_bytes);
}

enum status machine_load(const char *name, struct machine *out)
{
    char path[2 * PATH_BYTES], why[800];
    enum status st = machine_find(name, NULL, path, sizeof path, why, sizeof why);

    if (st != ST_OK) {
        log_error("%s", why);
        return st;
    }
    return machine_load_file(path, out);
}
