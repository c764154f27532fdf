// Schedules in JSON. What is read is written and read again, counted, and verified if few elements move.
#include <algorithm>
#include <string>

#include "onehop/count.h"
#include "onehop/error.h"
#include "onehop/schedule.h"
#include "onehop/verify.h"
#include "tests/fuzz/readers/target.h"

namespace onehop::fuzz {
namespace {

constexpr std::int64_t few = 1 << 12;  // ranks, and elements of an array

bool is_small(const Schedule& schedule) {
  return schedule.ranks <= few && std::ranges::all_of(schedule.arrays, [](const ArraySpec& array) {
           return std::ranges::all_of(array.elements, [](std::int64_t elements) { return elements <= few; });
         });
}

}  // namespace

const std::size_t bytes_per_byte = 64;

void read_input(std::string_view input) {
  const Schedule schedule = Schedule::from_json(input);
  if (input.size() > few || !is_small(schedule)) return;
  require(Schedule::from_json(schedule.to_json(-1)) == schedule, "a schedule that was written is read unchanged");
  try {
    verify_or_throw(schedule);
  } catch (const BadInput&) {
    return;
  }
  (void)count(schedule);
}

}  // namespace onehop::fuzz
