// Executes collectives. Every operation has up to two phases. In the reduce phase, ranks send parts of their sources to
// the ranks that reduce them. In the allgather phase, they send parts of their results (or sources) to the ranks that
// need them. Both phases work in chunks of one slot, and the phases of consecutive chunks overlap.
//
// Every operation begins with a header from every rank to every other, one cache line that describes the operation and
// carries short contributions. Each rank compares the headers with its own, and so detects a mismatch by itself.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/arrays.h"
#include "collectives/header.h"
#include "collectives/operation.h"
#include "collectives/shared_arrays.h"
#include "onehop/collectives/collectives.h"
#include "src/channel/staging.h"
#include "src/channel/store_decision.h"

namespace onehop::collectives::detail {

// Whether ranks access each other's arrays (shared_arrays.h), and whether each has one or two.
enum class SharedUse : std::uint8_t { none, two_arrays, in_place };

// A rank's state for operations of one kind and length. Rank 0 decides for all ranks and says in the header of an
// operation how to store the next one of its kind. All ranks then store alike, so the time of an operation measures one
// kind.
struct StoreChoice {
  struct Key {
    Header::Kind kind = Header::Kind::barrier;
    ReduceAlgorithm algorithm = ReduceAlgorithm::automatic;
    Codec codec = Codec::raw;
    int width = 0;  // of the number of bytes that go to each rank, in bits
    SharedUse shared = SharedUse::none;
    friend bool operator==(const Key&, const Key&) = default;
  };
  // `usual`: the kind of stores that the tuning names.
  StoreChoice(const Key& of, StoreKind usual);

  Key key;
  StoreKind now;
  StoreKind next;
  StoreDecision decision;  // used on rank 0 only
  std::uint64_t operations = 0;
};

class HostStages;
class Relay;
struct Summary;

inline constexpr std::int64_t area_gap = 64;  // bytes between two chunks of a shared area

struct Exchange {
  Exchange(const Group& of, const CollectivesOptions& options);

  // Throws BadInput if an operation runs.
  void check_idle() const {
    if (running != nullptr && !broken) [[unlikely]]
      throw_busy();
  }
  // Requires that `arrays` is set.
  void start(const Operation& operation);
  void finish();
  // The entry of `choices` for operations like this one, or -1. The number may differ from rank to rank.
  [[nodiscard]] int choice_for(const Operation& operation, std::int64_t bytes_to_each,
                               SharedUse shared = SharedUse::none);
  // Whether ranks share what they send to all others. With one other rank, a slot is as good.
  [[nodiscard]] bool shares_gathers() const noexcept { return table.in_memory() && size > 2; }

  Group group;
  int rank;
  int size;
  std::int64_t slot_bytes = 0;
  // Whether the chunks of an operation are as few as possible and of about the same length (set_chunk).
  bool is_pair_over_mpi = false;
  std::int64_t staging_bytes = 0;  // memory behind the paths to this rank
  // How much of a contribution fits behind the header in the first line, and in all lines of a header.
  std::size_t first_line_bytes = Line::payload_bytes;
  std::size_t most_line_bytes = in_line_bytes;
  ReduceTable table;                  // rank 0's
  bool apart = false;                 // all ranks are on hosts of their own
  std::shared_ptr<HostStages> hosts;  // for operations by hosts; null where there are none
  std::shared_ptr<Relay> relay;       // then takes the place of headers from every rank to every other
  Arrays arrays;
  // For the operations that have been prepared. Never reallocated: one may run while another thread prepares one.
  std::vector<StoreChoice> choices;
  CollectivesCounters counters;
  const Operation* running = nullptr;
  bool broken = false;

 private:
  [[noreturn]] static void throw_busy();
  struct Peer {
    int rank = 0;
    Sender line_out;
    std::array<Sender, more_lines> more_out;
    Sender reduce_out;
    Sender gather_out;
    Receiver line_in;
    std::array<Receiver, more_lines> more_in;
    Receiver reduce_in;
    Receiver gather_in;
    std::int64_t contributed = 0;             // chunks of the running operation's first phase
    std::uint64_t shared = 0;                 // chunks that this peer has shared so far
    bool sent_block = false;                  // whether start() has sent the first chunk of a block that is only moved
    std::array<std::size_t, 2> passed_out{};  // chunks of Operation::forwarding
    std::array<std::size_t, 2> passed_in{};
  };

