#include "machine/mapping/scotch.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <type_traits>

#include "machine/mapping/as_index.h"
#include "src/base/text.h"

namespace onehop::detail {

namespace {

constexpr int largest = 16'384;  // ranks; SCOTCH takes seconds beyond

// The functions of the library. Its objects are blocks of memory whose sizes its header fixes; the blocks here are
// larger than those of every known version.
struct Library {
  using Object = std::array<std::max_align_t, 512>;
  int (*number_size)() = nullptr;
  void (*reset)() = nullptr;
  int (*graph_init)(void*) = nullptr;
  void (*graph_exit)(void*) = nullptr;
  int (*arch_init)(void*) = nullptr;
  void (*arch_exit)(void*) = nullptr;
  int (*strategy_init)(void*) = nullptr;
  void (*strategy_exit)(void*) = nullptr;
  void* graph_build = nullptr;  // these take numbers of number_size() bytes
  void* arch_complete = nullptr;
  void* strategy_build = nullptr;
  int (*graph_map)(void*, const void*, const void*, void*) = nullptr;

  // Returns why the library cannot be used; empty: it can.
  [[nodiscard]] std::string load() {
    void* errors = nullptr;
    void* handle = nullptr;
    for (const char* suffix : {"-7.0.so", ".so", "-6.1.so", ".so.7.0"}) {
      // The library reports errors through functions of another one.
      errors = ::dlopen((std::string("libscotcherr") + suffix).c_str(), RTLD_NOW | RTLD_GLOBAL);
      handle = ::dlopen((std::string("libscotch") + suffix).c_str(), RTLD_NOW | RTLD_LOCAL);
      if (errors != nullptr && handle != nullptr) break;
    }
    if (errors == nullptr || handle == nullptr) return "libscotch is not installed";
    bool complete = true;
    const auto find = [&](auto& function, const char* name) {
      void* address = ::dlsym(handle, name);
      complete = complete && address != nullptr;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
    };
    find(number_size, "SCOTCH_numSizeof");
    find(reset, "SCOTCH_randomReset");
    find(graph_init, "SCOTCH_graphInit");
    find(graph_exit, "SCOTCH_graphExit");
    find(graph_build, "SCOTCH_graphBuild");
    find(arch_init, "SCOTCH_archInit");
    find(arch_exit, "SCOTCH_archExit");
    find(arch_complete, "SCOTCH_archCmpltw");
    find(strategy_init, "SCOTCH_stratInit");
    find(strategy_exit, "SCOTCH_stratExit");
    find(strategy_build, "SCOTCH_stratGraphMapBuild");
    find(graph_map, "SCOTCH_graphMap");
    if (!complete) return "libscotch lacks a function of version 6 or newer";
    const int size = number_size();
    return size == 4 || size == 8 ? "" : "libscotch has integers of " + base::counted(size, "byte");
  }
};

// Number is the integer type of the library.
template <class Number>
std::string map_with(const Library& library, const Traffic& traffic, std::span<const int> hosts, Sizes sizes,
                     HostAt& host_at) {
  std::int64_t total = 0;
  for (const TrafficEdge& edge : traffic.edges) total += edge.both;
  // Weights are scaled so that their sum fits.
  const std::int64_t divisor = total / (std::numeric_limits<std::int32_t>::max() / 8) + 1;
  std::vector<Number> begin;
  std::vector<Number> to;
  std::vector<Number> weight;
  for (const std::size_t first : traffic.begin) begin.push_back(static_cast<Number>(first));
  for (const TrafficEdge& edge : traffic.edges) {
    to.push_back(static_cast<Number>(edge.to));
    weight.push_back(static_cast<Number>(std::max<std::int64_t>(1, edge.both / divisor)));
  }
  std::vector<Number> capacity;
  for (const int host : hosts) capacity.push_back(static_cast<Number>(sizes[as_index(host)]));
  std::vector<Number> part(as_index(traffic.positions()), 0);

  auto graph = std::make_unique<Library::Object>();
  auto arch = std::make_unique<Library::Object>();
  auto strategy = std::make_unique<Library::Object>();
  library.reset();
  if (library.graph_init(graph.get()) != 0 || library.arch_init(arch.get()) != 0 ||
      library.strategy_init(strategy.get()) != 0) {
    return "libscotch could not be initialised";
  }
  using Build = int (*)(void*, Number, Number, const Number*, const Number*, const Number*, const Number*, Number,
                        const Number*, const Number*);
  using Complete = int (*)(void*, Number, const Number*);
  using Strategy = int (*)(void*, Number, Number, double);
  constexpr Number quality = 1;
  const bool mapped = reinterpret_cast<Build>(library.graph_build)(
                          graph.get(), 0, static_cast<Number>(part.size()), begin.data(), begin.data() + 1, nullptr,
                          nullptr, static_cast<Number>(to.size()), to.data(), weight.data()) == 0 &&
                      reinterpret_cast<Complete>(library.arch_complete)(
                          arch.get(), static_cast<Number>(capacity.size()), capacity.data()) == 0 &&
                      reinterpret_cast<Strategy>(library.strategy_build)(
                          strategy.get(), quality, static_cast<Number>(capacity.size()), 0.01) == 0 &&
                      library.graph_map(graph.get(), arch.get(), strategy.get(), part.data()) == 0;
  library.strategy_exit(strategy.get());
  library.arch_exit(arch.get());
  library.graph_exit(graph.get());
  if (!mapped) return "libscotch found no map";
  for (std::size_t p = 0; p < part.size(); ++p) host_at[p] = hosts[as_index(static_cast<std::int64_t>(part[p]))];
  return "";
}

// SCOTCH balances hosts only roughly. Moves positions from hosts with too many to hosts with too few, the cheapest
// first.
void balance(const Traffic& traffic, Sizes sizes, HostAt& host_at) {
  std::vector<std::int64_t> spare(sizes.begin(), sizes.end());
  for (const int host : host_at) --spare[as_index(host)];
  while (true) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::size_t moved = host_at.size();
    int target = -1;
    const auto roomiest = static_cast<int>(std::ranges::max_element(spare) - spare.begin());
    for (std::size_t p = 0; p < host_at.size(); ++p) {
      if (spare[as_index(host_at[p])] >= 0) continue;
      const auto edges = traffic.of(static_cast<int>(p));
      const auto bytes_to = [&](int host) {
        std::int64_t bytes = 0;
        for (const TrafficEdge& edge : edges) bytes += host_at[as_index(edge.to)] == host ? edge.both : 0;
        return bytes;
      };
      const std::int64_t inside = bytes_to(host_at[p]);
      const auto consider = [&](int host) {
        if (spare[as_index(host)] <= 0 || inside - bytes_to(host) >= least) return;
        least = inside - bytes_to(host);
        moved = p;
        target = host;
      };
      consider(roomiest);
      for (const TrafficEdge& edge : edges) consider(host_at[as_index(edge.to)]);
    }
    if (target < 0) return;
    ++spare[as_index(host_at[moved])];
    --spare[as_index(target)];
    host_at[moved] = target;
  }
}

}  // namespace

ScotchResult scotch_map(const Traffic& traffic, Sizes sizes) {
  if (traffic.positions() > largest) {
    return {{}, "it takes too long for more than " + std::to_string(largest) + " ranks"};
  }
  std::vector<int> hosts;
  for (std::size_t host = 0; host < sizes.size(); ++host) {
    if (sizes[host] > 0) hosts.push_back(static_cast<int>(host));
  }
  static Library library;
  static const std::string reason = library.load();
  if (!reason.empty()) return {{}, reason};
  ScotchResult result{HostAt(as_index(traffic.positions()), 0), {}};
  result.reason = library.number_size() == 4 ? map_with<std::int32_t>(library, traffic, hosts, sizes, result.host_at)
                                             : map_with<std::int64_t>(library, traffic, hosts, sizes, result.host_at);
  if (result.reason.empty()) balance(traffic, sizes, result.host_at);
  return result;
}

}  // namespace onehop::detail
