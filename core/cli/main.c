#include "backends/backends.h"
#include "core/cli/commands.h"
#include "kernels/kernels.h"

int main(int argc, char **argv)
{
    const struct registry registry = {.kernels = kernels, .backends = backends, .launcher = launcher};

    return cli_main(argc, argv, &registry);
}
