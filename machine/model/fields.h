// The figures and tables of machines: their names in files and in Python, and what they are.
#pragma once

#include <cstdint>

#include "onehop/machine/machine.h"

namespace onehop::detail {

// The range of a number. An optional one is at least 0 where it is given.
enum class Need : std::uint8_t { positive, not_negative, optional };

template <class Owner>
struct FigureField {
  const char* name;
  Figure Owner::* member;
  Need need;
  const char* meaning;
};

template <class Owner>
struct TableField {
  const char* name;
  TimeTable Owner::* member;
  const char* meaning;
};

inline constexpr FigureField<Level> level_figures[] = {
    {"latency", &Level::latency, Need::not_negative,
     "Seconds between neighbours, from the first byte sent to the first received."},
    {"hop_latency", &Level::hop_latency, Need::optional, "Seconds for every hop beyond the first."},
    {"overhead", &Level::overhead, Need::not_negative,
     "Seconds that a processor is busy with each message it sends or receives."},
    {"gap", &Level::gap, Need::optional, "Least seconds between two messages of one processor."},
    {"bandwidth", &Level::bandwidth, Need::positive, "Bytes per second of one link in one direction."},
    {"injection", &Level::injection, Need::optional,
     "Bytes per second that one member sends at most over all its links."},
    {"local_bandwidth", &Level::local_bandwidth, Need::optional,
     "Bytes per second between two routers of a dragonfly's group in one direction."},
    {"group_bandwidth", &Level::group_bandwidth, Need::optional,
     "Bytes per second between two groups of a dragonfly in one direction."}};

inline constexpr TableField<Level> level_tables[] = {
    {"one_way", &Level::one_way, "Times of a message that flows alone."},
    {"both_ways", &Level::both_ways,
     "Times of two messages that flow between the same members in opposite directions."},
    {"in_collective", &Level::in_collective,
     "Times of two short messages in opposite directions inside a collective operation."}};

inline constexpr FigureField<Machine> machine_figures[] = {
    {"memory_bandwidth", &Machine::memory_bandwidth, Need::positive, "Bytes per second of one processor's memory."},
    {"memory", &Machine::memory, Need::positive, "Bytes of memory per processor."},
    {"packed_piece", &Machine::packed_piece, Need::optional,
     "Seconds for each contiguous piece of a message that a processor gathers or scatters."},
    {"copied_piece", &Machine::copied_piece, Need::optional,
     "Seconds for each contiguous piece that a processor copies inside its memory."},
    {"used_line", &Machine::used_line, Need::optional,
     "Seconds to write a word of a cache line before and read it after an exchange; 0 if not known."},
    {"multiply_adds_double", &Machine::multiply_adds_double, Need::optional,
     "Real multiply-adds per second of one processor in double precision; 0 if they are not known."},
    {"multiply_adds_single", &Machine::multiply_adds_single, Need::optional,
     "Real multiply-adds per second of one processor in single precision; 0 if they are not known."}};

inline constexpr TableField<Machine> machine_tables[] = {
    {"copies", &Machine::copies, "Times in which a processor copies in its memory."},
    {"updates", &Machine::updates,
     "Times in which a processor exchanges two parts of its memory in place, by the bytes of both."},
    {"shared_updates", &Machine::shared_updates,
     "Times in which two processors exchange parts of arrays that they share, by the bytes of each."},
    {"packed_pieces", &Machine::packed_pieces,
     "Seconds for each contiguous piece of a message, by the bytes of the piece."}};

}  // namespace onehop::detail
