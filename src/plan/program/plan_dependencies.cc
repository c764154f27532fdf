#include "src/plan/program/plan_dependencies.h"

#include <algorithm>
#include <iterator>

namespace onehop::detail {
namespace {

// Whether both messages list the same slices in the same order: then equal places in them are the same elements.
bool lists_alike(const Transfers& out, const Transfers& in) {
  return std::ranges::equal(out, in, [](const Transfer* a, const Transfer* b) {
    return a->from.array == b->to.array && a->from.slice == b->to.slice;
  });
}

// The first `exchanged` transfers of both messages are the same elements. The two may be cut differently: each sender
// has its own slots, and each transfer its own codec.
void set_dependency(Program& program, const ProgramMessage& in, const ProgramMessage& out, std::size_t exchanged,
                    std::span<const MessagePosition> ends) {
  std::uint32_t after = 0;
  MessagePosition packed;
  for (std::uint32_t f = in.first; f < in.last; ++f) {
    const MessagePosition needed = std::min(ends[f], MessagePosition{exchanged, 0});
    for (; packed < needed; ++after) packed = ends[out.first + after];
    program.fragments[f].after = after;
  }
}

}  // namespace

void set_dependencies(Program& program, ProgramRound& round, const RoundPart& part,
                      std::span<const MessagePosition> ends) {
  for (ProgramMessage& in : round.in) {
    const int peer = program.receivers[in.end].peer();
    const Transfers& back = part.from.at(peer);
    const std::size_t exchanged = part.steps ? back.size() : exchanged_with(peer, part);
    if (exchanged == 0) continue;
    // In a cycle of a permutation, elements from one rank may take the places of elements that go to another rank.
    const auto out =
        part.steps ? std::ranges::find_if(part.to, [&](const auto& sent) { return lists_alike(sent.second, back); })
                   : part.to.find(peer);
    in.dependency = static_cast<int>(std::distance(part.to.begin(), out));
    set_dependency(program, in, round.out[static_cast<std::size_t>(in.dependency)], exchanged, ends);
  }
}

}  // namespace onehop::detail
