/* Any bytes as a scenario file and as a machine file: an answer or one message, never a crash.
 *
 * Built with libFuzzer where MKERNEL_FUZZ is on; replay.c runs the same function over
 * tests/fuzz/corpus in the normal test suite. */
#include <stdint.h>

#include "core/machine/machine.h"
#include "fake_registry.h"
#include "fuzz_scenario.h"

static void ignore_key(void *arg, const char *key, const char *value)
{
    (void)arg;
    (void)key;
    (void)value;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scenario s;
    struct machine m;

    if (scenario_parse("fuzz.yaml", (const char *)data, size, &fake_registry, NULL, NULL, 0, &s) == ST_OK) {
        for (uint64_t i = 0; i < s.point_count; i += 1 + s.point_count / 16)
            scenario_point_keys(&s, &s.points[i], ignore_key, NULL);
        scenario_fini(&s);
    }
    (void)machine_parse("fuzz.yaml", (const char *)data, size, &m);
    return 0;
}
