/* JUnit XML, which CI systems read. */
#ifndef CORE_CLI_JUNIT_H
#define CORE_CLI_JUNIT_H

#include "core/cli/match.h"

/* One test case a point: a failure where B is slower or has no time.  The file appears whole or not at all and
 * never replaces another. */
enum status junit_write(const struct matches *m, const char *name, const char *path);

#endif
