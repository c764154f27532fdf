// `onehop bench qspi`: messages in both directions between two ranks through the drop-in interface compat/qspi.h, for
// the same ping-pong and exchange of several messages as the other candidates.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "compat/qspi.h"

namespace onehop::bench {

// Messages that are prepared once and may be used any number of times. The two ranks make them together.
class QspiMessages {
 public:
  // Sends message m from sources[m] and receives the peer's in results[m]. Collective over the two ranks.
  QspiMessages(int peer, std::span<const std::span<std::byte>> sources, std::span<const std::span<std::byte>> results) {
    for (const std::span<std::byte> result : results) {
      receives_.emplace_back(qspi_create_msg());
      qspi_set_recv(peer, result.data(), result.size(), receives_.back().get());
    }
    for (const std::span<std::byte> source : sources) {
      sends_.emplace_back(qspi_create_msg());
      qspi_set_send(peer, source.data(), source.size(), sends_.back().get());
    }
    std::vector<qspi_msg_t> all;
    for (const Message& message : receives_) all.push_back(message.get());
    for (const Message& message : sends_) all.push_back(message.get());
    qspi_prepare(all.data(), static_cast<int>(all.size()));
  }

  // Starts to receive the peer's next messages. Optional: otherwise receive() starts.
  void expect() const {
    for (const Message& message : receives_) qspi_start(message.get());
  }
  // Sends all messages. Afterwards the sources may be overwritten.
  void send() const {
    for (const Message& message : sends_) qspi_start(message.get());
    for (const Message& message : sends_) qspi_wait(message.get());
  }
  // Waits for the peer's messages. Afterwards the results hold their data.
  void receive() const {
    for (const Message& message : receives_) qspi_wait(message.get());
  }

 private:
  struct Free {
    void operator()(qspi_msg_t message) const { qspi_free_msg(message); }
  };
  using Message = std::unique_ptr<qspi_message, Free>;

  std::vector<Message> sends_;
  std::vector<Message> receives_;
};

}  // namespace onehop::bench
