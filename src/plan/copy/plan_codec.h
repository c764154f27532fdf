// Moves encoded chunks between arrays and the wire.
#pragma once

#include <cstddef>

#include "src/plan/program/plan_program.h"

namespace onehop::detail {

// Encodes a chunk: a contiguous piece directly from its array, any other from a gathered copy.
void encode_pieces(Program& program, const ProgramChunk& chunk, std::byte* wire) noexcept;

// Decodes a chunk and combines it with the present elements.
void decode_pieces(Program& program, const ProgramChunk& chunk, const std::byte* wire) noexcept;

}  // namespace onehop::detail
