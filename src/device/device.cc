#include "src/device/device.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <mutex>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/device/kernels.h"
#include "src/group/liveness.h"
#include "src/group/shared_memory.h"

namespace onehop::device {

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 3> names{"processor", "cuda", "hip"};
  return names[static_cast<std::size_t>(kind)];
}

std::string Device::text() const {
  std::string found(name_of(kind_));
  if (kind_ != Kind::processor) found += ":" + std::to_string(index_) + " (" + model_ + ")";
  return found;
}

std::shared_ptr<Device> Device::named(const std::string& name) {
  if (name == "processor") return processor();
  const std::size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  int index = 0;
  bool good = kind == "cuda" || kind == "hip";
  if (good && colon != std::string::npos) {
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + colon + 1, end, index);
    good = error == std::errc() && rest == end && index >= 0;
  }
  if (!good) {
    throw BadInput("expected a device as \"cuda\", \"cuda:1\", \"hip\", \"hip:1\" or \"processor\", found '" + name +
                   "'");
  }
  return kind == "cuda" ? cuda(index) : hip(index);
}

namespace {

std::uint64_t this_process() {
  static const std::uint64_t number = (std::uint64_t{std::random_device{}()} << 32U) + std::random_device{}();
  return number + static_cast<std::uint64_t>(getpid());
}

// The processes that map memory, each once for every rank; the others are 0.
constexpr std::size_t most_users = 1024;
std::span<pid_t> list_of(const detail::SharedMemory& users) {
  return {reinterpret_cast<pid_t*>(users.data()), most_users};
}

bool is_mapped(const detail::SharedMemory& users) {
  for (pid_t& user : list_of(users)) {
    const pid_t process = __atomic_load_n(&user, __ATOMIC_ACQUIRE);
    if (process != 0 && !detail::ProcessWatch(1).ended(0, process)) return true;
  }
  return false;
}

// Memory that this process does not need any more, and who maps it.
using Left = std::pair<Memory, detail::SharedMemory>;
std::mutex left_mutex;
std::vector<Left>& left() {
  static auto& all = *new std::vector<Left>;
  return all;
}

}  // namespace

bool Device::free_unmapped() {
  std::vector<Left> unmapped;  // is freed behind the lock
  const std::lock_guard guard(left_mutex);
  std::erase_if(left(), [&](Left& one) {
    if (is_mapped(one.second)) return false;
    unmapped.push_back(std::move(one));
    return true;
  });
  return !left().empty();
}

// Frees what is left once its users have unmapped it, though this process does nothing more on its cards.
void Device::free_soon() {
  static std::atomic<bool> running = false;
  if (!free_unmapped() || running.exchange(true)) return;
  std::thread([] {
    do std::this_thread::sleep_for(std::chrono::milliseconds(20));
    while (free_unmapped());
    running = false;
    free_soon();  // for what was left meanwhile
  }).detach();
}

// The system keeps memory of the processor while it is mapped.
SharedPlace Device::share(Memory& memory) {
  SharedPlace place{.process = this_process(),
                    .address = reinterpret_cast<std::uint64_t>(memory.data()),
                    .bytes = memory.bytes(),
                    .index = index_,
                    .handle = handle_of(memory)};
  if (kind_ == Kind::processor) return place;
  const auto users = detail::SharedMemory::create(most_users * sizeof(pid_t), "the list of who maps memory");
  place.owner = getpid();
  place.users = users.fd();
  const auto leave = [whole = memory, users = users](std::byte*) mutable {
    {
      const std::lock_guard guard(left_mutex);
      left().emplace_back(std::move(whole), std::move(users));
    }
    free_soon();
  };
  memory = {std::shared_ptr<std::byte>(memory.data(), leave), memory.bytes()};
  return place;
}

// Drivers do not map memory of the own process.
Memory Device::reach(const SharedPlace& place) {
  const bool is_own = place.process == this_process();
  if (is_own && place.index != index_) throw Error("ranks of one process use different cards");
  const auto reached = [&]() -> Memory {
    if (!is_own) return map(place.handle, place.bytes);
    return {std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(place.address), [](std::byte*) {}), place.bytes};
  };
  if (place.users < 0) return reached();
  const auto users = detail::SharedMemory::open(place.owner, place.users, most_users * sizeof(pid_t));
  for (pid_t& user : list_of(users)) {
    pid_t nobody = 0;
    if (!__atomic_compare_exchange_n(&user, &nobody, getpid(), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    const std::shared_ptr<pid_t> listed(&user, [users](pid_t* at) {
      pid_t own = getpid();  // a forked child leaves the entry of its parent
      __atomic_compare_exchange_n(at, &own, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    });
    const Memory found = reached();
    const auto leave = [mapped = found, listed = listed](std::byte*) mutable {
      mapped = {};
      listed = nullptr;
      free_unmapped();
    };
    return {std::shared_ptr<std::byte>(found.data(), leave), place.bytes};
  }
  throw Error("more than " + std::to_string(most_users) + " ranks map memory of one device");
}

void check_arguments(std::string_view kernel, std::size_t bytes) {
  const std::size_t expected = find_kernel(kernel).argument_bytes;
  if (bytes == expected) return;
  throw BadInput("expected " + std::to_string(expected) + " bytes of arguments for the kernel " + std::string(kernel) +
                 ", found " + std::to_string(bytes));
}

}  // namespace onehop::device
