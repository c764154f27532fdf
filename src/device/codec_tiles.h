// Codecs on cards. On the wire between cards numbers are in tiles of 64 blocks (docs/reference/codecs.md): the codes of
// all blocks, then their headers, so that cards copy them by 16 bytes. A group works on a few tiles at once, in shared
// memory: the plain numbers as float32, a row of 33 words per block (a column then has no two words in the same bank of
// the memory), then the tiles.
#pragma once

#include "src/device/codec_formats.h"

namespace onehop::device {

inline constexpr uint32_t tile_blocks = 64;
inline constexpr uint32_t tile_numbers = tile_blocks * block_numbers;
inline constexpr uint32_t row_words = block_numbers + 1;
inline constexpr uint32_t most_tiles = 2;  // that a group works on at once

enum class NumberType : uint32_t { float32, float16, bfloat16 };

constexpr uint32_t bytes_of(NumberType type) { return type == NumberType::float32 ? 4 : 2; }

template <class Format>
inline constexpr uint32_t tile_bytes = tile_blocks * (4 * Format::words + (Format::headers ? 2 : 0));

// The shared memory that every kernel of codecs needs, for any format.
inline constexpr uint32_t codec_shared_bytes = most_tiles * (tile_blocks * row_words * 4 + tile_numbers * 2) + 16;

// body(0), ..., body(end - 1), also without an optimiser: indices of registers must be constants.
template <uint32_t end, uint32_t i = 0, class Body>
inline void unrolled(const Body& body) {
  body(i);
  if constexpr (i + 1 < end) unrolled<end, i + 1>(body);
}

// Calls take(i, number) for the numbers of 16 bytes.
template <class Take>
inline void unpack_wide(const Wide wide, NumberType type, const Take& take) {
  if (type == NumberType::float32) {
    unrolled<4>([&](uint32_t i) { take(i, float_of(wide.word[i])); });
  } else if (type == NumberType::float16) {
    unrolled<8>([&](uint32_t i) { take(i, from_float16(wide.word[i / 2] >> (i % 2 * 16) & 0xffff)); });
  } else {
    unrolled<8>([&](uint32_t i) { take(i, from_bfloat16(wide.word[i / 2] >> (i % 2 * 16) & 0xffff)); });
  }
}

// 16 bytes of the numbers that give(i) returns.
template <class Give>
inline Wide pack_wide(NumberType type, const Give& give) {
  Wide wide;
  if (type == NumberType::float32) {
    unrolled<4>([&](uint32_t i) { wide.word[i] = bits_of(give(i)); });
  } else if (type == NumberType::float16) {
    unrolled<4>([&](uint32_t i) { wide.word[i] = to_float16(give(2 * i)) | to_float16(give(2 * i + 1)) << 16; });
  } else {
    unrolled<4>([&](uint32_t i) { wide.word[i] = to_bfloat16(give(2 * i)) | to_bfloat16(give(2 * i + 1)) << 16; });
  }
  return wide;
}

// A part of an array, whose alignment is that of its numbers. Those from `count` on are zeros when they are read, and
// are not written.
struct Part {
  const void* array;
  NumberType type;
  uint64_t first;  // a multiple of 8
  uint64_t count;  // of the array

  [[nodiscard]] uint32_t per_wide() const { return 16 / bytes_of(type); }
  // Whether the 16 bytes from number `at` on, a multiple of per_wide, can be read and written at once.
  [[nodiscard]] bool has_wide(uint64_t at) const {
    return (reinterpret_cast<uintptr_t>(array) & 15) == 0 && at + per_wide() <= count;
  }
  [[nodiscard]] Wide read_wide(uint64_t at) const { return {wide(at)->word}; }
  void write_wide(uint64_t at, const Wide value) const { wide(at)->word = value.word; }
  [[nodiscard]] float read(uint64_t at) const {
    if (at >= count) return 0;
    if (type == NumberType::float32) return global(static_cast<const float*>(array))[at];
    const uint32_t bits = global(static_cast<const uint16_t*>(array))[at];
    return type == NumberType::float16 ? from_float16(bits) : from_bfloat16(bits);
  }
  void write(uint64_t at, float number) const {
    if (at >= count) return;
    void* const to = const_cast<void*>(array);
    if (type == NumberType::float32) {
      global(static_cast<float*>(to))[at] = number;
    } else {
      const uint32_t bits = type == NumberType::float16 ? to_float16(number) : to_bfloat16(number);
      global(static_cast<uint16_t*>(to))[at] = static_cast<uint16_t>(bits);
    }
  }

 private:
  [[nodiscard]] Global<Wide> wide(uint64_t at) const {
    return global(static_cast<Wide*>(const_cast<void*>(array))) + at / per_wide();
  }
};

// What a group has in shared memory.
template <class Format>
struct Chunk {
  float* numbers;
  uint32_t* encoded;
  uint32_t tiles;

