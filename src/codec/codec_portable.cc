#include <cassert>

#include "src/codec/codec_block.h"
#include "src/codec/codec_loops.h"

namespace onehop::detail {
namespace {

using Numbers = std::array<float, block>;
constexpr std::size_t source_bytes = sizeof(Numbers);

void write_header(float scale, bool special, std::byte* wire) noexcept {
  const auto header = static_cast<std::uint16_t>(bits_of(scale) >> 16 | (special ? 0x8000 : 0));
  std::memcpy(wire, &header, sizeof header);
}

template <class Format>
void encode_special_block(const Numbers& x, std::byte* wire) noexcept {
  float most = 0;
  for (const float one : x) {
    const std::uint32_t magnitude = bits_of(one) & 0x7fffffff;
    if (magnitude < infinite) most = std::max(most, float_of(magnitude));
  }
  const float scale = Format::scale(most, true);
  const float inverse = Format::inverse(scale);
  Codes codes;
  for (std::size_t i = 0; i < block; ++i) {
    const std::uint32_t magnitude = bits_of(x[i]) & 0x7fffffff;
    codes[i] = magnitude < infinite    ? Format::code(x[i] * inverse)
               : magnitude == infinite ? Format::infinity(x[i] < 0)
                                       : Format::nan;
  }
  write_header(scale, true, wire);
  Format::pack(codes, wire + header_bytes);
}

template <class Format>
void encode_block(const std::byte* source, std::byte* wire) noexcept {
  Numbers x;
  std::memcpy(x.data(), source, source_bytes);
  std::uint32_t most = 0;
  for (const float one : x) most = std::max(most, bits_of(one) & 0x7fffffff);
  if (most >= special_magnitude) return encode_special_block<Format>(x, wire);
  const float scale = Format::scale(float_of(most), false);
  const float inverse = Format::inverse(scale);
  Codes codes;
  for (std::size_t i = 0; i < block; ++i) codes[i] = Format::code(x[i] * inverse);
  write_header(scale, false, wire);
  Format::pack(codes, wire + header_bytes);
}

template <class Format>
void decode_block(const std::byte* wire, Numbers& x) noexcept {
  std::uint16_t header;
  std::memcpy(&header, wire, sizeof header);
  const float scale = to_float(BFloat16{static_cast<std::uint16_t>(header & 0x7fff)});
  Codes codes;
  Format::unpack(wire + header_bytes, codes);
  for (std::size_t i = 0; i < block; ++i) x[i] = Format::value(codes[i], scale);
  if ((header & 0x8000) == 0) return;
  for (std::size_t i = 0; i < block; ++i) {
    if (Format::is_nan(codes[i])) {
      x[i] = float_of(0x7fc00000);
    } else if (Format::is_infinity(codes[i])) {
      x[i] = float_of(infinite | (bits_of(x[i]) & 0x80000000));
    } else {
      x[i] = std::clamp(x[i], -largest, largest);
    }
  }
}

void add(const Numbers& x, std::byte* target) noexcept {
  Numbers sum;
  std::memcpy(sum.data(), target, source_bytes);
  for (std::size_t i = 0; i < block; ++i) sum[i] += x[i];
  std::memcpy(target, sum.data(), source_bytes);
}

template <class Format>
void encode_blocks(const std::byte* source, std::int64_t groups, std::byte* wire) {
  for (; groups > 0; --groups, source += source_bytes, wire += Format::bytes) encode_block<Format>(source, wire);
}

template <class Format, bool adding>
void decode_blocks(const std::byte* wire, std::int64_t groups, std::byte* target) {
  for (; groups > 0; --groups, wire += Format::bytes, target += source_bytes) {
    Numbers x;
    decode_block<Format>(wire, x);
    if constexpr (adding) {
      add(x, target);
    } else {
      std::memcpy(target, x.data(), source_bytes);
    }
  }
}

void narrow(float from, Float16& to) noexcept { to = to_float16(from); }
void narrow(float from, BFloat16& to) noexcept { to = to_bfloat16(from); }

template <class Half>
void encode_halves(const std::byte* source, std::int64_t groups, std::byte* wire) {
  for (; groups > 0; --groups, source += source_bytes, wire += source_bytes / 2) {
    Numbers x;
    std::memcpy(x.data(), source, source_bytes);
    std::array<Half, block> halves;
    for (std::size_t i = 0; i < block; ++i) narrow(x[i], halves[i]);
    std::memcpy(wire, halves.data(), sizeof halves);
  }
}

template <class Half, bool adding>
void decode_halves(const std::byte* wire, std::int64_t groups, std::byte* target) {
  for (; groups > 0; --groups, wire += source_bytes / 2, target += source_bytes) {
    std::array<Half, block> halves;
    std::memcpy(halves.data(), wire, sizeof halves);
    Numbers x;
    for (std::size_t i = 0; i < block; ++i) x[i] = to_float(halves[i]);
    if constexpr (adding) {
      add(x, target);
    } else {
      std::memcpy(target, x.data(), source_bytes);
    }
  }
}

// Encodes numbers and decodes the result.
template <CodecLoops::Encode encode, CodecLoops::Decode decode, std::int64_t bytes>
void round_groups(const std::byte* source, std::int64_t groups, std::byte* wire, std::byte* target) {
  std::array<std::byte, static_cast<std::size_t>(bytes)> here;
  for (; groups > 0; --groups, source += source_bytes, target += source_bytes) {
    std::byte* const to = wire == nullptr ? here.data() : wire;
    encode(source, 1, to);
    decode(to, 1, target);
    if (wire != nullptr) wire += bytes;
  }
}

template <CodecLoops::Encode encode, CodecLoops::Decode decode, CodecLoops::Decode decode_add, std::int64_t bytes>
constexpr CodecLoops all_loops{encode, decode, decode_add, round_groups<encode, decode, bytes>,
                               round_groups<encode, decode_add, bytes>};
template <class Format>
constexpr CodecLoops loops_of = all_loops<encode_blocks<Format>, decode_blocks<Format, false>,
                                          decode_blocks<Format, true>, static_cast<std::int64_t>(Format::bytes)>;
template <class Half>
constexpr CodecLoops half_loops =
    all_loops<encode_halves<Half>, decode_halves<Half, false>, decode_halves<Half, true>, source_bytes / 2>;

constexpr CodecSet portable("portable", half_loops<Float16>, half_loops<BFloat16>, loops_of<E4m3>, loops_of<Q8>,
                            loops_of<Q6>, loops_of<Q4>, loops_of<Q3>);

}  // namespace

const CodecSet& portable_codecs() { return portable; }

const CodecLoops& special_loops(Codec codec) { return portable.of[static_cast<std::size_t>(codec)]; }

}  // namespace onehop::detail
