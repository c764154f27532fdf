// Files that hold the amplitudes of a rank, read and written past the system's cache.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "onehop/quantum/state.h"
#include "src/base/output_folder.h"

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

  // Reserves `bytes` on the disk of options.folder: in a file without a name, which is gone when the process ends,
  // however it ends, or in one of the two of options.file, which is gone when the object is, unless it is complete().
  // Throws BadInput for a folder that is not there, and Error if its disk has too little space.
  AmplitudeFile(const StateOptions& options, std::int64_t bytes);
  ~AmplitudeFile();
  AmplitudeFile(const AmplitudeFile&) = delete;
  AmplitudeFile& operator=(const AmplitudeFile&) = delete;

  // Transfer whole units. Two threads may transfer at once. Throw Error if the disk fails.
  void read(std::int64_t place, std::span<std::byte> to);
  void write(std::int64_t place, std::span<const std::byte> from);
  [[nodiscard]] DiskCounters counters() const;

  // The number of the file that is written, 0 or 1; -1: it has no name.
  [[nodiscard]] int number() const noexcept { return name_.empty() ? -1 : number_; }
  // From now on what was not written is that of the other file. Throws BadInput if that is not there.
  void adopt();
  // Writes what is in the other file only, and waits until all is on the disk. The file then stays.
  void complete();
  // From now on writes the other file, which is a new one; the present one, which is complete, is only read.
  void turn();

  // For tests: the transfer after so many more fails; negative: none does.
  static std::atomic<std::int64_t> transfers_until_error;

 private:
  void transfer(bool writes, std::int64_t place, std::byte* memory, std::size_t bytes);
  [[noreturn]] void fail(const std::string& what, int code) const;
  [[nodiscard]] std::string name(int number) const { return name_ + "." + std::to_string(number); }  // for messages
  [[nodiscard]] std::string path(int number) const {
    return place_.file(std::filesystem::path(name(number)).filename());
  }
  [[nodiscard]] int make_file() const;
  [[nodiscard]] bool has_name() const;

  std::string folder_;  // for messages
  onehop::detail::OutputFolder place_;
  std::string name_;
  std::int64_t bytes_;
  int number_;
  bool stays_ = false;
  int file_ = -1;
  int kept_ = -1;                    // the other file, if it has a part of the amplitudes
  std::vector<std::uint8_t> fresh_;  // for each unit, whether `file_` has it; bytes, because two threads write
  mutable std::mutex mutex_;
  DiskCounters counters_;
  int under_way_ = 0;
  double began_ = 0;
};

}  // namespace onehop::quantum
