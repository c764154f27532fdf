#include "src/codec/codec_run.h"

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "src/base/cpu.h"
#include "src/codec/codec_loops.h"

namespace onehop::detail {
namespace {

constexpr std::int64_t float_bytes = 4;
// Numbers of other types are converted to and from float32 in batches of this length.
constexpr std::int64_t batch = 512;

// Set by use_codecs; null: the loops of cpu::level().
std::atomic<const CodecSet*> forced{nullptr};

// The loops by level; if this build lacks a level, those of the next lower one.
const std::array<const CodecSet*, 3>& codecs_by_level() noexcept {
  static const std::array<const CodecSet*, 3> sets = [] {
    const CodecSet* const portable = &portable_codecs();
    std::array<const CodecSet*, 3> found{portable, portable, portable};
#if defined(__x86_64__)
    if (avx2_codecs() != nullptr) found[1] = found[2] = avx2_codecs();
    if (avx512_codecs() != nullptr) found[2] = avx512_codecs();
#endif
    return found;
  }();
  return sets;
}

const CodecLoops* added = nullptr;  // of a test

const CodecLoops& loops(Codec codec) noexcept {
  if (static_cast<std::size_t>(codec) == codec_count) [[unlikely]]
    return *added;
  const CodecSet* set = forced.load(std::memory_order_relaxed);
  if (set == nullptr) set = codecs_by_level()[static_cast<std::size_t>(cpu::level_or_best())];
  return set->of[static_cast<std::size_t>(codec)];
}

std::int64_t wire_bytes_of_group(Codec codec) noexcept {
  const CodecInfo& format = codec_info(codec);
  return codec == Codec::raw ? group_elements * float_bytes : group_elements / format.block * format.block_bytes;
}

// Bytes on the wire of the last, partial group of `rest` numbers.
std::size_t wire_bytes_of_rest(Codec codec, std::int64_t rest) noexcept {
  const std::int64_t group = wire_bytes_of_group(codec);
  return static_cast<std::size_t>(codec_info(codec).block == 1 ? group / group_elements * rest : group);
}

void encode_floats(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire) noexcept {
  const CodecLoops& loop = loops(codec);
  const std::int64_t groups = elements / group_elements;
  loop.encode(source, groups, wire);
  const std::int64_t rest = elements % group_elements;
  if (rest == 0) return;
  std::array<std::byte, group_elements * float_bytes> padded{};
  std::array<std::byte, group_elements * float_bytes> encoded;
  std::memcpy(padded.data(), source + groups * group_elements * float_bytes,
              static_cast<std::size_t>(rest * float_bytes));
  loop.encode(padded.data(), 1, encoded.data());
  std::memcpy(wire + groups * wire_bytes_of_group(codec), encoded.data(), wire_bytes_of_rest(codec, rest));
}

template <bool adding>
void decode_floats(Codec codec, const std::byte* wire, std::int64_t elements, std::byte* target) noexcept {
  const CodecLoops& loop = loops(codec);
  const auto run = adding ? loop.decode_add : loop.decode;
  const std::int64_t groups = elements / group_elements;
  run(wire, groups, target);
  const std::int64_t rest = elements % group_elements;
  if (rest == 0) return;
  std::array<std::byte, group_elements * float_bytes> padded{};
  std::array<std::byte, group_elements * float_bytes> encoded{};
  std::byte* last = target + groups * group_elements * float_bytes;
  const auto bytes = static_cast<std::size_t>(rest * float_bytes);
  std::memcpy(encoded.data(), wire + groups * wire_bytes_of_group(codec), wire_bytes_of_rest(codec, rest));
  std::memcpy(padded.data(), last, bytes);
  run(encoded.data(), 1, padded.data());
  std::memcpy(last, padded.data(), bytes);
}

template <bool adding>
void round_floats(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire,
                  std::byte* target) noexcept {
  const CodecLoops& loop = loops(codec);
  const std::int64_t groups = elements / group_elements;
  (adding ? loop.round_add : loop.round)(source, groups, wire, target);
  const std::int64_t rest = elements % group_elements;
  if (rest == 0) return;
  std::array<std::byte, group_elements * float_bytes> encoded;
  const std::int64_t done = groups * group_elements * float_bytes;
  encode_floats(codec, source + done, rest, encoded.data());
  decode_floats<adding>(codec, encoded.data(), rest, target + done);
  if (wire == nullptr) return;
  std::memcpy(wire + groups * wire_bytes_of_group(codec), encoded.data(), wire_bytes_of_rest(codec, rest));
}

template <class T>
void read_as(const std::byte* source, std::int64_t n, float* to) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, source + i * static_cast<std::int64_t>(sizeof(T)), sizeof value);
    to[i] = static_cast<float>(value);
  }
}

