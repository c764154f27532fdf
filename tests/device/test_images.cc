#include "src/device/images.h"

#include <gtest/gtest.h>

#include <string>

#include "onehop/error.h"
#include "src/device/kernels.h"

namespace onehop::device {
namespace {

std::string text_of(const std::string& packed) {
  const std::vector<std::byte> bytes = unpacked(std::as_bytes(std::span(packed)));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string with_length(char length, const std::string& sequences) { return length + std::string(7, 0) + sequences; }

TEST(DeviceImages, AreUnpacked) {
  EXPECT_EQ(text_of(with_length(0, std::string(1, 0))), "");
  // Three literals, seven bytes from three before, one literal.
  const std::string repeated(
      "\x33"
      "abc"
      "\x03\x00"
      "\x10"
      "d",
      8);
  EXPECT_EQ(text_of(with_length(11, repeated)), "abcabcabcad");
  // Fifteen literals and two more; nineteen bytes and three more from one before.
  const std::string lengths(
      "\xff\x02"
      "0123456789abcdefg"
      "\x01\x00"
      "\x03"
      "\x00",
      23);
  EXPECT_EQ(text_of(with_length(39, lengths)), "0123456789abcdefg" + std::string(22, 'g'));
  for (std::size_t length = 0; length < repeated.size(); ++length) {
    EXPECT_THROW((void)text_of(with_length(11, repeated.substr(0, length))), Error) << length;
  }
  EXPECT_THROW((void)text_of(with_length(4, std::string("\x00\x05\x00\x00", 4))), Error);
}

// Those of `make device`, if it has run.
TEST(DeviceImages, HaveEveryKernel) {
  for (const Image& image : images()) {
    const std::string_view all(reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size());
    EXPECT_TRUE(image.form == "ptx" ? all.back() == 0 : all.substr(1, 3) == "ELF") << image.target;
    for (const Kernel& kernel : kernels()) {
      EXPECT_NE(all.find(kernel.name), std::string_view::npos) << image.target << ' ' << kernel.name;
    }
  }
}

}  // namespace
}  // namespace onehop::device
