#include "src/group/wait_record.h"

#include <algorithm>
#include <cstring>

namespace onehop::detail {

bool WaitRecord::claim() noexcept {
  std::uint32_t free = 0;
  return claimed_.compare_exchange_strong(free, 1, std::memory_order_acquire);
}

void WaitRecord::store(Text& to, std::string_view text) noexcept {
  std::array<char, words * sizeof(std::uint64_t)> bytes{};
  text.copy(bytes.data(), bytes.size() - 1);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i * sizeof word, sizeof word);
    to[i].store(word, std::memory_order_relaxed);
  }
}

std::string WaitRecord::load(const Text& from) {
  std::array<char, words * sizeof(std::uint64_t)> bytes{};
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = from[i].load(std::memory_order_acquire);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
  return {bytes.data(), strnlen(bytes.data(), bytes.size())};
}

void WaitRecord::write(int peer, double since, std::string_view peer_is, std::string_view what) noexcept {
  const std::uint32_t before = sequence_.load(std::memory_order_relaxed);
  // An exchange that acquires, so that no store below comes before it (a fence would do, but not for ThreadSanitizer).
  sequence_.exchange(before + 1, std::memory_order_acq_rel);
  peer_.store(peer, std::memory_order_relaxed);
  since_.store(since, std::memory_order_relaxed);
  store(peer_is_, peer_is);
  store(what_, what);
  shown_.store(1, std::memory_order_relaxed);
  sequence_.store(before + 2, std::memory_order_release);
}

void WaitRecord::release() noexcept {
  shown_.store(0, std::memory_order_release);
  claimed_.store(0, std::memory_order_release);
}

std::optional<WaitSeen> WaitRecord::read() const {
  constexpr int most_tries = 100;  // a process may have been stopped in the middle of writing
  for (int tries = 0; tries < most_tries; ++tries) {
    const std::uint32_t before = sequence_.load(std::memory_order_acquire);
    if (shown_.load(std::memory_order_acquire) == 0) return std::nullopt;
    // Each load acquires, so that the sequence number is read again after all of them.
    WaitSeen seen{peer_.load(std::memory_order_acquire), since_.load(std::memory_order_acquire), load(peer_is_),
                  load(what_)};
    if (before % 2 == 0 && sequence_.load(std::memory_order_relaxed) == before) return seen;
  }
  return std::nullopt;
}

}  // namespace onehop::detail
