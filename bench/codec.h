// `onehop bench codec`: encoding and decoding float32 on one core, against a plain copy of the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/rounds.h"
#include "onehop/codec.h"

namespace onehop::bench {

enum class CodecStep { encode, decode, decode_add };
[[nodiscard]] CodecStep codec_step_from_string(const std::string& name);

// Collective; `bytes` of float32, normally distributed. Beside the loops that this processor runs, the ones it also could, and
// as the limit memcpy of `bytes`. Samples are of one pass over all numbers, in µs.
[[nodiscard]] std::vector<Samples> codec(const Group& group, Codec codec, CodecStep step, std::int64_t bytes,
                                         const Effort& effort);

}  // namespace onehop::bench
