// Chunks that a codec encodes, between arrays and the wire.
#pragma once

#include <cstddef>

#include "src/plan/plan_program.h"

namespace onehop::detail {

// Encodes a chunk straight from the arrays where a piece lies in one run, else from a gathered copy of it.
void encode_pieces(Program& program, const ProgramChunk& chunk, std::byte* wire) noexcept;

// Decodes a chunk and combines it with what is there.
void decode_pieces(Program& program, const ProgramChunk& chunk, const std::byte* wire) noexcept;

}  // namespace onehop::detail
