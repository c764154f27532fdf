#include "src/plan/program/plan_rails.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::detail {
namespace {

std::string message_text(int from, int to, std::size_t round) {
  return "the message from rank " + std::to_string(from) + " to rank " + std::to_string(to) + " in round " +
         std::to_string(round);
}

// The pieces of the messages that a rank sends in a round, by receiver and in the order of their bytes.
std::map<int, std::vector<RailAssignment>> pieces_from(const std::vector<RailAssignment>& list, int rank) {
  std::map<int, std::vector<RailAssignment>> pieces;
  for (const RailAssignment& one : list) {
    if (one.from == rank) pieces[one.to].push_back(one);
  }
  for (auto& [to, sorted] : pieces) {
    // Pieces without bytes before those that begin at the same byte.
    std::ranges::sort(sorted, {}, [](const RailAssignment& one) { return std::pair(one.first_byte, one.bytes); });
  }
  return pieces;
}

void check_message(const std::vector<RailAssignment>& pieces, std::int64_t bytes, std::size_t round) {
  std::int64_t at = 0;
  for (const RailAssignment& piece : pieces) {
    const std::string name = message_text(piece.from, piece.to, round);
    if (piece.first_byte != at || piece.bytes < 0 || piece.bytes > bytes - at) {
      throw BadInput("rails: expected pieces of " + name + " that follow each other and add up to its " +
                     base::counted(bytes, "byte") + ", found " + base::counted(piece.bytes, "byte") + " from byte " +
                     std::to_string(piece.first_byte) + " on, where byte " + std::to_string(at) + " is next");
    }
    at += piece.bytes;
  }
  if (at == bytes) return;
  throw BadInput("rails: expected pieces of " + message_text(pieces.front().from, pieces.front().to, round) + " with " +
                 base::counted(bytes, "byte") + " in all, found " + std::to_string(at));
}

// The pieces of a message within its bytes [begin, end), with ends counted from `begin`.
std::vector<RailPiece> within(const std::vector<RailAssignment>& pieces, std::int64_t begin, std::int64_t end) {
  std::vector<RailPiece> found;
  for (const RailAssignment& piece : pieces) {
    const std::int64_t last = std::min(piece.first_byte + piece.bytes, end);
    if (std::max(piece.first_byte, begin) < last) found.push_back({piece.rail, last - begin});
  }
  return found;
}

void check_rail(const RailAssignment& piece, int rails, std::size_t round) {
  if (piece.rail >= 0 && piece.rail < rails) return;
  throw BadInput("rails: expected rails from 0 to " + std::to_string(rails - 1) +
                 ", because the ranks share as many networks, found rail " + std::to_string(piece.rail) + " of " +
                 message_text(piece.from, piece.to, round));
}

}  // namespace

void check_rails(const RailLists& rails, const Schedule& schedule, std::span<const RoundPart> parts, int rank) {
  if (rails.size() != parts.size()) {
    throw BadInput("rails: expected a list for each of " + base::counted(parts.size(), "round") + ", found " +
                   std::to_string(rails.size()));
  }
  for (std::size_t r = 0; r < parts.size(); ++r) {
    for (const auto& [to, pieces] : pieces_from(rails[r], rank)) {
      const auto found = parts[r].to.find(to);
      if (found == parts[r].to.end()) {
        throw BadInput("rails: expected messages of the schedule, found " + message_text(rank, to, r) +
                       ", which it does not have");
      }
      std::int64_t bytes = 0;
      for (const Transfer* transfer : found->second) bytes += schedule.bytes(*transfer);
      check_message(pieces, bytes, r);
    }
  }
}

void assign_rails(Program& program, const RailLists& rails, int rank) {
  std::vector<std::vector<std::vector<RailPiece>>> uses(program.senders.size());
  std::vector<bool> assigned(program.senders.size());
  for (std::size_t r = 0; r < program.rounds.size(); ++r) {
    const auto pieces = pieces_from(rails[r], rank);
    for (const ProgramMessage& message : program.rounds[r].out) {
      const Sender& sender = program.senders[message.end];
      const auto found = pieces.find(sender.peer());
      const bool listed = found != pieces.end() && sender.rails() > 1;
      if (listed) {
        for (const RailAssignment& piece : found->second) check_rail(piece, sender.rails(), r);
        assigned[message.end] = true;
      }
      std::int64_t begin = 0;
      for (std::uint32_t f = message.first; f < message.last; ++f) {
        const std::int64_t end = begin + program.fragments[f].bytes;
        uses[message.end].push_back(listed ? within(found->second, begin, end) : std::vector<RailPiece>());
        begin = end;
      }
    }
  }
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (assigned[i]) program.senders[i].assign_rails(uses[i]);
  }
  program.rails_assigned = std::move(assigned);
}

}  // namespace onehop::detail
