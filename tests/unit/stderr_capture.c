#include "stderr_capture.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

static FILE *captured;
static int real_stderr;

void stderr_capture_begin(void)
{
    captured = tmpfile();
    real_stderr = dup(STDERR_FILENO);
    assert(captured && real_stderr >= 0);
    fflush(stderr);
    dup2(fileno(captured), STDERR_FILENO);
}

void stderr_capture_end(char *out, size_t out_bytes)
{
    size_t used;

    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    rewind(captured);
    used = fread(out, 1, out_bytes - 1, captured);
    out[used] = '\0';
    fclose(captured);
}
