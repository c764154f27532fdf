// One round of a schedule, from array to array.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measure/compute.h"
#include "measure/marks.h"
#include "measure/mpi/peers.h"
#include "measure/rounds.h"
#include "onehop/plan.h"
#include "onehop/schedule.h"

namespace onehop::measure {

// The candidates that do one exchange of the same arrays, onehop's plan first. One number (float64) in each line that
// crosses ranks is written before each exchange and read after it.
class HaloRounds {
 public:
  // Each rank computes for about `compute_us` before each exchange. Collective.
  HaloRounds(const Group& group, const Schedule& schedule, std::span<const std::span<std::byte>> arrays,
             double compute_us = 0);

  [[nodiscard]] Arena& arena() noexcept { return arena_; }
  [[nodiscard]] Marks& marks() noexcept { return marks_; }

  // `run` is collective. Not `exact`: received data is read but not compared, because a codec rounds it.
  void add(const std::string& name, Role role, std::function<void()> run, bool exact = true) {
    add(name, role, std::move(run), exact, marks_);
  }
  // Of other arrays, which have marks of their own.
  void add(const std::string& name, Role role, std::function<void()> run, bool exact, Marks& marks);
  void add(Candidate candidate) { candidates_.push_back(std::move(candidate)); }
  // onehop's plan with a clock that runs only while data is exchanged.
  void add_exchange_alone();
  // The candidates in plain MPI, if there is one. Collective.
  void add_mpi();

  // Returns samples in µs. Collective.
  [[nodiscard]] std::vector<Samples> run(const Effort& effort) { return run_rounds(arena_, candidates_, effort); }

 private:
  const Schedule& schedule_;
  std::vector<std::span<std::byte>> arrays_;
  Arena arena_;
  Marks marks_;
  Compute compute_;
  Plan plan_;
  std::vector<std::unique_ptr<HaloPeer>> peers_;
  std::vector<Candidate> candidates_;
};

}  // namespace onehop::measure
