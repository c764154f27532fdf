#include "collectives/device_reduce.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "onehop/error.h"
#include "onehop/wait.h"
#include "src/base/text.h"
#include "src/device/self_test.h"
#include "src/group/loss.h"

namespace onehop::collectives {
namespace {

using device::AllReduceArguments;
using device::NumberType;
using device::WindowLayout;

// What a rank tells the others.
struct Offer {
  std::uint64_t process = 0;  // random, so that no process of another host or container has the same
  std::uint64_t address = 0;
  std::uint32_t groups = 0;
  device::Kind kind = device::Kind::processor;
  std::int32_t index = 0;
  device::MemoryHandle handle{};
  std::array<char, 512> error{};
};

void keep(std::array<char, 512>& to, const std::string& text) { text.copy(to.data(), to.size() - 1); }

std::uint64_t this_process() {
  static const std::uint64_t number = (std::uint64_t{std::random_device{}()} << 32U) + std::random_device{}();
  return number + static_cast<std::uint64_t>(getpid());
}

std::vector<Offer> exchange(const Group& group, const Offer& own) {
  const auto all = group.allgather(std::as_bytes(std::span(&own, 1)));
  std::vector<Offer> offers(static_cast<std::size_t>(group.size()));
  for (std::size_t r = 0; r < offers.size(); ++r) {
    if (all[r].size() != sizeof(Offer)) throw Mismatch("rank " + std::to_string(r) + " makes no sums on devices");
    std::memcpy(&offers[r], all[r].data(), sizeof(Offer));
    offers[r].error.back() = 0;
  }
  return offers;
}

std::optional<NumberType> number_type(ElementType type) {
  if (type == ElementType::float32) return NumberType::float32;
  if (type == ElementType::float16) return NumberType::float16;
  if (type == ElementType::bfloat16) return NumberType::bfloat16;
  return std::nullopt;
}

std::string kernel_of(Codec codec) { return "onehop_all_reduce_" + std::string(to_string(codec)); }

std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

DeviceReduce::DeviceReduce(const Collectives& collectives, std::shared_ptr<device::Device> device)
    : collectives_(collectives),
      group_(collectives.group()),
      device_(std::move(device)),
      table_(agreed_table(group_, ReducePlace::cards)) {
  const int ranks = group_.size();
  if (ranks != 2 && ranks != 4 && ranks != 8) {
    no_path_ = "kernels add the arrays of 2, 4 or 8 ranks, not of " + std::to_string(ranks);
  } else if (group_.local_ranks().size() != static_cast<std::size_t>(ranks)) {
    no_path_ = "the ranks are on several hosts";  // the same on all ranks: each sees one of another host
  }
  if (no_path_.empty()) connect();
  if (no_path_.empty()) watcher_ = std::thread([this] { watch(); });
}

void DeviceReduce::connect() {
  const auto ranks = static_cast<std::uint32_t>(group_.size());
  Offer own;
  own.process = this_process();
  own.kind = device_->kind();
  own.index = device_->index();
  std::exception_ptr failure;
  try {
    device::check_at_first_use(*device_);
    const device::Stream stream = device_->make_stream();
    window_ = device_->allocate_for_peers(static_cast<std::int64_t>(WindowLayout{ranks, window_groups}.bytes()));
    device_->fill(stream, window_.data(), std::byte{0}, window_.bytes());
    stop_ = device_->allocate_pinned(sizeof(std::uint32_t));
    own.address = reinterpret_cast<std::uint64_t>(window_.data());
    own.handle = device_->handle_of(window_);
    own.groups = device_->resident_groups(kernel_of(Codec::raw), {1, threads, device::all_reduce_shared_bytes});
    for (const Codec codec : {Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3})
      own.groups = std::min(own.groups,
                            device_->resident_groups(kernel_of(codec), {1, threads, device::all_reduce_shared_bytes}));
    device_->synchronize(stream);
  } catch (const Error& error) {
    failure = std::current_exception();
    keep(own.error, error.what());
  }
  const std::vector<Offer> offers = exchange(group_, own);
  if (failure) std::rethrow_exception(failure);
  windows_.assign(ranks, {});
  std::uint32_t on_this_card = 0;  // of this process: their groups must fit on it together
  Offer mapped;
  for (std::size_t r = 0; r < ranks; ++r) {
    const Offer& other = offers[r];
    if (other.error[0] != 0) throw Error("rank " + std::to_string(r) + ": " + other.error.data());
    if (other.kind != own.kind)
      throw Mismatch("expected devices of one kind, found " + std::string(name_of(own.kind)) + " on rank " +
                     std::to_string(group_.rank()) + " and " + std::string(name_of(other.kind)) + " on rank " +
                     std::to_string(r));
    groups_ = std::min(groups_, other.groups);
    if (other.process == own.process && other.index == own.index) ++on_this_card;
    try {
      if (std::cmp_equal(r, group_.rank())) {
        windows_[r] = window_;
      } else if (other.process != own.process) {
        windows_[r] = device_->map(other.handle, window_.bytes());
      } else if (other.index == own.index) {  // ranks that are threads
        windows_[r] = {std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(other.address), [](std::byte*) {}),
                       window_.bytes()};
      } else {
        throw Error("ranks of one process use different cards");
      }
    } catch (const Error& error) {
      keep(mapped.error, error.what());
    }
  }
  mapped.groups = groups_ / on_this_card;
  // A rank that cannot reach another one takes the path of all.
  const std::vector<Offer> results = exchange(group_, mapped);
  for (const Offer& result : results) groups_ = std::min(groups_, result.groups);
  for (std::size_t r = 0; r < ranks && no_path_.empty(); ++r)
    if (results[r].error[0] != 0)
      no_path_ = "rank " + std::to_string(r) + " cannot reach the memory of all others: " + results[r].error.data();
  if (groups_ == 0) no_path_ = "a card holds no group of the kernels";
  if (!no_path_.empty()) windows_.clear();
  meetings_.assign(window_groups, 0);
}

DeviceReduce::~DeviceReduce() {
  {
    const std::lock_guard guard(mutex_);
    ends_ = true;
  }
  ending_.notify_all();
  if (watcher_.joinable()) watcher_.join();
  if (lost_ >= 0 || !broken_.empty()) stop();
}

// Calls no function of a driver, because the program may be capturing a graph.
void DeviceReduce::watch() {
  std::unique_lock guard(mutex_);
  while (!ending_.wait_for(guard, std::chrono::milliseconds(50), [this] { return ends_; })) {
    const int gone = group_.gone_rank();
    if (gone < 0) continue;
    lost_ = gone;
    // A rank that has ended in order may have written what this one waits for.
    if (!ending_.wait_for(guard, std::chrono::milliseconds(200), [this] { return ends_; })) stop();
    return;
  }
}

void DeviceReduce::stop() noexcept {
  auto* const word = reinterpret_cast<std::uint32_t*>(stop_.host.data());
  if (word != nullptr) __atomic_store_n(word, 1U, __ATOMIC_RELEASE);
}

void DeviceReduce::throw_lost() {
  const std::lock_guard guard(mutex_);
  stop();
  report_loss(group_, lost_);
  throw PeerLost(lost_, group_.name_of(lost_) + " is gone; rank " + std::to_string(group_.rank()) + " adds arrays on " +
                            device_->text() + " with it");
}

// Whether a kernel ended at a wait: it has not stored the number of its last meeting then.
bool DeviceReduce::was_ended(const device::Stream& stream) {
  std::vector<std::uint32_t> found(window_groups);
  device_->copy_out(stream, found.data(), window_.data(), window_groups * sizeof(std::uint32_t));
  device_->synchronize(stream);
  for (std::size_t group = 0; group < found.size(); ++group)
    if (static_cast<std::int32_t>(found[group] - meetings_[group]) < 0) return true;
  return false;
}

void DeviceReduce::wait(const device::Stream& stream) {
  const auto is_lost = [this] {
    const std::lock_guard guard(mutex_);
    return lost_ >= 0;
  };
  const WaitReason reason{(group_.rank() + 1) % group_.size(), "a sum on " + device_->text(), true};
  try {
    wait_until(group_, reason, [&] { return device_->is_done(stream) || is_lost(); });
    if (!is_lost()) return;
    stop();
    device_->synchronize(stream);
    if (no_path_.empty() && was_ended(stream)) throw_lost();
  } catch (const Error& error) {
    stop();
    broken_ = error.what();
    throw;
  }
}

DeviceChoice DeviceReduce::choose(const Reduction& reduction, int shots) const {
  if (shots < 0 || shots > 2) throw BadInput("expected 0, 1 or 2 shots, found " + std::to_string(shots));
  if (reduction.elements < 0)
    throw BadInput("expected a number of elements of at least 0, found " + std::to_string(reduction.elements));
  if (!takes(reduction.codec, reduction.type))
    throw BadInput("the codec " + std::string(to_string(reduction.codec)) + " is not for " +
                   std::string(to_string(reduction.type)));
  if (group_.size() > most_ranks(reduction.codec))
    throw BadInput("the codec " + std::string(to_string(reduction.codec)) + " is for groups of " +
                   std::to_string(most_ranks(reduction.codec)) + " ranks, found " + std::to_string(group_.size()));
  DeviceChoice choice;
  const auto type = number_type(reduction.type);
  if (!no_path_.empty()) {
    choice.reason = no_path_;
  } else if (!type) {
    choice.reason = "kernels add float32, float16 and bfloat16, not " + std::string(to_string(reduction.type));
  } else if (reduction.op != ReduceOp::sum) {
    choice.reason = "kernels compute sums, not " + std::string(to_string(reduction.op));
  } else {
    const auto ranks = static_cast<std::uint32_t>(group_.size());
    const std::int64_t bytes = reduction.elements * bytes_of(reduction.type);
    const ReduceRule& rule = table_.rule(bytes, reduction.codec != Codec::raw);
    choice.shots = shots != 0 ? shots : rule.algorithm == ReduceAlgorithm::one_shot ? 1 : 2;
    const std::uint32_t segments = choice.shots == 2 ? ranks : 1;
    const std::uint64_t tiles = rounded_up(static_cast<std::uint64_t>(reduction.elements), device::tile_numbers);
    choice.tiles = tiles > std::uint64_t{groups_} * segments ? device::most_tiles : 1;
    choice.groups = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(rounded_up(tiles, std::uint64_t{segments} * choice.tiles), 1, groups_));
  }
  return choice;
}

