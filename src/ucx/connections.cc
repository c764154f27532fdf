#include "src/ucx/connections.h"

#include <sched.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "onehop/error.h"
#include "src/base/clock.h"
#include "src/base/env.h"
#include "src/base/text.h"
#include "src/group/group_state.h"
#include "src/ucx/ends.h"

namespace onehop::detail::ucx {
namespace {

// How often UCX is called while the program does something else, and once it has had something to do.
constexpr std::chrono::milliseconds idle_period{5};
constexpr std::chrono::microseconds busy_period{200};
// How many seconds a group that closes waits until its peers have its last messages.
constexpr double drain_limit = 2;
// How long a rail may take for that if others to the same peer have done it: it may be down, with messages on it.
constexpr double rail_drain_limit = 0.5;
// The same once a rank is lost: the whole network may be, and the process should end within a second.
constexpr double drain_limit_after_loss = 0.3;
constexpr double least_drain = 0.1;
// After so many seconds of silence a rank is lost.
constexpr double default_silence = 20;
// Shorter parts stay on the first rail. Their time does not depend on the rate of a network.
constexpr std::size_t shortest_spread = 2048;

std::uint64_t key_of(const Destination& to) {
  return std::uint64_t{static_cast<std::uint32_t>(to.from)} << 32 | to.channel;
}

// Removes `length` bytes from the front.
std::span<const std::byte> take(std::span<const std::byte>& bytes, std::size_t length) {
  if (length > bytes.size()) throw Error("a rank has sent an address of UCX that is too short");
  const auto front = bytes.first(length);
  bytes = bytes.subspan(length);
  return front;
}

}  // namespace

bool Outgoing::idle() const noexcept {
  return std::ranges::all_of(pending, [](std::uint32_t count) { return count == 0; });
}

Registered::Registered(const ProcessContext& context, std::byte* memory, std::int64_t bytes) : context_(context) {
  const Library& library = context.library;
  MapParams params;
  params.field_mask = MapParams::has_address | MapParams::has_length;
  params.address = memory;
  params.length = static_cast<std::size_t>(bytes);
  const std::string step =
      "registering " + base::counted(bytes, "byte") + " for writes by other hosts (does `ulimit -l` allow it?)";
  check(library, library.memory_map(context.context, &params, &handle_), step);
  void* packed = nullptr;
  std::size_t length = 0;
  const Status status = library.key_pack(context.context, handle_, &packed, &length);
  if (static_cast<int>(status) < 0) library.memory_unmap(context.context, handle_);
  check(library, status, step);
  const auto* const begin = static_cast<const std::byte*>(packed);
  key.assign(begin, begin + length);
  library.key_release(packed);
}

Registered::~Registered() { static_cast<void>(context_.library.memory_unmap(context_.context, handle_)); }

Connections::Connections(std::span<const RailChoice> rails, int rank, int ranks)
    : rank_(rank),
      made_at_(base::steady_seconds()),
      loads_(rails.size()),
      states_(ranks),
      down_(rails.size()),
      silence_(env::number("ONEHOP_SILENCE").value_or(default_silence)),
      heard_elsewhere_(static_cast<std::size_t>(ranks)) {
  for (auto& heard : heard_elsewhere_) heard.store(-1, std::memory_order_relaxed);
  for (const RailChoice& one : rails) {
    rails_.push_back(std::make_unique<Rail>(*one.context, rank, ranks, static_cast<Arrivals&>(*this)));
    speeds_.push_back(one.speed);
  }
  join();
  driver_ = std::make_unique<std::thread>([this] { drive_until_closed(); });
}

Connections::~Connections() {
  if (!process_.is_this_process()) {  // all of it belongs to the parent, and the thread was not forked
    [[maybe_unused]] auto* const kept = driver_.release();
    for (auto& rail : rails_) [[maybe_unused]]
      auto* const leaked = rail.release();
    return;
  }
  closed_.store(true, std::memory_order_relaxed);
  driver_->join();
  leave();
  close();
  for (auto& outgoing : lingering_) {
    if (!outgoing->idle())
      new (std::nothrow) std::shared_ptr<Outgoing>(std::move(outgoing));  // leaked: UCX may still read it
  }
}

// Drives rails until `ready(rail)` for each, or for `most` seconds. No other thread drives them meanwhile.
template <class Ready>
void Connections::drain(std::span<const std::unique_ptr<Rail>> rails, double most, const Ready& ready) {
  const bool misses_ranks = told_.load(std::memory_order_relaxed) || heard() >= 0 || unreachable() >= 0;
  const double begin = base::steady_seconds();
  double end = begin + (misses_ranks ? std::min(most, drain_limit_after_loss) : most);
  // All groups of the process end together.
  const double loss = last_loss.load(std::memory_order_relaxed);
  if (loss > made_at_ && begin < loss + drain_limit) {
    end = std::min(end, std::max(begin + least_drain, loss + drain_limit_after_loss));
  }
  while (!std::ranges::all_of(rails, ready) && base::steady_seconds() < end) {
    const std::lock_guard guard(mutex_);
    for (const auto& rail : rails) rail->progress();
    sched_yield();
  }
}

void Connections::close() {
  {
    const std::lock_guard guard(mutex_);
    for (auto& rail : rails_) {
      for (int rank = 0; rank < states_.ranks(); ++rank) rail->say_goodbye(rank);
    }
  }
  const auto said = [](const auto& rail) { return rail->goodbye_said(); };
  if (rails_.size() > 1) {
    drain(rails_, rail_drain_limit, said);
    leave_unconfirmed_rails();
  }
  drain(rails_, drain_limit, said);
  {
    const std::lock_guard guard(mutex_);
    retired_.clear();
    for (auto& rail : rails_) rail->close();
  }
  drain(rails_, drain_limit, [](const auto& rail) { return rail->closed(); });
  rails_.clear();
}

std::vector<std::byte> Connections::own_addresses() {
  const std::lock_guard guard(mutex_);
  std::vector<std::byte> all;
  for (auto& rail : rails_) {
    const std::vector<std::byte> address = rail->own_address();
    const std::uint64_t length = address.size();
    const auto prefix = bytes_of(length);
    all.insert(all.end(), prefix.begin(), prefix.end());
    all.insert(all.end(), address.begin(), address.end());
  }
  return all;
}

void Connections::set_addresses(int rank, std::span<const std::byte> addresses, std::size_t limit) {
  for (const auto& rail : rails_) {
    std::uint64_t length = 0;
    std::memcpy(&length, take(addresses, sizeof length).data(), sizeof length);
    rail->set_address(rank, take(addresses, length));
  }
  states_.set_rails(rank, std::min(limit, rails_.size()));
}

void Connections::probe(std::span<const int> ranks, double seconds, std::span<std::int32_t> silent) {
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    if (silent[i] < 0) asked.push_back(i);
  }
  const auto at_all = [&](const auto& act) {
    const std::lock_guard guard(mutex_);
    for (const std::size_t i : asked) {
      for (const int rank : ranks) {
        if (silent[i] < 0) act(i, rank);
      }
    }
  };
  at_all([&](std::size_t i, int rank) {
    try {
      rails_[i]->connect(rank);
    } catch (const Error&) {  // a network that refuses at once, such as without a route
      silent[i] = rank;
    }
  });
  at_all([&](std::size_t i, int rank) { rails_[i]->greet(rank, true); });
  const double end = base::steady_seconds() + seconds;
  for (bool waits = true; waits && base::steady_seconds() < end;) {
    call_interrupt_check();
    progress();
    std::this_thread::sleep_for(busy_period);
    waits = false;
    at_all([&](std::size_t i, int rank) { waits |= !rails_[i]->is_complete(rank) && !rails_[i]->has_failed(rank); });
  }
  const std::lock_guard guard(mutex_);
  for (const std::size_t i : asked) {
    const auto found = std::ranges::find_if(ranks, [&](int rank) { return !rails_[i]->is_complete(rank); });
    if (silent[i] < 0 && found != ranks.end()) silent[i] = *found;
  }
}

