// The network of QuEST's communication layer on a post (shared/post.h): which ranks exchange depends on the gate, and ranks whose
// amplitudes a gate leaves alone take no part, so channels between the two cannot be opened when they are needed.
#include "compat/quest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "compat/shared/boundary.h"
#include "compat/shared/collectives.h"
#include "onehop/error.h"
#include "onehop/group.h"

using onehop::BadInput;
using onehop::Group;
using onehop::door::Circle;
using onehop::door::guarded;
using onehop::door::Layout;
using onehop::door::Message;
using onehop::door::Post;

namespace {

constexpr std::uint32_t collective_tag = 0;
constexpr std::uint32_t pair_tag = 1;
constexpr std::size_t sum_block = 8192;  // values of every rank that are in memory at once

// A message that knows its own layout.
struct Parcel {
  Layout layout;
  Message message;

  Parcel(int peer, std::uint32_t tag, const void* bytes, std::size_t length) : layout(length) {
    message.peer = peer;
    message.tag = tag;
    message.layout = &layout;
    // A sent message is only read.
    message.base = const_cast<std::byte*>(static_cast<const std::byte*>(bytes));
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
};

struct Network {
  Post post;
  Circle everybody;
  std::list<Parcel> sent;  // and perhaps not gone yet

  explicit Network(const Group& group)
      : post(group), everybody(post, all(group.size()), group.rank(), collective_tag) {}

