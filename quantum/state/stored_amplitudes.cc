#include "quantum/state/stored_amplitudes.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "onehop/error.h"
#include "quantum/engine/engine_diagonal.h"
#include "quantum/engine/engine_encoded.h"
#include "quantum/state/precision.h"
#include "quantum/state/state_impl.h"
#include "src/base/clock.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

constexpr std::size_t at_once = 3;  // tiles in memory: one is read, one is worked on, one is written
constexpr int most_low_bits = 17;
constexpr int usual_high_bits = 9;
constexpr int least_high_bits = 5;

std::int64_t whole_units(std::int64_t bytes) {
  constexpr auto unit = static_cast<std::int64_t>(AmplitudeFile::unit);
  return (bytes + unit - 1) / unit * unit;
}

// What the three threads tell each other.
class Turns {
 public:
  // Waits until `ready`; false: another thread has failed.
  template <typename Ready>
  bool wait(const Ready& ready) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ != nullptr || ready(); });
    return error_ == nullptr;
  }
  void advance(std::size_t& count) {
    const std::lock_guard lock(mutex_);
    ++count;
    changed_.notify_all();
  }
  // Runs a thread's loop, and keeps the first exception.
  template <typename Loop>
  void guarded(const Loop& loop) {
    try {
      loop();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (error_ == nullptr) error_ = std::current_exception();
      changed_.notify_all();
    }
  }
  void rethrow() const {
    if (error_ != nullptr) std::rethrow_exception(error_);
  }

  std::size_t read = 0, done = 0, written = 0;  // tiles

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
};

}  // namespace

DiskTiles disk_tiles(Precision precision, int bits, std::int64_t memory) {
  const auto need = [&](int tile) {
    return bytes_of_amplitudes(precision, tile) * static_cast<std::int64_t>(tile == bits ? 1 : at_once);
  };
  DiskTiles tiles{.tile_bits = bits};
  while (tiles.tile_bits > 1 && need(tiles.tile_bits) > memory) --tiles.tile_bits;
  // The shortest runs that are whole units.
  const int least = is_encoded(precision) ? 15 : 9;
  tiles.low_bits = std::min(bits, std::clamp(tiles.tile_bits - usual_high_bits, least, most_low_bits));
  tiles.needed = need(tiles.tile_bits);
  tiles.smallest = std::min(need(bits), need(std::min(bits, least + least_high_bits)));
  return tiles;
}

StoredAmplitudes::StoredAmplitudes(Precision precision, int bits, const StateOptions& options)
    : precision_(precision),
      bits_(bits),
      tiles_(disk_tiles(precision, bits, options.memory > 0 ? options.memory : available_memory() / 2)),
      file_(options, whole_units(bytes_of_amplitudes(precision, bits))) {
  if (const std::int64_t need = std::max(tiles_.needed, tiles_.smallest);
      tiles_.needed < tiles_.smallest || need > available_memory()) {
    const std::int64_t found = options.memory > 0 ? std::min(options.memory, available_memory()) : available_memory();
    throw Error("a state on disk needs at least " + base::bytes_text(need) + " of memory, found " +
                base::bytes_text(found));
  }
  for (std::size_t i = 0; i < (tiles_.tile_bits == bits ? 1 : at_once); ++i) {
    buffers_.push_back(
        direct_memory(static_cast<std::size_t>(whole_units(bytes_of(tiles_.tile_bits))) + 2 * AmplitudeFile::unit));
  }
}

std::int64_t StoredAmplitudes::bytes_of(int bits) const { return bytes_of_amplitudes(precision_, bits); }

int StoredAmplitudes::window_bits() const noexcept { return std::min(tiles_.tile_bits, 20); }

std::span<std::byte> StoredAmplitudes::memory(std::size_t count) {
  return {buffers_[0].get(), static_cast<std::size_t>(bytes_of(std::bit_width(count) - 1))};
}

std::span<std::byte> StoredAmplitudes::read(std::uint64_t first, std::size_t count) {
  const auto begin = static_cast<std::int64_t>(bytes_per_amplitude(precision_) * static_cast<double>(first));
  const std::int64_t bytes = bytes_of(std::bit_width(count) - 1);
  const std::int64_t from = begin - begin % static_cast<std::int64_t>(AmplitudeFile::unit);
  const std::int64_t to = whole_units(begin + bytes);
  file_.read(from, {buffers_[0].get(), static_cast<std::size_t>(to - from)});
  return {buffers_[0].get() + (begin - from), static_cast<std::size_t>(bytes)};
}

void StoredAmplitudes::write(std::uint64_t first, std::span<const std::byte> numbers) {
  const auto begin = static_cast<std::int64_t>(bytes_per_amplitude(precision_) * static_cast<double>(first));
  const auto bytes = static_cast<std::size_t>(whole_units(static_cast<std::int64_t>(numbers.size())));
  file_.write(begin, {numbers.data(), bytes});
}

