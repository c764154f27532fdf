#include "tests/soak/native/compared.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/soak/native/traced.h"
#include "tests/support/naive_execute.h"

namespace onehop::soak {

Compared::Compared(const Group& group, Schedule schedule, std::uint64_t seed, Source source)
    : rank_(group.rank()),
      schedule_(std::move(schedule)),
      seed_(seed),
      pauses_(mix(static_cast<std::uint64_t>(source.below(1 << 30)), group.rank())) {
  const PlanOptions options = draw_options(source, options_);
  const bool shared = source.below(2) == 0;
  if (shared) options_ += ", shared arrays";
  for (const ArraySpec& array : schedule_.arrays) {
    const std::int64_t bytes = array.elements_on(rank_) * array.element_bytes;
    if (shared && bytes > 0) {
      shared_.push_back(group.allocate(bytes));
      arrays_.push_back(shared_.back().bytes().first(static_cast<std::size_t>(bytes)));
    } else {
      arrays_.emplace_back(own_.emplace_back(static_cast<std::size_t>(bytes)));
    }
  }
  plan_ = std::make_unique<Plan>(group, schedule_, arrays_, options);
}

std::int64_t Compared::bytes() const {
  std::int64_t sum = 0;
  for (const ArraySpec& array : schedule_.arrays) {
    for (int rank = 0; rank < schedule_.ranks; ++rank) sum += array.elements_on(rank) * array.element_bytes;
  }
  return sum;
}

void Compared::run(std::uint64_t number) {
  testing::Memory memory = testing::random_numbers(schedule_, static_cast<unsigned>(mix(seed_, number)));
  auto& mine = memory[static_cast<std::size_t>(rank_)];
  for (std::size_t k = 0; k < arrays_.size(); ++k) std::ranges::copy(mine[k], arrays_[k].begin());
  pause_seldom(pauses_);
  run_plan(*plan_, number);
  testing::naive_execute(schedule_, memory);
  for (std::size_t k = 0; k < arrays_.size(); ++k) {
    if (!mine[k].empty() && std::exchange(spoiled_, false)) mine[k].back() ^= std::byte{1};
    const auto wrong = std::ranges::mismatch(mine[k], arrays_[k]).in1 - mine[k].begin();
    if (wrong == std::ssize(mine[k])) continue;
    throw std::logic_error("wrong bytes: run " + std::to_string(number) + ", rank " + std::to_string(rank_) +
                           ", array " + std::to_string(k) + ", byte " + std::to_string(wrong) + "; " + options_ + ": " +
                           schedule_.to_json());
  }
}

std::function<void(std::uint64_t)> checked_runs(const Group& group, const Schedule& schedule, std::uint64_t seed,
                                                const Source& source) {
  if (only_moves(schedule)) {
    const auto traced = std::make_shared<Traced>(group, schedule, seed, source);
    return [traced](std::uint64_t number) {
      traced->renew(number);
      traced->run(number % 15);
      traced->check(number);
    };
  }
  const auto compared = std::make_shared<Compared>(group, schedule, seed, source);
  return [compared](std::uint64_t number) { compared->run(number); };
}

}  // namespace onehop::soak
