// The ends of messages between two ranks: onehop's channels and plans, qspi, plain MPI, and the speed of light. An end
// has name(), source(message), send(), and receive(read), which calls read(part) for every part of the received
// messages.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/native/mpi/peers.h"
#include "bench/native/speed_of_light.h"
#include "compat/qspi.h"
#include "measure/buffer.h"
#include "measure/pingpong.h"
#include "onehop/plan.h"
#include "src/base/clock.h"
#include "src/channel/store.h"

namespace onehop::bench {

inline constexpr std::int64_t line = 64;
inline std::int64_t rounded(std::int64_t bytes) { return (bytes + line - 1) / line * line; }

// Several consecutive messages, each of which begins at a cache line.
class Messages {
 public:
  Messages(std::int64_t bytes, int count) : bytes_(bytes), count_(count), memory_(rounded(bytes) * count) {}
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] std::span<std::byte> operator[](int message) const noexcept {
    return memory_.bytes().subspan(static_cast<std::size_t>(rounded(bytes_) * message),
                                   static_cast<std::size_t>(bytes_));
  }

 private:
  std::int64_t bytes_;
  int count_;
  Buffer memory_;
};

// "Isend/Irecv", "persistent", ... Messages need no datatypes: they are contiguous.
inline constexpr std::string_view halo_prefix = "derived datatypes, ";

// All messages share one slot and one flag. They are packed directly into the slot and read there.
class InPlaceEnd {
 public:
  InPlaceEnd(const Group& group, std::int64_t bytes, int messages) : sources_(bytes, messages), bytes_(bytes) {
    const std::int64_t total = rounded(bytes) * messages;
    // Both ranks write before they read, so the slot must hold all messages.
    Channels channels = open_both_ways(group, total, total);
    sender_ = std::move(channels.senders[0]);
    receiver_ = std::move(channels.receivers[0]);
    store_ = detail::piece_function(sender_.stores());
  }

  [[nodiscard]] std::string_view name() const { return "onehop"; }
  [[nodiscard]] std::span<std::byte> source(int message) const { return sources_[message]; }
  void send() {
    sender_.write([this](std::span<std::byte> part, std::int64_t offset) { pack(part, offset); });
  }
  template <class Read>
  void receive(Read&& read) {
    receiver_.read([&](std::span<const std::byte> part, std::int64_t) { read(part); });
  }

 private:
  void pack(std::span<std::byte> part, std::int64_t offset) {
    if (!sender_.adaptive()) return store(part, offset);
    if (part.data() == sender_.payload()) {
      sender_.begin_use(std::min(sender_.bytes() - offset, sender_.ring().slot_bytes));
      store_ = detail::piece_function(sender_.stores());
    }
    const double begin = sender_.times_use() ? base::steady_seconds() : 0;
    store(part, offset);
    if (sender_.times_use()) sender_.stored(base::steady_seconds() - begin);
  }

  void store(std::span<std::byte> part, std::int64_t offset) {
    const std::int64_t stride = rounded(bytes_);
    const std::int64_t end = offset + static_cast<std::int64_t>(part.size());
    for (std::int64_t at = offset; at < end;) {
      const std::int64_t message = at / stride;
      const std::int64_t inside = at - message * stride;
      const std::int64_t wanted = std::min(end, (message + 1) * stride) - at;
      const std::int64_t length = std::min(wanted, bytes_ - inside);
      if (length > 0) {
        store_(part.data() + (at - offset), sources_[static_cast<int>(message)].data() + inside,
               static_cast<std::size_t>(length));
      }
      at += wanted;
    }
    detail::finish_stores(sender_.stores());
  }

  Messages sources_;
  std::int64_t bytes_;
  Sender sender_;
  Receiver receiver_;
  detail::StoreFunction store_ = nullptr;
};

