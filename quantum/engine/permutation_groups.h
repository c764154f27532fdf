// Groups of vectors that a permutation of a tile's amplitudes moves together.
//
// If the lanes of a result vector come from 2^r source vectors, then there are 2^r result vectors whose lanes come from
// the same source vectors, because the map of indices is linear over GF(2). In registers, such a group takes r stages
// of one shuffle for each vector, where one vector at a time takes 2^r shuffles for each. Every stage exchanges one bit
// of the vector's number within the group with one lane bit; the first and the last stage also permute lanes.
#pragma once

#include "quantum/kernels/kernels.h"

namespace onehop::quantum {

// Fills the rest of `step` from its sources and lane_sources.
void group_vectors(PermutationStep& step, int lane_bits);

}  // namespace onehop::quantum
