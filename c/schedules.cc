// Schedules and plans of the C interface.
#include <algorithm>
#include <array>
#include <vector>

#include "c/handles.h"
#include "onehop/count.h"
#include "src/base/checked.h"

using namespace onehop::c;  // NOLINT(google-build-using-namespace)
using onehop::BadInput;
using onehop::Combine;
using onehop::ElementType;

namespace {

// The entry of a list whose number a program passes.
template <class Entries>
auto entry(const Entries& entries, int number, const char* what) {
  if (number < 0 || static_cast<std::size_t>(number) >= entries.size()) {
    throw BadInput(std::string("expected ") + what + " from 0 to " +
                   std::to_string(static_cast<int>(entries.size()) - 1) + ", found " + std::to_string(number));
  }
  return entries[static_cast<std::size_t>(number)];
}

// A length that is known before anything of the program's memory is read.
int up_to(int most, int count, const char* what) {
  if (count >= 0 && count <= most) return count;
  throw BadInput("expected 0 to " + std::to_string(most) + " " + what + ", found " + std::to_string(count));
}

std::optional<int> only(int rank) { return rank == -1 ? std::nullopt : std::optional(rank); }

onehop::HaloSpec halo_of(int dims, const int64_t* extents, const int* grid) {
  const auto all = numbers(extents, up_to(6, dims, "dimensions"), "extents");
  const auto ranks = numbers(grid, dims, "a grid");
  onehop::HaloSpec halo;
  halo.extents.assign(all.begin(), all.end());
  halo.grid.assign(ranks.begin(), ranks.end());
  halo.widths.assign(all.size(), {1, 1});
  halo.periodic.assign(all.size(), false);
  static_cast<void>(halo_block(halo, 0));  // checks the dimensions
  return halo;
}

void set_widths(onehop::HaloSpec& halo, const int64_t* below, const int64_t* above) {
  const auto dims = static_cast<std::int64_t>(halo.extents.size());
  const auto low = numbers(below, dims, "widths below");
  const auto high = numbers(above, dims, "widths above");
  for (std::size_t d = 0; d < low.size(); ++d) halo.widths[d] = {low[d], high[d]};
}

void set_periodic(onehop::HaloSpec& halo, const int* periodic) {
  const auto given = numbers(periodic, static_cast<std::int64_t>(halo.extents.size()), "a number for each dimension");
  halo.periodic.assign(given.begin(), given.end());
}

void set_fields(onehop::HaloSpec& halo, std::span<const std::int64_t> element_bytes) {
  halo.element_bytes.assign(element_bytes.begin(), element_bytes.end());
}

void show(const onehop::HaloBlock& block, int64_t* start, int64_t* extents, int64_t* shape) {
  if (start != nullptr) std::ranges::copy(block.start, start);
  if (extents != nullptr) std::ranges::copy(block.extents, extents);
  if (shape != nullptr) std::ranges::copy(block.shape, shape);
}

onehop::PermuteBitsSpec permutation_of(int bits, int local_bits, const int* permutation, int64_t element_bytes) {
  const auto to = numbers(permutation, up_to(62, bits, "bits"), "a permutation");
  return {
      .bits = bits, .local_bits = local_bits, .permutation = {to.begin(), to.end()}, .element_bytes = element_bytes};
}

onehop::AllReduceSpec reduction_of(int ranks, int64_t elements, int type, int op) {
  constexpr std::array numbers_of{ONEHOP_INT32, ONEHOP_INT64, ONEHOP_FLOAT, ONEHOP_DOUBLE};
  constexpr std::array types{ElementType::int32, ElementType::int64, ElementType::float32, ElementType::float64};
  constexpr std::array operators{Combine::add, Combine::prod, Combine::min, Combine::max};
  const auto found = std::ranges::find(numbers_of, type) - numbers_of.begin();
  if (static_cast<std::size_t>(found) == types.size())
    throw BadInput("expected a type of 32 or 64 bits with a sign, found " + std::to_string(type));
  return {.ranks = ranks,
          .elements = elements,
          .type = types.at(static_cast<std::size_t>(found)),
          .combine = entry(operators, op, "an operator")};
}

const onehop::Schedule& with_rank(onehop_schedule* handle, int rank) {
  const onehop::Schedule& schedule = schedules.at(handle);
  if (rank < 0 || rank >= schedule.ranks)
    throw BadInput("expected a rank from 0 to " + std::to_string(schedule.ranks - 1) + ", found " +
                   std::to_string(rank));
  return schedule;
}

std::int64_t array_bytes(const onehop::Schedule& schedule, int array, int rank) {
  const onehop::ArraySpec spec = entry(schedule.arrays, array, "an array");
  return onehop::detail::checked_multiply(spec.elements_on(rank), spec.element_bytes, "the bytes of an array");
}

// A rank with wrong arguments tells the others, which do not wait for it then.
void make_plan(const onehop::Group& group, onehop_schedule* schedule, int count, void* const* arrays,
               const int64_t* bytes, onehop_plan** plan) {
  std::vector<std::span<std::byte>> memory;
  try {
    const std::size_t known = schedules.at(schedule).arrays.size();
    if (count < 0 || static_cast<std::size_t>(count) != known)
      throw BadInput("expected the " + std::to_string(known) + " arrays of the schedule, found " +
                     std::to_string(count));
    const auto sizes = numbers(bytes, count, "bytes");
    const auto places = numbers(arrays, count, "arrays");
    for (std::size_t i = 0; i < sizes.size(); ++i)
      memory.push_back(numbers(static_cast<std::byte*>(places[i]), sizes[i], "an array"));
    check_pointer(plan, "a place for the result");
  } catch (const std::exception& error) {
    onehop::refuse_channels(group, error.what());
    throw;
  }
  // Made before it gets its handle: other threads may make theirs while this one waits for other ranks.
  make(plans, plan, onehop::Plan(group, schedules.at(schedule), memory));
}

}  // namespace

