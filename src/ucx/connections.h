// The connections to the other ranks, over one rail or several, and the messages that arrive. All channels of a group
// over UCX share them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "src/channel/transport/transport.h"
#include "src/group/driven.h"
#include "src/group/forks.h"
#include "src/group/group_state.h"
#include "src/ucx/rail_states.h"

namespace onehop::detail::ucx {

// Every message between ends of channels begins with it.
struct Destination {
  std::int32_t from = 0;      // the rank that sends this message
  std::uint32_t channel = 0;  // ChannelShape::id
};

class SendEnd;

// Takes the messages for one end of a channel. Called by Connections::progress(), with the lock held.
class Inbox {
 public:
  virtual void arrived(const std::byte* header, std::size_t header_bytes, const std::byte* data,
                       std::size_t bytes) noexcept = 0;
  // A rail to the rank is down: sends again all that the rank may not have.
  virtual void send_again() noexcept = 0;

 protected:
  ~Inbox() = default;
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

// The message of a rank that gives up.
struct LossReport {
  std::int32_t from = -1;
  std::int32_t lost = -1;       // a rank of the group
  std::int32_t elsewhere = -1;  // or one that is not in it, by its number in the world
};

// A network that a group uses, and its speed in any unit that is the same for all of them.
struct RailChoice {
  const ProcessContext* context = nullptr;
  double speed = 1;
};

// Is told that a rail is down for a first rank, or works to all ranks again: its device and the rank.
using RailNews = std::function<void(const std::string& device, int rank, bool works)>;

// All functions may be called from any thread. Errors of a connection are not thrown: they are seen by lost().
class Connections final : public Driven, public LossReports, private Arrivals {
 public:
  // `rails` has at least one, and at most RailStates::most_rails.
  Connections(std::span<const RailChoice> rails, int rank, int ranks);
  // Waits up to two seconds for the peers to confirm that they have the last messages; once a rank is lost, 0.3.
  ~Connections() override;

  // The addresses of this rank's rails, to be sent to the other ranks.
  [[nodiscard]] std::vector<std::byte> own_addresses();
  // Takes the result of a rank's own_addresses(). Messages to that rank use only the first rails, up to a limit.
  void set_addresses(int rank, std::span<const std::byte> addresses, std::size_t limit);
  // Exchanges a message with each of these ranks, which call it with this one, on every rail whose entry in `silent` is
  // negative, and enters a rank from which no answer has arrived after `seconds`. Throws Error.
  void probe(std::span<const int> ranks, double seconds, std::span<std::int32_t> silent);
  // Gives up all rails but those with a mark, of which there is at least one. Before any channel is opened.
  void keep_rails(const std::vector<bool>& marks);
  // Makes the connections to a rank if there are none. Throws Error.
  void connect(int rank);
  // Sends the first messages to a rank with connections. They are complete once ranks have answered each other's.
  void greet(int rank);
  [[nodiscard]] bool is_complete(int rank);
  // Transports and devices of the connections, "tcp/eth0, tcp/eth1"; empty if this version of UCX does not tell.
  [[nodiscard]] std::string networks_to(int rank);
  // The networks of all rails, as UCX names them.
  [[nodiscard]] std::string networks() const;
  // How many rails share the parts of the messages to a rank, or from it.
  [[nodiscard]] int rails_to(int rank) const noexcept { return states_.rails(rank); }
  void set_news(RailNews news);

  // Registers (null: removes) the end that takes the messages of this kind from `rank` for the channel.
  void enlist(Kind kind, int rank, std::uint32_t channel, Inbox* inbox);

  // Sends a message. The header is copied; the data must stay until `*pending` (unless null) is zero again. Parts take
  // this rail, or else the one that has been given the fewest bytes for its speed, so messages may overtake each other.
  // A message on a rail that turns out to be down is lost: Inbox::send_again().
  static constexpr int any_rail = -1;
  void send(int rank, const Message& message, std::uint32_t* pending, int rail = any_rail);
  // Writes `data` and, in order, `flag`. Both must stay until `*pending` is zero again.
  void put(int rank, RemoteKey* key, const Written& data, const Written& flag, std::uint32_t* pending);
  // A key that a receiver has sent. Lives as long as the connection.
  [[nodiscard]] RemoteKey* unpack_key(int rank, const std::byte* packed);

