// A `Machine` is the description of a computer as plain data: nested levels of processors with the links that join
// them. `simulate` (simulate.h) times a schedule on it. Every number carries its source.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onehop {

// How far a number can be trusted.
enum class Basis : std::uint8_t { published, measured, guessed };

[[nodiscard]] std::string_view to_string(Basis basis);
[[nodiscard]] Basis basis_from_string(std::string_view name);

// A number with its origin. An absent number is 0 without a source.
struct Figure {
  double value = 0;
  Basis basis = Basis::guessed;
  std::string source;  // a paper, a data sheet, or the command that measured it
  friend bool operator==(const Figure&, const Figure&) = default;
};

// Measured times of something by its bytes, with their origin. Between two points the logarithm of the time is linear
// in the logarithm of the bytes, so that steps between caches keep their places; below the first point the time is that
// of the first, and beyond the last it grows like the bytes. An absent table has no points.
struct TimeTable {
  struct Point {
    double bytes = 0;
    double seconds = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> points;  // the bytes ascend, the seconds do not descend
  Basis basis = Basis::guessed;
  std::string source;
  [[nodiscard]] bool empty() const { return points.empty(); }
  [[nodiscard]] double seconds(double bytes) const;  // of a table that is not empty
  friend bool operator==(const TimeTable&, const TimeTable&) = default;
};

// How the members of a level are joined.
//
// - all_to_all: a switch without limits of its own (NVSwitch, a full crossbar, shared memory). Only the links between
//   the members and the switch are shared.
// - mesh: every pair of members has a link of its own in each direction.
// - fat_tree: tiers of switches; `extents` lists the children per switch, lowest tier first, and `taper` the capacity
//   of the links above each tier, in units of what its children could use.
// - torus: `extents` lists the members per dimension; messages are routed dimension by dimension, the shorter way, and
//   upwards where both ways are as long.
// - dragonfly: `extents` is {members per router, routers per group, groups}; routes are minimal: at most one hop
//   inside the group of the sender, one between groups and one inside the group of the receiver.
enum class Routing : std::uint8_t { all_to_all, mesh, fat_tree, torus, dragonfly };

[[nodiscard]] std::string_view to_string(Routing routing);
[[nodiscard]] Routing routing_from_string(std::string_view name);

// One level of the hierarchy: what a message between two of its members costs. Members are units of the level below,
// or processors on the innermost level.
struct Level {
  std::string name;  // what one unit of the level is called: "package", "host", "rack", "system", ...
  Routing routing = Routing::all_to_all;
  std::vector<std::int64_t> extents;  // see Routing; the number of members is their product
  std::string topology;               // where the extents, links, interfaces and taper come from; may be empty
  Figure latency;      // seconds from the first byte sent to the first byte received between neighbours (LogGP's L)
  Figure hop_latency;  // seconds for every hop beyond the first; 0 if absent
  Figure overhead;     // seconds that a processor is busy with each message that it sends or receives (LogGP's o)
  Figure gap;          // least time in seconds between two messages of one processor (LogGP's g); 0 if absent
  Figure bandwidth;    // bytes per second of one link in one direction (1/G)
  // Measured times of a message between neighbours, from the sender's call to the receiver's return: of one that flows
  // alone, and of two that flow between the same members in opposite directions. What the first takes beyond overhead,
  // latency and overhead replaces bytes / bandwidth; half of the second is the work of a processor on each message.
  // Absent: messages flow at `bandwidth`. `both_ways` needs `one_way`.
  TimeTable one_way;
  TimeTable both_ways;
  // Measured times of two messages in opposite directions inside a collective operation, which passes them without a
  // plan. They include a rank's work on its own part of the data. Absent: as other messages.
  TimeTable in_collective;
  // Links of one member to its switch or router; on a torus, links in each direction of each dimension; on a mesh,
  // links to each other member. A processor of the member uses one of them for a message.
  std::int64_t links = 1;
  Figure injection;  // bytes per second that one member sends at most over all its links; 0: no limit of its own
  // Network interfaces of one member, which share `injection` equally: a message leaves through one of them. 0: the
  // member has no interfaces that schedules can choose from.
  std::int64_t interfaces = 0;
  std::vector<double> taper;  // fat trees only: one per tier but the last; 1 is full bisection
  Figure local_bandwidth;     // dragonflies only: bytes per second between two routers of a group in one direction
  Figure group_bandwidth;     // dragonflies only: bytes per second between two groups in one direction

  [[nodiscard]] std::int64_t members() const;
  friend bool operator==(const Level&, const Level&) = default;
};

struct Machine {
  std::string name;           // the name of its file, such as "mira"
  std::string title;          // one line for people
  std::vector<Level> levels;  // innermost first
  bool device = false;        // whether each processor is a card, on which circuits run in the passes of that engine
  Figure memory_bandwidth;    // bytes per second that one processor reads and writes in its memory
  Figure memory;              // bytes per processor
  // Seconds in which a processor copies contiguous bytes in its memory while all others do the same. Absent: copies
  // read and write at memory_bandwidth.
  TimeTable copies;
  // Seconds in which a processor exchanges two parts of its memory in place while all others do the same, by the bytes
  // of both parts together. Absent: as two copies of one part.
  TimeTable updates;
  // The same between arrays that two processors share, by the bytes that each of them reads and writes. Absent:
  // updates.
  TimeTable shared_updates;
  Figure packed_piece;  // seconds for each contiguous piece of a message that a processor gathers or scatters; 0: none
  TimeTable packed_pieces;  // the same by the bytes of a piece, up to the longest measured; replaces packed_piece
  Figure copied_piece;      // seconds for each contiguous piece that it copies inside its memory; 0 if absent
  Figure used_line;  // seconds to write a word of a cache line before and read it after an exchange; 0: not known
  // Real multiply-adds per second of one processor; 0 if they are not known.
  Figure multiply_adds_double;
  Figure multiply_adds_single;

  // Seconds to gather or scatter the pieces of a message. `pieces` is 0 for a contiguous one.
  [[nodiscard]] double packing_seconds(double bytes, double pieces) const;
  // Number of processors: the product of the members of all levels. Places are numbered with the innermost level
  // fastest, and within a level the first extent fastest.
  [[nodiscard]] std::int64_t processors() const;

  // Returns the part of this machine that a job with this many processors gets: inner levels whole, and of the first
  // level that suffices a box of its extents. Where the number is no multiple of an inner level's members, it takes as
  // many of them as divide it, if these are at least half. The box holds the fewest members that suffice; on a torus it
  // is as close to a cube as possible and has links around it (as partitions of BG/Q and Fugaku do), in a tree or a
  // dragonfly it fills the lowest tiers. Throws BadInput for a number that the machine does not have.
  [[nodiscard]] Machine job(std::int64_t processors) const;

  // Throws BadInput with the path of the first value that makes no sense ("levels[2].extents: ...").
  void check() const;

  // JSON form; from_json restores it exactly and is as strict as `check`. The TOML files of machines are read in Python
  // (onehop.machine), which hands them over as JSON.
  [[nodiscard]] std::string to_json(int indent = -1) const;
  [[nodiscard]] static Machine from_json(std::string_view text);

  friend bool operator==(const Machine&, const Machine&) = default;
};

}  // namespace onehop
