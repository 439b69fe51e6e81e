/* Flows as SimGrid's kernel network actions: no actor, no s4u activity, ten times cheaper than
 * those.
 *
 * SimGrid installs no header for NetworkModel.  What stands below repeats the order of its virtual
 * functions (simgrid 3.32, src/kernel/resource/NetworkModel.hpp) for exactly the version it was
 * checked with; everything else is its installed headers.  With another version this file is empty
 * of code, and engine_check.c tries it out in a child process before it is used. */
#include "sim/network_simgrid.hpp"

#if SIMGRID_VERSION_MAJOR == 3 && SIMGRID_VERSION_MINOR == 32

#include <algorithm>

#include <simgrid/engine.h>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>

/* Action's user data go away after 3.33; this is 3.32. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace simgrid::kernel::resource
{

class NetworkModel : public Model, public NetworkModelIntf
{
  public:
    virtual StandardLinkImpl *create_link(const std::string &, const std::vector<double> &) = 0;
    virtual StandardLinkImpl *create_wifi_link(const std::string &, const std::vector<double> &) = 0;
    virtual Action *communicate(s4u::Host *src, s4u::Host *dst, double size, double rate) = 0;
};

} // namespace simgrid::kernel::resource

using simgrid::kernel::resource::Action;
using simgrid::kernel::resource::NetworkModel;

namespace
{

class kernel_starter : public flow_starter
{
  public:
    kernel_starter(NetworkModel *model, const network_hooks &hooks) : model_(model), hooks_(hooks)
    {
        simgrid::s4u::Engine::on_time_advance_cb([this](double) { time_advanced(); });
    }

    void start(uint32_t flow, simgrid::s4u::Host *src, simgrid::s4u::Host *dst, uint64_t bytes,
               double rate_bound) override
    {
        double bound = rate_bound > 0 ? rate_bound : -1;
        Action *action = model_->communicate(src, dst, static_cast<double>(bytes), bound);
        action->set_data(reinterpret_cast<void *>(static_cast<uintptr_t>(flow)));
    }

    /* time_advanced() came first, but the clock may have stood a rounding error before the alarm's
     * time. */
    void alarm(uint64_t time_ps) override
    {
        hooks_.advanced(hooks_.arg, std::max(time_ps, network_now_ps()));
    }

  private:
    /* An action holds its share of the links until it is released. */
    void time_advanced()
    {
        while (Action *action = model_->extract_done_action()) {
            uint32_t flow = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(action->get_data()));
            action->unref();
            hooks_.drained(hooks_.arg, flow);
        }
        hooks_.advanced(hooks_.arg, network_now_ps());
    }

    NetworkModel *model_;
    const network_hooks &hooks_;
};

} // namespace

bool network_has_kernel(void)
{
    int major, minor, patch;

    sg_version_get(&major, &minor, &patch);
    return major == SIMGRID_VERSION_MAJOR && minor == SIMGRID_VERSION_MINOR;
}

std::unique_ptr<flow_starter> network_kernel_starter(const network_hooks &hooks)
{
    for (auto *model : simgrid::s4u::Engine::get_instance()->get_all_models())
        if (model->get_name() == "Network_CM02")
            return std::make_unique<kernel_starter>(static_cast<NetworkModel *>(model), hooks);
    return nullptr;
}

#else

bool network_has_kernel(void)
{
    return false;
}

std::unique_ptr<flow_starter> network_kernel_starter(const network_hooks &)
{
    return nullptr;
}

#endif
