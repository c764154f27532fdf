#include "tests/support/faults.h"

#include <sys/mman.h>

#include <new>
#include <thread>

#include "onehop/patterns.h"
#include "tests/support/transport_suite.h"

namespace onehop::testing {

using Direction = ChannelSpec::Direction;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }
void nap(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

SharedCounter::SharedCounter() : at_(mmap(nullptr, 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
  new (at_) std::atomic<int>{0};
}

SharedCounter::~SharedCounter() { munmap(at_, 64); }

Channels ring_of_channels(const Group& group, std::int64_t bytes) {
  const int next = (group.rank() + 1) % group.size();
  const int last = (group.rank() + group.size() - 1) % group.size();
  const std::vector<ChannelSpec> specs = {end_of_channel(Direction::send, next, bytes),
                                          end_of_channel(Direction::receive, last, bytes)};
  return open_channels(group, specs);
}

RingPlan::RingPlan(const Group& group, std::int64_t sites, std::int64_t width, const PlanOptions& options) {
  HaloSpec spec{
      .extents = {sites * group.size()}, .grid = {group.size()}, .widths = {{width, width}}, .periodic = {true}};
  memory.resize(static_cast<std::size_t>((sites + 2 * width) * 8));
  const std::vector<std::span<std::byte>> arrays = {memory};
  plan = std::make_unique<Plan>(group, halo(spec), arrays, options);
}

}  // namespace onehop::testing
