#include "onehop/codec.h"

#include "checked.h"
#include "names.h"

namespace onehop {

namespace {
constexpr detail::NamedValue<Codec> codecs[] = {{Codec::raw, "raw"}};
}  // namespace

std::string_view to_string(Codec codec) { return detail::name_of(codec, codecs); }

Codec codec_from_string(std::string_view name) { return detail::value_of(name, codecs, "a codec"); }

std::int64_t wire_bytes(Codec /*raw is the only one*/, std::int64_t elements, std::int64_t element_bytes) {
  return detail::checked_multiply(elements, element_bytes, "the bytes of a transfer");
}

}  // namespace onehop
