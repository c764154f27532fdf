#include "src/plan/inside_copies.h"

#include <algorithm>

#include "src/plan/slice_pair.h"

namespace onehop::detail {
namespace {

// Copies are cut into parts of this many bytes, or of this many elements if each is in another cache line.
constexpr std::int64_t copy_piece = 16 << 10;
constexpr std::int64_t copy_elements = 128;

ProgramCopy make_copy(StepBuilder& steps, const Transfer& transfer, std::int64_t first, std::int64_t last) {
  ProgramCopy copy;
  copy.bytes = (last - first) * steps.array(transfer.to).element_bytes;
  copy.from_first = steps.count();
  steps.add(transfer.from, Combine::replace, first, last);
  copy.from_last = copy.to_first = steps.count();
  steps.add(transfer.to, transfer.combine, first, last);
  copy.to_last = steps.count();
  copy.direct = steps.are_alike(copy);
  return copy;
}

void add_parts(StepBuilder& steps, std::vector<ProgramCopy>& copies, const Transfer& transfer) {
  constexpr std::int64_t line = 64;
  const std::int64_t element_bytes = steps.array(transfer.to).element_bytes;
  const std::int64_t elements = transfer.from.slice.elements();
  const std::int64_t run = elements / std::max<std::int64_t>(1, transfer.from.slice.pieces());
  const std::int64_t at_once =
      std::max<std::int64_t>(1, run * element_bytes < line ? copy_elements : copy_piece / element_bytes);
  for (std::int64_t first = 0; first < elements; first += at_once) {
    copies.push_back(make_copy(steps, transfer, first, std::min(first + at_once, elements)));
  }
}

// Finds neighbours in the list that can be copied in one loop.
void find_pairs(const Program& program, std::vector<ProgramCopy>& copies) {
  const auto has_one_step = [](const ProgramCopy& copy) {
    return copy.direct && copy.from_last - copy.from_first == 1;
  };
  for (std::size_t i = 0; i + 1 < copies.size(); ++i) {
    const ProgramCopy& other = copies[i + 1];
    if (!has_one_step(copies[i]) || !has_one_step(other)) continue;
    const std::vector<ProgramStep>& steps = program.steps;
    copies[i].with_next = are_pair(steps[copies[i].to_first].copy, steps[copies[i].from_first].copy,
                                   steps[other.to_first].copy, steps[other.from_first].copy);
    if (copies[i].with_next) ++i;
  }
}

}  // namespace

std::int64_t add_inside_copies(Program& program, StepBuilder& steps, ProgramRound& round, const RoundPart& part,
                               CombineOrder& order) {
  bool combines = false;
  for (const Transfer* transfer : part.own) {
    if (!order.keeps_copy(transfer)) {
      add_parts(steps, round.copies, *transfer);
      combines |= transfer->combine != Combine::replace;
      continue;
    }
    ProgramOrdered ordered;
    ordered.part.first = static_cast<std::uint32_t>(round.ordered_copies.size());
    add_parts(steps, round.ordered_copies, *transfer);
    ordered.part.last = static_cast<std::uint32_t>(round.ordered_copies.size());
    order.add(transfer, ordered);
  }
  std::int64_t longest = 0;
  for (const auto* copies : {&round.copies, &round.ordered_copies}) {
    for (const ProgramCopy& copy : *copies) longest = std::max(longest, copy.bytes);
  }
  if (combines) return longest;  // combining transfers must keep their order
  std::ranges::sort(round.copies, {},
                    [&](const ProgramCopy& copy) { return program.steps[copy.from_first].copy.base; });
  find_pairs(program, round.copies);
  return longest;
}

}  // namespace onehop::detail
