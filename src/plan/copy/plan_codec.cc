#include "src/plan/copy/plan_codec.h"

#include "src/codec/codec_run.h"

namespace onehop::detail {
namespace {

bool in_one_run(const Program& program, const ProgramPiece& piece) noexcept {
  return piece.last - piece.first == 1 && program.steps[piece.first].copy.shape == nullptr;
}

void gather(const Program& program, const ProgramPiece& piece, std::byte* to) noexcept {
  for (std::uint32_t i = piece.first; i < piece.last; ++i) {
    pack(program.steps[i].copy, to);
    to += program.steps[i].copy.bytes;
  }
}

void scatter(const Program& program, const ProgramPiece& piece, const std::byte* from) noexcept {
  for (std::uint32_t i = piece.first; i < piece.last; ++i) {
    const ProgramStep& step = program.steps[i];
    unpack(step.copy, from, step.combine, step.type);
    from += step.copy.bytes;
  }
}

void encode_piece(Program& program, const ProgramPiece& piece, std::byte* wire) noexcept {
  const ProgramStep& first = program.steps[piece.first];
  if (piece.codec == Codec::raw) return gather(program, piece, wire);
  if (in_one_run(program, piece)) return encode(piece.codec, first.type, first.copy.base, piece.numbers, wire);
  gather(program, piece, program.numbers.data());
  encode(piece.codec, first.type, program.numbers.data(), piece.numbers, wire);
}

void decode_piece(Program& program, const ProgramPiece& piece, const std::byte* wire) noexcept {
  const ProgramStep& first = program.steps[piece.first];
  if (piece.codec == Codec::raw) return scatter(program, piece, wire);
  if (in_one_run(program, piece)) {
    if (first.combine == Combine::replace) {
      return decode(piece.codec, first.type, wire, piece.numbers, first.copy.base);
    }
    // Sums of 16-bit numbers are rounded twice, like those of scattered pieces: the result must not depend on the cut.
    const bool same = first.type == ElementType::float32 || first.type == ElementType::float64;
    if (first.combine == Combine::add && same) {
      return decode_add(piece.codec, first.type, wire, piece.numbers, first.copy.base);
    }
  }
  decode(piece.codec, first.type, wire, piece.numbers, program.numbers.data());
  scatter(program, piece, program.numbers.data());
}

}  // namespace

void encode_pieces(Program& program, const ProgramChunk& chunk, std::byte* wire) noexcept {
  for (std::uint32_t p = chunk.first_piece; p < chunk.last_piece; ++p) {
    encode_piece(program, program.pieces[p], wire);
    wire += program.pieces[p].wire_bytes;
  }
}

void decode_pieces(Program& program, const ProgramChunk& chunk, const std::byte* wire) noexcept {
  for (std::uint32_t p = chunk.first_piece; p < chunk.last_piece; ++p) {
    decode_piece(program, program.pieces[p], wire);
    wire += program.pieces[p].wire_bytes;
  }
}

}  // namespace onehop::detail
