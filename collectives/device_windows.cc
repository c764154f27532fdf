#include "collectives/device_windows.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "onehop/error.h"
#include "onehop/wait.h"
#include "src/device/self_test.h"
#include "src/group/loss.h"

namespace onehop::collectives {
namespace {

constexpr double longest_closing = 30;  // seconds that a rank waits for its kernels where a group has no time limit

}  // namespace

// What a rank tells the others, before the bytes of its caller.
struct DeviceWindows::Header {
  std::uint64_t form = 0x776f646e69776463;
  std::uint32_t groups = 0;
  std::uint32_t shares = 1;  // 0: the error says why others do not reach the memory of this rank
  device::Kind kind = device::Kind::processor;
  device::SharedPlace place;
  std::array<char, 512> error{};

  void keep(const std::string& text) { text.copy(error.data(), error.size() - 1); }
};

DeviceWindows::DeviceWindows(const Group& group, std::shared_ptr<device::Device> device, const Offer& offer)
    : group_(group), device_(std::move(device)), doing_(offer.doing), no_path_(offer.no_path), groups_(offer.groups) {
  Header own;
  std::exception_ptr failure;
  try {
    if (!offer.error.empty()) throw BadInput(offer.error);
    prepare(offer, own);
  } catch (const Error& error) {
    failure = std::current_exception();
    own.keep(error.what());
  }
  const std::vector<Header> headers = exchange(own, offer.more);
  if (failure) std::rethrow_exception(failure);
  for (std::size_t r = 0; r < headers.size(); ++r) {
    if (headers[r].shares == 0 && no_path_.empty())
      no_path_ = "rank " + std::to_string(r) + " does not share the memory of its device: " + headers[r].error.data();
    if (headers[r].error[0] != 0 && headers[r].shares != 0)
      throw Error("rank " + std::to_string(r) + ": " + headers[r].error.data());
    if (headers[r].kind != own.kind)
      throw Mismatch("expected devices of one kind, found " + std::string(name_of(own.kind)) + " on rank " +
                     std::to_string(group_.rank()) + " and " + std::string(name_of(headers[r].kind)) + " on rank " +
                     std::to_string(r));
  }
  if (!no_path_.empty()) return;
  Header mapped = own;
  map(headers, mapped);
  // A rank that cannot reach another one takes the path of all.
  const std::vector<std::vector<std::byte>> more = std::move(more_);
  const std::vector<Header> results = exchange(mapped, {});
  more_ = more;
  for (std::size_t r = 0; r < results.size(); ++r) {
    groups_ = std::min(groups_, results[r].groups);
    if (results[r].error[0] != 0 && no_path_.empty())
      no_path_ = "rank " + std::to_string(r) + " cannot reach the memory of all others: " + results[r].error.data();
  }
  if (groups_ == 0) no_path_ = "a card holds no group of the kernels";
  if (!no_path_.empty()) windows_.clear();
  if (no_path_.empty()) watcher_ = std::thread([this] { watch(); });
}

void DeviceWindows::prepare(const Offer& offer, Header& header) {
  header.kind = device_->kind();
  header.groups = offer.groups;
  if (!offer.kernels.empty()) device::check_at_first_use(*device_);
  const device::Stream stream = device_->make_stream();
  stop_ = device_->allocate_pinned(2 * sizeof(std::uint32_t));
  own_ = device_->allocate_for_peers(std::max(offer.bytes, device::shared_block));
  device_->fill(stream, own_.data(), std::byte{0}, own_.bytes());
  for (const std::string& kernel : offer.kernels)
    header.groups = std::min(header.groups, device_->resident_groups(kernel, offer.shape));
  device_->synchronize(stream);
  try {
    if (no_path_.empty()) header.place = device_->share(own_);
  } catch (const Error& error) {
    header.shares = 0;  // as on systems whose drivers share no memory
    header.keep(error.what());
  }
}

void DeviceWindows::map(const std::vector<Header>& headers, Header& mapped) {
  const Header& own = headers[static_cast<std::size_t>(group_.rank())];
  windows_.assign(headers.size(), {});
  std::uint32_t on_this_card = 0;  // of this process: their groups must fit on it together
  for (std::size_t r = 0; r < headers.size(); ++r) {
    const Header& other = headers[r];
    groups_ = std::min(groups_, other.groups);
    const device::SharedPlace& place = other.place;
    if (place.process == own.place.process && place.index == own.place.index) ++on_this_card;
    try {
      windows_[r] = std::cmp_equal(r, group_.rank()) ? own_ : device_->reach(place);
    } catch (const Error& error) {
      mapped.keep(error.what());
    }
  }
  mapped.groups = groups_ / on_this_card;
}

std::vector<DeviceWindows::Header> DeviceWindows::exchange(const Header& own, std::span<const std::byte> more) {
  std::vector<std::byte> bytes(sizeof(Header) + more.size());
  std::memcpy(bytes.data(), &own, sizeof(Header));
  std::ranges::copy(more, bytes.begin() + sizeof(Header));
  const auto all = group_.allgather(bytes);
  std::vector<Header> headers(static_cast<std::size_t>(group_.size()));
  more_.clear();
  for (std::size_t r = 0; r < headers.size(); ++r) {
    if (all[r].size() >= sizeof(Header)) std::memcpy(&headers[r], all[r].data(), sizeof(Header));
    if (all[r].size() < sizeof(Header) || headers[r].form != own.form)
      throw Mismatch("expected arrays on devices on all ranks, found none on rank " + std::to_string(r));
    headers[r].error.back() = 0;
    more_.emplace_back(all[r].begin() + sizeof(Header), all[r].end());
  }
  return headers;
}

// Kernels write to windows and read `stop_`, so they end before this rank unmaps and frees them. Other streams may be
// those of ranks of this process, whose kernels wait for this rank; a graph may be replayed in any.
DeviceWindows::~DeviceWindows() {
  if (watcher_.joinable()) {
    try {
      if (is_lost() || !broken_.empty()) stop();
      const double limit = group_.timeout() > 0 ? group_.timeout() : longest_closing;
      {
        const std::lock_guard guard(mutex_);
        stops_at_ = std::chrono::steady_clock::now() +
                    std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(limit));
      }
      if (was_captured_) device_->synchronize_all();
      if (last_.native() != nullptr) {
        const device::Stream stream = device_->make_stream();
        device_->wait(stream, last_);
        device_->synchronize(stream);
      }
    } catch (const Error&) {
      stop();  // the driver has ended before this process, or a graph is being captured
    }
  }
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

// Calls no function of a driver, because the program may be capturing a graph.
void DeviceWindows::watch() {
  std::unique_lock guard(mutex_);
  while (!ending_.wait_for(guard, std::chrono::milliseconds(50), [this] { return ends_; })) {
    if (std::chrono::steady_clock::now() > stops_at_) return stop();
    const int gone = group_.gone_rank();
    if (gone < 0) continue;
    lost_ = gone;
    // A rank that has ended in order may have written what this one waits for.
    if (!ending_.wait_for(guard, std::chrono::milliseconds(200), [this] { return ends_; })) stop();
    return;
  }
}

void DeviceWindows::stop() noexcept {
  auto* const word = reinterpret_cast<std::uint32_t*>(stop_.host.data());
  if (word != nullptr) __atomic_store_n(word, 1U, __ATOMIC_RELEASE);
}

bool DeviceWindows::is_lost() {
  const std::lock_guard guard(mutex_);
  return lost_ >= 0;
}

void DeviceWindows::throw_lost() {
  const std::lock_guard guard(mutex_);
  stop();
  report_loss(group_, lost_);
  throw PeerLost(lost_, group_.name_of(lost_) + " is gone; rank " + std::to_string(group_.rank()) + " " + doing_ +
                            " on " + device_->text() + " with it");
}

// Whether a kernel ended at a wait.
bool DeviceWindows::has_given_up() const noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(stop_.host.data()) + 1, __ATOMIC_ACQUIRE) != 0;
}

