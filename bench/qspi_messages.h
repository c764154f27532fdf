// `onehop bench qspi`: messages each way between two ranks through the drop-in interface compat/qspi.h, for the ping-pong and the exchange of
// several messages that other candidates are measured in too.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "compat/qspi.h"

namespace onehop::bench {

// Prepared once, used as often as one likes. The two ranks make them together.
class QspiMessages {
 public:
  // Message m goes out of sources[m], and the peer's comes to results[m]. Collective for the two.
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

  // Begins to receive the next messages of the peer; may be left out, receive() begins otherwise.
  void expect() const {
    for (const Message& message : receives_) qspi_start(message.get());
  }
  // The sources may be written again afterwards.
  void send() const {
    for (const Message& message : sends_) qspi_start(message.get());
    for (const Message& message : sends_) qspi_wait(message.get());
  }
  // Afterwards the results are there.
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
