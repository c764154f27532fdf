// Makes the steps of a program: slices of arrays, resolved to addresses.
#pragma once

#include <cstdint>
#include <span>

#include "onehop/schedule.h"
#include "src/plan/direct/direct_exchange.h"
#include "src/plan/program/plan_program.h"

namespace onehop::detail {

class StepBuilder {
 public:
  // The arguments must outlive the builder. `arrays` are those of `rank`, this rank.
  StepBuilder(Program& program, const Schedule& schedule, std::span<const std::span<std::byte>> arrays, int rank,
              SharedArrays& shared)
      : program_(program), schedule_(schedule), arrays_(arrays), rank_(rank), shared_(shared) {}

  [[nodiscard]] const ArraySpec& array(const Place& place) const {
    return schedule_.arrays[static_cast<std::size_t>(place.array)];
  }

  // The address of the array of a place, which may belong to a rank whose memory this one shares.
  [[nodiscard]] std::byte* memory(const Place& place) {
    if (place.rank == rank_) return arrays_[static_cast<std::size_t>(place.array)].data();
    return shared_.at(place.rank, place.array, array(place).elements_on(place.rank) * array(place).element_bytes);
  }

  // Adds the steps of the elements [first, last) of a place.
  void add(const Place& place, Combine combine, std::int64_t first, std::int64_t last) {
    std::byte* const base = memory(place);
    const ArraySpec& spec = array(place);
    for (const Slice& slice : place.slice.cut(first, last)) {
      program_.steps.push_back({make_step(slice, base, spec.element_bytes, program_.shapes), combine, spec.type});
    }
  }
  [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(program_.steps.size()); }

  // Whether the steps of a copy can be done one by one from slice to slice.
  [[nodiscard]] bool are_alike(const ProgramCopy& copy) const {
    const std::uint32_t steps = copy.from_last - copy.from_first;
    if (steps != copy.to_last - copy.to_first) return false;
    for (std::uint32_t i = 0; i < steps; ++i) {
      const ProgramStep& to = program_.steps[copy.to_first + i];
      if (to.combine != Combine::replace || !alike(to.copy, program_.steps[copy.from_first + i].copy)) return false;
    }
    return true;
  }

 private:
  Program& program_;
  const Schedule& schedule_;
  std::span<const std::span<std::byte>> arrays_;
  int rank_;
  SharedArrays& shared_;
};

}  // namespace onehop::detail