  // Allocates the memory for long operations before the first of them. If that fails, this rank sends a refusal in
  // place of its header, so that all ranks notice.
  void back_staging();
  void send_headers();
  // Records the operation, from its start, in the trace of the run. Which bytes went to which rank is not counted, so
  // they are taken to be the same for all.
  void trace_end();
  void start_phases();
  void finish_phases();
  // Polls the first lines of all peers for a moment, so that lines that arrive at the same time are not awaited one by
  // one.
  void look_ahead() noexcept;
  void check_headers();
  void check(int peer, const Header& theirs) {
    if (theirs == running->header) [[likely]]
      return;
    throw_unequal(peer, theirs);
  }
  [[noreturn]] void throw_unequal(int peer, const Header& theirs);
  // Throws Mismatch: each rank has compared all headers with its own, or added up the same numbers of all headers, so
  // that if one rank found a difference, all did.
  [[noreturn]] void disagree(const std::string& what);
  [[noreturn]] void disagree_about_lengths(const std::string& difference);
  // With several hosts (exchange_relay.cc).
  void start_relayed();
  void finish_relayed();
  void finish_by_host();
  // Where ranks pass blocks on (exchange_forward.cc).
  void start_forwarded();
  void finish_forwarded();
  [[nodiscard]] bool may_pass_out(Peer& peer, std::size_t phase);
  [[nodiscard]] bool may_pass_in(Peer& peer, std::size_t phase) const;
  void pass_out(Peer& peer, std::size_t phase);
  void pass_in(Peer& peer, std::size_t phase);
  [[nodiscard]] int forwarding_peer() const;
  [[nodiscard]] const std::byte* whole_source();
  template <class Make>
  void make_whole_result(const Make& make);
  void check(const Summary& all);
  [[nodiscard]] std::string find_difference();
  void write_lengths(std::byte* line, int peer) const;
  // "rank 0 sends 24 bytes to rank 1, which expects 16", or an empty string.
  [[nodiscard]] std::string difference_of(const BlockLengths& theirs, int peer) const;
  // After a mismatch, which every rank has seen: receives and drops what was sent for the abandoned operation.
  void settle();
  void start_in_line();
  void finish_in_line();
  [[nodiscard]] const std::byte* received_in_lines(Peer& peer, const std::byte* payload, std::size_t bytes);
  void hint(std::byte* line) const;
  void take_hint(std::byte hint);
  void choose_stores(double us);
  [[nodiscard]] static bool is_timed(StoreChoice& choice);
  void send_contribution(Peer& peer);
  // Sends what needs no data of other ranks, as far as slots are free, so that a short operation takes one way only.
  void send_ahead();
  // Sends the chunks below `limit` as far as slots are free.
  void send_contributions_ahead(std::int64_t limit);
  // After the headers have shown that all ranks run this operation.
  void run_phases();
  void reduce(std::int64_t number);
  void reduce_in_pieces(const Range& range, std::byte* result);
  // With a codec (exchange_codec.cc).
  void send_encoded(const Range& range, std::byte* slot);
  void reduce_encoded(const Range& range, std::byte* result);
  void reduce_block(std::int64_t elements, std::byte* wire, std::byte* result);
  [[nodiscard]] std::int64_t wire_bytes(const Range& range) const;
  [[nodiscard]] const std::byte* gathered(const Range& range);
  void send_gather(Peer& peer, std::int64_t number);
  // Stores a chunk in the shared area and tells all peers.
  void share(std::int64_t number);
  // Waits until the next chunk can be stored for all peers, and sets `gather_to_`.
  void open_gather();
  // Publishes the chunk that has been stored to `gather_to_`.
  void publish_gather(std::int64_t bytes);
  void receive_gather(Peer& peer, std::int64_t number);
  void copy_own() const;
  // Where all ranks share the arrays (shared_arrays.cc).
  void find_places();
  void take_places(int peer, const std::byte* line);
  void run_shared();

  std::mutex preparing_;  // guards the length of `choices`
  std::vector<Peer> peers_;
  std::vector<const std::byte*> sources_;  // the contributions to reduce, by rank
  std::vector<const std::byte*> shifted_;  // the same, advanced to the current piece
  bool gather_with_reduce_ = false;        // the chunk just reduced has been sent to the peers piece by piece
  // Where the chunk for all peers is stored: into a slot of each, or once into this rank's area, which has as many
  // chunks as a path has slots. Chunk n of the area takes the place of chunk n - slots, and each peer has read that one
  // when its path has a free slot, as every chunk of the area is also a message to each peer.
  std::vector<std::byte*> gather_to_;
  SharedAreas areas_;
  std::uint64_t shared_ = 0;         // chunks that this rank has shared so far
  std::vector<std::byte> gathered_;  // a chunk of the source that lies in several arrays
  std::vector<std::byte> reduced_;   // a chunk or piece of the result
  std::vector<std::byte> in_lines_;  // contributions received in header lines, by rank
  std::vector<std::byte> together_;  // several arrays in one piece, for operations that need that
  Places own_places_;
  PlacesOnWire places_;                  // of this rank's arrays in the running operation
  std::vector<PlacesOnWire> places_of_;  // and of the other ranks' arrays
  MappedArrays mapped_;
  std::vector<std::byte*> results_;      // of the other ranks, in memory
  bool all_share_ = false;               // as far as is known
  bool in_place_ = false;                // if the arrays are shared
  int choice_ = -1;                      // index in `choices` for the running operation; -1: none
  StoreKind stores_ = StoreKind::plain;  // of the running operation
  bool streams_ = false;                 // the running operation stores its result past the caches
  double started_us_ = 0;                // duration of its start()
  bool times_ = false;                   // whether the running operation is timed; on rank 0 only
  int slots_ = 0;
  bool backed_ = false;            // the memory for long operations is allocated,
  bool all_backed_ = false;        // and that of all peers, as their headers for a long operation have shown
  std::size_t checked_ = 0;        // peers whose header equals that of the running operation
  std::int64_t traced_from_ = 0;   // when the running operation began
  std::int64_t traced_bytes_ = 0;  // that the earlier ones sent
  // The last operation was a mismatch. Its headers had this many lines; 0: one line, with the contributions sent
  // separately.
  bool disagreed_ = false;
  int disagreed_lines_ = 0;
  bool abandoned_shares_ = false;  // whether its block, if sent, went through the shared area
};

}  // namespace onehop::collectives::detail