// Converts numbers of another type to float32.
void widen(ElementType type, const std::byte* source, std::int64_t n, float* to) noexcept {
  if (type == ElementType::float64) return read_as<double>(source, n, to);
  const Codec same = type == ElementType::float16 ? Codec::fp16 : Codec::bf16;
  decode_floats<false>(same, source, n, reinterpret_cast<std::byte*>(to));
}

// Converts float32 numbers to another type.
void narrow(ElementType type, const float* from, std::int64_t n, std::byte* target) noexcept {
  if (type != ElementType::float64) {
    const Codec same = type == ElementType::float16 ? Codec::fp16 : Codec::bf16;
    return encode_floats(same, reinterpret_cast<const std::byte*>(from), n, target);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const double value = from[i];
    std::memcpy(target + i * 8, &value, sizeof value);
  }
}

void add_doubles(const float* from, std::int64_t n, std::byte* target) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    double sum;
    std::memcpy(&sum, target + i * 8, sizeof sum);
    sum += from[i];
    std::memcpy(target + i * 8, &sum, sizeof sum);
  }
}

// Whether the bytes on the wire are those of the type itself.
bool same_bits(Codec codec, ElementType type) noexcept {
  return codec == Codec::raw || (codec == Codec::fp16 && type == ElementType::float16) ||
         (codec == Codec::bf16 && type == ElementType::bfloat16);
}

std::int64_t element_bytes(ElementType type) noexcept { return type == ElementType::bytes ? 1 : bytes_of(type); }

// Calls visit(first element, elements, wire offset) for every batch.
template <class Visit>
void for_each_batch(Codec codec, std::int64_t elements, const Visit& visit) noexcept {
  const std::int64_t step = batch / group_elements * wire_bytes_of_group(codec);
  for (std::int64_t at = 0, wire = 0; at < elements; at += batch, wire += step) {
    visit(at, elements - at < batch ? elements - at : batch, wire);
  }
}

template <class T>
void add_raw(const std::byte* wire, std::int64_t n, std::byte* target) noexcept {
  for (std::int64_t at = 0; at < n * static_cast<std::int64_t>(sizeof(T)); at += static_cast<std::int64_t>(sizeof(T))) {
    T mine;
    T theirs;
    std::memcpy(&mine, target + at, sizeof mine);
    std::memcpy(&theirs, wire + at, sizeof theirs);
    mine = static_cast<T>(mine + theirs);
    std::memcpy(target + at, &mine, sizeof mine);
  }
}

}  // namespace

void encode(Codec codec, ElementType type, const std::byte* source, std::int64_t elements, std::byte* wire) noexcept {
  if (elements == 0) return;
  if (same_bits(codec, type)) {
    std::memcpy(wire, source, static_cast<std::size_t>(elements * element_bytes(type)));
    return;
  }
  if (type == ElementType::float32) return encode_floats(codec, source, elements, wire);
  for_each_batch(codec, elements, [&](std::int64_t first, std::int64_t n, std::int64_t offset) {
    std::array<float, batch> floats;
    widen(type, source + first * bytes_of(type), n, floats.data());
    encode_floats(codec, reinterpret_cast<const std::byte*>(floats.data()), n, wire + offset);
  });
}

