// A file without a name that holds the amplitudes of a rank, read and written past the system's cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>

#include "onehop/quantum/state.h"

namespace onehop::quantum {

// Memory at a multiple of what direct transfers need.
struct FreeDirectMemory {
  void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t{4096}); }
};
using DirectMemory = std::unique_ptr<std::byte[], FreeDirectMemory>;
[[nodiscard]] DirectMemory direct_memory(std::size_t bytes);

class AmplitudeFile {
 public:
  static constexpr std::size_t unit = 4096;  // of places, lengths and addresses

  // Reserves `bytes` on the disk of the folder. Throws BadInput for a folder that is not there, and Error if its disk
  // has too little space.
  AmplitudeFile(const std::string& folder, std::int64_t bytes);
  ~AmplitudeFile();
  AmplitudeFile(const AmplitudeFile&) = delete;
  AmplitudeFile& operator=(const AmplitudeFile&) = delete;

  // Transfer whole units. Two threads may transfer at once. Throw Error if the disk fails.
  void read(std::int64_t place, std::span<std::byte> to);
  void write(std::int64_t place, std::span<const std::byte> from);
  [[nodiscard]] DiskCounters counters() const;

  // For tests: the transfer after so many more fails; negative: none does.
  static std::atomic<std::int64_t> transfers_until_error;

 private:
  void transfer(bool writes, std::int64_t place, std::byte* memory, std::size_t bytes);

  std::string folder_;
  int file_ = -1;
  mutable std::mutex mutex_;
  DiskCounters counters_;
  int under_way_ = 0;
  double began_ = 0;
};

}  // namespace onehop::quantum
