/* Flows as s4u communications started by maestro: SimGrid's documented interface and nothing else.
 *
 * Within one step SimGrid 3.32 runs timers before it reports what has ended, so after either of
 * them this waits for one more step, the smallest there is, before it says that time has advanced.
 * sendto() ignores Comm::set_rate(); engine.c delays the flow's end instead. */
#include "sim/network_simgrid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sg = simgrid::s4u;
using simgrid::kernel::timer::Timer;

namespace
{

class s4u_starter : public flow_starter
{
  public:
    explicit s4u_starter(const network_hooks &hooks) : hooks_(hooks)
    {
        sg::Activity::on_completion_cb([this](const sg::Activity &activity) { completed(activity); });
    }

    void start(uint32_t flow, sg::Host *src, sg::Host *dst, uint64_t bytes, double) override
    {
        sg::CommPtr comm = sg::Comm::sendto_init();

        comm->set_payload_size(bytes);
        comm->set_data(reinterpret_cast<void *>(static_cast<uintptr_t>(flow)));
        comm->set_source(src);
        comm->set_destination(dst); /* that starts it */
        if (comms_.size() <= flow)
            comms_.resize(flow + 1);
        comms_[flow] = comm;
    }

    void alarm(uint64_t time_ps) override
    {
        alarm_ps_ = std::max(alarm_ps_, time_ps);
        settle();
    }

  private:
    void completed(const sg::Activity &activity)
    {
        uint32_t flow = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(activity.get_data<void>()));

        ended_.push_back(comms_[flow]); /* SimGrid still uses it after this call */
        comms_[flow] = nullptr;
        hooks_.drained(hooks_.arg, flow);
        settle();
    }

    void settle()
    {
        if (settling_)
            return;
        settling_ = true;
        double soon = std::nextafter(sg::Engine::get_clock(), std::numeric_limits<double>::infinity());
        Timer::set(soon, [this] { settled(); });
    }

    void settled()
    {
        settling_ = false;
        ended_.clear();
        hooks_.advanced(hooks_.arg, std::max(alarm_ps_, network_now_ps()));
    }

    const network_hooks &hooks_;
    std::vector<sg::CommPtr> comms_, ended_;
    uint64_t alarm_ps_ = 0; /* the latest that went off */
    bool settling_ = false;
};

} // namespace

std::unique_ptr<flow_starter> network_s4u_starter(const network_hooks &hooks)
{
    return std::make_unique<s4u_starter>(hooks);
}
