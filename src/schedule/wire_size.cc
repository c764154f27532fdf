#include "src/schedule/wire_size.h"

#include <algorithm>
#include <numeric>

#include "src/base/checked.h"

namespace onehop::detail {

std::int64_t numbers_per_element(const ArraySpec& array) {
  return array.element_bytes / std::max<std::int64_t>(1, bytes_of(array.type));
}

std::int64_t elements_per_cut(const ArraySpec& array, Codec codec) {
  const std::int64_t block = block_elements(codec);
  return block / std::gcd(block, numbers_per_element(array));
}

std::int64_t bytes_on_wire(const ArraySpec& array, Codec codec, std::int64_t elements) {
  if (codec == Codec::raw) return checked_multiply(elements, array.element_bytes, "the bytes of a transfer");
  return encoded_bytes(codec, array.type,
                       checked_multiply(elements, numbers_per_element(array), "the numbers of a transfer"));
}

}  // namespace onehop::detail
