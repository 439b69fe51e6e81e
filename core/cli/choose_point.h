/* Which point of a scenario `show --program` and `export` are about. */
#ifndef CORE_CLI_CHOOSE_POINT_H
#define CORE_CLI_CHOOSE_POINT_H

#include "core/scenario/scenario.h"

/* `index` where the user gave one, else the first point that has a program.  ST_INPUT, logged for `verb`, where
 * there is none or it is a baseline. */
enum status choose_point(const char *verb, const struct scenario *s, bool given, uint64_t index,
                         const struct point **out);

#endif
