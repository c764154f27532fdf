#include "bench/bandwidth.h"

#include <chrono>

#include "bench/read_all.h"

namespace onehop::bench {

struct Bandwidth::Impl {
  Impl(const Group& of, std::int64_t bytes, int threads) : group(of), team(threads), reader(bytes, team) {}

  Group group;
  lattice::detail::Team team;
  Reader reader;
};

Bandwidth::Bandwidth(const Group& group, std::int64_t bytes, int threads)
    : impl_(std::make_unique<Impl>(group, bytes, threads > 0 ? threads : lattice::detail::team_size(group))) {}
Bandwidth::~Bandwidth() = default;

double Bandwidth::measure(int times) {
  impl_->reader.read();  // fills the caches, if they hold that much
  impl_->group.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) impl_->reader.read();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  impl_->group.barrier();
  return static_cast<double>(impl_->reader.bytes()) * times / seconds * 1e-9;
}

}  // namespace onehop::bench