void Connections::keep_rails(const std::vector<bool>& marks) {
  std::vector<std::unique_ptr<Rail>> given_up;
  {
    const std::lock_guard guard(mutex_);
    std::vector<std::unique_ptr<Rail>> kept;
    std::vector<double> speeds;
    for (std::size_t i = 0; i < rails_.size(); ++i) {
      (marks[i] ? kept : given_up).push_back(std::move(rails_[i]));
      if (marks[i]) speeds.push_back(speeds_[i]);
    }
    rails_ = std::move(kept);
    speeds_ = std::move(speeds);
    loads_.assign(rails_.size(), 0);
    down_.resize(rails_.size());
    for (int rank = 0; rank < states_.ranks(); ++rank) {
      states_.set_rails(rank, std::min(static_cast<std::size_t>(rails_to(rank)), rails_.size()));
    }
    for (const auto& rail : given_up) rail->close();
  }
  drain(given_up, drain_limit, [](const auto& rail) { return rail->closed(); });
}

std::span<const std::unique_ptr<Rail>> Connections::rails_of(int rank) const noexcept {
  return std::span(rails_).first(static_cast<std::size_t>(rails_to(rank)));
}

void Connections::connect(int rank) {
  const std::lock_guard guard(mutex_);
  const auto rails = rails_of(rank);
  std::exception_ptr failure;
  std::size_t failed = 0;
  for (const auto& rail : rails) {
    try {
      rail->connect(rank);
    } catch (const Error&) {  // such as that of a rail that is down
      failure = std::current_exception();
      rail->fail_unconnected(rank);
      ++failed;
    }
  }
  if (failed == rails.size()) std::rethrow_exception(failure);
}

void Connections::greet(int rank) {
  const std::lock_guard guard(mutex_);
  for (const auto& rail : rails_of(rank)) rail->greet(rank);
}

bool Connections::is_complete(int rank) {
  const std::lock_guard guard(mutex_);
  const auto rails = rails_of(rank);
  std::size_t missing = 0;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (rails[i]->is_complete(rank)) continue;
    if ((states_.working(rank) & RailStates::bit(i)) != 0) return false;
    ++missing;
  }
  return missing < rails.size();
}