  Chunk(float* shared, uint32_t tile_count)
      : numbers(shared),
        encoded(reinterpret_cast<uint32_t*>(shared + uint64_t{most_tiles} * tile_blocks * row_words)),
        tiles(tile_count) {}
  [[nodiscard]] float& number(uint32_t i) const { return numbers[i / block_numbers * row_words + i % block_numbers]; }
  [[nodiscard]] uint32_t wides() const { return tiles * (tile_bytes<Format> / 16); }
  [[nodiscard]] uint32_t* codes(uint32_t block) const {
    return encoded + block / tile_blocks * (tile_bytes<Format> / 4) + block % tile_blocks * Format::words;
  }
  [[nodiscard]] uint16_t* header(uint32_t block) const {
    uint32_t* const tile = encoded + block / tile_blocks * (tile_bytes<Format> / 4);
    return reinterpret_cast<uint16_t*>(tile + tile_blocks * Format::words) + block % tile_blocks;
  }
};

// Phases of a group. Each begins with what the phase before has left in shared memory.

template <class Team, class Format>
inline void load_numbers(Team& team, const Chunk<Format>& chunk, const Part& part) {
  const uint32_t per = part.per_wide();
  team.each([&](uint32_t thread) {
    ONEHOP_ROLL for (uint32_t i = thread * per; i < chunk.tiles * tile_numbers; i += team.threads() * per) {
      const uint64_t at = part.first + i;
      if (part.has_wide(at)) {
        unpack_wide(part.read_wide(at), part.type, [&](uint32_t j, float number) { chunk.number(i + j) = number; });
      } else {
        ONEHOP_ROLL for (uint32_t j = 0; j < per; ++j) chunk.number(i + j) = part.read(at + j);
      }
    }
  });
}

template <class Team, class Format>
inline void store_numbers(Team& team, const Chunk<Format>& chunk, const Part& part) {
  const uint32_t per = part.per_wide();
  team.each([&](uint32_t thread) {
    ONEHOP_ROLL for (uint32_t i = thread * per; i < chunk.tiles * tile_numbers; i += team.threads() * per) {
      const uint64_t at = part.first + i;
      if (part.has_wide(at)) {
        part.write_wide(at, pack_wide(part.type, [&](uint32_t j) { return chunk.number(i + j); }));
      } else {
        ONEHOP_ROLL for (uint32_t j = 0; j < per; ++j) part.write(at + j, chunk.number(i + j));
      }
    }
  });
}

template <class Team, class Format>
inline void encode_chunk(Team& team, const Chunk<Format>& chunk) {
  team.each([&](uint32_t thread) {
    ONEHOP_ROLL for (uint32_t block = thread; block < chunk.tiles * tile_blocks; block += team.threads()) {
      uint32_t words[Format::words];
      const uint32_t header = Format::encode(chunk.numbers + block * row_words, words);
      ONEHOP_UNROLL for (uint32_t w = 0; w < Format::words; ++w) chunk.codes(block)[w] = words[w];
      if constexpr (Format::headers) *chunk.header(block) = static_cast<uint16_t>(header);
    }
  });
}

// Unless `first`, adds to the numbers in shared memory.
template <class Team, class Format>
inline void decode_chunk(Team& team, const Chunk<Format>& chunk, bool first) {
  team.each([&](uint32_t thread) {
    ONEHOP_ROLL for (uint32_t block = thread; block < chunk.tiles * tile_blocks; block += team.threads()) {
      float* const row = chunk.numbers + block * row_words;
      uint32_t header = 0;
      if constexpr (Format::headers) header = *chunk.header(block);
      Format::decode(chunk.codes(block), header,
                     [&](uint32_t i, float number) { row[i] = first ? number : row[i] + number; });
    }
  });
}

template <class Team, class Format>
inline void load_tiles(Team& team, const Chunk<Format>& chunk, const void* wire) {
  team.each([&](uint32_t thread) {
    ONEHOP_ROLL for (uint32_t i = thread; i < chunk.wides(); i += team.threads()) {
      reinterpret_cast<Wide*>(chunk.encoded)[i].word = global(static_cast<const Wide*>(wire))[i].word;
    }
  });
}

template <class Team, class Format>
inline void store_tiles(Team& team, const Chunk<Format>& chunk, void* wire) {
  team.each([&](uint32_t thread) {
    ONEHOP_ROLL for (uint32_t i = thread; i < chunk.wides(); i += team.threads()) {
      global(static_cast<Wide*>(wire))[i].word = reinterpret_cast<const Wide*>(chunk.encoded)[i].word;
    }
  });
}

// `numbers`: an array of any alignment that its elements allow. `wire`: whole tiles, aligned to 16 bytes. Launch with
// codec_shared_bytes.
struct CodecArguments {
  void* numbers;
  void* wire;
  uint64_t count;
  NumberType type;
};

template <class Format, class Team, class Body>
inline void for_each_chunk(Team& team, const CodecArguments& arguments, const Body& body) {
  const uint64_t tiles = (arguments.count + tile_numbers - 1) / tile_numbers;
  ONEHOP_ROLL for (uint64_t tile = uint64_t{team.group()} * most_tiles; tile < tiles;
                   tile += uint64_t{team.groups()} * most_tiles) {
    const Chunk<Format> chunk(team.template shared<float>(),
                              static_cast<uint32_t>(tiles - tile < most_tiles ? tiles - tile : most_tiles));
    const Part part{arguments.numbers, arguments.type, tile * tile_numbers, arguments.count};
    body(chunk, part, static_cast<unsigned char*>(arguments.wire) + tile * tile_bytes<Format>);
  }
}

template <class Format, class Team>
inline void encode(Team& team, const CodecArguments& arguments) {
  for_each_chunk<Format>(team, arguments, [&](const Chunk<Format>& chunk, const Part& part, void* wire) {
    load_numbers(team, chunk, part);
    encode_chunk(team, chunk);
    store_tiles(team, chunk, wire);
  });
}

template <class Format, class Team>
inline void decode(Team& team, const CodecArguments& arguments) {
  for_each_chunk<Format>(team, arguments, [&](const Chunk<Format>& chunk, const Part& part, const void* wire) {
    load_tiles(team, chunk, wire);
    decode_chunk(team, chunk, true);
    store_numbers(team, chunk, part);
  });
}

}  // namespace onehop::device
