#include "onehop/quantum/profile.h"

#include <array>

#include "src/base/clock.h"

namespace onehop::quantum {

const char* name_of(ProfileEntry::Kind kind) {
  static constexpr std::array<const char*, 7> names = {"first state", "exchange", "planning",    "pass",
                                                       "measurement", "sampling", "expectations"};
  return names[static_cast<std::size_t>(kind)];
}

Profile::Profile() : origin_(base::steady_seconds()) {}

double Profile::now() const { return base::steady_seconds() - origin_; }

ProfileEntry& Profile::add(ProfileEntry entry) {
  entry.run = run_;
  return entries_.emplace_back(std::move(entry));
}

void Profile::add(const EngineCounters& counters, const std::vector<PassRecord>& records, int stage,
                  std::int64_t bytes) {
  double begin = now() - counters.seconds;
  if (!records.empty()) begin = records.front().begin - origin_ - counters.planning_seconds;
  add({.kind = ProfileEntry::Kind::planning, .stage = stage, .begin = begin, .seconds = counters.planning_seconds});
  for (const PassRecord& record : records) {
    add({.kind = ProfileEntry::Kind::pass,
         .stage = stage,
         .begin = record.begin - origin_,
         .seconds = record.seconds,
         .bytes = bytes,
         .pass = record});
  }
}

}  // namespace onehop::quantum
