// `simulate` computes how long a schedule takes on a machine (machine.h), from pure data and without a network.
//
// The model. A processor is busy for the overhead o of the level with each message that it sends or receives, and
// begins messages at least the gap g apart. A message then flows at the rate that it gets: all messages that are under
// way share the links on their routes max-min fairly, and none flows faster than one link. Its last byte arrives the
// latency of the route later. Within a round every rank starts its messages in order, copies what stays on the rank,
// computes, and then takes what has arrived. It enters the next round when it has received everything and its own
// messages have left; ranks do not wait for each other otherwise. docs/reference/simulate.md describes details.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "onehop/machine/machine.h"
#include "onehop/machine/rails.h"
#include "onehop/patterns.h"
#include "onehop/schedule.h"

namespace onehop {

struct Message {
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
  int rail = -1;  // the interface or link that it leaves through; -1: rank after rank and message after message in turn
  // Contiguous pieces that the sender gathers and that the receiver scatters; 0: one piece.
  std::int64_t pieces_sent = 0;
  std::int64_t pieces_received = 0;
  friend bool operator==(const Message&, const Message&) = default;
};

// What moves in one round: a list of messages, or a regular pattern that needs no list.
struct TrafficRound {
  enum class Kind : std::uint8_t {
    list,      // `messages`
    everyone,  // every rank sends `bytes` to every other one, the next higher rank first
    bits,      // every rank sends `bytes` to each rank whose number differs in some of `bits` and in no other bit
  };
  Kind kind = Kind::list;
  std::vector<Message> messages;  // those of one sender in the order in which it sends them
  std::int64_t bytes = 0;
  std::vector<int> bits;                        // ascending
  std::vector<std::int64_t> local_bytes;        // copied inside each rank: one number per rank, one for all, or none
  std::vector<std::int64_t> local_pieces = {};  // contiguous pieces that the copies inside each rank have, likewise
  // The local bytes are read and written where they are, half of them in the place of the other half, as in the
  // exchange of arrays that ranks share.
  bool local_in_place = false;
  bool shared = false;                    // with `local_in_place`: the other half is in the array of another rank
  bool collective = false;                // a collective operation passes these messages, without a plan
  std::vector<int> schedule_rounds = {};  // the rounds of the schedule that it stands for
  // For `list` and `bits`: every rank mixes its messages if it has more than 16, so that each part of the time in which
  // it starts them holds an equal part of every kind. `everyone` is always mixed.
  bool mixed = false;
  friend bool operator==(const TrafficRound&, const TrafficRound&) = default;
};

// The messages of a schedule, without their contents.
struct Traffic {
  std::string name;
  int ranks = 1;
  std::vector<TrafficRound> rounds;
  std::int64_t rank_bytes = 0;  // of the arrays of the rank that has the most; 0 if they are not known