ONEHOP_C_FUNCTION(onehop_halo_new, (int dims, const int64_t* extents, const int* grid, onehop_halo** halo),
                  make(halos, halo, halo_of(dims, extents, grid)))
ONEHOP_C_FUNCTION(onehop_halo_set_widths, (onehop_halo * halo, const int64_t* below, const int64_t* above),
                  set_widths(halos.at(halo), below, above))
ONEHOP_C_FUNCTION(onehop_halo_set_periodic, (onehop_halo * halo, const int* periodic),
                  set_periodic(halos.at(halo), periodic))
ONEHOP_C_FUNCTION(onehop_halo_set_corners, (onehop_halo * halo, int corners), halos.at(halo).corners = corners != 0)
ONEHOP_C_FUNCTION(onehop_halo_set_fields, (onehop_halo * halo, int fields, const int64_t* element_bytes),
                  set_fields(halos.at(halo), numbers(element_bytes, fields, "sizes")))
ONEHOP_C_FUNCTION(onehop_halo_block, (onehop_halo * halo, int rank, int64_t* start, int64_t* extents, int64_t* shape),
                  show(halo_block(halos.at(halo), rank), start, extents, shape))
ONEHOP_C_FUNCTION(onehop_halo_schedule, (onehop_halo * halo, int only_rank, onehop_schedule** schedule),
                  make(schedules, schedule, onehop::halo(halos.at(halo), only(only_rank))))
ONEHOP_C_FUNCTION(onehop_halo_free, (onehop_halo * *halo), release(halos, halo))

ONEHOP_C_FUNCTION(onehop_schedule_permute_bits,
                  (int bits, int local_bits, const int* permutation, int64_t element_bytes, int only_rank,
                   onehop_schedule** schedule),
                  make(schedules, schedule,
                       permute_bits(permutation_of(bits, local_bits, permutation, element_bytes), only(only_rank))))
ONEHOP_C_FUNCTION(onehop_schedule_allgather,
                  (int ranks, int64_t elements, int64_t element_bytes, int only_rank, onehop_schedule** schedule),
                  make(schedules, schedule, onehop::allgather(ranks, elements, element_bytes, only(only_rank))))
ONEHOP_C_FUNCTION(onehop_schedule_broadcast,
                  (int ranks, int64_t elements, int64_t element_bytes, int root, int only_rank,
                   onehop_schedule** schedule),
                  make(schedules, schedule, onehop::broadcast(ranks, elements, element_bytes, root, only(only_rank))))
ONEHOP_C_FUNCTION(onehop_schedule_allreduce,
                  (int ranks, int64_t elements, int type, int op, int only_rank, onehop_schedule** schedule),
                  make(schedules, schedule, allreduce(reduction_of(ranks, elements, type, op), only(only_rank))))
ONEHOP_C_FUNCTION(onehop_schedule_reduce_scatter,
                  (int ranks, int64_t elements, int type, int op, int only_rank, onehop_schedule** schedule),
                  make(schedules, schedule, reduce_scatter(reduction_of(ranks, elements, type, op), only(only_rank))))
ONEHOP_C_FUNCTION(onehop_schedule_from_json, (const char* text, onehop_schedule** schedule),
                  check_pointer(text, "a text"), make(schedules, schedule, onehop::Schedule::from_json(text)))
ONEHOP_C_FUNCTION(onehop_schedule_array_bytes, (onehop_schedule * schedule, int array, int rank, int64_t* bytes),
                  put(bytes, array_bytes(with_rank(schedule, rank), array, rank)))
ONEHOP_C_FUNCTION(onehop_schedule_bytes_sent, (onehop_schedule * schedule, int rank, int64_t* bytes),
                  put(bytes, count(with_rank(schedule, rank)).ranks[static_cast<std::size_t>(rank)].bytes_sent))
ONEHOP_C_FUNCTION(onehop_schedule_free, (onehop_schedule * *schedule), release(schedules, schedule))

ONEHOP_C_FUNCTION(onehop_plan_new,
                  (onehop_group * group, onehop_schedule* schedule, int count, void* const* arrays,
                   const int64_t* bytes, onehop_plan** plan),
                  make_plan(groups.at(group).group, schedule, count, arrays, bytes, plan))
ONEHOP_C_FUNCTION(onehop_plan_start, (onehop_plan * plan), plans.at(plan).start())
ONEHOP_C_FUNCTION(onehop_plan_test, (onehop_plan * plan, int* complete),
                  put(complete, static_cast<int>(plans.at(plan).test())))
ONEHOP_C_FUNCTION(onehop_plan_finish, (onehop_plan * plan), plans.at(plan).finish())
ONEHOP_C_FUNCTION(onehop_plan_run, (onehop_plan * plan), plans.at(plan).run())
ONEHOP_C_FUNCTION(onehop_plan_free, (onehop_plan * *plan), release(plans, plan))
