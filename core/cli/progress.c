#include "core/cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"

void progress_begin(struct progress *p, const char *what, bool quiet)
{
    *p = (struct progress){.shown = !quiet && isatty(STDERR_FILENO), .what = what, .start_ns = clock_now_ns()};
}

void progress_update(void *progress, uint64_t finished, uint64_t total)
{
    struct progress *p = progress;
    double elapsed = (double)(clock_now_ns() - p->start_ns) / 1e9;

    if (!p->shown)
        return;
    fprintf(stderr, "\r%s: %" PRIu64 " of %" PRIu64 ", %.0f s", p->what, finished, total, elapsed);
    if (finished > 0 && finished < total)
        fprintf(stderr, ", about %.0f s left", elapsed / (double)finished * (double)(total - finished));
    fprintf(stderr, "        ");
    fflush(stderr);
}

void progress_end(struct progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r%70s\r", "");
}
