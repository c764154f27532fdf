#include "quantum/state/precision.h"

#include <array>
#include <cmath>
#include <string>

#include "onehop/error.h"
#include "quantum/engine/encoded_amplitudes.h"
#include "src/base/text.h"

namespace onehop::quantum {
namespace {

constexpr std::array<std::string_view, 6> names{"single", "double", "fp16", "bf16", "q8", "q6"};

}  // namespace

std::string_view to_string(Precision precision) { return names[static_cast<std::size_t>(precision)]; }

Precision precision_from_string(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Precision>(i);
  }
  throw BadInput("expected the precision 'double', 'single', 'fp16', 'bf16', 'q8' or 'q6', found '" +
                 std::string(name) + "'");
}

Codec codec_of(Precision precision) { return codec_from_string(to_string(precision)); }

double bytes_per_amplitude(Precision precision) {
  if (precision == Precision::double_precision) return 16;
  if (precision == Precision::single_precision) return 8;
  return std::ldexp(static_cast<double>(EncodedAmplitudes::bytes_of_block(codec_of(precision))),
                    -EncodedAmplitudes::block_bits);
}

void require_plain(Precision precision, std::string_view what) {
  if (!is_encoded(precision)) return;
  throw BadInput(std::string(what) + ": expected precision double or single, found '" +
                 std::string(to_string(precision)) + "', in which the amplitudes are encoded");
}

}  // namespace onehop::quantum
