#include "onehop/collectives/messages.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onehop/channel.h"
#include "onehop/error.h"
#include "onehop/wait.h"
#include "src/base/text.h"

namespace onehop::collectives {

namespace detail {

namespace {

// A message begins in a small packet: its tag, its length, and its first bytes. The rest follows in large ones.
using Start = std::array<std::int64_t, 2>;
constexpr std::int64_t start_bytes = 1024;
constexpr std::int64_t packet_bytes = 64 << 10;
constexpr int slots = 4;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

void copy_to(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

struct Outgoing {
  std::span<const std::byte> message;
  std::int64_t tag = 0;
  int to = 0;
  std::size_t sent = 0;
  bool begun = false;
  bool done = false;
};

// A message that is arriving or has arrived. It goes to the memory of the request that it matches, or is kept.
struct Incoming {
  int from = 0;
  std::int64_t tag = 0;
  std::size_t length = 0;
  std::size_t arrived = 0;
  std::byte* memory = nullptr;
  std::vector<std::byte> kept{};

  [[nodiscard]] bool is_complete() const { return arrived == length; }
};

// What `receive` waits for.
struct Wanted {
  std::span<std::byte> memory;
  int source = 0;
  std::int64_t tag = 0;

  [[nodiscard]] bool matches(const Incoming& message) const {
    return tag == message.tag && (source == Messages::any_rank || source == message.from);
  }
};

// The two channels to another rank and those from it.
struct MessagePath {
  std::array<Sender, 2> out;
  std::array<Receiver, 2> in;
  std::deque<std::shared_ptr<Outgoing>> waiting;
  std::shared_ptr<Incoming> arriving;
};

struct MessagePaths {
  explicit MessagePaths(const Group& of);

  // Moves what can be moved without waiting, and returns whether something did. Messages are taken in only while one is
  // wanted.
  bool progress();
  // Waits until `done()` returns true.
  template <class Done>
  void wait(int peer, const std::string& what, Done&& done);
  void check(int rank, std::int64_t tag) const;

  Group group;
  std::vector<MessagePath> paths;                 // that of this rank has no channels
  std::list<std::shared_ptr<Incoming>> messages;  // complete or not, in the order of their beginnings
  Wanted* wanted = nullptr;
  std::shared_ptr<Incoming> matched;  // the message for `wanted`
  bool polls = false;
  bool failed = false;  // a wait has ended by an exception, perhaps in the middle of a message

 private:
  bool push(MessagePath& path);
  bool pull(MessagePath& path, int from);
  void begin(MessagePath& path, int from, std::span<const std::byte> packet);
};

MessagePaths::MessagePaths(const Group& of) : group(of), paths(index(of.size())) {
  std::vector<ChannelSpec> specs;
  for (int rank = 0; rank < group.size(); ++rank) {
    for (int large = 0; large < 2 && rank != group.rank(); ++large) {
      const std::int64_t bytes = large != 0 ? packet_bytes : start_bytes;
      for (const auto direction : {ChannelSpec::Direction::send, ChannelSpec::Direction::receive})
        specs.push_back({direction, rank, bytes, large, slots, bytes, bytes});
    }
  }
  Channels channels = open_channels(group, specs);
  std::size_t made = 0;
  for (int rank = 0; rank < group.size(); ++rank) {
    for (std::size_t large = 0; large < 2 && rank != group.rank(); ++large, ++made) {
      paths[index(rank)].out[large] = std::move(channels.senders[made]);
      paths[index(rank)].in[large] = std::move(channels.receivers[made]);
      polls |= paths[index(rank)].in[large].needs_progress() || paths[index(rank)].out[large].needs_progress();
    }
  }
}

void MessagePaths::check(int rank, std::int64_t tag) const {
  if (failed) throw Error("expected messages that work, found that an earlier one failed; make others in a new group");
  if (rank < 0 || rank >= group.size()) {
    throw BadInput("expected a rank from 0 to " + std::to_string(group.size() - 1) + ", found " + std::to_string(rank));
  }
  if (tag < 0) throw BadInput("expected a tag of 0 or more, found " + std::to_string(tag));
}

bool MessagePaths::progress() {
  bool moved = false;
  for (int rank = 0; rank < group.size(); ++rank) {
    MessagePath& path = paths[index(rank)];
    if (rank == group.rank()) continue;
    if (polls) {
      for (Sender& out : path.out) out.progress();
      for (Receiver& in : path.in) in.progress();
    }
    moved |= push(path);
    if (wanted != nullptr) moved |= pull(path, rank);
  }
  return moved;
}

bool MessagePaths::push(MessagePath& path) {
  bool moved = false;
  while (!path.waiting.empty()) {
    Outgoing& message = *path.waiting.front();
    Sender& out = path.out[message.begun ? 1 : 0];
    if (!out.ready()) break;
    std::span<std::byte> slot = out.slot();
    if (!message.begun) {
      const Start start{message.tag, static_cast<std::int64_t>(message.message.size())};
      std::memcpy(slot.data(), start.data(), sizeof start);
      slot = slot.subspan(sizeof start);
    }
    const std::size_t part = std::min(slot.size(), message.message.size() - message.sent);
    copy_to(slot.data(), message.message.data() + message.sent, part);
    out.put();
    message.begun = moved = true;
    message.sent += part;
    if (message.sent < message.message.size()) continue;
    message.done = true;
    path.waiting.pop_front();
  }
  return moved;
}

bool MessagePaths::pull(MessagePath& path, int from) {
  bool moved = false;
  for (;;) {
    // What follows the message that `receive` waits for is left to the next one.
    if (!path.arriving && matched) break;
    Receiver& in = path.in[path.arriving ? 1 : 0];
    if (!in.ready()) break;
    std::span<const std::byte> packet = in.wait();
    if (!path.arriving) {
      begin(path, from, packet);
      packet = packet.subspan(sizeof(Start));
    }
    Incoming& message = *path.arriving;
    const std::size_t part = std::min(packet.size(), message.length - message.arrived);
    copy_to(message.memory + message.arrived, packet.data(), part);
    message.arrived += part;
    in.release();
    moved = true;
    if (message.is_complete()) path.arriving.reset();
  }
  return moved;
}

void MessagePaths::begin(MessagePath& path, int from, std::span<const std::byte> packet) {
  Start start;
  std::memcpy(start.data(), packet.data(), sizeof start);
  path.arriving = std::make_shared<Incoming>(Incoming{from, start[0], static_cast<std::size_t>(start[1])});
  Incoming& message = *path.arriving;
  const bool is_wanted = !matched && wanted->matches(message);
  if (is_wanted && wanted->memory.size() == message.length) {
    message.memory = wanted->memory.data();
  } else {
    message.kept.resize(message.length);
    message.memory = message.kept.data();
  }
  if (is_wanted) {
    matched = path.arriving;
  } else {
    messages.push_back(path.arriving);
  }
}

template <class Done>
void MessagePaths::wait(int peer, const std::string& what, Done&& done) {
  failed = true;
  // What moves begins another wait, because the time limit is for waits in which nothing does.
  while (!done()) wait_until(group, {.peer = peer, .what = what, .polls = polls}, [&] { return progress() || done(); });
  failed = false;
}

}  // namespace detail

Messages::Messages(const Group& group) : paths_(std::make_shared<detail::MessagePaths>(group)) {}

SendRequest Messages::isend(std::span<const std::byte> message, int to, std::int64_t tag) {
  paths_->check(to, tag);
  SendRequest request;
  request.paths_ = paths_;
  request.message_ = std::make_shared<detail::Outgoing>(detail::Outgoing{message, tag, to});
  if (to == paths_->group.rank()) {
    auto kept = std::make_shared<detail::Incoming>(detail::Incoming{to, tag, message.size(), message.size()});
    kept->kept.assign(message.begin(), message.end());
    paths_->messages.push_back(std::move(kept));
    request.message_->done = true;
  } else {
    paths_->paths[detail::index(to)].waiting.push_back(request.message_);
    paths_->progress();
  }
  return request;
}

bool SendRequest::test() {
  if (!message_->done && !paths_->failed) paths_->progress();
  return message_->done;
}

void SendRequest::wait() {
  if (message_->done) return;
  paths_->check(message_->to, message_->tag);
  paths_->wait(message_->to, "a message with tag " + std::to_string(message_->tag), [&] { return message_->done; });
}

int Messages::receive(std::span<std::byte> message, int source, std::int64_t tag) {
  detail::MessagePaths& paths = *paths_;
  paths.check(source == any_rank ? paths.group.rank() : source, tag);
  detail::Wanted wanted{message, source, tag};
  const auto found = std::ranges::find_if(paths.messages, [&](const auto& one) { return wanted.matches(*one); });
  if (found != paths.messages.end()) {
    paths.matched = *found;
    paths.messages.erase(found);
  } else if (source == paths.group.rank() || paths.group.size() == 1) {
    throw BadInput("expected a message with tag " + std::to_string(tag) +
                   " that this rank has sent to itself, found none");
  }
  paths.wanted = &wanted;
  const auto arrived = [&] { return paths.matched && paths.matched->is_complete(); };
  const int peer = source == any_rank ? (paths.group.rank() + 1) % paths.group.size() : source;
  if (!arrived()) paths.wait(peer, "a message with tag " + std::to_string(tag), arrived);
  paths.wanted = nullptr;
  const auto ended = std::exchange(paths.matched, nullptr);
  const detail::Incoming& whole = *ended;
  if (whole.length != message.size()) {
    throw Mismatch("rank " + std::to_string(whole.from) + " sent " + base::counted(whole.length, "byte") +
                   " with tag " + std::to_string(tag) + ", but rank " + std::to_string(paths.group.rank()) +
                   " expected " + std::to_string(message.size()) +
                   "; pass arrays of the same length and type on both ranks");
  }
  if (!whole.kept.empty()) detail::copy_to(message.data(), whole.kept.data(), whole.length);
  return whole.from;
}

}  // namespace onehop::collectives