void decode(Codec codec, ElementType type, const std::byte* wire, std::int64_t elements, std::byte* target) noexcept {
  if (elements == 0) return;
  if (same_bits(codec, type)) {
    std::memcpy(target, wire, static_cast<std::size_t>(elements * element_bytes(type)));
    return;
  }
  if (type == ElementType::float32) return decode_floats<false>(codec, wire, elements, target);
  for_each_batch(codec, elements, [&](std::int64_t first, std::int64_t n, std::int64_t offset) {
    std::array<float, batch> floats;
    decode_floats<false>(codec, wire + offset, n, reinterpret_cast<std::byte*>(floats.data()));
    narrow(type, floats.data(), n, target + first * bytes_of(type));
  });
}

void decode_add(Codec codec, ElementType type, const std::byte* wire, std::int64_t elements,
                std::byte* target) noexcept {
  if (codec == Codec::raw) {
    switch (type) {
      case ElementType::float32:
        return add_raw<float>(wire, elements, target);
      case ElementType::float64:
        return add_raw<double>(wire, elements, target);
      case ElementType::int32:
        return add_raw<std::uint32_t>(wire, elements, target);
      case ElementType::int64:
        return add_raw<std::uint64_t>(wire, elements, target);
      case ElementType::float16:
        codec = Codec::fp16;
        break;
      case ElementType::bfloat16:
        codec = Codec::bf16;
        break;
      case ElementType::bytes:
        return;
    }
  }
  if (type == ElementType::float32) return decode_floats<true>(codec, wire, elements, target);
  for_each_batch(codec, elements, [&](std::int64_t first, std::int64_t n, std::int64_t offset) {
    std::array<float, batch> floats;
    auto* const bytes = reinterpret_cast<std::byte*>(floats.data());
    std::byte* const to = target + first * bytes_of(type);
    if (type == ElementType::float64) {
      decode_floats<false>(codec, wire + offset, n, bytes);
      return add_doubles(floats.data(), n, to);
    }
    widen(type, to, n, floats.data());
    decode_floats<true>(codec, wire + offset, n, bytes);
    narrow(type, floats.data(), n, to);
  });
}

void round(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire, std::byte* target) noexcept {
  round_floats<false>(codec, source, elements, wire, target);
}

void round_add(Codec codec, const std::byte* source, std::int64_t elements, std::byte* wire,
               std::byte* target) noexcept {
  round_floats<true>(codec, source, elements, wire, target);
}

bool reduce(Codec codec, const Pair& pair, std::int64_t elements, std::byte* wire, std::byte* target) noexcept {
  const CodecLoops::Reduce run = loops(codec).reduce;
  if (run == nullptr) return false;
  const std::int64_t groups = elements / group_elements;
  run(pair, groups, wire, target);
  const std::int64_t rest = elements % group_elements;
  if (rest == 0) return true;
  // Pads a partial group with zeros, as encoding does.
  std::array<std::byte, group_elements * float_bytes> own{};
  std::array<std::byte, group_elements * float_bytes> other{};
  std::array<std::byte, group_elements * float_bytes> encoded;
  const std::int64_t done = groups * group_elements * float_bytes;
  const std::int64_t done_on_wire = groups * wire_bytes_of_group(codec);
  const auto bytes = static_cast<std::size_t>(rest * float_bytes);
  std::memcpy(own.data(), pair.own + done, bytes);
  std::memcpy(other.data(), pair.other + done_on_wire, wire_bytes_of_rest(codec, rest));
  run({own.data(), other.data(), pair.own_first, pair.mean}, 1, encoded.data(), own.data());
  std::memcpy(wire + done_on_wire, encoded.data(), wire_bytes_of_rest(codec, rest));
  std::memcpy(target + done, own.data(), bytes);
  return true;
}

std::vector<const CodecSet*> available_codecs() {
  std::vector<const CodecSet*> sets;
  for (auto level = static_cast<int>(cpu::level()); level >= 0; --level) {
    const CodecSet* const set = codecs_by_level()[static_cast<std::size_t>(level)];
    if (sets.empty() || sets.back() != set) sets.push_back(set);
  }
  return sets;
}

void use_added(const CodecLoops* loops) noexcept { added = loops; }

void use_codecs(const CodecSet* set) noexcept { forced.store(set, std::memory_order_relaxed); }

}  // namespace onehop::detail
