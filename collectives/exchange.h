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
#include <span>
#include <vector>

#include "collectives/header.h"
#include "collectives/reduce.h"
#include "onehop/collectives/collectives.h"
#include "onehop/store_decision.h"

namespace onehop::collectives::detail {

// Elements [first, last) of an array.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  [[nodiscard]] std::int64_t elements() const noexcept { return last - first; }
};

// A rank's state for operations of one kind and length. Rank 0 decides for all ranks and says in the header of an
// operation how to store the next one of its kind. All ranks then store alike, so the time of an operation measures one
// kind.
struct StoreChoice {
  StoreKind now = StoreKind::nontemporal;
  StoreKind next = StoreKind::nontemporal;
  // Used on rank 0 only.
  StoreDecision decision{StoreKind::nontemporal, StoreKind::plain};
  std::uint64_t operations = 0;
};

class HostReduction;
class HostStages;

// A prepared operation. Ranges have an entry for every rank.
struct Operation {
  Header header;
  std::int64_t element_bytes = 1;
  std::int64_t source_elements = 0;
  std::int64_t result_elements = 0;
  std::int64_t chunk = 0;  // elements
  StoreKind stores = StoreKind::plain;
  int choice = -1;                         // index in Exchange::choices, which then gives the store kind; -1: none
  bool streams = false;                    // the result is stored non-temporally, because the caches cannot hold it
  bool encoded = false;                    // both phases encode the data that they send
  bool adds = false;                       // the operation is a sum or mean of float32
  std::shared_ptr<HostReduction> by_host;  // takes the place of both phases; null: none
  int lines = 0;                           // cache lines of the header if the whole contribution travels in them
  // Whether source and result may share memory. Element `in_place_at_source` of the source is then element
  // `in_place_at_result` of the result.
  bool in_place = false;
  std::int64_t in_place_at_source = 0;
  std::int64_t in_place_at_result = 0;

  // Reduce phase: the range of this rank's source that goes to each rank. This rank reduces its own range, and stores
  // it from `reduced_at` on in the result.
  bool reduces = false;
  ReduceFunction reduce = nullptr;
  ReduceFunction reduce_wide = nullptr;  // of decoded numbers
  std::vector<Range> contribute;
  std::int64_t reduced_at = 0;

  // Allgather phase: the range of this rank's result (`gathers_result`) or source that goes to each rank, and the range
  // of the result in which the data of each rank is stored. This rank copies its own ranges.
  bool gathers = false;
  bool gathers_result = false;
  std::vector<Range> gather_send;
  std::vector<Range> gather_receive;

  // Number of chunks of the longest range of each phase.
  std::int64_t reduce_chunks = 0;
  std::int64_t gather_chunks = 0;

  [[nodiscard]] std::int64_t chunks(const Range& range) const noexcept {
    return (range.elements() + chunk - 1) / chunk;
  }
  [[nodiscard]] Range part(const Range& range, std::int64_t number) const noexcept {
    const std::int64_t first = range.first + number * chunk;
    return {first, first + chunk < range.last ? first + chunk : range.last};
  }
};

// The memory of an operation: one source and one result, or several arrays that the operation treats as one contiguous
// array.
class Arrays {
 public:
  void set(const std::byte* source, std::byte* result, std::int64_t element_bytes);
  void set(std::span<const Part> parts, std::int64_t element_bytes);

  // Calls visit(source, result, bytes) for each piece of a range.
  template <class Visit>
  void for_each(const Range& range, Visit&& visit) const {
    if (begins_.empty()) {
      const std::int64_t at = range.first * element_bytes_;
      if (range.elements() > 0) visit(source_ + at, result_ + at, range.elements() * element_bytes_);
      return;
    }
    std::int64_t first = range.first;
    for (std::size_t i = find(first); first < range.last; ++i) {
      const Part& part = parts_[i];
      const std::int64_t end = begins_[i] + part.elements < range.last ? begins_[i] + part.elements : range.last;
      const std::int64_t at = (first - begins_[i]) * element_bytes_;
      if (end > first) visit(part.source + at, part.result + at, (end - first) * element_bytes_);
      first = end > first ? end : first;
    }
  }

  // The start of a range that lies in one array, else null.
  [[nodiscard]] const std::byte* source(const Range& range) const;
  [[nodiscard]] std::byte* result(const Range& range) const;

