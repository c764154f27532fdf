// Amplitudes in a file, of which memory holds a few tiles.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "onehop/quantum/state.h"
#include "quantum/engine/big_tiles.h"
#include "quantum/engine/encoded_amplitudes.h"
#include "quantum/state/amplitude_file.h"

namespace onehop::quantum {

// The tiles of a state of 2^bits amplitudes of which so many bytes of memory hold a few.
struct DiskTiles {
  int tile_bits = 0;
  int low_bits = 0;           // always in a tile, so that transfers are long
  std::int64_t needed = 0;    // bytes of memory for them
  std::int64_t smallest = 0;  // with less memory there are none
};
[[nodiscard]] DiskTiles disk_tiles(Precision precision, int bits, std::int64_t memory);

class StoredAmplitudes {
 public:
  // For 2^bits amplitudes, all 0, in a file in options.folder. Throws Error if options.memory, or what is available,
  // does not suffice for a few tiles, and as AmplitudeFile does.
  StoredAmplitudes(Precision precision, int bits, const StateOptions& options);

  [[nodiscard]] int window_bits() const noexcept;
  [[nodiscard]] AmplitudeFile& file() noexcept { return file_; }

  // Read and write the numbers that are kept, from amplitude `first` on; what is written are whole windows. The result
  // of read() is valid until the next call.
  [[nodiscard]] std::span<std::byte> read(std::uint64_t first, std::size_t count);
  void write(std::uint64_t first, std::span<const std::byte> numbers);
  // Writes the numbers of `count` amplitudes, which may be less than whole units.
  void replace(std::uint64_t first, std::size_t count, std::span<const std::byte> numbers);
  // Memory for the numbers of a window.
  [[nodiscard]] std::span<std::byte> memory(std::size_t count);

  // Applies as many of these operations as one pass can, or a few if it leaves none done in part, and takes them out of
  // the list: reads, works on and writes one tile after the other, three of them at once. `encoded`: the scale of the
  // state, if it is an encoded one.
  EngineCounters apply_some(std::vector<LocalOperation>& operations, const EngineOptions& options,
                            EncodedAmplitudes& encoded);

 private:
  using Work = std::function<void(std::span<std::byte> numbers, std::size_t number)>;
  [[nodiscard]] std::int64_t bytes_of(int bits) const;
  void transfer(bool writes, std::uint64_t tile, std::uint64_t outside, std::byte* numbers);
  double make_pass(const BigPass& pass, const EngineOptions& options, EncodedAmplitudes& encoded);
  // Calls work() for each tile, while a thread reads the next one and another writes the last one.
  void for_tiles(std::uint64_t tile, std::span<const std::uint64_t> outsides, const Work& work);

  Precision precision_;
  int bits_;
  DiskTiles tiles_;
  AmplitudeFile file_;
  std::vector<DirectMemory> buffers_;
};

}  // namespace onehop::quantum
