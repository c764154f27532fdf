// What a rank waits for, written into its page for `onehop status`, which reads it from another process.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onehop::detail {

// A wait as it is read.
struct WaitSeen {
  int peer = -1;        // -1: several ranks
  double since = 0;     // base::steady_seconds(), which all processes of a machine share
  std::string peer_is;  // "rank 1 (process 7 on node2)"
  std::string what;     // "channel 0 -> 1 (tag 3)"
};

// One wait of a thread of the rank. A sequence number, which is odd while the record is written, protects its readers.
class WaitRecord {
 public:
  // Takes the record for a wait. Returns false if another wait has it.
  [[nodiscard]] bool claim() noexcept;
  // The last three are called by the owner only.
  void write(int peer, double since, std::string_view peer_is, std::string_view what) noexcept;
  void release() noexcept;
  // Nothing if no wait is recorded, or if it changes all the time.
  [[nodiscard]] std::optional<WaitSeen> read() const;

 private:
  // Longer texts are cut.
  static constexpr std::size_t words = 12;
  using Text = std::array<std::atomic<std::uint64_t>, words>;
  static void store(Text& to, std::string_view text) noexcept;
  static std::string load(const Text& from);

  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<std::uint32_t> claimed_{0};
  std::atomic<std::int32_t> peer_{-1};
  std::atomic<std::uint32_t> shown_{0};
  std::atomic<double> since_{0};
  Text peer_is_{};
  Text what_{};
};

}  // namespace onehop::detail
