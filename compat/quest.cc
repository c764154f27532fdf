// The network of QuEST's communication layer over a mailbox (shared/mailbox.h). The gate determines which ranks
// exchange data. Ranks whose amplitudes it leaves alone take no part, but opening a channel is collective, so channels
// cannot be opened on demand.
#include "compat/quest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compat/shared/boundary.h"
#include "compat/shared/collectives.h"
#include "compat/shared/memory.h"
#include "onehop/error.h"
#include "onehop/group.h"

using onehop::BadInput;
using onehop::Group;
using onehop::compat::check_memory;
using onehop::compat::check_reach;
using onehop::compat::checked_span;
using onehop::compat::Collectives;
using onehop::compat::guarded;
using onehop::compat::Layout;
using onehop::compat::Mailbox;
using onehop::compat::Message;

namespace {

constexpr std::uint32_t collective_tag = 0;
constexpr std::uint32_t pair_tag = 1;
constexpr std::size_t sum_block = 8192;  // how many values of each rank are summed at a time

// A message with its own layout.
struct Parcel {
  Layout layout;
  Message message;

  Parcel(int peer, std::uint32_t tag, const void* bytes, std::size_t length) : layout(length) {
    message.peer = peer;
    message.tag = tag;
    message.layout = &layout;
    message.exact = true;
    // The bytes of a sent message are only read.
    message.base = const_cast<std::byte*>(static_cast<const std::byte*>(bytes));
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
};

struct Network {
  Mailbox mailbox;
  Collectives everybody;
  std::list<Parcel> sent;  // some may still be under way

