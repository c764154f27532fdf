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

const std::size_t bytes_per_byte = 10;
const std::size_t allowance = small_allowance;

std::vector<std::string> large_inputs() {
  const std::string begin = R"({"onehop_schedule":1,"ranks":2,"arrays":[)";
  const std::string list = R"({"rank":0,"array":0,"slice":{"indices":[)";
  const std::string box = R"({"rank":0,"array":0,"slice":{"offset":0,"extents":[],"strides":[]}})";
  const std::string permutation = R"({"permutation":{"array":0,"local_bits":0,"to":[)";
  return {repeated("[", "1", ",", "]"),
          repeated("[", "[]", ",", "]"),
          repeated("[", R"({"":0})", ",", "]"),
          repeated(begin, R"({"name":"","element_bytes":1,"elements":1})", ",", R"(],"rounds":[]})"),
          repeated(begin + R"({"name":"","element_bytes":1,"elements":[)", "1", ",", R"(]}],"rounds":[]})"),
          repeated(begin + R"(],"rounds":[)", R"({"transfers":[]})", ",", "]}"),
          repeated(begin + R"(],"rounds":[)", permutation + R"(]},"transfers":[]})", ",", "]}"),
          repeated(begin + R"(],"rounds":[)" + permutation, "1", ",", R"(]},"transfers":[]}]})"),
          repeated(begin + R"(],"rounds":[{"transfers":[)", R"({"from":)" + box + R"(,"to":)" + box + "}", ",", "]}]}"),
          repeated(begin + R"(],"rounds":[],"must_cover":[)", box, ",", "]}"),
          repeated(begin + R"(],"rounds":[],"must_cover":[)" + list, "1", ",", "]}}]}"),
          repeated(begin + R"(],"rounds":[],"must_cover":[)", list + "]}}", ",", "]}"),
          repeated(R"({"onehop_schedule":1,"ranks":2,"arrays":[],"rounds":[],"name":")", "a", "", R"("})"),
          repeated(R"({"onehop_schedule":1,"ranks":2,"arrays":[],"rounds":[],"name":")", R"(\n)", "", R"("})")};
}

void read_input(std::string_view input) {
  const Schedule schedule = measured([&] { return Schedule::from_json(input); });
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
