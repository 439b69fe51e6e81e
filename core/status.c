#include "core/status.h"

#include <stdlib.h>

const char *status_text(enum status st)
{
    switch (st) {
#define X(name, value, code, text)                                                                                     \
    case ST_##name: return text;
        STATUS_MAP(X)
#undef X
    }
    abort(); /* not one of ours */
}

int status_exit_code(enum status st)
{
    switch (st) {
#define X(name, value, code, text)                                                                                     \
    case ST_##name: return code;
        STATUS_MAP(X)
#undef X
    }
    abort();
}
