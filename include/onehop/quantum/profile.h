// The profile of a run on one rank: the time of each pass over its amplitudes, each exchange, and all other work.
#pragma once

#include <cstdint>
#include <vector>

#include "onehop/quantum/engine.h"

namespace onehop::quantum {

struct ProfileEntry {
  enum class Kind : std::uint8_t {
    first_state,   // writing the initial state
    exchange,      // an exchange between ranks, including its planning
    planning,      // grouping gates into passes
    pass,          // a pass over the amplitudes
    measurement,   // a measurement inside the circuit: probabilities and collapse
    sampling,      // drawing shots from the final state
    expectations,  // expectation values of observables
  };
  Kind kind = Kind::pass;
  int run = 0;       // the index of the run; a circuit with measurements inside runs once for each measurement record
  int stage = -1;    // the stage of the placement; -1: none
  double begin = 0;  // in seconds since the profile began
  double seconds = 0;
  std::int64_t bytes = 0;  // bytes read and written by a pass, or sent by this rank in an exchange
  PassRecord pass = {};    // details of a pass
};
[[nodiscard]] const char* name_of(ProfileEntry::Kind kind);

// Collects entries in the order in which they end.
class Profile {
 public:
  Profile();

  // Calls `body` and records how long it took.
  template <typename Body>
  void timed(ProfileEntry::Kind kind, int stage, const Body& body) {
    const double begin = now();
    body();
    add({.kind = kind, .stage = stage, .begin = begin, .seconds = now() - begin});
  }
  ProfileEntry& add(ProfileEntry entry);
  // Adds the passes that the engine recorded in one call.
  void add(const EngineCounters& counters, const std::vector<PassRecord>& records, int stage, std::int64_t bytes);

  [[nodiscard]] double now() const;
  void set_run(int run) noexcept { run_ = run; }
  [[nodiscard]] const std::vector<ProfileEntry>& entries() const noexcept { return entries_; }

 private:
  double origin_;
  int run_ = 0;
  std::vector<ProfileEntry> entries_;
};

}  // namespace onehop::quantum
