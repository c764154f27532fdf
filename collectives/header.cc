#include "collectives/header.h"

#include <algorithm>

namespace onehop::collectives::detail {

namespace {

// A word from which extents can be restored: bit 63 is 0, bits 60 to 62 are the dimensions less one, and all extents
// but the last share the rest evenly, the first one lowest. A hash: bit 63 is 1.
constexpr std::size_t max_dims = 8;
constexpr int extent_bits = 60;
constexpr std::uint64_t is_hash = std::uint64_t{1} << 63;

int bits_each(std::size_t dims) { return extent_bits / static_cast<int>(dims - 1); }

bool fits(std::span<const std::int64_t> extents) {
  if (extents.size() > max_dims) return false;
  const std::int64_t limit = std::int64_t{1} << bits_each(extents.size());
  // With an extent of 0, the number of elements does not determine the last extent.
  return std::all_of(extents.begin(), extents.end(), [](std::int64_t n) { return n > 0; }) &&
         std::all_of(extents.begin(), extents.end() - 1, [=](std::int64_t n) { return n < limit; });
}

std::uint64_t hash(std::span<const std::int64_t> extents) {
  std::uint64_t value = 0xcbf29ce484222325U;
  for (const std::int64_t n : extents) {
    value = (value ^ static_cast<std::uint64_t>(n)) * 0x9e3779b97f4a7c15U;
    value ^= value >> 29;
  }
  return value | is_hash;
}

}  // namespace

std::uint64_t shape_word(std::span<const std::int64_t> extents) {
  if (extents.size() < 2) return 0;
  if (!fits(extents)) return hash(extents);
  std::uint64_t word = static_cast<std::uint64_t>(extents.size() - 1) << extent_bits;
  const int bits = bits_each(extents.size());
  for (std::size_t i = 0; i + 1 < extents.size(); ++i)
    word |= static_cast<std::uint64_t>(extents[i]) << (bits * static_cast<int>(i));
  return word;
}

std::string shape_text(std::uint64_t word, std::int64_t elements) {
  if (word == 0) return "";
  if ((word & is_hash) != 0) return "";
  const auto dims = static_cast<std::size_t>(word >> extent_bits) + 1;
  const int bits = bits_each(dims);
  const bool known = elements != 0;
  std::string text = " in shape (";
  for (std::size_t i = 0; i + 1 < dims; ++i) {
    const auto extent =
        static_cast<std::int64_t>(word >> (bits * static_cast<int>(i)) & ((std::uint64_t{1} << bits) - 1));
    text += std::to_string(extent) + ", ";
    elements /= extent;
  }
  return text + (known ? std::to_string(elements) : "...") + ")";
}

std::uint64_t length_hash(int from, int to, std::int64_t bytes) noexcept {
  std::uint64_t value = (static_cast<std::uint64_t>(from) << 32U | static_cast<std::uint32_t>(to)) + 1;
  for (const std::uint64_t next : {static_cast<std::uint64_t>(bytes), std::uint64_t{0}}) {
    value = (value ^ value >> 31U) * 0x9e3779b97f4a7c15U + next;
  }
  return (value ^ value >> 29U) * 0xbf58476d1ce4e5b9U;
}

std::string_view short_name(Header::Kind kind) noexcept {
  constexpr std::array<std::string_view, 6> names{"barrier",    "all-reduce", "reduce-scatter",
                                                  "all-gather", "broadcast",  "all-to-all"};
  const auto place = static_cast<std::size_t>(kind);
  return place < names.size() ? names[place] : "recovery";
}

namespace {

// The operation and the codec, and the settings that the library chooses where they alone differ from those of `other`.
std::string settings(const Header& what, const Header& other) {
  std::string text = " (" + std::string(to_string(what.op));
  if (what.codec != Codec::raw || other.codec != Codec::raw) text += ", codec " + std::string(to_string(what.codec));
  Header same = other;
  same.algorithm = what.algorithm;
  same.log2_chunk = what.log2_chunk;
  if (same == what && !(what == other)) {
    text += ", algorithm " + std::string(to_string(what.algorithm)) + ", chunks of at most 2^" +
            std::to_string(what.log2_chunk) + " elements: do all ranks have the same tuning file?";
  }
  return text + ")";
}

// A hash says only that something differs, so it is told where nothing else does.
std::string shape_beside(const Header& what, const Header& other, std::int64_t elements) {
  Header same = other;
  same.shape = what.shape;
  if (what.type == ElementType::bytes) same.type = what.type;  // the hash is of the type, too
  const bool told = (what.shape & is_hash) != 0 && same == what && !(what == other);
  if (!told) return shape_text(what.shape, elements);
  return what.type == ElementType::bytes ? " of a type, shape or root of its own" : " in shapes of its own";
}

}  // namespace

std::string describe(const Header& what, const Header& other) {
  const std::string count = std::to_string(what.elements);
  const std::string numbers = count + " " + std::string(to_string(what.type)) +
                              shape_beside(what, other, what.elements) + settings(what, other);
  const bool typed = what.type != ElementType::bytes;
  const std::string content = (typed ? " of " + std::string(to_string(what.type)) : "") + shape_beside(what, other, 0);
  switch (what.kind) {
    case Header::Kind::barrier:
      return "a barrier";
    case Header::Kind::allreduce:
      return "an all-reduce of " + numbers;
    case Header::Kind::reduce_scatter:
      return "a reduce-scatter of blocks of " + numbers;
    case Header::Kind::allgather:
      return "an all-gather of " + count + " bytes in all" + content;
    case Header::Kind::broadcast:
      return "a broadcast of " + count + " bytes" + content + " from rank " + std::to_string(what.root);
    case Header::Kind::all_to_all:
      return "an all-to-all" + content;
    case Header::Kind::settling:
      return "the recovery from a mismatch";
    case Header::Kind::refused:
      return "an operation for which it has no memory";
  }
  return "an operation that this rank does not know";
}

}  // namespace onehop::collectives::detail
