/* What a call reports, and what the process exits with.
 *
 * Positive: not an error.  Negative: an error that the function that first decided it has already
 * described (log_error or a struct complaint); callers only pass it up with TRY. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

/*     name        value  exit  meaning */
#define STATUS_MAP(X)                                                                                                  \
    X(OK, 0, 0, "done")                                                                                                \
    X(BUSY, 1, 0, "queue full: poll, then offer it again")                                                             \
    X(WRONG, -1, 1, "wrong result")                                                                                    \
    X(INPUT, -2, 2, "bad input")                                                                                       \
    X(SLOW, -3, 3, "slower than the stated threshold")                                                                 \
    X(HANG, -4, 4, "no progress")                                                                                      \
    X(ENVIRONMENT, -5, 5, "something this needs is missing here")                                                      \
    X(MEMORY, -6, 5, "not enough memory")                                                                              \
    X(IO, -7, 5, "reading or writing failed")                                                                          \
    X(UNSUPPORTED, -8, 5, "this backend cannot do that")                                                               \
    X(INTERRUPTED, -9, 130, "interrupted")

enum status {
#define X(name, value, code, text) ST_##name = (value),
    STATUS_MAP(X)
#undef X
};

const char *status_text(enum status st);
int status_exit_code(enum status st);

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        enum status st_ = (call);                                                                                      \
        if (st_ < 0)                                                                                                   \
            return st_;                                                                                                \
    } while (0)

#endif
