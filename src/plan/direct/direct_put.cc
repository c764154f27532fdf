#include "src/plan/direct/direct_put.h"

#include <algorithm>
#include <map>

#include "src/base/clock.h"

namespace onehop::detail {

namespace {

// Fragments whose pieces have fewer bytes than a line on average pass through slots: a slot moves their elements
// between the cores in few lines, an array in many. For longer pieces senders find out which is faster
// (adaptive_stores.h).
constexpr std::int64_t shortest_put_piece = 64;
// Shorter fragments pass through slots, which are as fast.
constexpr std::int64_t shortest_put = 4097;

// Whether `owner`, one of `rank` and `peer`, can let the other write into its arrays in a round. The same answer on
// both.
bool takes_puts(const RoundPart& part, const SharedArrays& shared, int rank, int peer, int owner) {
  if (part.steps || part.exchanged.contains(peer)) return false;
  return std::ranges::all_of((owner == rank ? part.from : part.to).at(peer), [&](const Transfer* transfer) {
    return transfer->codec == Codec::raw && transfer->combine == Combine::replace &&
           shared.holds(owner, transfer->to.array);
  });
}

// Walks through the destinations of a message with the cuts of its chunks, which hold whole elements.
class PutBuilder {
 public:
  PutBuilder(Program& program, StepBuilder& steps, const Transfers& transfers)
      : program_(program), steps_(steps), transfer_(transfers.begin()) {}

  // Adds the copies of the next fragment, unless its pieces are too short or differ between the two arrays.
  void add(ProgramFragment& fragment) {
    fragment.first_put = static_cast<std::uint32_t>(program_.puts.size());
    std::int64_t pieces = 0;
    bool direct = true;
    for (std::uint32_t c = fragment.first; c < fragment.last; ++c) {
      const ProgramCopy copy = copy_of(program_.chunks[c]);
      direct &= copy.direct;
      for (std::uint32_t i = copy.to_first; i < copy.to_last; ++i) pieces += runs_of(program_.steps[i].copy);
      program_.puts.push_back(copy);
    }
    direct &= fragment.bytes >= shortest_put && pieces * shortest_put_piece <= fragment.bytes;
    if (!direct) program_.puts.resize(fragment.first_put);
    fragment.last_put = static_cast<std::uint32_t>(program_.puts.size());
  }

 private:
  ProgramCopy copy_of(const ProgramChunk& chunk) {
    ProgramCopy copy;
    copy.from_first = chunk.first;
    copy.from_last = chunk.last;
    copy.bytes = chunk.end - chunk.begin;
    copy.to_first = steps_.count();
    for (std::int64_t left = copy.bytes; left > 0;) {
      const Place& to = (*transfer_)->to;
      const std::int64_t element_bytes = steps_.array(to).element_bytes;
      const std::int64_t last = std::min(to.slice.elements(), done_ + left / element_bytes);
      steps_.add(to, Combine::replace, done_, last);
      left -= (last - done_) * element_bytes;
      done_ = last;
      if (done_ < to.slice.elements()) continue;
      done_ = 0;
      ++transfer_;
    }
    copy.to_last = steps_.count();
    copy.direct = steps_.are_alike(copy);
    return copy;
  }

  Program& program_;
  StepBuilder& steps_;
  Transfers::const_iterator transfer_;
  std::int64_t done_ = 0;  // elements of this transfer
};

}  // namespace

void add_puts(Program& program, StepBuilder& steps, const std::vector<RoundPart>& parts, const SharedArrays& shared,
              int rank) {
  std::int64_t longest = 0;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    for (ProgramMessage& in : program.rounds[r].in) {
      const Receiver& receiver = program.receivers[in.end];
      const std::span fragments = std::span(program.fragments).subspan(in.first, in.last - in.first);
      const bool is_long = std::ranges::any_of(
          fragments, [](std::int64_t bytes) { return bytes >= shortest_put; }, &ProgramFragment::bytes);
      in.exposes = is_long && receiver.adaptive() && takes_puts(parts[r], shared, rank, receiver.peer(), rank);
      program.exposes |= in.exposes;
    }
    for (const ProgramMessage& out : program.rounds[r].out) {
      const Sender& sender = program.senders[out.end];
      const int peer = sender.peer();
      // Transfers that take turns consist of short pieces.
      if (!sender.adaptive() || out.in_turns || !takes_puts(parts[r], shared, rank, peer, peer)) continue;
      PutBuilder builder(program, steps, parts[r].to.at(peer));
      for (std::uint32_t f = out.first; f < out.last; ++f) {
        ProgramFragment& fragment = program.fragments[f];
        builder.add(fragment);
        if (fragment.first_put != fragment.last_put) longest = std::max(longest, fragment.bytes);
      }
    }
  }
  // About as long as it takes to pack what could have been put, so that at most half of the time is lost.
  constexpr double least = 1e-6;
  constexpr double bytes_per_second = 8e9;
  program.patience = least + static_cast<double>(longest) / bytes_per_second;
}

void put_directly(Program& program, std::uint32_t end, const ProgramFragment& fragment) {
  Sender& sender = program.senders[end];
  sender.begin_use(fragment.bytes, StoreTarget::array);
  const StoreFunction store = stores_for_pieces(sender.stores());
  const double begin = sender.times_use() ? base::steady_seconds() : 0;
  for (std::uint32_t p = fragment.first_put; p < fragment.last_put; ++p) {
    const ProgramCopy& copy = program.puts[p];
    for (std::uint32_t i = copy.from_first; i < copy.from_last; ++i) {
      const CopyStep& to = program.steps[copy.to_first + (i - copy.from_first)].copy;
      const CopyStep& from = program.steps[i].copy;
      store == nullptr ? copy_between(to, from) : copy_between(to, from, store);
    }
  }
  if (store != nullptr) finish_stores(sender.stores());
  if (sender.times_use()) sender.stored(base::steady_seconds() - begin);
  ++program.puts_done[end];
}

}  // namespace onehop::detail