// From arrays to arrays, one for each message.
class ArraysEnd {
 public:
  ArraysEnd(std::int64_t bytes, int messages) : sources_(bytes, messages), results_(bytes, messages) {
    schedule_.name = "several messages each way";
    schedule_.ranks = 2;
    schedule_.rounds.resize(1);
    const Slice all = Slice::range(0, bytes / 8);
    for (int m = 0; m < messages; ++m) {
      schedule_.arrays.push_back({"out" + std::to_string(m), 8, ElementType::bytes, {bytes / 8}});
      schedule_.arrays.push_back({"in" + std::to_string(m), 8, ElementType::bytes, {bytes / 8}});
      arrays_.insert(arrays_.end(), {sources_[m], results_[m]});
      for (const int from : {0, 1})
        schedule_.rounds[0].transfers.push_back({{from, 2 * m, all}, {1 - from, 2 * m + 1, all}});
    }
  }
  static std::shared_ptr<ArraysEnd> by_plan(const Group& group, std::int64_t bytes, int messages) {
    auto end = std::make_shared<ArraysEnd>(bytes, messages);
    end->name_ = "onehop, plan";
    end->run_ = [plan = std::make_shared<Plan>(group, end->schedule_, end->arrays_)] { plan->run(); };
    return end;
  }
  static std::shared_ptr<ArraysEnd> by_mpi(const std::shared_ptr<HaloPeer>& peer, std::int64_t bytes, int messages) {
    auto end = std::make_shared<ArraysEnd>(bytes, messages);
    end->name_ = peer->name().substr(halo_prefix.size());
    peer->prepare(end->schedule_, end->arrays_);
    end->run_ = [peer] { peer->run(); };
    return end;
  }

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] std::span<std::byte> source(int message) const { return sources_[message]; }
  void send() { run_(); }
  template <class Read>
  void receive(Read&& read) {
    for (int m = 0; m < results_.count(); ++m) read(std::span<const std::byte>(results_[m]));
  }

 private:
  Messages sources_;
  Messages results_;
  Schedule schedule_;
  std::vector<std::span<std::byte>> arrays_;
  std::string name_;
  std::function<void()> run_;
};

// Messages of qspi that are prepared once. A rank that `expects` starts to receive before it sends.
class QspiEnd {
 public:
  QspiEnd(int peer, std::int64_t bytes, int messages, bool expects)
      : sources_(bytes, messages), results_(bytes, messages), expects_(expects) {
    std::vector<qspi_msg_t> all;
    for (int m = 0; m < messages; ++m) {
      all.push_back(receives_.emplace_back(qspi_create_msg()).get());
      qspi_set_recv(peer, results_[m].data(), results_[m].size(), all.back());
    }
    for (int m = 0; m < messages; ++m) {
      all.push_back(sends_.emplace_back(qspi_create_msg()).get());
      qspi_set_send(peer, sources_[m].data(), sources_[m].size(), all.back());
    }
    qspi_prepare(all.data(), static_cast<int>(all.size()));
  }

  [[nodiscard]] std::string_view name() const { return "qspi"; }
  [[nodiscard]] std::span<std::byte> source(int message = 0) const { return sources_[message]; }
  void send() const {
    for (const Message& message : receives_) {
      if (expects_) qspi_start(message.get());
    }
    for (const Message& message : sends_) qspi_start(message.get());
    for (const Message& message : sends_) qspi_wait(message.get());
  }
  template <class Read>
  void receive(Read&& read) const {
    for (const Message& message : receives_) qspi_wait(message.get());
    for (int m = 0; m < results_.count(); ++m) read(std::span<const std::byte>(results_[m]));
  }

 private:
  struct Free {
    void operator()(qspi_msg_t message) const { qspi_free_msg(message); }
  };
  using Message = std::unique_ptr<qspi_message, Free>;

  Messages sources_;
  Messages results_;
  bool expects_;
  std::vector<Message> sends_;
  std::vector<Message> receives_;
};

class MpiEnd {
 public:
  MpiEnd(std::unique_ptr<MessagePeer> peer, int messages) : peer_(std::move(peer)), messages_(messages) {}
  [[nodiscard]] std::string_view name() const { return peer_->name(); }
  [[nodiscard]] std::span<std::byte> source(int message = 0) const { return peer_->source(message); }
  void send() { peer_->send(); }
  template <class Read>
  void receive(Read&& read) {
    peer_->receive();
    for (int m = 0; m < messages_; ++m) read(peer_->result(m));
  }

 private:
  std::unique_ptr<MessagePeer> peer_;
  int messages_;
};

// A bare flag and copy. Sends all messages as one without packing, so no candidate that packs can be faster.
class SpeedOfLightEnd {
 public:
  SpeedOfLightEnd(const Group& group, std::int64_t bytes, std::int64_t whole)
      : speed_of_light_(group, whole), bytes_(bytes) {}
  void use(const SpeedOfLightVariant& variant) { speed_of_light_.use(variant); }
  [[nodiscard]] std::string_view name() const { return "speed of light"; }
  [[nodiscard]] std::span<std::byte> source(int message = 0) {
    return speed_of_light_.source().subspan(static_cast<std::size_t>(rounded(bytes_) * message),
                                            static_cast<std::size_t>(bytes_));
  }
  void send() noexcept { speed_of_light_.send(); }
  template <class Read>
  void receive(Read&& read) {
    speed_of_light_.receive(std::forward<Read>(read));
  }

 private:
  SpeedOfLight speed_of_light_;
  std::int64_t bytes_;
};

}  // namespace onehop::bench
