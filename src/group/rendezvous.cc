#include "src/group/rendezvous.h"

#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/base/sha256.h"
#include "src/base/text.h"
#include "src/group/control_memory.h"
#include "src/group/liveness.h"
#include "src/group/local_socket.h"
#include "src/group/process_space.h"

namespace onehop::detail {
namespace {

// The greeting of a guest, and rank 0's answer. The answer `welcome` carries the descriptor of the control memory.
struct Hello {
  static constexpr std::uint64_t magic = 0x31'6f'6c'6c'65'68'6f'31;
  std::uint64_t mark = magic;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
};
enum class Verdict : std::int32_t { welcome = 1, taken = 2, other_size = 3, no_such_rank = 4 };
struct Answer {
  static constexpr std::uint64_t magic = 0x31'72'77'73'6e'61'6f'31;
  std::uint64_t mark = magic;
  Verdict verdict = Verdict::welcome;
  std::int32_t ranks = 0;
};
constexpr std::byte joined_mark{1};  // sent by a guest once it has joined the control memory

// The name contains only a hash of the key: all users see a bound name, and the key may be a secret that the next
// attempt of the same launch reuses.
std::string name_of(const std::string& key) {
  const std::string user = std::to_string(own_user());
  return "onehop-" + user + "-" +
         sha256(user + "/" + key + "/" + env::text("ONEHOP_MEETING_KEY").value_or("")).substr(0, 40);
}

double meeting_limit() {
  const double limit = default_timeout();
  return limit > 0 ? limit : 60;
}

void nap() { usleep(10'000); }

// This rank's place in the meeting.
struct Seat {
  int rank = 0;
  int ranks = 0;
  std::vector<pid_t> processes;  // of all ranks; empty if they are not known

  [[noreturn]] void throw_alone(const std::string& found) const {
    const std::string own = "this is rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ", but " + found;
    if (!processes.empty()) {
      throw Timeout(own + "; do all ranks connect, and with the handle of this rank 0? ONEHOP_TIMEOUT sets another " +
                    "limit in seconds");
    }
    throw Error("the launcher says that " + own +
                "; are all ranks on this machine and do all call Group::world()? For several machines use MPI "
                "(mpiexec, srun --mpi)");
  }

  // Throws PeerLost if the process of a rank that is awaited has ended.
  void check_process(int other, ProcessWatch& watch) const {
    if (processes.empty()) return;
    const pid_t process = processes[static_cast<std::size_t>(other)];
    if (!watch.ended(other, process)) return;
    throw PeerLost(other, "rank " + std::to_string(other) + " (process " + std::to_string(process) +
                              ") has ended before it was connected");
  }
};

[[noreturn]] void throw_squatted(const std::string& name, uid_t uid) {
  throw Error("the meeting point of this launch, the abstract socket '" + name + "', is held by user " +
              std::to_string(uid) + ", not by user " + std::to_string(own_user()) +
              " who runs this program; nothing is read from it. Start again with another key that nobody can guess "
              "(torchrun --rdzv-id, or ONEHOP_MEETING_KEY on all ranks), or with `onehop launch`, which needs none");
}

// Rank 0's side. The other ranks connect in any order, and so may strangers.
class Reception {
 public:
  Reception(Socket listener, ControlMemory& control, const Seat& seat)
      : listener_(std::move(listener)),
        control_(control),
        seat_(seat),
        ranks_(seat.ranks),
        places_(static_cast<std::size_t>(ranks_)) {
    places_[0] = Place::joined;
  }

  // Serves guests until each rank has joined, or has ended after its greeting. Throws Error after the limit.
  void receive_all() {
    const Deadline deadline(0);
    ProcessWatch watch(ranks_);
    while (!open_ranks().empty()) {
      call_interrupt_check();
      for (const int rank : open_ranks()) seat_.check_process(rank, watch);
      wait();
      for (Guest& guest : guests_) serve(guest);
      // Read before guests are accepted, so that a new guest has the full time for its greeting.
      const double now = deadline.seconds();
      std::erase_if(guests_, [now](const Guest& guest) {
        return guest.done || (is_stranger(guest) && now - guest.came > seconds_to_introduce);
      });
      accept_guests(now);
      if (now > meeting_limit() && !open_ranks().empty()) give_up();
    }
  }

 private:
  enum class Place : std::uint8_t { open, taken, joined, ended };
  struct Guest {
    Socket socket;
    double came = 0;
    pid_t pid = 0;
    int rank = -1;  // not yet known
    std::size_t got = 0;
    std::array<std::byte, sizeof(Hello)> said{};
    bool done = false;
  };
  // Descriptors are few: silent guests are dropped, the oldest as soon as there are too many.
  static constexpr double seconds_to_introduce = 5;
  static constexpr int accepts_per_turn = 256;
  // Leaves most descriptors of this process to its other threads.
  [[nodiscard]] static std::ptrdiff_t max_strangers() {
    rlimit descriptors{};
    return getrlimit(RLIMIT_NOFILE, &descriptors) != 0 ? 1 : std::clamp<rlim_t>(descriptors.rlim_cur / 4, 1, 128);
  }

  [[nodiscard]] static bool is_stranger(const Guest& guest) { return guest.rank < 0; }

  void wait() const {
    std::vector<pollfd> polled{{listener_.fd(), POLLIN, 0}};
    for (const Guest& guest : guests_) polled.push_back({guest.socket.fd(), POLLIN, 0});
    poll(polled.data(), polled.size(), 50);
  }

  // Accepts a limited number of connections, because other users may connect without pause.
  void accept_guests(double now) {
    for (int accepted = 0; accepted < accepts_per_turn; ++accepted) {
      Socket socket(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (socket.fd() < 0) {
        const bool no_descriptors = errno == EMFILE || errno == ENFILE;
        if (no_descriptors && drop_oldest_stranger()) continue;
        if (errno != EAGAIN && errno != ECONNABORTED) nap();
        return;
      }
      const auto peer = peer_of(socket);
      if (!peer || peer->uid != own_user()) {
        if (peer) turned_away_ = "; a connection of user " + std::to_string(peer->uid) + " was refused";
        continue;
      }
      if (std::ranges::count_if(guests_, is_stranger) >= max_strangers()) drop_oldest_stranger();
      guests_.push_back({std::move(socket), now, peer->pid});
    }
  }

  // Returns false if there is none.
  bool drop_oldest_stranger() {
    const auto oldest = std::ranges::find_if(guests_, is_stranger);
    if (oldest == guests_.end()) return false;
    serve(*oldest);  // its greeting may have come since it was accepted
    if (is_stranger(*oldest)) guests_.erase(oldest);
    return true;
  }

  void serve(Guest& guest) {
    if (guest.rank >= 0) {
      hear_of_joining(guest);
      return;
    }
    const ssize_t got = receive_now(guest.socket, std::span(guest.said).subspan(guest.got));
    if (got == -1) return;
    guest.done = got <= 0;
    if (guest.done) return;
    guest.got += static_cast<std::size_t>(got);
    if (guest.got == guest.said.size()) answer(guest);
  }

  void answer(Guest& guest) {
    Hello hello;
    std::memcpy(&hello, guest.said.data(), sizeof hello);
    guest.done = true;
    if (hello.mark != Hello::magic) return;
    Answer answer;
    answer.ranks = ranks_;
    if (hello.ranks != ranks_) {
      answer.verdict = Verdict::other_size;
    } else if (hello.rank < 1 || hello.rank >= ranks_) {
      answer.verdict = Verdict::no_such_rank;
    } else if (places_[static_cast<std::size_t>(hello.rank)] != Place::open) {
      answer.verdict = Verdict::taken;
    }
    const bool welcome = answer.verdict == Verdict::welcome;
    // Fits into an empty socket buffer, so a guest that does not read cannot block this rank.
    if (!send_now(guest.socket, bytes_of(answer), welcome ? control_.fd() : -1) || !welcome) return;
    guest.done = false;
    guest.rank = hello.rank;
    places_[static_cast<std::size_t>(hello.rank)] = Place::taken;
  }

  void hear_of_joining(Guest& guest) {
    std::byte word{};
    const ssize_t got = receive_now(guest.socket, std::span(&word, 1));
    if (got == -1) return;
    guest.done = true;
    if (got == 1 && word == joined_mark) {
      places_[static_cast<std::size_t>(guest.rank)] = Place::joined;
      return;
    }
    // The all-gather that follows reports this rank instead of waiting for it.
    places_[static_cast<std::size_t>(guest.rank)] = Place::ended;
    control_.tell_ended(guest.rank);
  }

  [[nodiscard]] std::vector<int> open_ranks() const {
    std::vector<int> open;
    for (int rank = 0; rank < ranks_; ++rank) {
      const Place place = places_[static_cast<std::size_t>(rank)];
      if (place == Place::open || place == Place::taken) open.push_back(rank);
    }
    return open;
  }

  [[noreturn]] void give_up() {
    const std::vector<int> open = open_ranks();
    control_.tell_missing(open.front());
    std::string who;
    for (std::size_t i = 0; i < std::min<std::size_t>(open.size(), 8); ++i) {
      who += (i == 0 ? " " : ", ") + std::to_string(open[i]);
    }
    if (open.size() > 8) who += ", ...";
    seat_.throw_alone("only " + std::to_string(ranks_ - 1 - static_cast<int>(open.size())) + " of the other " +
                      std::to_string(ranks_ - 1) + " have joined (not rank" + who + ")" + turned_away_);
  }

  Socket listener_;
  ControlMemory& control_;
  const Seat& seat_;
  int ranks_;
  std::vector<Place> places_;
  std::vector<Guest> guests_;
  std::string turned_away_;
};

[[noreturn]] void throw_name_is_taken(const std::string& name, int reason) {
  std::string holder = "; is another rank 0 of the same launch running, or was Group::world() called twice?";
  if (reason == EADDRINUSE) {
    const SocketName at(name);
    const Socket socket = new_socket();
    if (connect(socket.fd(), at.address(), at.length) == 0) {
      const auto peer = peer_of(socket);
      if (peer && peer->uid != own_user()) throw_squatted(name, peer->uid);
      if (peer) holder = "; process " + std::to_string(peer->pid) + " holds it" + holder;
    } else {
      holder = ", and its holder (perhaps another user) accepts no connections" + holder;
    }
  }
  throw Error("rank 0 cannot open the meeting point of this launch, the abstract socket '" + name +
              "': " + std::strerror(reason) + holder);
}

// A guest's side: asks until rank 0 answers.
class Visit {
 public:
  Visit(const std::string& key, const Seat& seat)
      : name_(name_of(key)), seat_(seat), rank_(seat.rank), ranks_(seat.ranks), watch_(seat.ranks) {}

  // Returns the control memory that rank 0 sends.
  SharedMemory ask() {
    const SocketName at(name_);
    for (;;) {
      socket_ = new_socket();
      // Where others connect without pause, only who waits in line gets into the queue of rank 0.
      if (connect_in_line(socket_, at, 0.05)) {
        Socket memory = introduce();
        if (memory.fd() >= 0) {
          return SharedMemory::adopt(memory.release(), control_memory_bytes(ranks_),
                                     "the control memory that rank 0 (process " + std::to_string(host_) + ") sent");
        }
      } else if (errno == ECONNREFUSED) {
        host_ = 0;  // who held the meeting point has closed it
      }
      check_limit();
      nap();
    }
  }

  void tell_joined() { static_cast<void>(send_now(socket_, std::span(&joined_mark, 1))); }

 private:
  // Returns no descriptor if the connection ends before an answer; the caller then connects again.
  Socket introduce() {
    const auto peer = peer_of(socket_);
    if (!peer) return Socket();
    if (peer->uid != own_user()) throw_squatted(name_, peer->uid);
    host_ = peer->pid;
    Hello hello;
    hello.rank = rank_;
    hello.ranks = ranks_;
    if (!send_now(socket_, bytes_of(hello))) return Socket();
    Answer answer;
    Socket memory;
    std::array<std::byte, sizeof answer> bytes{};
    for (std::size_t have = 0; have < bytes.size();) {
      const ssize_t got = receive_now(socket_, std::span(bytes).subspan(have), &memory);
      if (got == 0 || got == -2) return Socket();
      if (got > 0) have += static_cast<std::size_t>(got);
      if (got > 0) continue;
      pollfd readable{socket_.fd(), POLLIN, 0};
      poll(&readable, 1, 50);
      check_limit();
    }
    std::memcpy(&answer, bytes.data(), sizeof answer);
    judge(answer, memory);
    return memory;
  }

  void judge(const Answer& answer, const Socket& memory) const {
    const std::string own = "rank " + std::to_string(rank_) + " of " + std::to_string(ranks_);
    const std::string host = "rank 0 (process " + std::to_string(host_) + ")";
    if (answer.mark == Answer::magic && answer.verdict == Verdict::taken) {
      throw Mismatch(host + " reports that " + own + " of this launch is already taken by another process" +
                     "; a program may make its world group once per process");
    }
    if (answer.mark == Answer::magic && answer.verdict != Verdict::welcome) {
      throw Mismatch("the launcher says that this is " + own + ", but " + host + " belongs to a launch of " +
                     base::counted(answer.ranks, "rank") + "; do two launches use the same key?");
    }
    if (answer.mark != Answer::magic || memory.fd() < 0) {
      throw Error("process " + std::to_string(host_) +
                  ", which holds the meeting point of this launch (the abstract socket '" + name_ +
                  "'), does not answer as rank 0 of onehop does; do all ranks run the same version of onehop?");
    }
  }

  void check_limit() {
    call_interrupt_check();
    seat_.check_process(0, watch_);
    if (deadline_.seconds() <= meeting_limit()) return;
    seat_.throw_alone(host_ == 0 ? "rank 0 was not found"
                                 : "process " + std::to_string(host_) +
                                       ", which holds the meeting point of this launch, gave no answer");
  }

  std::string name_;
  const Seat& seat_;
  int rank_;
  int ranks_;
  ProcessWatch watch_;
  Deadline deadline_{0};
  Socket socket_;
  pid_t host_ = 0;
};

// Runs the first all-gather, which shows that all ranks are present. It has a limit even if later waits have none.
std::unique_ptr<Bootstrap> complete(std::unique_ptr<Bootstrap> bootstrap, double limit) {
  bootstrap->set_timeout(limit);
  static_cast<void>(bootstrap->allgather({}));
  bootstrap->set_timeout(default_timeout());
  return bootstrap;
}

}  // namespace

std::unique_ptr<Bootstrap> meet(const std::string& key, int rank, int ranks, const std::vector<pid_t>& processes) {
  if (!processes.empty() && std::ssize(processes) != ranks) {
    throw BadInput("expected a process for each of the " + std::to_string(ranks) + " ranks, found " +
                   std::to_string(processes.size()));
  }
  const Seat seat{rank, ranks, processes};
  if (rank != 0) {
    Visit visit(key, seat);
    auto bootstrap = join_control_memory(visit.ask(), "the control memory of this launch", rank, ranks, 0);
    visit.tell_joined();
    // Twice the limit, because rank 0 may wait that long for the last of the others before it takes part.
    return complete(std::move(bootstrap), 2 * meeting_limit());
  }
  Socket listener = new_socket();
  const std::string name = name_of(key);
  const SocketName at(name);
  if (bind(listener.fd(), at.address(), at.length) != 0 || listen(listener.fd(), 1024) != 0)
    throw_name_is_taken(name, errno);
  ControlMemory control = ControlMemory::create(ranks);
  auto bootstrap = join_control_memory(control.path(), 0, ranks, 0);
  Reception(std::move(listener), control, seat).receive_all();
  return complete(std::move(bootstrap), meeting_limit());
}

}  // namespace onehop::detail
