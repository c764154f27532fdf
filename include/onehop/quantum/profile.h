// Where the time of a run went, on one rank: passes over its amplitudes, exchanges with its peers, and what is around them.
#pragma once

#include <cstdint>
#include <vector>

#include "onehop/quantum/engine.h"

namespace onehop::quantum {

struct ProfileEntry {
  enum class Kind : std::uint8_t {
    first_state,   // written
    exchange,      // between ranks, the making of its plan included
    planning,      // which gates share a pass
    pass,          // over the amplitudes
    measurement,   // inside the circuit: probabilities and collapse
    sampling,      // shots from the last state
    expectations,  // of observables
  };
  Kind kind = Kind::pass;
  int run = 0;       // a circuit with measurements inside runs once for each history of outcomes
  int stage = -1;    // of the placement; -1: none
  double begin = 0;  // in seconds since the profile began
  double seconds = 0;
  std::int64_t bytes = 0;  // a pass: read and written; an exchange: sent by this rank
  PassRecord pass = {};    // of a pass
};
[[nodiscard]] const char* name_of(ProfileEntry::Kind kind);

// Collects entries, in the order of their ends.
class Profile {
 public:
  Profile();

  // Calls `what` and writes down how long it took.
  template <typename What>
  void timed(ProfileEntry::Kind kind, int stage, const What& what) {
    const double begin = now();
    what();
    add({.kind = kind, .stage = stage, .begin = begin, .seconds = now() - begin});
  }
  ProfileEntry& add(ProfileEntry entry);
  // What the engine has written down in one call.
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
