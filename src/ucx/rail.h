// A rail: one worker of UCX, on one network interface or on all, and its connections to the same rail of other ranks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/ucx/context.h"

namespace onehop::detail::ucx {

// Kinds of messages; the number of the handler in UCX.
enum class Kind : std::uint8_t {
  part = 1,      // to a receiving end: a part of a fragment
  released = 2,  // to a sending end: slots that are free again
  key = 3,       // to a sending end: where the receiver's slots are
  leaving = 4,   // to a rank: the sender of this message sends no more on this rail
  left = 5,      // the answer
  hello = 6,     // to a rank: the first message
  welcome = 7,   // the answer
  lost = 8,      // to a rank: the sender of this message gives up because a rank was lost
  alive = 9,     // to a rank: a sign of life
};

// A message to an end of a channel (up to Kind::key), or about a lost rank.
struct Message {
  Kind kind = Kind::part;
  std::span<const std::byte> header;
  std::span<const std::byte> data;
};

// The header of a sign of life.
struct Sign {
  std::int32_t from = 0;
  std::uint32_t number = 0;  // signs of a rank may overtake each other on different rails
  std::uint64_t hears = 0;   // the rails on which the sender hears the other one, a bit for each
};

// What has arrived on a connection since the last look.
struct Look {
  bool heard = false;   // anything
  bool sign = false;    // a sign of life
  bool leaves = false;  // the peer closes its group, and need not send any more
  bool failed = false;
};

// Takes the messages that arrive for ends of channels, those about lost ranks, and signs of life.
class Arrivals {
 public:
  virtual void arrived(const Message& message) noexcept = 0;
  // A connection has failed.
  virtual void failed() noexcept = 0;

 protected:
  ~Arrivals() = default;
};

// Bytes that are written into the memory of another rank.
struct Written {
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint64_t to = 0;
};

// Its functions are not called by two threads at once, but for has_failed() and those that tell about a failure. Errors
// of a connection are not thrown: they are seen by has_failed().
class Rail {
 public:
  // Throws Error if UCX makes no worker.
  Rail(const ProcessContext& context, int rank, int ranks, Arrivals& arrivals);
  ~Rail();
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  [[nodiscard]] std::vector<std::byte> own_address();
  void set_address(int rank, std::span<const std::byte> address);
  // Makes the connection to a rank if there is none. Throws Error.
  void connect(int rank);
  // Sends the first message to a rank with a connection, with data that only fit into several packets if it is a
  // probe. Connections are complete once ranks have answered each other's.
  void greet(int rank, bool probe = false);
  [[nodiscard]] bool is_complete(int rank) const;
  [[nodiscard]] bool is_connected(int rank) const noexcept { return peer(rank).end != nullptr; }
  // Transports and devices of a connection, "tcp/eth0"; none if this version of UCX does not tell.
  [[nodiscard]] std::vector<std::string> networks_to(int rank);

  // As in Connections.
  void send(int rank, const Message& message, std::uint32_t* pending);
  void put(int rank, RemoteKey* key, const Written& data, const Written& flag, std::uint32_t* pending);
  [[nodiscard]] RemoteKey* unpack_key(int rank, const std::byte* packed);

  // Moves what can be moved. Returns whether there was anything.
  bool progress();

  // Called at regular times. `paused` are seconds in which this process did not run, and heard nothing for that reason.
  Look look(int rank, double now, double paused) noexcept;
  // Sends a sign of life where the peer expects one.
  void give_sign(int rank, const Sign& sign);
  // Fails the connection because nothing arrives on it.
  void fail_silent(int rank) noexcept;
  // Notes that there is no way to make it.
  void fail_unconnected(int rank) noexcept;
  // A rail that is down for a peer is not waited for when the group closes.
  void set_down(int rank, bool down) noexcept;
  // Makes the connection of a rail that is down anew, unless that was done a moment ago or it is about to work. The
  // system would wait longer and longer before it tries the old one, and one that has failed is of no use.
  void retry(int rank, double now, bool heard) noexcept;
  [[nodiscard]] int connections() const noexcept;
  // When the last message from a rank arrived, to within the time between signs of life; 0 if it need not send any.
  [[nodiscard]] double heard_at(int rank) const noexcept { return peer(rank).heard_at.load(std::memory_order_relaxed); }

  // Whether the connection to a rank has failed, and UCX's reason.
  [[nodiscard]] bool has_failed(int rank) const noexcept;
  [[nodiscard]] std::string failure(int rank) const;

  // Messages that are still on their way would be lost with the connection. say_goodbye() asks a peer to confirm
  // that it has them, and goodbye_said() is true once all have.
  void say_goodbye(int rank);
  [[nodiscard]] bool goodbye_said() const;
  [[nodiscard]] bool goodbye_said_by(int rank) const noexcept { return peer(rank).left; }
  // Closes the connections; the worker ends with this object, if all are closed by then.
  void close();
  [[nodiscard]] bool closed() const noexcept { return closing_ == 0; }

  [[nodiscard]] const ProcessContext& context() const noexcept { return context_; }
  // "eth0"
  [[nodiscard]] std::string device() const { return context_.networks.substr(context_.networks.find('/') + 1); }

 private:
  struct Peer {
    Rail* owner = nullptr;
    int rank = -1;
    std::vector<std::byte> address;
    RemoteEnd* end = nullptr;
    std::vector<RemoteKey*> keys;
    std::atomic<int> failure{0};  // the status; 0: none
    bool heard = false;           // since the last look
    bool sign = false;            // the same of signs of life
    bool down = false;
    double tried_at = 0;  // since it is down
    bool asked = false;   // a question has arrived since then
    std::atomic<double> heard_at{0};
    std::uint32_t signs_pending = 0;  // signs of life that have not left
    bool greeted = false;             // by this rank
    bool welcome = false;             // it has answered that
    // Its questions, and whether this rank has answered.
    bool hello = false;
    bool hello_answered = false;
    bool leaving = false;
    bool leaving_answered = false;
    bool left = false;  // it has confirmed that this rank leaves
  };
  struct HandlerArgument {
    Rail* owner;
    Kind kind;
  };

  static Status arrived(void* argument, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                        const MessageDetails*);
  static void failed(void* argument, RemoteEnd*, Status status);
  void fail(Peer& peer, int why) noexcept;
  static void completed(void* request, Status status, void* pending);
  void note_sender(Kind kind, std::span<const std::byte> header) noexcept;
  void handle_question(Kind kind, std::span<const std::byte> header);
  void close(Peer& peer);
  void issued(Peer& to, void* returned, std::uint32_t* pending);
  void answer();
  void say(int rank, Kind kind);
  [[nodiscard]] Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Peer& peer(int rank) const { return *peers_[static_cast<std::size_t>(rank)]; }

  const ProcessContext& context_;
  const Library& library_;
  int rank_;
  Arrivals& arrivals_;
  Worker* worker_ = nullptr;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<HandlerArgument> arguments_;
  bool answers_due_ = false;
  std::uint32_t closing_ = 0;  // connections that are being closed
};

}  // namespace onehop::detail::ucx