 private:
  [[nodiscard]] std::size_t find(std::int64_t element) const;
  [[nodiscard]] bool in_one_piece(const Range& range, std::size_t part) const;

  std::int64_t element_bytes_ = 1;
  const std::byte* source_ = nullptr;
  std::byte* result_ = nullptr;
  std::vector<Part> parts_;
  std::vector<std::int64_t> begins_;  // of the parts; empty: one source and one result
};

struct Exchange {
  Exchange(const Group& of, const CollectivesOptions& options);

  // Throws BadInput if an operation runs.
  void check_idle() const;
  // Requires that `arrays` is set.
  void start(const Operation& operation);
  void finish();
  // The entry of `choices` for all-reduces like this one, or -1.
  [[nodiscard]] int choice_for(const Operation& operation, std::int64_t bytes_to_each) const;

  Group group;
  int rank;
  int size;
  std::int64_t slot_bytes = 0;
  std::int64_t staging_bytes = 0;     // memory behind the paths to this rank
  ReduceTable table;                  // rank 0's
  std::shared_ptr<HostStages> hosts;  // for reductions by hosts; null where there are none
  Arrays arrays;
  std::vector<StoreChoice> choices;  // for all there can be
  CollectivesCounters counters;
  const Operation* running = nullptr;
  bool broken = false;

 private:
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
    std::int64_t contributed = 0;  // chunks of the running operation's first phase
    bool sent_block = false;       // whether start() has sent the first chunk of a block that is only moved
  };

  // Allocates the memory for long operations before the first of them. If that fails, this rank sends a refusal in
  // place of its header, so that all ranks notice.
  void back_staging();
  void send_headers();
  // Polls the first lines of all peers for a moment, so that lines that arrive at the same time are not awaited one by
  // one.
  void look_ahead() noexcept;
  void check_headers();
  void check(const Peer& peer, const Header& theirs);
  // After a mismatch, which every rank has seen: receives and drops what was sent for the abandoned operation.
  void settle();
  void start_in_line();
  void finish_in_line();
  [[nodiscard]] const std::byte* received_in_lines(Peer& peer, std::size_t bytes);
  void hint(std::byte* line) const;
  void take_hint(std::byte hint);
  void choose_stores(double us);
  [[nodiscard]] static bool is_timed(StoreChoice& choice);
  void send_contribution(Peer& peer);
  // Sends the chunks below `limit` as far as slots are free.
  void send_ahead();
  void send_contributions_ahead(std::int64_t limit);
  void reduce(std::int64_t number);
  void reduce_in_pieces(const Range& range, std::byte* result);
  // With a codec (exchange_codec.cc).
  void send_encoded(const Range& range, std::byte* slot);
  void reduce_encoded(const Range& range, std::byte* result);
  void reduce_block(std::int64_t elements, std::byte* wire, std::byte* result);
  void finish_gather_with_reduce(std::int64_t bytes);
  [[nodiscard]] std::int64_t wire_bytes(const Range& range) const;
  [[nodiscard]] const std::byte* gathered(const Range& range);
  void send_gather(Peer& peer, std::int64_t number);
  void receive_gather(Peer& peer, std::int64_t number);
  void copy_own() const;
  void run_by_host();

  std::vector<Peer> peers_;
  std::vector<const std::byte*> sources_;  // the contributions to reduce, by rank
  std::vector<const std::byte*> shifted_;  // the same, advanced to the current piece
  bool gather_with_reduce_ = false;        // the chunk just reduced has been sent to the peers piece by piece
  std::vector<std::byte> gathered_;        // a chunk of the source that lies in several arrays
  std::vector<std::byte> reduced_;         // a chunk or piece of the result
  std::vector<std::byte> in_lines_;        // contributions received in header lines, by rank
  StoreKind stores_ = StoreKind::plain;    // of the running operation
  double started_us_ = 0;                  // duration of its start()
  bool times_ = false;                     // whether the running operation is timed; on rank 0 only
  int slots_ = 0;
  bool backed_ = false;      // the memory for long operations is allocated
  std::size_t checked_ = 0;  // peers whose header equals that of the running operation
  // The last operation was a mismatch. Its headers had this many lines; 0: one line, with the contributions sent
  // separately.
  bool disagreed_ = false;
  int disagreed_lines_ = 0;
};

}  // namespace onehop::collectives::detail
