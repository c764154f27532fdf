// The time line of a run (ONEHOP_TRACE): events of this process, kept in memory and written to a file of the rank, from
// which the last rank that ends makes the one file of the run (trace_file.cc). Off, it costs nothing on the hot path: a
// plan that is traced has a watch (src/plan/run/plan_watch.h), and all else asks is_on() where it waits or begins.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/output_folder.h"

namespace onehop::trace {

enum class Kind : std::uint32_t { wait, plan, collective, pass, exchange, solver };
inline constexpr int kinds = 6;

struct Event {
  std::int64_t begin = 0;  // nanoseconds of the steady clock
  std::int64_t end = 0;
  std::uint32_t name = 0;  // of name_of()
  Kind kind = Kind::wait;
  std::int32_t peer = -1;  // a wait: the rank of the world that was waited for
  std::uint32_t count = 0;
  std::int64_t bytes = 0;
};
static_assert(sizeof(Event) == 40);

namespace detail {
inline std::atomic<bool> on{false};
}

[[nodiscard]] inline bool is_on() noexcept { return detail::on.load(std::memory_order_relaxed); }
[[nodiscard]] inline std::int64_t now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Whether ONEHOP_TRACE names a file.
[[nodiscard]] bool is_wanted();
// Begins the trace of this process, which is a rank of the world on the machine of this name; the first call counts.
// `clock_ahead` is how far its steady clock is ahead of that of rank 0, in seconds. An error is one line on stderr.
void begin(int rank, int ranks, const std::string& machine, double clock_ahead) noexcept;
// The number of a name, the same for equal names.
[[nodiscard]] std::uint32_t name_of(std::string_view name);
void record(const Event& event) noexcept;
// Adds to the bytes that this rank has sent to another one.
void sent(int peer, std::int64_t bytes) noexcept;

// Records the time from its construction to its end.
class Scope {
 public:
  Scope(Kind kind, std::string_view name, std::int64_t bytes = 0, std::uint32_t count = 0) {
    if (!is_on()) return;
    event_ = {.name = name_of(name), .kind = kind, .count = count, .bytes = bytes};
    event_.begin = now();
  }
  ~Scope() {
    if (event_.begin == 0) return;
    event_.end = now();
    record(event_);
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Event event_;
};

// Makes the file of a run from those of its ranks, and removes them. Returns the ranks; 0 if there are none. With
// `complete`, only if all ranks have ended and no other process does so. Throws BadInput.
int merge(const std::string& file, bool complete);

namespace detail {

// What a rank's file begins with. Blocks follow.
struct FileHead {
  static constexpr std::uint64_t magic = 0x31656361'7274686fULL;
  std::uint64_t mark = magic;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  double clock_ahead = 0;
  char machine[64] = {};
};

struct Block {
  enum class Kind : std::uint32_t { name, events, sent };
  Kind kind = Kind::name;
  std::uint32_t number = 0;  // of the name, or of the thread
  std::uint64_t bytes = 0;
};

// As merge() above, in an open folder.
int merge(const onehop::detail::OutputFolder& folder, const std::string& file, bool complete);

[[nodiscard]] std::string file_of_rank(const std::string& file, int rank, bool ended);

// Opens a new file in the place of what has this name, for writing, and never through a link that another user may have
// put there. -1 and errno if that fails.
[[nodiscard]] int new_file(const std::string& path) noexcept;

}  // namespace detail
}  // namespace onehop::trace
