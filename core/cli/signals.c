#include "core/cli/signals.h"

#include <string.h>
#include <unistd.h>

#include "core/status.h"

volatile sig_atomic_t signals_interrupted, signals_planning;

/* As much as a signal handler may do; where stderr is gone there is no one to tell. */
static void end_now(const char *text, enum status st)
{
    ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written;
    _exit(status_exit_code(st));
}

static void on_signal(int number)
{
    if (number != SIGALRM)
        signals_interrupted = 1;
    if (!signals_planning)
        return;
    if (number == SIGALRM)
        end_now("mkernel: error: planning the runs takes longer than --timeout\n", ST_HANG);
    end_now("mkernel: error: interrupted before anything ran\n", ST_INTERRUPTED);
}

void signals_catch(void)
{
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGALRM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}
