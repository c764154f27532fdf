#include "onehop/element_type.h"

#include "src/base/names.h"

namespace onehop {

namespace {
constexpr detail::NamedValue<ElementType> element_types[] = {
    {ElementType::bytes, "bytes"},      {ElementType::float32, "float32"}, {ElementType::float64, "float64"},
    {ElementType::int32, "int32"},      {ElementType::int64, "int64"},     {ElementType::float16, "float16"},
    {ElementType::bfloat16, "bfloat16"}};
}  // namespace

std::string_view to_string(ElementType type) { return detail::name_of(type, element_types); }

ElementType element_type_from_string(std::string_view name) {
  return detail::value_of(name, element_types, "an element type");
}

std::int64_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::bytes:
      return 0;
    case ElementType::float16:
    case ElementType::bfloat16:
      return 2;
    case ElementType::float32:
    case ElementType::int32:
      return 4;
    case ElementType::float64:
    case ElementType::int64:
      return 8;
  }
  return 0;
}

}  // namespace onehop