void DeviceWindows::guarded(const std::function<void()>& work) {
  if (!broken_.empty())
    throw Error("what " + doing_ + " on " + device_->text() + " has failed and cannot be used again: " + broken_);
  try {
    work();
  } catch (const Mismatch&) {
    throw;  // on all ranks, before anything has changed
  } catch (const Error& error) {
    broken_ = error.what();
    stop();
    if (dynamic_cast<const PeerLost*>(&error) == nullptr) group_.abort();  // the others wait for this rank
    throw;
  }
}

void DeviceWindows::run(const device::Stream& stream, const std::function<void()>& work) {
  if (is_lost()) throw_lost();
  guarded([&] {
    const bool captured = device_->is_capturing(stream);
    // Also in the same stream, because a stream that was made later may have the address of one that is gone.
    if (!captured && last_.native() != nullptr) device_->wait(stream, last_);
    work();
    // A graph is replayed at other times, so what comes after it waits for the last launch outside of one.
    if (!captured) device_->record(stream, last_);
    was_captured_ = was_captured_ || captured;
    // The processor has run the kernels already.
    if (device_->kind() == device::Kind::processor && has_given_up()) throw_lost();
  });
}

void DeviceWindows::wait(const device::Stream& stream) {
  guarded([&] {
    const WaitReason reason{(group_.rank() + 1) % group_.size(), "work on " + device_->text(), true};
    wait_until(group_, reason, [&] { return device_->is_done(stream) || is_lost(); });
    if (!is_lost()) return;
    stop();
    device_->synchronize(stream);
    if (has_given_up()) throw_lost();
  });
}

}  // namespace onehop::collectives
