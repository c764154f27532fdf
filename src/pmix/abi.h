// The part of PMIx's binary interface that onehop uses, declared by hand, so that neither building nor installing
// onehop needs PMIx. It is the same in the versions 3, 4 and 5. tests/pmix/test_abi.cc compares sizes, offsets and
// constants with PMIx's own header where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onehop::detail::pmix {

using Status = int;
inline constexpr Status success = 0;
inline constexpr Status not_found = -46;

// A process: the name of its launch, and its number in it.
struct Process {
  char launch[256] = {};
  std::uint32_t rank = 0;
};
inline constexpr std::uint32_t any_rank = 0xffff'fffe;

struct Value {
  static constexpr std::uint16_t boolean = 1;
  static constexpr std::uint16_t number = 14;  // 32 bits without sign
  static constexpr std::uint16_t bytes = 27;
  std::uint16_t type = 0;
  union {
    bool flag;
    std::uint32_t count;
    struct {
      char* begin;
      std::size_t length;
    } object;
    std::uint64_t room[3] = {};
  };
};

struct Setting {
  char key[512] = {};
  std::uint32_t flags = 0;
  Value value;
};

inline constexpr std::uint8_t for_all = 3;                   // a value for the processes of all machines
inline constexpr const char* collect_data = "pmix.collect";  // a setting of a fence: it distributes all values
inline constexpr const char* job_size = "pmix.job.size";     // how many processes the launch has

}  // namespace onehop::detail::pmix