  void progress();
  void drive() noexcept override;
  // Whether the connections to a rank have failed, which ends its channels.
  [[nodiscard]] bool lost(int rank) const noexcept { return states_.lost(rank); }
  [[nodiscard]] std::string why_lost(int rank) const;
  void tell(int lost) noexcept override;
  void tell_elsewhere(int lost) noexcept override;
  [[nodiscard]] int unreachable() const noexcept override;
  [[nodiscard]] int silent(double seconds) const noexcept override;
  [[nodiscard]] int heard() const noexcept override { return heard_.load(std::memory_order_relaxed); }
  [[nodiscard]] int heard_elsewhere(int rank) const noexcept override {
    return heard_elsewhere_[static_cast<std::size_t>(rank)].load(std::memory_order_relaxed);
  }
  // The slots of a closed receiving end. A sender may still write to them, so they stay until the group closes.
  struct Slots {
    RingMemory memory;
    std::unique_ptr<Registered> registered;
  };
  void keep(Slots slots);
  // Keeps memory until UCX has done with it.
  void linger(std::shared_ptr<Outgoing> outgoing);
  // Keeps a closed end until the receiver has all of it, because it may have to be sent again.
  void retire(std::unique_ptr<SendEnd> end);
  [[nodiscard]] bool is_this_process() const noexcept { return process_.is_this_process(); }

  // The context in which memory for puts is registered.
  [[nodiscard]] const ProcessContext& context() const noexcept { return rails_.front()->context(); }
  // For reading what arrived() changes.
  [[nodiscard]] std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }

 private:
  void arrived(const Message& message) noexcept override;
  void failed() noexcept override { signs_due_.store(true, std::memory_order_relaxed); }
  void look(int rank, double now, double paused);
  void rails_changed(int rank, std::uint64_t before, std::uint64_t after);
  void send_again(int rank);
  void leave_unconfirmed_rails();
  void hear(const Message& message) noexcept;
  // Sends a report to all ranks but this one and the lost one.
  void send_report(const LossReport& report) noexcept;
  bool move();
  void give_signs_of_life();
  [[nodiscard]] Rail& rail_for(int rank, const Message& message, int rail);
  [[nodiscard]] std::span<const std::unique_ptr<Rail>> rails_of(int rank) const noexcept;
  template <class Ready>
  void drain(std::span<const std::unique_ptr<Rail>> rails, double most, const Ready& ready);
  void close();
  void drive_until_closed() noexcept;

  const ProcessMark process_;
  int rank_;
  const double made_at_;
  static inline std::atomic<double> last_loss{0};  // in any group of this process
  std::recursive_mutex mutex_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::vector<double> speeds_;
  std::vector<double> loads_;  // by rail: bytes of parts without an assignment over speed
  RailStates states_;
  std::vector<int> down_;  // by rail: ranks to which it is down
  RailNews news_;
  std::array<std::unordered_map<std::uint64_t, Inbox*>, 4> inboxes_;  // by kind; then by rank and channel
  std::vector<std::shared_ptr<Outgoing>> lingering_;
  std::vector<std::unique_ptr<SendEnd>> retired_;
  std::vector<Slots> kept_;
  // Signs of life: the driver says when they are due, and whoever moves messages next gives them.
  const double silence_;  // seconds; 0: no limit
  std::atomic<bool> signs_due_{false};
  double signs_given_ = 0;
  std::uint32_t sign_number_ = 0;
  static constexpr double between_signs = 0.5;  // seconds; longer with many connections
  std::atomic<double> between_signs_{between_signs};
  std::atomic<bool> told_{false};
  std::atomic<int> heard_{-1};
  std::atomic<int> told_elsewhere_{-1};
  std::vector<std::atomic<int>> heard_elsewhere_;  // by rank
  // Moves what is left to do while the program is elsewhere.
  std::atomic<bool> closed_{false};
  std::unique_ptr<std::thread> driver_;
};

}  // namespace onehop::detail::ucx
