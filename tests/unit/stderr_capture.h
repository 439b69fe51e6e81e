/* What log_error() says, for tests of messages. */
#ifndef TESTS_UNIT_STDERR_CAPTURE_H
#define TESTS_UNIT_STDERR_CAPTURE_H

#include <stddef.h>

void stderr_capture_begin(void);
/* Ends the capture; `out` receives what was written. */
void stderr_capture_end(char *out, size_t out_bytes);

#endif
