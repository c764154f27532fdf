#include "measure/halo.h"

#include <utility>

#include "src/base/clock.h"

namespace onehop::measure {

HaloRounds::HaloRounds(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
                       double compute_us)
    : schedule_(schedule),
      arrays_(arrays.begin(), arrays.end()),
      arena_(group),
      marks_(schedule, group.rank(), arrays),
      compute_(compute_us),
      plan_(group, schedule, arrays) {
  add("onehop", Role::ours, [this] { plan_.run(); });
}

void HaloRounds::add(const std::string& name, Role role, std::function<void()> run, bool exact, Marks& marks) {
  candidates_.push_back({name, role, [this, &marks, name, run = std::move(run), exact](int repetitions) {
                           for (int i = 0; i < repetitions; ++i) {
                             marks.dirty();
                             compute_();
                             run();
                             exact ? marks.check(name) : marks.read();
                           }
                         }});
}

void HaloRounds::add_exchange_alone() {
  candidates_.push_back({"onehop, the exchange alone", Role::variant, candidates_.front().block});
  candidates_.back().timed = [this](int repetitions) {
    double seconds = 0;
    for (int i = 0; i < repetitions; ++i) {
      marks_.dirty();
      const double begin = base::steady_seconds();
      plan_.run();
      seconds += base::steady_seconds() - begin;
      marks_.check("onehop");
    }
    return seconds * 1e6;
  };
}

void HaloRounds::add_mpi() {
  peers_ = mpi_halo_peers(arena_.group());
  for (const auto& peer : peers_) {
    peer->prepare(schedule_, arrays_);
    add(std::string(peer->name()), Role::peer, [one = peer.get()] { one->run(); });
  }
}

}  // namespace onehop::measure
