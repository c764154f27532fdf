// What all channels over UCX of a group share: the connections to the other ranks, and the messages that arrive.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "src/group/driven.h"
#include "src/group/forks.h"
#include "src/ucx/context.h"

namespace onehop::detail::ucx {

struct FreeRing {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using RingMemory = std::unique_ptr<std::byte, FreeRing>;

// Memory for the slots of one end of a channel: zeroed, whole pages. Throws Error if memory is short.
[[nodiscard]] RingMemory allocate(std::int64_t bytes);

// Every message between ends of channels begins with it.
struct Destination {
  std::int32_t from = 0;      // the rank that sends this message
  std::uint32_t channel = 0;  // ChannelShape::id
};

// What arrives for one end of a channel. Called by Connections::progress(), with the lock held.
class Inbox {
 public:
  virtual void arrived(const std::byte* header, std::size_t header_bytes, const std::byte* data,
                       std::size_t bytes) noexcept = 0;

 protected:
  ~Inbox() = default;
};

// Kinds of messages; the number of the handler in UCX.
enum class Kind : std::uint8_t {
  part = 1,      // to a receiving end: a part of a fragment
  released = 2,  // to a sending end: slots that are free again
  key = 3,       // to a sending end: where the receiver's slots are
  leaving = 4,   // to a rank: the sender of this message sends no more
  left = 5,      // the answer
  hello = 6,     // to a rank: the first message
  welcome = 7,   // the answer
};

// Data that UCX may still read: the slots of a sending end, and how many operations on each are not complete.
struct Outgoing {
  explicit Outgoing(std::size_t slots) : pending(slots) {}
  RingMemory memory;
  std::vector<std::uint32_t> pending;  // by slot
  [[nodiscard]] bool idle() const noexcept;
};

// Memory into which other ranks may write, and the key that they need.
class Registered {
 public:
  // Throws Error if UCX cannot register it (`ulimit -l`).
  Registered(const ProcessContext& context, std::byte* memory, std::int64_t bytes);
  ~Registered();
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  std::vector<std::byte> key;

 private:
  const ProcessContext& context_;
  Memory* handle_ = nullptr;
};

// Bytes that are written into the memory of another rank.
struct Written {
  const void* from = nullptr;
  std::size_t bytes = 0;
  std::uint64_t to = 0;
};

// All functions may be called from any thread. Errors of a connection are not thrown: they are seen by lost().
class Connections final : public Driven {
 public:
  Connections(const ProcessContext& context, int rank, int ranks);
  // Waits up to two seconds for each peer to confirm that it has the last messages.
  ~Connections();

  [[nodiscard]] std::vector<std::byte> own_address();
  void set_address(int rank, std::span<const std::byte> address);
  // Makes the connection to a rank if there is none. Throws Error.
  void connect(int rank);
  // Sends the first message to a rank with a connection. Connections are complete once ranks have answered each
  // other's.
  void greet(int rank);
  [[nodiscard]] bool is_complete(int rank);
  // Transports and devices of a connection, "tcp/eth0"; empty if this version of UCX does not tell.
  [[nodiscard]] std::string networks_to(int rank);

  // Registers (null: removes) the end that takes the messages of this kind from `rank` for the channel.
  void enlist(Kind kind, int rank, std::uint32_t channel, Inbox* inbox);

  // Sends a message. The header is copied; `data` must stay until `*pending` (unless null) is zero again.
  void send(int rank, Kind kind, const void* header, std::size_t header_bytes, const std::byte* data, std::size_t bytes,
            std::uint32_t* pending);
  // Writes `data` and, in order, `flag`. Both must stay until `*pending` is zero again.
  void put(int rank, RemoteKey* key, const Written& data, const Written& flag, std::uint32_t* pending);
  // A key that a receiver has sent. Lives as long as the connection.
  [[nodiscard]] RemoteKey* unpack_key(int rank, const std::byte* packed);

  void progress();
  void drive() noexcept override;
  // Whether the connection to a rank has failed, which ends its channels.
  [[nodiscard]] bool lost(int rank) const noexcept;
  [[nodiscard]] std::string why_lost(int rank) const;
  // The slots of a closed receiving end. A sender may still write to them, so they stay until the group closes.
  struct Slots {
    RingMemory memory;
    std::unique_ptr<Registered> registered;
  };
  void keep(Slots slots);
  // Keeps memory until UCX has done with it.
  void linger(std::shared_ptr<Outgoing> outgoing);

  [[nodiscard]] const ProcessContext& context() const noexcept { return context_; }
  // For reading what arrived() changes.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

 private:
  struct Peer {
    Connections* owner = nullptr;
    int rank = -1;
    std::vector<std::byte> address;
    RemoteEnd* end = nullptr;
    std::vector<RemoteKey*> keys;
    std::atomic<int> failure{0};  // the status; 0: none
    bool greeted = false;         // by this rank
    bool welcome = false;         // it has answered that
    // Its questions, and whether this rank has answered.
    bool hello = false;
    bool hello_answered = false;
    bool leaving = false;
    bool leaving_answered = false;
    bool left = false;  // it has confirmed that this rank leaves
  };
  struct HandlerArgument {
    Connections* owner;
    Kind kind;
  };

  static Status arrived(void* argument, const void* header, std::size_t header_bytes, void* data, std::size_t bytes,
                        const MessageDetails*);
  static void failed(void* argument, RemoteEnd*, Status status);
  static void completed(void* request, Status status, void* pending);
  void handle(Kind kind, const std::byte* header, std::size_t header_bytes, const std::byte* data, std::size_t bytes);
  void issued(Peer& to, void* returned, std::uint32_t* pending);
  void answer();
  void say(int rank, Kind kind);
  void say_goodbye();
  void close_all();
  void drive_until_closed() noexcept;
  [[nodiscard]] Peer& peer(int rank) { return *peers_[static_cast<std::size_t>(rank)]; }

  const ProcessContext& context_;
  const Library& library_;
  const ProcessMark process_;
  int rank_;
  Worker* worker_ = nullptr;
  std::recursive_mutex mutex_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<HandlerArgument> arguments_;
  std::array<std::unordered_map<std::uint64_t, Inbox*>, 4> inboxes_;  // by kind; then by rank and channel
  std::vector<std::shared_ptr<Outgoing>> lingering_;
  std::vector<Slots> kept_;
  bool answers_due_ = false;
  // Moves what is left to do while the program is elsewhere.
  std::atomic<bool> closed_{false};
  std::unique_ptr<std::thread> driver_;
};

}  // namespace onehop::detail::ucx