void DeviceReduce::count_meetings(const DeviceChoice& choice, std::uint64_t tiles) {
  const std::uint64_t per_round =
      std::uint64_t{choice.shots == 2 ? static_cast<std::uint32_t>(group_.size()) : 1U} * choice.tiles;
  for (std::uint32_t group = 0; group < choice.groups; ++group) {
    const std::uint64_t first = group * per_round;
    const std::uint64_t rounds = first < tiles ? rounded_up(tiles - first, choice.groups * per_round) : 0;
    meetings_[group] += static_cast<std::uint32_t>(rounds) * static_cast<std::uint32_t>(choice.shots);
  }
}

void DeviceReduce::run(const device::Stream& stream, const void* source, void* target, const Reduction& reduction,
                       int shots) {
  const DeviceChoice choice = choose(reduction, shots);
  if (!broken_.empty()) throw Error("this group cannot add arrays on devices any more: " + broken_);
  if (reduction.elements == 0) return;
  {
    std::unique_lock guard(mutex_);
    if (lost_ >= 0) {
      guard.unlock();
      throw_lost();
    }
  }
  try {
    if (choice.shots == 0) {
      through_host(stream, source, target, reduction);
      return;
    }
    AllReduceArguments arguments{};
    for (std::size_t r = 0; r < windows_.size(); ++r)
      arguments.windows[r] = reinterpret_cast<unsigned char*>(windows_[r].data());
    arguments.source = source;
    arguments.target = target;
    arguments.count = static_cast<std::uint64_t>(reduction.elements);
    arguments.stop = reinterpret_cast<const std::uint32_t*>(stop_.on_device);
    arguments.type = *number_type(reduction.type);
    arguments.rank = static_cast<std::uint32_t>(group_.rank());
    arguments.ranks = static_cast<std::uint32_t>(group_.size());
    arguments.window_groups = window_groups;
    launch(stream, arguments, choice, reduction.codec);
  } catch (const Mismatch&) {
    throw;  // nothing has been added on any rank
  } catch (const Error& error) {
    broken_ = error.what();
    group_.abort();  // the others wait for this rank
    throw;
  }
}

