#include "tests/soak/native/split_work.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "tests/soak/native/compared.h"

namespace onehop::soak {
namespace {

constexpr std::int64_t ring_bytes = 64;

// A group with what its ranks wait in, and its ranks in the numbering of the world.
struct Part {
  Group group;
  std::vector<int> members;
  Channels ring;
};

void open_ring(Part& part) {
  using Direction = ChannelSpec::Direction;
  const int size = part.group.size();
  const std::vector<ChannelSpec> specs = {
      {.direction = Direction::send, .peer = (part.group.rank() + 1) % size, .bytes = ring_bytes},
      {.direction = Direction::receive, .peer = (part.group.rank() + size - 1) % size, .bytes = ring_bytes}};
  part.ring = open_channels(part.group, specs);
}

// A message goes around once, so that a rank waits for others through those between them.
void go_around(Part& part) {
  const std::array<std::byte, ring_bytes> message{};
  std::array<std::byte, ring_bytes> got{};
  if (part.group.rank() == 0) part.ring.senders[0].put(message);
  part.ring.receivers[0].get(got);
  if (part.group.rank() != 0) part.ring.senders[0].put(message);
}

void make_and_run(const Group& group, std::uint64_t seed) {
  Source source(seed);
  const Schedule schedule = random_schedule(source, group.size());
  checked_runs(group, schedule, seed, source)(0);
}

class SplitWork {
 public:
  SplitWork(const Group& world, Report& report, std::uint64_t seed)
      : report_(report), seed_(seed), world_(std::make_shared<Part>(Part{world, {}, {}})) {
    open_ring(*world_);
    for (std::size_t p = 0; p < parts_.size(); ++p) split(p, mix(seed, p));
    // Ranks that hold their groups end without closing them.
    if (Source(mix(seed, 7)).below(2) == 0) new SplitWork(*this);  // NOLINT: leaked on purpose
  }

  void step() {
    const std::uint64_t seed = mix(seed_, 100 + number_++);
    Source source(seed);
    const auto at = static_cast<std::size_t>(source.below(std::ssize(parts_)));
    switch (source.below(8)) {
      case 0:
      case 1:
        return in(parts_[at], [](Part& part) { go_around(part); });
      case 2:
        return in(parts_[at], [](Part& part) { part.group.barrier(); });
      case 3:
        return in(parts_[at], [seed](Part& part) { make_and_run(part.group, seed); });
      case 4:
        return make_and_run(world_->group, seed);
      case 5:
        return split(at, seed);
      case 6:
        return world_->group.barrier();
      default:
        return go_around(*world_);
    }
  }

 private:
  using Held = std::shared_ptr<Part>;

  template <class Work>
  void in(const Held& part, const Work& work) {
    if (part == nullptr) return;
    try {
      work(*part);
    } catch (const PeerLost& error) {
      report_.members = 0;
      for (const int rank : part->members) report_.members |= std::uint64_t{1} << rank;
      throw PeerLost(error.rank() < 0 ? -1 : part->members[static_cast<std::size_t>(error.rank())], error.what());
    }
  }

  // Replaces a part, which closes it. Every rank draws the colors and keys of all.
  void split(std::size_t at, std::uint64_t seed) {
    Source source(seed);
    const Group& world = world_->group;
    std::vector<std::array<int, 3>> choices;  // color, key, rank
    for (int rank = 0; rank < world.size(); ++rank)
      choices.push_back({static_cast<int>(source.below(2)), static_cast<int>(source.below(3)), rank});
    const auto [color, key, own] = choices[static_cast<std::size_t>(world.rank())];
    std::ranges::sort(choices);
    parts_[at].reset();
    Part part{world.split(color, key), {}, {}};
    if (part.group.size() == 1) return;
    for (const auto& [theirs, unused, rank] : choices) {
      if (theirs == color) part.members.push_back(rank);
    }
    parts_[at] = std::make_shared<Part>(std::move(part));
    in(parts_[at], &open_ring);
  }

  Report& report_;
  std::uint64_t seed_;
  std::uint64_t number_ = 0;
  Held world_;
  std::array<Held, 2> parts_;
};

}  // namespace

std::function<void()> split_steps(const Group& world, Report& report, std::uint64_t seed) {
  const auto work = std::make_shared<SplitWork>(world, report, seed);
  return [work] { work->step(); };
}

}  // namespace onehop::soak
