// `onehop bench codec`: encoding and decoding float32 on one core, against a plain copy of the same numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/native/measure.h"
#include "onehop/codec.h"

namespace onehop::bench {

enum class CodecStep { encode, decode, decode_add };
[[nodiscard]] CodecStep codec_step_from_string(const std::string& name);

// Times one pass over `bytes` bytes of normally distributed float32 numbers, in µs. The candidates are the loops that
// onehop chooses on this processor and the others that it could run; the speed of light is a memcpy. Collective.
[[nodiscard]] std::vector<Samples> codec(const Group& group, Codec codec, CodecStep step, std::int64_t bytes,
                                         const Effort& effort);

}  // namespace onehop::bench