void StoredAmplitudes::replace(std::uint64_t first, std::size_t count, std::span<const std::byte> numbers) {
  const std::span<std::byte> there = read(first, count);
  std::ranges::copy(numbers, there.begin());
  const auto begin = static_cast<std::int64_t>(bytes_per_amplitude(precision_) * static_cast<double>(first));
  const std::int64_t from = begin - begin % static_cast<std::int64_t>(AmplitudeFile::unit);
  const std::int64_t to = whole_units(begin + static_cast<std::int64_t>(there.size()));
  file_.write(from, {buffers_[0].get(), static_cast<std::size_t>(to - from)});
}

void StoredAmplitudes::transfer(bool writes, std::uint64_t tile, std::uint64_t outside, std::byte* numbers) {
  const int run_bits = std::countr_one(tile);
  const std::int64_t run = whole_units(bytes_of(run_bits));
  const std::uint64_t high = tile >> run_bits << run_bits;
  for (std::uint64_t r = 0; r < std::uint64_t{1} << std::popcount(high); ++r) {
    const std::uint64_t first = outside | deposit_bits(r, high);
    const auto place = static_cast<std::int64_t>(first >> run_bits) * run;
    std::byte* const at = numbers + static_cast<std::int64_t>(r) * run;
    if (writes) {
      file_.write(place, {at, static_cast<std::size_t>(run)});
    } else {
      file_.read(place, {at, static_cast<std::size_t>(run)});
    }
  }
}

void StoredAmplitudes::for_tiles(std::uint64_t tile, std::span<const std::uint64_t> outsides, const Work& work) {
  Turns turns;
  const std::size_t count = buffers_.size();
  const auto memory_of = [&](std::size_t t) { return buffers_[t % count].get(); };
  std::thread reader([&] {
    turns.guarded([&] {
      for (std::size_t t = 0; t < outsides.size(); ++t) {
        if (!turns.wait([&] { return turns.written + count > t; })) return;
        transfer(false, tile, outsides[t], memory_of(t));
        turns.advance(turns.read);
      }
    });
  });
  std::thread writer([&] {
    turns.guarded([&] {
      for (std::size_t t = 0; t < outsides.size(); ++t) {
        if (!turns.wait([&] { return turns.done > t; })) return;
        transfer(true, tile, outsides[t], memory_of(t));
        turns.advance(turns.written);
      }
    });
  });
  turns.guarded([&] {
    for (std::size_t t = 0; t < outsides.size(); ++t) {
      if (!turns.wait([&] { return turns.read > t; })) return;
      work({memory_of(t), static_cast<std::size_t>(bytes_of(tiles_.tile_bits))}, t);
      turns.advance(turns.done);
    }
  });
  reader.join();
  writer.join();
  turns.rethrow();
}

double StoredAmplitudes::make_pass(const BigPass& pass, const EngineOptions& options, EncodedAmplitudes& encoded) {
  std::vector<std::vector<LocalOperation>> work;
  std::vector<std::uint64_t> outsides;
  const std::uint64_t free = ~pass.tile & ((std::uint64_t{1} << bits_) - 1);
  for (std::uint64_t t = 0; t >> (bits_ - tiles_.tile_bits) == 0; ++t) {
    auto inside = within(pass, deposit_bits(t, free));
    if (inside.empty()) continue;
    outsides.push_back(deposit_bits(t, free));
    work.push_back(std::move(inside));
  }
  std::vector<EncodedAmplitudes> parts;
  double passes = 0;
  for_tiles(pass.tile, outsides, [&](std::span<std::byte> numbers, std::size_t t) {
    EngineCounters of_tile;
    if (is_encoded(precision_)) {
      parts.push_back(encoded.on(numbers, tiles_.tile_bits));
      of_tile = apply_encoded(parts.back(), work[t], options);
    } else {
      with_type(precision_, [&]<typename T>() {
        const std::span amplitudes(reinterpret_cast<std::complex<T>*>(numbers.data()),
                                   std::size_t{1} << tiles_.tile_bits);
        of_tile = quantum::apply<T>(amplitudes, work[t], options);
      });
    }
    passes = std::max(passes, of_tile.passes);
  });
  encoded.finish_parts(parts);
  return passes;
}

EngineCounters StoredAmplitudes::apply_some(std::vector<LocalOperation>& operations, const EngineOptions& options,
                                            EncodedAmplitudes& encoded) {
  const double begin = base::steady_seconds();
  EngineCounters counters;
  std::set<int> begun;
  const auto in_part = [&](const LocalOperation& op) { return op.source >= 0 && begun.contains(op.source); };
  do {
    const BigPass pass = take_big_pass(operations, bits_, tiles_.tile_bits, tiles_.low_bits);
    for (const LocalOperation& op : pass.operations) begun.insert(op.source);
    counters.operations += static_cast<std::int64_t>(pass.operations.size());
    counters.passes += make_pass(pass, options, encoded);
    ++counters.disk_passes;
  } while (std::ranges::any_of(operations, in_part));
  counters.seconds = base::steady_seconds() - begin;
  return counters;
}

}  // namespace onehop::quantum