std::string Connections::networks_to(int rank) {
  const std::lock_guard guard(mutex_);
  std::string text;
  for (const auto& rail : rails_of(rank)) {
    for (const std::string& name : rail->networks_to(rank)) text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string Connections::networks() const {
  std::string text;
  for (const auto& rail : rails_) text += (text.empty() ? "" : ", ") + rail->context().networks;
  return text.empty() ? "no network" : text;
}

void Connections::enlist(Kind kind, int rank, std::uint32_t channel, Inbox* inbox) {
  const std::lock_guard guard(mutex_);
  auto& inboxes = inboxes_.at(static_cast<std::size_t>(kind));
  if (inbox == nullptr) {
    inboxes.erase(key_of({rank, channel}));
  } else {
    inboxes[key_of({rank, channel})] = inbox;
  }
}

Rail& Connections::rail_for(int rank, const Message& message, int rail) {
  const int rails = rails_to(rank);
  if (rails == 1) return *rails_.front();
  const std::uint64_t working = states_.working(rank);
  const auto first = static_cast<std::size_t>(std::countr_zero(working));
  if (message.kind != Kind::part) return *rails_[first];
  // Assigned parts do not count as loads: the others would make up for them long afterwards.
  if (rail != any_rail && (working & RailStates::bit(static_cast<std::size_t>(rail))) != 0) {
    return *rails_[static_cast<std::size_t>(rail)];
  }
  if (message.data.size() < shortest_spread) return *rails_[first];
  std::size_t least = first;
  for (std::size_t i = first + 1; i < static_cast<std::size_t>(rails); ++i) {
    if ((working & RailStates::bit(i)) != 0 && loads_[i] < loads_[least]) least = i;
  }
  loads_[least] += static_cast<double>(message.data.size()) / speeds_[least];
  return *rails_[least];
}

void Connections::send(int rank, const Message& message, std::uint32_t* pending, int rail) {
  const std::lock_guard guard(mutex_);
  rail_for(rank, message, rail).send(rank, message, pending);
}

void Connections::put(int rank, RemoteKey* key, const Written& data, const Written& flag, std::uint32_t* pending) {
  const std::lock_guard guard(mutex_);
  rails_.front()->put(rank, key, data, flag, pending);
}

RemoteKey* Connections::unpack_key(int rank, const std::byte* packed) {
  const std::lock_guard guard(mutex_);
  return rails_.front()->unpack_key(rank, packed);
}

bool Connections::move() {
  bool moved = false;
  for (const auto& rail : rails_) moved |= rail->progress();
  if (signs_due_.load(std::memory_order_relaxed)) [[unlikely]]
    give_signs_of_life();
  return moved;
}

void Connections::progress() {
  const std::lock_guard guard(mutex_);
  move();
}

void Connections::drive() noexcept {
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (guard.owns_lock()) move();  // else another thread drives it
}

// A rank that has sent something may call nothing of onehop for long: it computes, or waits in MPI for a rank that
// waits for this very message. Bytes that the network did not take at once would stay here, as would the answers that
// UCX expects.
void Connections::drive_until_closed() noexcept {
  double next_signs = base::steady_seconds();
  while (!closed_.load(std::memory_order_relaxed)) {
    if (const double now = base::steady_seconds(); now >= next_signs) {
      next_signs = now + between_signs_.load(std::memory_order_relaxed);
      signs_due_.store(true, std::memory_order_relaxed);
    }
    bool busy = false;
    if (const std::unique_lock guard(mutex_, std::try_to_lock); guard.owns_lock()) busy = move();
    std::this_thread::sleep_for(busy ? busy_period : idle_period);
  }
}

void Connections::keep(Slots slots) {
  const std::lock_guard guard(mutex_);
  kept_.push_back(std::move(slots));
}

void Connections::linger(std::shared_ptr<Outgoing> outgoing) {
  const std::lock_guard guard(mutex_);
  std::erase_if(lingering_, [](const auto& one) { return one->idle(); });
  if (!outgoing->idle()) lingering_.push_back(std::move(outgoing));
}

void Connections::retire(std::unique_ptr<SendEnd> end) {
  const std::lock_guard guard(mutex_);
  retired_.push_back(std::move(end));
}

void Connections::arrived(const Message& message) noexcept {
  if (message.kind == Kind::lost) {
    hear(message);
    return;
  }
  if (message.kind == Kind::alive) {
    Sign sign;
    if (message.header.size() == sizeof sign) std::memcpy(&sign, message.header.data(), sizeof sign);
    if (states_.take(sign)) failed();
    return;
  }
  Destination to;
  if (message.header.size() < sizeof to) return;
  std::memcpy(&to, message.header.data(), sizeof to);
  const auto& inboxes = inboxes_[static_cast<std::size_t>(message.kind)];
  const auto found = inboxes.find(key_of(to));
  if (found == inboxes.end()) return;  // its end is closed
  found->second->arrived(message.header.data(), message.header.size(), message.data.data(), message.data.size());
}

}  // namespace onehop::detail::ucx