  static std::vector<int> all(int ranks) {
    std::vector<int> numbers(static_cast<std::size_t>(ranks));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
};

struct Door {
  bool opened = false;
  int rank = 0;
  int ranks = 1;
  std::unique_ptr<Network> network;
};

Door& door() {
  static Door the_door;
  return the_door;
}

Network& network() {
  if (door().network == nullptr) {
    throw BadInput(std::string("expected ranks that have met, found a door that ") +
                   (door().opened ? "quest_door_close has closed" : "quest_door_open has not opened yet"));
  }
  return *door().network;
}

void check_rank(int rank) {
  if (rank >= 0 && rank < door().ranks) return;
  throw BadInput("expected a rank from 0 to " + std::to_string(door().ranks - 1) + ", found " + std::to_string(rank));
}

void check_partner(int rank) {
  check_rank(rank);
  if (rank == door().rank) throw BadInput("expected another rank, found this one, " + std::to_string(rank));
}

void check_memory(const void* memory, std::size_t bytes) {
  if (memory == nullptr && bytes > 0) {
    throw BadInput("expected memory of " + std::to_string(bytes) + " bytes, found a null pointer");
  }
}

void check_apart(const void* send, const void* receive, std::size_t bytes) {
  const auto one = reinterpret_cast<std::uintptr_t>(send);
  const auto other = reinterpret_cast<std::uintptr_t>(receive);
  if (one < other + bytes && other < one + bytes) {
    throw BadInput("expected memories that do not overlap, found two of " + std::to_string(bytes) +
                   " bytes which are " + std::to_string(one < other ? other - one : one - other) + " bytes apart");
  }
}

void wait_until_gone() {
  for (const Parcel& parcel : network().sent) network().post.wait(parcel.message);
  network().sent.clear();
}

void meet() {
  wait_until_gone();
  network().everybody.barrier();
}

void combine(std::byte* all, std::span<const std::size_t> begins, std::span<const std::size_t> bytes) {
  Post& post = network().post;
  const auto me = static_cast<std::size_t>(post.rank());
  std::list<Parcel> parcels;
  for (std::size_t other = 0; other < begins.size(); ++other) {
    if (other == me) continue;
    const int peer = static_cast<int>(other);
    if (bytes[other] > 0)
      post.receive(parcels.emplace_back(peer, collective_tag, all + begins[other], bytes[other]).message);
    if (bytes[me] > 0) post.send(parcels.emplace_back(peer, collective_tag, all + begins[me], bytes[me]).message);
  }
  for (const Parcel& parcel : parcels) post.wait(parcel.message);
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
  guarded(where, [&] {
    check_memory(values, count * sizeof(Real));
    sum(std::span(values, count));
  });
}

}  // namespace

ONEHOP_DOOR int quest_door_is_open() { return door().opened ? 1 : 0; }

ONEHOP_DOOR void quest_door_open() {
  guarded("quest_door_open", [] {
    if (door().opened) throw BadInput("expected ranks that have not met yet, found that they have");
    const Group group = Group::world();
    door().network = std::make_unique<Network>(group);
    door().rank = group.rank();
    door().ranks = group.size();
    door().opened = true;
  });
}

ONEHOP_DOOR void quest_door_close() {
  guarded("quest_door_close", [] {
    meet();
    door().network.reset();
    Group::close_world();
  });
}

ONEHOP_DOOR int quest_door_rank() { return door().rank; }

ONEHOP_DOOR int quest_door_ranks() { return door().ranks; }

ONEHOP_DOOR void quest_door_flush() {
  guarded("quest_door_flush", [] { wait_until_gone(); });
}

ONEHOP_DOOR void quest_door_sync() {
  guarded("quest_door_sync", [] { meet(); });
}

ONEHOP_DOOR void quest_door_exchange(const void* send, void* receive, size_t bytes, int rank) {
  guarded("quest_door_exchange", [&] {
    Post& post = network().post;
    check_partner(rank);
    check_memory(send, bytes);
    check_memory(receive, bytes);
    check_apart(send, receive, bytes);
    Parcel in(rank, pair_tag, receive, bytes);
    Parcel out(rank, pair_tag, send, bytes);
    post.receive(in.message);
    post.send(out.message);
    post.wait(in.message);
    post.wait(out.message);
  });
}

ONEHOP_DOOR void quest_door_send(const void* send, size_t bytes, int rank) {
  guarded("quest_door_send", [&] {
    Post& post = network().post;
    check_partner(rank);
    check_memory(send, bytes);
    post.send(network().sent.emplace_back(rank, pair_tag, send, bytes).message);
  });
}

ONEHOP_DOOR void quest_door_receive(void* receive, size_t bytes, int rank) {
  guarded("quest_door_receive", [&] {
    Post& post = network().post;
    check_partner(rank);
    check_memory(receive, bytes);
    Parcel in(rank, pair_tag, receive, bytes);
    post.receive(in.message);
    post.wait(in.message);
  });
}

ONEHOP_DOOR void quest_door_combine(void* all, const size_t begins[], const size_t bytes[]) {
  guarded("quest_door_combine", [&] {
    const auto ranks = static_cast<std::size_t>(network().post.size());
    check_memory(begins, ranks * sizeof(std::size_t));
    check_memory(bytes, ranks * sizeof(std::size_t));
    check_memory(all, std::accumulate(bytes, bytes + ranks, std::size_t{0}));
    combine(static_cast<std::byte*>(all), {begins, ranks}, {bytes, ranks});
  });
}

ONEHOP_DOOR void quest_door_broadcast(void* data, size_t bytes, int root) {
  guarded("quest_door_broadcast", [&] {
    Circle& everybody = network().everybody;
    check_rank(root);
    check_memory(data, bytes);
    everybody.broadcast({static_cast<std::byte*>(data), bytes}, root);
  });
}

ONEHOP_DOOR void quest_door_gather_to_root(const void* mine, size_t bytes, void* all) {
  guarded("quest_door_gather_to_root", [&] {
    Circle& everybody = network().everybody;
    check_memory(mine, bytes);
    const bool root = everybody.me() == 0;
    if (root) check_memory(all, bytes);
    const std::span<const std::byte> everybodys = everybody.gather({static_cast<const std::byte*>(mine), bytes});
    if (root && bytes > 0) std::memcpy(all, everybodys.data(), everybodys.size());
  });
}

ONEHOP_DOOR void quest_door_sum_floats(float* values, size_t count) {
  checked_sum("quest_door_sum_floats", values, count);
}

ONEHOP_DOOR void quest_door_sum_doubles(double* values, size_t count) {
  checked_sum("quest_door_sum_doubles", values, count);
}

ONEHOP_DOOR void quest_door_sum_long_doubles(long double* values, size_t count) {
  checked_sum("quest_door_sum_long_doubles", values, count);
}
