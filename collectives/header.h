// What ranks tell each other before an operation, so that each finds out by itself if another one does something else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "onehop/channel.h"
#include "onehop/codec.h"
#include "onehop/collectives/collectives.h"
#include "onehop/patterns.h"

namespace onehop::collectives::detail {

// What an operation is. Equal on all ranks, or it is a mismatch.
struct Header {
  // `settling` is no operation: it comes after a mismatch and says what was sent for the operation that was not.
  // `refused` comes from a rank that has no memory for the operation.
  enum class Kind : std::uint8_t {
    barrier,
    allreduce,
    reduce_scatter,
    allgather,
    broadcast,
    all_to_all,
    settling,
    refused
  };
  Kind kind = Kind::barrier;
  ElementType type = ElementType::bytes;
  ReduceOp op = ReduceOp::sum;
  Codec codec = Codec::raw;
  ReduceAlgorithm algorithm = ReduceAlgorithm::automatic;
  std::uint8_t log2_chunk = 0;
  std::uint16_t root = 0;
  std::int64_t elements = 0;
  std::uint64_t shape = 0;  // shape_word of the arrays' extents

  friend bool operator==(const Header&, const Header&) = default;
};
static_assert(sizeof(Header) == 24);

// "an all-reduce of 24 float32 in shape (4, 6) (sum, raw, ...)"
[[nodiscard]] std::string describe(const Header& what);

// Extents in 64 bits, with -1 between those of several arrays. Of one array of up to eight dimensions whose extents are
// not out of the ordinary the number can be read back, knowing its elements; else it is a hash. 0 says nothing: no
// extents, or one, which the number of elements says already.
[[nodiscard]] std::uint64_t shape_word(std::span<const std::int64_t> extents);
// " in shape (4, 6)", empty for 0. Where the elements are not known (0) the last extent is left open.
[[nodiscard]] std::string shape_text(std::uint64_t word, std::int64_t elements);

// A rank's first cache line but for its flag: the header, and the begin of what is short. What does not fit follows in
// lines that are nothing else, each with a flag of its own: so all lines come at once, and not the flag first.
struct Line {
  static constexpr std::size_t payload_bytes = 32;
  Header what;
  std::array<std::byte, payload_bytes> payload;
};
static_assert(sizeof(Line) == 56);
inline constexpr std::size_t more_lines = 3;
inline constexpr std::size_t more_bytes = 56;  // of each
inline constexpr std::size_t in_line_bytes = Line::payload_bytes + more_lines * more_bytes;

}  // namespace onehop::collectives::detail
