#include "core/cli/choose_point.h"

#include <inttypes.h>

#include "core/log.h"
#include "core/run/plan.h"

enum status choose_point(const char *verb, const struct scenario *s, bool given, uint64_t index,
                         const struct point **out)
{
    while (!given && index + 1 < s->point_count && point_is_baseline(&s->points[index]))
        index++;
    if (index >= s->point_count) {
        log_error("%s: --point %" PRIu64 ": the points of %s are 0..%" PRIu64, verb, index, s->path,
                  s->point_count - 1);
        return ST_INPUT;
    }
    if (point_is_baseline(&s->points[index])) {
        log_error("%s: point %" PRIu64 " of %s is a baseline and has no program", verb, index, s->path);
        return ST_INPUT;
    }
    *out = &s->points[index];
    return ST_OK;
}
