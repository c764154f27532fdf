#include "src/plan/program/message_builder.h"

#include <algorithm>
#include <string>

#include "onehop/error.h"
#include "src/base/text.h"
#include "src/plan/copy/slice_copy.h"
#include "src/schedule/wire_size.h"

namespace onehop::detail {
namespace {

// Runs of at least a line, in chunks of at least so many bytes, fetch the lines of the slot before plain stores.
constexpr std::int64_t shortest_fetching_run = 64;
constexpr std::int64_t shortest_fetching = 16 << 10;

bool combine(std::span<const Transfer* const> transfers) {
  return std::ranges::any_of(transfers, [](const Transfer* one) { return one->combine != Combine::replace; });
}

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

ProgramMessage MessageBuilder::outgoing(std::uint32_t end, const Transfers& transfers, const Turns& turns,
                                        std::size_t exchanged) {
  return message(end, program_.senders[end].ring(), transfers, turns, exchanged, true);
}

ProgramMessage MessageBuilder::incoming(std::uint32_t end, const Transfers& transfers, const Turns& turns,
                                        std::size_t exchanged) {
  return message(end, program_.receivers[end].ring(), transfers, turns, exchanged, false);
}

// The first `exchanged` transfers are in exact exchange. If others combine, and so may wait for their turn, the
// exchange has fragments of its own: it must wait for nothing but the message in the other direction.
ProgramMessage MessageBuilder::message(std::uint32_t end, const SlotRing& ring, const Transfers& transfers,
                                       const Turns& turns, std::size_t exchanged, bool out) {
  const bool splits = exchanged > 0 && combine(std::span(transfers).subspan(exchanged));
  std::vector<WireSize> sizes;
  for (const Transfer* transfer : transfers) {
    const ArraySpec& array = steps_.array(transfer->to);
    sizes.push_back({transfer->from.slice.elements(), unit_bytes(array, transfer->codec),
                     elements_per_cut(array, transfer->codec), schedule_.bytes(*transfer), turns[sizes.size()],
                     splits && sizes.size() == exchanged});
    if (sizes.back().unit_bytes > ring.slot_bytes) {
      throw BadInput("one element of array " + array.name + " has " + base::counted(sizes.back().unit_bytes, "byte") +
                     ", but a slot between these ranks holds at most " + std::to_string(ring.slot_bytes) +
                     "; describe the array by smaller elements");
    }
  }
  ProgramMessage made;
  made.end = end;
  made.in_turns = std::ranges::any_of(turns, [](std::int64_t turn) { return turn != 0; });
  made.first = static_cast<std::uint32_t>(program_.fragments.size());
  pieces_.clear();
  for (const WireFragment& fragment : lay_out(sizes, ring.slot_bytes, ring.chunk_bytes))
    add_fragment(fragment, transfers, out);
  made.last = made.in_order = static_cast<std::uint32_t>(program_.fragments.size());
  return made;
}

void MessageBuilder::add_fragment(const WireFragment& fragment, const Transfers& transfers, bool out) {
  ProgramFragment made;
  made.bytes = fragment.bytes;
  made.first = static_cast<std::uint32_t>(program_.chunks.size());
  for (const WireChunk& chunk : fragment.chunks) add_chunk(chunk, transfers, out);
  made.last = static_cast<std::uint32_t>(program_.chunks.size());
  program_.fragments.push_back(made);
  const WirePiece& last = fragment.chunks.back().pieces.back();
  const auto transfer = static_cast<std::size_t>(last.transfer);
  ends_.push_back(last.last == transfers[transfer]->from.slice.elements() ? MessagePosition{transfer + 1, 0}
                                                                          : MessagePosition{transfer, last.last});
}

void MessageBuilder::add_chunk(const WireChunk& chunk, const Transfers& transfers, bool out) {
  ProgramChunk made;
  made.begin = chunk.begin;
  made.end = chunk.end;
  made.first = steps_.count();
  const auto transfer_of = [&](const WirePiece& piece) -> const Transfer& {
    return *transfers[static_cast<std::size_t>(piece.transfer)];
  };
  const bool encoded =
      std::ranges::any_of(chunk.pieces, [&](const WirePiece& piece) { return transfer_of(piece).codec != Codec::raw; });
  made.first_piece = static_cast<std::uint32_t>(program_.pieces.size());
  std::int64_t begin = chunk.begin;
  for (const WirePiece& piece : chunk.pieces) {
    const Transfer& transfer = transfer_of(piece);
    const ArraySpec& array = steps_.array(transfer.to);
    ProgramChunk part{.first = steps_.count(), .begin = begin};
    part.first_piece = static_cast<std::uint32_t>(program_.pieces.size());
    steps_.add(out ? transfer.from : transfer.to, transfer.combine, piece.first, piece.last);
    if (encoded) add_piece(part.first, array, transfer.codec, piece.last - piece.first);
    part.last = steps_.count();
    part.last_piece = static_cast<std::uint32_t>(program_.pieces.size());
    part.end = begin += bytes_on_wire(array, transfer.codec, piece.last - piece.first);
    if (!out) pieces_.push_back({static_cast<std::size_t>(piece.transfer), part});
  }
  made.last_piece = static_cast<std::uint32_t>(program_.pieces.size());
  made.last = steps_.count();
  made.fetches = out && !encoded && fetches(made);
  program_.chunks.push_back(made);
  longest_chunk_ = std::max(longest_chunk_, chunk.end - chunk.begin);
}

void MessageBuilder::keep_in_order(ProgramRound& round, const Transfers& transfers, std::size_t exchanged,
                                   CombineOrder& order) const {
  ProgramMessage& message = round.in.back();
  auto piece = pieces_.begin();
  for (std::uint32_t f = message.first; f < message.last; ++f) {
    const ProgramFragment& fragment = program_.fragments[f];
    if (piece->transfer >= exchanged) message.in_order = std::min(message.in_order, f);
    for (std::uint32_t c = fragment.first; c < fragment.last; ++c) {
      ProgramOrdered ordered;
      ordered.message = static_cast<std::uint32_t>(round.in.size() - 1);
      ordered.arrived = c + 1 == fragment.last ? whole : c + 1 - fragment.first;
      for (bool more = true; more; ++piece) {
        more = piece->part.last != program_.chunks[c].last;
        ordered.part = piece->part;
        ordered.ends_fragment = ordered.arrived == whole && !more;
        if (piece->transfer >= exchanged) order.add(transfers[piece->transfer], ordered);
      }
    }
  }
}

void MessageBuilder::copy_inside(ProgramRound& round, const RoundPart& part, CombineOrder& order) {
  bool combines = false;
  for (const Transfer* transfer : part.own) {
    if (!order.keeps_copy(transfer)) {
      add_parts(steps_, round.copies, *transfer);
      combines |= transfer->combine != Combine::replace;
      continue;
    }
    ProgramOrdered ordered;
    ordered.part.first = static_cast<std::uint32_t>(round.ordered_copies.size());
    add_parts(steps_, round.ordered_copies, *transfer);
    ordered.part.last = static_cast<std::uint32_t>(round.ordered_copies.size());
    order.add(transfer, ordered);
  }
  for (const auto* copies : {&round.copies, &round.ordered_copies}) {
    for (const ProgramCopy& copy : *copies) longest_chunk_ = std::max(longest_chunk_, copy.bytes);
  }
  if (combines) return;  // combining transfers must keep their order
  std::ranges::sort(round.copies, {},
                    [&](const ProgramCopy& copy) { return program_.steps[copy.from_first].copy.base; });
  find_pairs(program_, round.copies);
}

// Whether a chunk is long enough, and has runs long enough, to fetch the lines of the slot in advance.
bool MessageBuilder::fetches(const ProgramChunk& chunk) const {
  if (chunk.end - chunk.begin < shortest_fetching) return false;
  for (std::uint32_t i = chunk.first; i < chunk.last; ++i) {
    const CopyStep& step = program_.steps[i].copy;
    if (step.shape != nullptr && step.bytes >= shortest_fetching_run * runs_of(step)) return true;
  }
  return false;
}

void MessageBuilder::add_piece(std::uint32_t first, const ArraySpec& spec, Codec codec, std::int64_t elements) {
  program_.pieces.push_back({first, static_cast<std::uint32_t>(program_.steps.size()), codec,
                             elements * numbers_per_element(spec), bytes_on_wire(spec, codec, elements)});
  longest_numbers_ = std::max(longest_numbers_, elements * spec.element_bytes);
}

}  // namespace onehop::detail
