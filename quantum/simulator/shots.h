// The classical bits of every shot, and the measurements at the end of a program that give some of them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "onehop/quantum/program.h"

namespace onehop::quantum {

inline constexpr std::int64_t max_shots = std::int64_t{1} << 31;

// A program without its measurements at the end.
struct SplitProgram {
  explicit SplitProgram(const Program& program)
      : SplitProgram(program.circuit, {{}, program.channels, program.saves, program.readout}) {}
  // `others`: the program without its circuit.
  explicit SplitProgram(const Circuit& circuit, Program others = {});
  Program body;
  int bits = 0;                           // of an outcome: the classical bits, or all qubits of a circuit without
  std::vector<std::pair<int, int>> last;  // (bit, qubit), measured at the end
  std::vector<int> qubits;                // of `last`, ascending; without those that are idle (storage.h)
  std::vector<int> draws;                 // as for `sample` (quantum/state/sampling.h)
  std::vector<bool> elsewhere;  // bits that final measurements of another part of the program give (storage.h)

  // Words of 64 bits of an outcome.
  [[nodiscard]] int words() const noexcept { return (bits + 63) / 64; }
  // Bit `place` of `qubits` in a sample is the value of the qubit; that of an idle one is 0.
  [[nodiscard]] int place_of(int qubit) const;
  // The value that a shot reads of a qubit, with a readout error if there is one.
  [[nodiscard]] bool read(std::uint64_t seed, std::uint64_t shot, const std::pair<int, int>& bit_and_qubit,
                          bool value) const;
};

// The shots of some runs, ascending: shot s is drawn at the end of run s modulo their number.
[[nodiscard]] std::vector<std::uint64_t> shots_of(std::span<const std::uint64_t> runs, std::int64_t all_runs,
                                                  std::int64_t shots);

class Shots {
 public:
  Shots(int bits, std::int64_t shots);
  void set(std::uint64_t shot, int bit, bool value) {
    std::uint64_t& word = values_[shot * words_ + static_cast<std::size_t>(bit) / 64];
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    word = value ? word | mask : word & ~mask;
  }
  // All bits in words of 64, shot after shot.
  [[nodiscard]] const std::vector<std::uint64_t>& words() const noexcept { return values_; }
  // Throws BadInput for another number of words.
  void set_words(const std::vector<std::uint64_t>& words);
  [[nodiscard]] Outcomes outcomes() const;

 private:
  int bits_;
  std::size_t shots_;
  std::size_t words_;
  std::vector<std::uint64_t> values_;
};

}  // namespace onehop::quantum
