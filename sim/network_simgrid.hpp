/* What network.cpp shares with the two ways of starting a flow: network_kernel.cpp,
 * network_s4u.cpp. */
#ifndef SIM_NETWORK_SIMGRID_HPP
#define SIM_NETWORK_SIMGRID_HPP

#include <memory>
#include <vector>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include "sim/network.h"

class flow_starter
{
  public:
    virtual ~flow_starter() = default;
    virtual void start(uint32_t flow, simgrid::s4u::Host *src, simgrid::s4u::Host *dst, uint64_t bytes,
                       double rate_bound) = 0;
    /* The alarm set for `time_ps` has gone off: call advanced() with no earlier time. */
    virtual void alarm(uint64_t time_ps) = 0;
};

/* Null: not in this SimGrid. */
std::unique_ptr<flow_starter> network_kernel_starter(const network_hooks &hooks);
std::unique_ptr<flow_starter> network_s4u_starter(const network_hooks &hooks);

struct network {
    network_hooks hooks;
    std::unique_ptr<flow_starter> starter;
    std::vector<simgrid::s4u::Host *> hosts; /* ports, groups, and a last one without links */
    simgrid::kernel::timer::Timer *timer;
    uint64_t timer_ps;
};

#endif
