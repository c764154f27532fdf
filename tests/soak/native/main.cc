// onehop_soak exchanges SEED BATCHES [plant]
// onehop_soak long_messages SEED BATCHES [plant]
// onehop_soak kills|split_kills SEED COUNT [plant]
// onehop_soak kills|split_kills SEED FIRST END
// Runs batches of random schedules, or trials with a fault each, from number 0 (or FIRST) to END - 1, and prints their
// counts. The exit code is 1 after an anomaly, which is described on stderr with the command that repeats it. A trial
// is a function of seed and number, and of the moment when the system runs which process. `plant` makes an anomaly, for
// tests.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "tests/soak/native/schedules.h"
#include "tests/soak/native/trials.h"

namespace {

using onehop::soak::Fault;

std::uint64_t number(const char* text) {
  std::uint64_t value = 0;
  const char* end = text + std::strlen(text);
  if (const auto [stopped, error] = std::from_chars(text, end, value);
      error != std::errc() || stopped != end || text == end) {
    throw std::invalid_argument(std::string("expected a number, found ") + text);
  }
  return value;
}

int kills(const std::string& kind, std::uint64_t seed, std::uint64_t first, std::uint64_t last, bool plant) {
  const auto fault = kind == "kills" ? &onehop::soak::fault : &onehop::soak::split_fault;
  std::int64_t counts[5] = {};
  std::int64_t exchanges = 0;
  double slowest = 0;
  for (std::uint64_t k = first; k < last; ++k) {
    try {
      const Fault one = fault(onehop::soak::mix(seed, k), plant);
      ++counts[static_cast<int>(one.kind)];
      exchanges += one.exchanges;
      slowest = std::max(slowest, one.told);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\nrepeat with: onehop_soak %s %ju %ju %ju\n", error.what(), kind.c_str(),
                   static_cast<std::uintmax_t>(seed), static_cast<std::uintmax_t>(k),
                   static_cast<std::uintmax_t>(k + 1));
      return 1;
    }
  }
  // In the order of Fault::Kind. Two ranks are killed in the last kind.
  std::printf("faults %ju kills %jd stops %jd exits %jd exceptions %jd exchanges %jd slowest_ms %.0f\n",
              static_cast<std::uintmax_t>(last - first),
              static_cast<std::intmax_t>(counts[0] + counts[1] + 2 * counts[4]), static_cast<std::intmax_t>(counts[1]),
              static_cast<std::intmax_t>(counts[2]), static_cast<std::intmax_t>(counts[3]),
              static_cast<std::intmax_t>(exchanges), 1000 * slowest);
  return 0;
}

int batches(const std::string& kind, std::uint64_t seed, std::uint64_t count, bool plant) {
  const auto run = kind == "exchanges" ? &onehop::soak::exchanges : &onehop::soak::long_messages;
  try {
    const auto done = run(seed, static_cast<int>(count), plant);
    std::printf("exchanges %jd schedules %d adaptive %jd\n", static_cast<std::intmax_t>(done.exchanges), done.schedules,
                static_cast<std::intmax_t>(done.adaptive));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\nrepeat with: onehop_soak %s %ju %ju\n", error.what(), kind.c_str(),
                 static_cast<std::uintmax_t>(seed), static_cast<std::uintmax_t>(count));
    return 1;
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    const std::string kind = count > 1 ? words[1] : "";
    const bool plant = count == 5 && std::string(words[4]) == "plant";
    if ((kind == "exchanges" || kind == "long_messages") && (count == 4 || plant))
      return batches(kind, number(words[2]), number(words[3]), plant);
    const bool kill = kind == "kills" || kind == "split_kills";
    if (kill && (count == 4 || plant)) return kills(kind, number(words[2]), 0, number(words[3]), plant);
    if (kill && count == 5) return kills(kind, number(words[2]), number(words[3]), number(words[4]), false);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  std::fprintf(
      stderr,
      "expected: onehop_soak exchanges or long_messages SEED BATCHES [plant], or onehop_soak kills or split_kills "
      "SEED [FIRST] END [plant]\n");
  return 2;
}