  // The same traffic with every message listed. Throws BadInput if a round has more than `max_listed_messages`.
  [[nodiscard]] Traffic listed() const;
  // Throws BadInput for a message between ranks that do not exist, or lists of another length than there are ranks.
  void check() const;
  friend bool operator==(const Traffic&, const Traffic&) = default;
};

inline constexpr std::int64_t max_listed_messages = std::int64_t{1} << 22;

// Everything that a rank sends to another in one round is one message, as in a plan. Every rank begins with the next
// higher rank; in a permutation of bits, with the lowest bit. A round whose messages read no array that the round
// before has written is joined with it, because plans do not wait between such rounds. Pieces are those of the slices;
// permutations of bits, which plans do not pack piece by piece, have none.
[[nodiscard]] Traffic traffic_of(const Schedule& schedule);

// The traffic of patterns, without building their schedules: ranks may be many. The segments of an all-reduce are taken
// to be equal; in the schedule they differ by up to 64 elements.
[[nodiscard]] Traffic allreduce_traffic(const AllReduceSpec& spec);
// The traffic of an all-reduce by host: hosts[r] is the host of rank r, and `piece_bytes` the length of the pieces, of
// which one is reduced inside the hosts while another is between them. At most 16 pieces are taken.
[[nodiscard]] Traffic by_host_traffic(const AllReduceSpec& spec, std::span<const int> hosts, std::int64_t piece_bytes);
// The traffic of a broadcast of rank 0, by host: hosts pass parts on to each other, in so many chunks each, or the
// whole from each host to the next (`in_chain`). With 0 chunks it goes straight to every rank.
[[nodiscard]] Traffic broadcast_traffic(std::span<const int> hosts, std::int64_t bytes, std::int64_t chunks,
                                        bool in_chain = false);
[[nodiscard]] Traffic permutation_traffic(const PermuteBitsSpec& spec);
// The same permutation in arrays that all ranks share: nobody sends, and every rank reads and writes its share of the
// cache lines (64 bytes) in which elements move.
[[nodiscard]] Traffic shared_permutation_traffic(const PermuteBitsSpec& spec);

// The messages of every round that leave their host, as rails.h assigns them. hosts[r] is the host of rank r.
[[nodiscard]] std::vector<std::vector<RailAssignment>> assign_rails(const Traffic& traffic, std::span<const int> hosts,
                                                                    const RailOptions& options);

// The same traffic, listed, with messages or pieces of them on the rails of `assignments`. There is one list for each
// round of the traffic, or for each round of the schedule that it was made from. A piece is a message of its own.
// Messages without an assignment keep their rails; with `hosts` (the host of every rank), only those inside a host may
// be without one, so that a list that lost an entry is noticed.
//
// Throws BadInput unless the rounds agree, the pieces of a message add up to it, and no assignment is missing.
[[nodiscard]] Traffic on_rails(const Traffic& traffic, std::span<const std::vector<RailAssignment>> assignments,
                               std::span<const int> hosts = {});

struct SimulateOptions {
  // The place of every rank on the machine. Empty: rank r has place r on the part of the machine that a job with these
  // ranks gets (`Machine::job`).
  std::vector<std::int64_t> places;
  // Seconds that every rank computes between start and finish: one number for all rounds, one per round, or none.
  std::vector<double> compute;
  // Above 0, messages are packed and unpacked in chunks of this size, at the processor's memory bandwidth. This
  // overlaps with the flow, except for the first and last chunk. 0: the bandwidth of the machine's levels includes
  // packing.
  std::int64_t chunk_bytes = 0;
  // Above 0, a longer message moves through `slots` slots of this size, of which each is free again when its contents
  // have arrived and the receiver's flag has come back. 0: slots limit nothing.
  std::int64_t slot_bytes = 0;
  int slots = 2;
  bool contention = true;  // false: messages do not share links; each flows at the bandwidth of one link
  // Rates are computed again at the latest when the time since the round began has grown by this fraction; with few
  // messages at every change.
  double accuracy = 0.01;
  // Called now and then with the fraction that is done; the simulation ends with an Error when it returns false.
  std::function<bool(double)> progress = {};
};

// The load of one link, switch stage or interface.
struct LinkLoad {
  std::string name;
  std::string level;
  double bytes = 0;
  double bandwidth = 0;                                               // bytes per second
  std::int64_t alike = 1;                                             // links with the same load, of which this is one
  [[nodiscard]] double seconds() const { return bytes / bandwidth; }  // the shortest time that the load takes
};

struct SimulatedRound {
  double seconds = 0;  // from the end of the round before on the slowest rank to the end on the slowest rank
  std::int64_t messages = 0;
  double bytes = 0;
  std::vector<int> schedule_rounds;
};

// What one rank does in one round, in seconds since the beginning of the schedule.
struct RankSpan {
  double begin = 0;
  double posted = 0;    // all messages are started
  double computed = 0;  // local copies and computing are done
  double end = 0;
};

struct Simulation {
  std::string schedule;
  std::string machine;
  int ranks = 0;
  double seconds = 0;
  std::vector<SimulatedRound> rounds;
  std::vector<LinkLoad> links;  // busiest first
  struct LevelBytes {
    std::string level;
    double bytes = 0;
  };
  std::vector<LevelBytes> bytes_by_level;  // bytes of messages between members of the level
  // timelines[i][k]: round k of the ranks like `timeline_ranks[i]`. Where the traffic is symmetric, one rank stands for
  // many.
  std::vector<int> timeline_ranks;
  std::vector<std::vector<RankSpan>> timelines;
  double seconds_to_simulate = 0;
  bool by_symmetry = false;  // some round was computed without listing its messages

  // `max_links` and `max_timelines` limit the lists.
  [[nodiscard]] std::string to_json(int indent = -1, int max_links = 100, int max_timelines = 64) const;
};

// Throws BadInput if the machine has too few processors or too little memory for the arrays of a rank, a place is used
// twice or does not exist, or a round has too many messages to list and no symmetry.
[[nodiscard]] Simulation simulate(const Traffic& traffic, const Machine& machine, const SimulateOptions& options = {});
[[nodiscard]] Simulation simulate(const Schedule& schedule, const Machine& machine,
                                  const SimulateOptions& options = {});

}  // namespace onehop
