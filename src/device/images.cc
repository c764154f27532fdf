#include "src/device/images.h"

#include <cstdint>
#include <cstring>

#include "onehop/error.h"

// One line for each file that CMake has found in build/device.
#ifdef ONEHOP_IMAGES
#define ONEHOP_IMAGE(name, target, form, file)                                                          \
  extern "C" __attribute__((visibility("hidden"))) const std::byte name[], name##_end[];                \
  asm(".pushsection .rodata\n.globl " #name ", " #name "_end\n" #name ":\n.incbin \"" file "\"\n" #name \
      "_end:\n.popsection\n");
#include ONEHOP_IMAGES
#undef ONEHOP_IMAGE
#endif

namespace onehop::device {
namespace {

struct Packed {
  std::string_view target;
  std::string_view form;
  std::span<const std::byte> bytes;
};

std::vector<Packed> embedded() {
  return {
#ifdef ONEHOP_IMAGES
#define ONEHOP_IMAGE(name, target, form, file) {target, form, {name, name##_end}},
#include ONEHOP_IMAGES
#undef ONEHOP_IMAGE
#endif
  };
}

struct Unpacked {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Image> images;

  Unpacked() {
    for (const Packed& one : embedded()) {
      bytes.push_back(unpacked(one.bytes));
      if (one.form == "ptx") bytes.back().push_back(std::byte{0});
      images.push_back({one.target, one.form, bytes.back()});
    }
  }
};

}  // namespace

std::span<const Image> images() {
  static const Unpacked all;
  return all.images;
}

std::vector<std::byte> unpacked(std::span<const std::byte> packed) {
  std::uint64_t bytes = 0;
  std::size_t at = sizeof bytes;
  const auto take = [&] {
    if (at >= packed.size()) throw Error("an image of kernels ends too early: the library is damaged");
    return static_cast<std::size_t>(packed[at++]);
  };
  const auto whole = [&](std::size_t length) {
    for (std::size_t more = length == 15 ? 255 : 0; more == 255; length += more) more = take();
    return length;
  };
  if (packed.size() >= at) std::memcpy(&bytes, packed.data(), sizeof bytes);
  std::vector<std::byte> out;
  while (true) {
    const std::size_t token = take();
    for (std::size_t left = whole(token >> 4); left > 0; --left) out.push_back(static_cast<std::byte>(take()));
    if (at == packed.size()) break;
    const std::size_t low = take();
    const std::size_t distance = low | take() << 8;
    if (distance == 0 || distance > out.size())
      throw Error("an image of kernels refers to nothing: the library is damaged");
    for (std::size_t left = whole(token & 15) + 4; left > 0; --left) out.push_back(out[out.size() - distance]);
  }
  if (out.size() != bytes) throw Error("an image of kernels has another length than it says: the library is damaged");
  return out;
}

}  // namespace onehop::device
