#include "kernels/gather.h"

#include <inttypes.h>

static uint32_t copying(const struct gather_params *params, struct world w)
{
    return world_ranks(w) > 1 ? (uint32_t)params->comm_sms : 0;
}

static uint32_t sending(const struct gather_params *params, struct world w)
{
    return w.nodes > 1 ? (uint32_t)params->send_sms : 0;
}

enum status gather_check_crews(const struct gather_params *params, struct world w, const struct machine *machine,
                               struct complaint *c)
{
    uint32_t workers = copying(params, w) + sending(params, w);

    if (workers < machine->gpu.sms)
        return ST_OK;
    return complain(c, "comm_sms",
                    "%" PRIu32 " workers for copies and puts leave nothing to compute on: %s has %" PRIu64 " SMs",
                    workers, machine->gpu.model, machine->gpu.sms);
}

void gather_add_crews(const struct gather_params *params, struct world w, bool barrier, uint32_t sms,
                      const char *copy_name, struct program *p, struct gather_queues *out)
{
    uint32_t copy = copying(params, w), send = sending(params, w), crew;

    out->compute = program_add_queue(p, "compute");
    out->copy = copy ? program_add_queue(p, copy_name) : UINT32_MAX;
    out->send = send ? program_add_queue(p, "send") : UINT32_MAX;
    if (send)
        program_crew_drains(p, program_add_crew(p, "send", send), out->send);
    if (copy && !barrier) {
        crew = program_add_crew(p, "comm", copy);
        program_crew_drains(p, crew, out->copy);
        if (params->join)
            program_crew_drains(p, crew, out->compute);
        crew = program_add_crew(p, "compute", sms - copy - send);
    } else {
        crew = program_add_crew(p, barrier ? "all" : "compute", sms - send);
        if (copy)
            program_crew_drains(p, crew, out->copy);
    }
    program_crew_drains(p, crew, out->compute);
}
