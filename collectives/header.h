// The header that ranks exchange before an operation, from which each detects a mismatch by itself.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "onehop/channel.h"
#include "onehop/codec.h"
#include "onehop/collectives/collectives.h"
#include "onehop/patterns.h"

namespace onehop::collectives::detail {

// Describes an operation. Unequal headers are a Mismatch.
struct Header {
  // `settling` is not an operation: it follows a mismatch and states what was sent for the abandoned operation.
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

  // As three words: a comparison field by field is a third of the instructions of a short all-reduce's check.
  friend bool operator==(const Header& a, const Header& b) noexcept {
    using Words = std::array<std::uint64_t, 3>;
    const auto left = std::bit_cast<Words>(a);
    const auto right = std::bit_cast<Words>(b);
    return ((left[0] ^ right[0]) | (left[1] ^ right[1]) | (left[2] ^ right[2])) == 0;
  }
};
static_assert(sizeof(Header) == 24 && std::has_unique_object_representations_v<Header>);

// "all-reduce"
[[nodiscard]] std::string_view short_name(Header::Kind kind) noexcept;

// "an all-reduce of 24 float32 in shape (4, 6) (sum)", for a message about its difference from `other`.
[[nodiscard]] std::string describe(const Header& what, const Header& other);

// Packs extents into 64 bits, with -1 between those of several arrays. For one array of up to eight dimensions with
// ordinary extents, shape_text can restore them from the word and the number of elements; otherwise the word is a hash.
// 0 stands for no extents, or for a single one, which equals the number of elements.
[[nodiscard]] std::uint64_t shape_word(std::span<const std::int64_t> extents);
// Returns " in shape (4, 6)", or an empty string for 0 and for a hash. If the number of elements is unknown (0), the
// last extent is left open.
[[nodiscard]] std::string shape_text(std::uint64_t word, std::int64_t elements);

// The first cache line of a rank without its flag: the header, and the start of a short contribution. The rest of the
// contribution follows in further lines, each with its own flag, so that a receiver fetches all lines at the same time.
// Over a network the payload is longer instead (Exchange::first_line_bytes).
struct Line {
  static constexpr std::size_t payload_bytes = 32;
  Header header;
  std::array<std::byte, payload_bytes> payload;
};
static_assert(sizeof(Line) == 56);

// In place of a contribution: the lengths that a rank knows in an operation that moves blocks of any lengths. `sum`
// is the sum of hashes of the lengths that it sends, less those of the lengths that it receives. If both ends of every
// path have the same length, the sums of all ranks add up to 0.
struct BlockLengths {
  std::uint64_t sum = 0;
  std::int64_t to_you = 0;
  std::int64_t from_you = 0;
};
inline constexpr std::size_t lengths_at = sizeof(Line) - sizeof(BlockLengths);
[[nodiscard]] std::uint64_t length_hash(int from, int to, std::int64_t bytes) noexcept;

inline constexpr std::size_t more_lines = 3;
inline constexpr std::size_t more_bytes = 56;  // of each
inline constexpr std::size_t in_line_bytes = Line::payload_bytes + more_lines * more_bytes;

}  // namespace onehop::collectives::detail
