// Lays the messages of a program out: fragments, chunks, and the steps of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "onehop/schedule.h"
#include "src/plan/program/combine_order.h"
#include "src/plan/program/plan_dependencies.h"
#include "src/plan/program/plan_part.h"
#include "src/plan/program/plan_program.h"
#include "src/plan/program/step_builder.h"
#include "src/plan/program/wire_layout.h"
#include "src/plan/program/wire_turns.h"

namespace onehop::detail {

class MessageBuilder {
 public:
  // The arguments must outlive the builder.
  MessageBuilder(Program& program, const Schedule& schedule, StepBuilder& steps)
      : program_(program), schedule_(schedule), steps_(steps) {}

  // Adds a message through the sender or receiver `end`, all of whose transfers have elements. The first `exchanged` of
  // them are in exact exchange. Throws BadInput if an element does not fit in a slot.
  ProgramMessage outgoing(std::uint32_t end, const Transfers& transfers, const Turns& turns, std::size_t exchanged);
  ProgramMessage incoming(std::uint32_t end, const Transfers& transfers, const Turns& turns, std::size_t exchanged);

  // Adds the pieces of the last incoming message, which is the last one of the round, to the order, but for its
  // exchange.
  void keep_in_order(ProgramRound& round, const Transfers& transfers, std::size_t exchanged, CombineOrder& order) const;

  // Adds the copies inside the rank to the round, cut into small parts that are sorted by address: the two faces of a
  // periodic dimension touch the same cache lines. Those that `order` keeps are added to it.
  void copy_inside(ProgramRound& round, const RoundPart& part, CombineOrder& order);

  // The position at the end of each fragment of the program, in its message.
  [[nodiscard]] std::span<const MessagePosition> ends() const noexcept { return ends_; }
  // Bytes of the longest chunk or copy, and of the longest piece before it is encoded.
  [[nodiscard]] std::int64_t longest_chunk() const noexcept { return longest_chunk_; }
  [[nodiscard]] std::int64_t longest_numbers() const noexcept { return longest_numbers_; }

 private:
  // A piece of an incoming message, as a part of a chunk.
  struct Piece {
    std::size_t transfer = 0;  // index in the message
    ProgramChunk part;
  };

  ProgramMessage message(std::uint32_t end, const SlotRing& ring, const Transfers& transfers, const Turns& turns,
                         std::size_t exchanged, bool out);
  void add_fragment(const WireFragment& fragment, const Transfers& transfers, bool out);
  void add_chunk(const WireChunk& chunk, const Transfers& transfers, bool out);
  [[nodiscard]] bool fetches(const ProgramChunk& chunk) const;
  void add_piece(std::uint32_t first, const ArraySpec& spec, Codec codec, std::int64_t elements);

  Program& program_;
  const Schedule& schedule_;
  StepBuilder& steps_;
  std::vector<MessagePosition> ends_;
  std::vector<Piece> pieces_;  // of the last message
  std::int64_t longest_chunk_ = 0;
  std::int64_t longest_numbers_ = 0;
};

}  // namespace onehop::detail
