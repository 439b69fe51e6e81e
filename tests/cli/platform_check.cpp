// platform_check FILE HOST HOST: what SimGrid makes of an exported platform: bandwidth in B/s and latency in ns of
// the route between two hosts, and how long 100 MB take it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg4 = simgrid::s4u;

// Routes exist once the simulation runs: a zone computes them when it is sealed.
static void send(const std::string &from, const std::string &to)
{
    std::vector<sg4::Link *> links;
    double latency = 0, bandwidth = INFINITY;
    static double payload;

    sg4::Host::by_name(from)->route_to(sg4::Host::by_name(to), links, &latency);
    for (const sg4::Link *l : links)
        bandwidth = std::min(bandwidth, l->get_bandwidth());
    std::printf("%zu links %.0f B/s %.1f ns", links.size(), bandwidth, latency * 1e9);
    sg4::Mailbox::by_name("x")->put(&payload, 100000000);
}

int main(int argc, char **argv)
{
    sg4::Engine e(&argc, argv);

    if (argc != 4)
        return 1;
    sg4::Engine::set_config("network/model:CM02");
    e.load_platform(argv[1]);
    const std::string from = argv[2], to = argv[3];
    sg4::Actor::create("send", sg4::Host::by_name(from), [from, to] { send(from, to); });
    sg4::Actor::create("receive", sg4::Host::by_name(to), [] { sg4::Mailbox::by_name("x")->get<double>(); });
    e.run();
    std::printf(" %.3f us\n", sg4::Engine::get_clock() * 1e6);
    return 0;
}
