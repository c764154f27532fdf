// A permutation of the index bits of a state that is distributed over the ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/rounds.h"
#include "onehop/channel.h"
#include "onehop/patterns.h"
#include "onehop/plan.h"

namespace onehop::measure {

// The permutation that swaps pairs of bits, usually (local bit, bit of the rank), of a state of 2^local_bits elements
// on each rank of the group.
[[nodiscard]] PermuteBitsSpec swap_bits(int local_bits, const std::vector<std::pair<int, int>>& pairs,
                                        std::int64_t element_bytes, int ranks);

// Some elements of the state with their places before and after the permutation. The rank that has one writes it, the
// rank that receives it checks it.
class Witnesses {
 public:
  Witnesses(const PermuteBitsSpec& spec, int rank, std::span<std::byte> state);

  void write() noexcept;
  void check(const std::string& candidate) const;  // throws Error if one is not in its place

 private:
  struct Mark {
    std::byte* place;
    std::uint64_t number;
  };

  [[nodiscard]] std::uint64_t word(const Mark& mark) const noexcept;
  static void add(const PermuteBitsSpec& spec, int rank, std::span<std::byte> state, std::uint64_t index,
                  std::uint64_t number, std::vector<Mark>& marks);

  std::vector<Mark> before_;
  std::vector<Mark> after_;
  std::uint64_t run_ = 0;
};

// The candidates that permute the same state, onehop's fused exchange first. Elements are written before each run and
// checked after it.
class PermutationRounds {
 public:
  // Collective over the group, whose ranks must share memory.
  PermutationRounds(const Group& group, const PermuteBitsSpec& spec,
                    TransportKind transport = TransportKind::automatic);

  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] std::span<std::byte> state() const noexcept { return state_.bytes(); }

  // `run` is collective. Not `exact`: a codec rounds the elements.
  void add(const std::string& name, Role role, std::function<void()> run, bool exact = true);
  void add(const std::string& name, Role role, const Schedule& part, bool exact = true);
  void add(Candidate candidate) { candidates_.push_back(std::move(candidate)); }

  // Returns samples in µs. Collective.
  [[nodiscard]] std::vector<Samples> run(const Effort& effort);

 private:
  Arena arena_;
  TransportKind transport_;
  SharedArray state_;
  Witnesses witnesses_;
  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<Candidate> candidates_;
};

}  // namespace onehop::measure