void DeviceReduce::launch(const device::Stream& stream, const AllReduceArguments& prepared, const DeviceChoice& choice,
                          Codec codec) {
  AllReduceArguments arguments = prepared;
  arguments.tiles = choice.tiles;
  arguments.shots = static_cast<std::uint32_t>(choice.shots);
  device_->launch(stream, kernel_of(codec), {choice.groups, threads, device::all_reduce_shared_bytes}, arguments);
  count_meetings(choice, rounded_up(arguments.count, device::tile_numbers));
  // The processor has run the kernel already.
  if (device_->kind() == device::Kind::processor && __atomic_load_n(arguments.stop, __ATOMIC_ACQUIRE) != 0 &&
      was_ended(stream))
    throw_lost();
}

void DeviceReduce::through_host(const device::Stream& stream, const void* source, void* target,
                                const Reduction& reduction) {
  const std::int64_t bytes = reduction.elements * bytes_of(reduction.type);
  if (staging_.host.bytes() < bytes) staging_ = device_->allocate_pinned(bytes);
  const std::span<std::byte> host(staging_.host.data(), static_cast<std::size_t>(bytes));
  device_->copy_out(stream, host.data(), static_cast<const std::byte*>(source), bytes);
  device_->synchronize(stream);
  collectives_.allreduce(reduction).run(host, host);
  device_->copy_in(stream, static_cast<std::byte*>(target), host.data(), bytes);
  device_->synchronize(stream);  // the next sum may use the same memory
}

}  // namespace onehop::collectives