  explicit Network(const Group& group) : mailbox(group), everybody(mailbox, collective_tag) {}
};

struct Connection {
  bool opened = false;
  int rank = 0;
  int ranks = 1;
  std::unique_ptr<Network> network;
};

Connection& connection() {
  static Connection the_connection;
  return the_connection;
}

Network& network() {
  if (connection().network == nullptr) {
    throw BadInput(std::string("expected connected ranks, found a connection that ") +
                   (connection().opened ? "onehop_quest_close has closed" : "onehop_quest_open has not opened yet"));
  }
  return *connection().network;
}

void check_rank(int rank) {
  if (rank >= 0 && rank < connection().ranks) return;
  throw BadInput("expected a rank from 0 to " + std::to_string(connection().ranks - 1) + ", found " +
                 std::to_string(rank));
}

void check_partner(int rank) {
  check_rank(rank);
  if (rank == connection().rank) throw BadInput("expected another rank, found this one, " + std::to_string(rank));
}

void check_apart(const void* send, const void* receive, std::size_t bytes) {
  const auto one = reinterpret_cast<std::uintptr_t>(send);
  const auto other = reinterpret_cast<std::uintptr_t>(receive);
  if (one < other + bytes && other < one + bytes) {
    throw BadInput("expected memories that do not overlap, found two of " + std::to_string(bytes) +
                   " bytes which are " + std::to_string(one < other ? other - one : one - other) + " bytes apart");
  }
}

void check_parts(std::span<const std::size_t> begins, std::span<const std::size_t> bytes, std::size_t one,
                 std::size_t other) {
  const bool apart = begins[one] < begins[other] ? bytes[one] <= begins[other] - begins[one]
                                                 : bytes[other] <= begins[one] - begins[other];
  if (apart || bytes[one] == 0) return;
  throw BadInput("expected parts that do not overlap, found those of rank " + std::to_string(one) + " and rank " +
                 std::to_string(other));
}

void wait_until_gone() {
  for (const Parcel& parcel : network().sent) network().mailbox.wait(parcel.message);
  network().sent.clear();
}

void meet() {
  wait_until_gone();
  network().everybody.barrier();
}

void combine(std::byte* all, std::span<const std::size_t> begins, std::span<const std::size_t> bytes) {
  Mailbox& mailbox = network().mailbox;
  const auto me = static_cast<std::size_t>(mailbox.rank());
  std::list<Parcel> parcels;
  for (std::size_t other = 0; other < begins.size(); ++other) {
    if (other == me) continue;
    const int peer = static_cast<int>(other);
    if (bytes[other] > 0)
      mailbox.receive(parcels.emplace_back(peer, collective_tag, all + begins[other], bytes[other]).message);
    if (bytes[me] > 0) mailbox.send(parcels.emplace_back(peer, collective_tag, all + begins[me], bytes[me]).message);
  }
  for (const Parcel& parcel : parcels) mailbox.wait(parcel.message);
}

template <class Real>
void sum(std::span<Real> values) {
  while (!values.empty()) {
    const std::span<Real> block = values.first(std::min(values.size(), sum_block));
    const std::span<const std::byte> everybodys = network().everybody.gather(std::as_bytes(block));
    std::memcpy(block.data(), everybodys.data(), block.size_bytes());
    for (std::size_t at = block.size_bytes(); at < everybodys.size(); at += sizeof(Real) * block.size()) {
      for (std::size_t i = 0; i < block.size(); ++i) {
        Real value = 0;
        std::memcpy(&value, everybodys.data() + at + i * sizeof(Real), sizeof value);
        block[i] += value;
      }
    }
    values = values.subspan(block.size());
  }
}

template <class Real>
void checked_sum(const char* where, Real* values, std::size_t count) {
  guarded(where, [&] { sum(checked_span(values, count)); });
}

}  // namespace

ONEHOP_COMPAT_API int onehop_quest_is_open() { return connection().opened ? 1 : 0; }

ONEHOP_COMPAT_API void onehop_quest_open() {
  guarded("onehop_quest_open", [] {
    if (connection().opened) throw BadInput("expected to be called once, found the ranks connected already");
    const Group group = Group::world();
    connection().network = std::make_unique<Network>(group);
    connection().rank = group.rank();
    connection().ranks = group.size();
    connection().opened = true;
  });
}

ONEHOP_COMPAT_API void onehop_quest_close() {
  guarded("onehop_quest_close", [] {
    meet();
    connection().network.reset();
    Group::close_world();
  });
}

ONEHOP_COMPAT_API int onehop_quest_rank() { return connection().rank; }

ONEHOP_COMPAT_API int onehop_quest_ranks() { return connection().ranks; }

ONEHOP_COMPAT_FUNCTION(void, onehop_quest_flush, (), wait_until_gone())
ONEHOP_COMPAT_FUNCTION(void, onehop_quest_sync, (), meet())

ONEHOP_COMPAT_API void onehop_quest_exchange(const void* send, void* receive, size_t bytes, int rank) {
  guarded("onehop_quest_exchange", [&] {
    Mailbox& mailbox = network().mailbox;
    check_partner(rank);
    check_memory(send, bytes);
    check_memory(receive, bytes);
    check_apart(send, receive, bytes);
    Parcel in(rank, pair_tag, receive, bytes);
    Parcel out(rank, pair_tag, send, bytes);
    mailbox.receive(in.message);
    mailbox.send(out.message);
    mailbox.wait(in.message);
    mailbox.wait(out.message);
  });
}

ONEHOP_COMPAT_API void onehop_quest_send(const void* send, size_t bytes, int rank) {
  guarded("onehop_quest_send", [&] {
    Mailbox& mailbox = network().mailbox;
    check_partner(rank);
    check_memory(send, bytes);
    mailbox.send(network().sent.emplace_back(rank, pair_tag, send, bytes).message);
  });
}

ONEHOP_COMPAT_API void onehop_quest_receive(void* receive, size_t bytes, int rank) {
  guarded("onehop_quest_receive", [&] {
    Mailbox& mailbox = network().mailbox;
    check_partner(rank);
    check_memory(receive, bytes);
    Parcel in(rank, pair_tag, receive, bytes);
    mailbox.receive(in.message);
    mailbox.wait(in.message);
  });
}

ONEHOP_COMPAT_API void onehop_quest_combine(void* all, const size_t begins[], const size_t bytes[]) {
  guarded("onehop_quest_combine", [&] {
    const int ranks = network().mailbox.size();
    Layout layout;
    const std::span lengths = checked_span(bytes, ranks);
    const std::span offsets = checked_span(begins, ranks);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] == 0) continue;
      check_reach(all, offsets[i]);
      for (std::size_t j = 0; j < i; ++j) check_parts(offsets, lengths, j, i);
      layout.add(static_cast<std::ptrdiff_t>(offsets[i]), lengths[i]);
    }
    layout.check_at(static_cast<const std::byte*>(all));
    combine(static_cast<std::byte*>(all), offsets, lengths);
  });
}

ONEHOP_COMPAT_API void onehop_quest_broadcast(void* data, size_t bytes, int root) {
  guarded("onehop_quest_broadcast", [&] {
    Collectives& everybody = network().everybody;
    check_rank(root);
    check_memory(data, bytes);
    everybody.broadcast({static_cast<std::byte*>(data), bytes}, root);
  });
}

ONEHOP_COMPAT_API void onehop_quest_gather_to_root(const void* mine, size_t bytes, void* all) {
  guarded("onehop_quest_gather_to_root", [&] {
    Collectives& everybody = network().everybody;
    check_memory(mine, bytes);
    const bool root = everybody.me() == 0;
    if (root) check_memory(all, bytes);
    const std::span<const std::byte> everybodys = everybody.gather({static_cast<const std::byte*>(mine), bytes});
    if (root && bytes > 0) std::memcpy(all, everybodys.data(), everybodys.size());
  });
}

ONEHOP_COMPAT_API void onehop_quest_sum_floats(float* values, size_t count) {
  checked_sum("onehop_quest_sum_floats", values, count);
}

ONEHOP_COMPAT_API void onehop_quest_sum_doubles(double* values, size_t count) {
  checked_sum("onehop_quest_sum_doubles", values, count);
}

ONEHOP_COMPAT_API void onehop_quest_sum_long_doubles(long double* values, size_t count) {
  checked_sum("onehop_quest_sum_long_doubles", values, count);
}
