// The table of codecs, of which the functions of codec.h, the tables of all-reduce algorithms, the names in Python and
// the constants of the Triton kernels are made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "onehop/codec.h"

namespace onehop {

// A codec apart from its loops.
struct CodecInfo {
  std::string_view name;
  std::int64_t block = 1;        // numbers that share a scale; 1: without a scale
  std::int64_t block_bytes = 0;  // of a block on the wire; 0: those of the type
  int levels = 0;                // the largest code, where codes are integers that are multiplied by the scale
  int most_ranks = std::numeric_limits<int>::max();  // in reductions
  // The size in bytes from which reducing a float32 array in shared memory is faster than raw without a tuning file:
  // between two ranks, and between more.
  std::array<std::int64_t, 2> faster_above{};
};

// By number.
[[nodiscard]] std::span<const CodecInfo> codecs() noexcept;
[[nodiscard]] inline const CodecInfo& codec_info(Codec codec) noexcept {
  return codecs()[static_cast<std::size_t>(codec)];
}

}  // namespace onehop
