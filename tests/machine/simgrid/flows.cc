// Times of messages that start together, by SimGrid. Reads from stdin a network and messages, and prints when each
// message ends:
//   star HOSTS BANDWIDTH | torus A,B,C BANDWIDTH | fattree "LEVELS;DOWN;UP;CABLES" BANDWIDTH
//   FROM TO BYTES
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace sg4 = simgrid::s4u;

namespace {

template <class Number>
std::vector<Number> numbers(const std::string& text) {
  std::vector<Number> found;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) found.push_back(static_cast<Number>(std::stoul(part)));
  return found;
}

std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> found;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ';');) found.push_back(part);
  return found;
}

std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*> add_host(
    sg4::NetZone* zone, const std::vector<unsigned long>& /*coordinates*/, unsigned long id) {
  sg4::Host* host = zone->create_host("h" + std::to_string(id), 1e9);
  return {host->get_netpoint(), nullptr};
}

void make_star(unsigned long hosts, double bandwidth) {
  sg4::NetZone* zone = sg4::create_star_zone("net");
  for (unsigned long id = 0; id < hosts; ++id) {
    const std::string name = "h" + std::to_string(id);
    sg4::Host* host = zone->create_host(name, 1e9)->seal();
    const sg4::Link* up = zone->create_link(name + "_up", bandwidth)->set_latency(0)->seal();
    const sg4::Link* down = zone->create_link(name + "_down", bandwidth)->set_latency(0)->seal();
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    std::vector<sg4::LinkInRoute>{sg4::LinkInRoute(up)}, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr,
                    std::vector<sg4::LinkInRoute>{sg4::LinkInRoute(down)}, false);
  }
  zone->seal();
}

}  // namespace

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  std::string kind;
  std::string shape;
  double bandwidth = 0;
  std::cin >> kind >> shape >> bandwidth;
  const auto duplex = sg4::Link::SharingPolicy::SPLITDUPLEX;
  if (kind == "star") {
    make_star(std::stoul(shape), bandwidth);
  } else if (kind == "torus") {
    sg4::create_torus_zone("net", nullptr, numbers<unsigned long>(shape), sg4::ClusterCallbacks(add_host), bandwidth, 0,
                           duplex)
        ->seal();
  } else {
    const auto tree = parts(shape);
    const sg4::FatTreeParams params(static_cast<unsigned int>(std::stoul(tree.at(0))),
                                    numbers<unsigned int>(tree.at(1)), numbers<unsigned int>(tree.at(2)),
                                    numbers<unsigned int>(tree.at(3)));
    sg4::create_fatTree_zone("net", nullptr, params, sg4::ClusterCallbacks(add_host), bandwidth, 0, duplex)->seal();
  }
  std::vector<std::tuple<int, int, double>> messages;
  int from = 0;
  int to = 0;
  double bytes = 0;
  while (std::cin >> from >> to >> bytes) messages.emplace_back(from, to, bytes);
  std::vector<double> ends(messages.size(), -1);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    sg4::Host* source = sg4::Host::by_name("h" + std::to_string(std::get<0>(messages[i])));
    sg4::Host* target = sg4::Host::by_name("h" + std::to_string(std::get<1>(messages[i])));
    const double size = std::get<2>(messages[i]);
    sg4::Actor::create("message", source, [source, target, size, i, &ends] {
      sg4::Comm::sendto(source, target, static_cast<uint64_t>(size));
      ends[i] = sg4::Engine::get_clock();
    });
  }
  engine.run();
  for (const double end : ends) std::printf("%.17g\n", end);
  return 0;
}
