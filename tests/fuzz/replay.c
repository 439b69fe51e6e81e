/* Runs the fuzz target once over every file of a folder: what fuzzing once found stays found. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz_scenario.h"

static int replay_file(const char *folder, const char *name)
{
    static uint8_t data[2 << 20];
    char path[1024];
    size_t size;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return 1;
    }
    size = fread(data, 1, sizeof data, f);
    fclose(f);
    printf("%s\n", path);
    fflush(stdout); /* a crash is seen to belong to this file */
    return LLVMFuzzerTestOneInput(data, size);
}

int main(int argc, char **argv)
{
    struct dirent **entries;
    int count = argc == 2 ? scandir(argv[1], &entries, NULL, alphasort) : -1;
    int ran = 0, failed = 0;

    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            failed += replay_file(argv[1], entries[i]->d_name);
            ran++;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    printf("%d files, %d failed\n", ran, failed);
    return ran > 0 && failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
