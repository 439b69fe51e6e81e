#include "sim/network_simgrid.hpp"

#include <csignal>
#include <cstdio>
#include <string>

namespace sg = simgrid::s4u;
using simgrid::kernel::timer::Timer;

/* CM02 without cross-traffic is plain max-min sharing; SimGrid's defaults model TCP (latency x 13,
 * 97 % of the bandwidth).
 *
 * Events nearer to each other than surf/precision are merged.  1 ps is the width of what rounds to
 * one of ours: whatever ends within a picosecond is reported with the first event in it. */
static const char *const simgrid_arguments[] = {
    "mkernel",
    "--log=root.thres:critical",
    "--cfg=network/model:CM02",
    "--cfg=network/crosstraffic:0",
    "--cfg=network/optim:Lazy",
    "--cfg=surf/precision:1e-12",
};

/* SimGrid installs handlers that print its own state; Ctrl-C and crashes are the caller's. */
static const int kept_signals[] = {SIGINT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static const size_t kept_signal_count = sizeof kept_signals / sizeof kept_signals[0];

static void simgrid_start()
{
    struct sigaction actions[kept_signal_count];
    std::vector<char *> arguments;

    for (const char *text : simgrid_arguments)
        arguments.push_back(const_cast<char *>(text));
    arguments.push_back(nullptr);
    int count = static_cast<int>(arguments.size()) - 1;
    for (size_t i = 0; i < kept_signal_count; i++)
        sigaction(kept_signals[i], nullptr, &actions[i]);
    new sg::Engine(&count, arguments.data()); /* SimGrid keeps it until the process ends */
    for (size_t i = 0; i < kept_signal_count; i++)
        sigaction(kept_signals[i], &actions[i], nullptr);
}

static sg::Host *add_host(sg::NetZone *zone, const std::string &name, const std::vector<sg::LinkInRoute> &out,
                          const std::vector<sg::LinkInRoute> &in)
{
    sg::Host *host = zone->create_host(name, 1e9);

    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, out, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr, in, false);
    return host;
}

static void build_platform(network *n, const engine_config *config)
{
    sg::NetZone *zone = sg::create_star_zone("cluster");
    std::vector<sg::Link *> outs, ins;

    for (uint32_t i = 0; i < config->port_count; i++) {
        std::string name = std::to_string(i);
        sg::Link *out = zone->create_link("out" + name, config->ports[i].rate);
        sg::Link *in = zone->create_link("in" + name, config->ports[i].rate);
        n->hosts.push_back(add_host(zone, "port" + name, {sg::LinkInRoute(out)}, {sg::LinkInRoute(in)}));
        outs.push_back(out);
        ins.push_back(in);
    }
    for (uint32_t i = 0; i < config->group_count; i++) {
        const engine_group *g = &config->groups[i];
        std::vector<sg::LinkInRoute> from, to;
        for (uint32_t p = g->first_port; p < g->first_port + g->port_count; p++) {
            from.emplace_back(outs[p]);
            to.emplace_back(ins[p]);
        }
        n->hosts.push_back(add_host(zone, "group" + std::to_string(i), from, to));
    }
    n->hosts.push_back(add_host(zone, "nowhere", {}, {}));
    zone->seal();
}

network *network_create(const engine_config *config, network_hooks hooks)
{
    auto n = std::make_unique<network>();

    simgrid_start();
    n->hooks = hooks;
    n->timer = nullptr;
    n->timer_ps = 0;
    build_platform(n.get(), config);
    n->starter = config->api == ENGINE_KERNEL ? network_kernel_starter(n->hooks) : network_s4u_starter(n->hooks);
    return n->starter != nullptr ? n.release() : nullptr;
}

const char *network_version(void)
{
    static char text[32];
    int major, minor, patch;

    sg_version_get(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d", major, minor);
    return text;
}

void network_start(network *n, uint32_t flow, uint32_t src, uint32_t dst, uint64_t bytes, double rate_bound)
{
    sg::Host *to = dst == ENGINE_NO_PORT ? n->hosts.back() : n->hosts[dst];

    sg::Host *from = src == ENGINE_NO_PORT ? n->hosts.back() : n->hosts[src];

    n->starter->start(flow, from, to, bytes, rate_bound);
}

static void timer_fired(network *n)
{
    n->timer = nullptr;
    n->starter->alarm(n->timer_ps);
}

void network_alarm(network *n, uint64_t time_ps)
{
    if (n->timer != nullptr) {
        if (n->timer_ps <= time_ps)
            return;
        n->timer->remove();
    }
    n->timer_ps = time_ps;
    n->timer = Timer::set(static_cast<double>(time_ps) * 1e-12, [n] { timer_fired(n); });
}

void network_run(network *)
{
    sg::Engine::get_instance()->run();
}

uint64_t network_now_ps(void)
{
    return network_round_ps(sg::Engine::get_clock() * 1e12);
}

void network_destroy(network *n)
{
    delete n;
}
