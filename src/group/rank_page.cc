#include "src/group/rank_page.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "src/base/clock.h"

namespace onehop::detail {
namespace {

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* limit) noexcept {
  // Not FUTEX_PRIVATE: the waker may be another process.
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit, nullptr, 0);
}

}  // namespace

void DeviceName::write(std::string_view name) noexcept {
  std::array<std::uint64_t, 2> words{};
  name.copy(reinterpret_cast<char*>(words.data()), sizeof words - 1);  // takes an empty name without memory, too
  for (std::size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_relaxed);
}

std::string DeviceName::read() const {
  std::array<char, sizeof words_ + 1> text{};
  for (std::size_t i = 0; i < words_.size(); ++i) {
    const std::uint64_t word = words_[i].load(std::memory_order_relaxed);
    std::memcpy(text.data() + i * sizeof word, &word, sizeof word);
  }
  return text.data();
}

void note_device(RankPage& page, std::string_view device, bool works) noexcept {
  const std::string name(device.substr(0, 15));
  const auto place = std::ranges::find(page.down, works ? name : std::string(), &DeviceName::read);
  if (place != page.down.end()) place->write(works ? std::string_view() : device);
}

ShownStep::ShownStep(RankPage& page) noexcept {
  page.steps.fetch_add(1, std::memory_order_relaxed);
  for (WaitRecord& record : page.waits) {
    if (!record.claim()) continue;
    record_ = &record;
    record.write(-1, base::steady_seconds(), "", "a collective step (barrier, all-gather, opening channels, split)");
    return;
  }
}

ShownStep::~ShownStep() {
  if (record_ != nullptr) record_->release();
}

void ring(RankPage& page) noexcept {
  page.bell.fetch_add(1, std::memory_order_seq_cst);
  futex(page.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

void sleep_on(RankPage& page, std::uint32_t seen, double seconds) noexcept {
  const timespec limit{static_cast<time_t>(seconds),
                       static_cast<long>((seconds - static_cast<double>(static_cast<time_t>(seconds))) * 1e9)};
  futex(page.bell, FUTEX_WAIT, seen, &limit);
}

}  // namespace onehop::detail
