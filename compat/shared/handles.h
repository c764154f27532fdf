// The objects that a drop-in interface lets a program name by opaque pointers. A handle has the type of a pointer, but
// no address: it holds the number of a place in a table, and how often the place was used. The table therefore
// recognises a handle that was freed, and a value that is no handle, without reading memory through it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "onehop/error.h"

namespace onehop::compat {

// `Kind` is an odd number that tells the handles of one table from those of the library's other tables. Threads may use
// different handles at the same time. Objects do not move in memory, and those that the program never frees live as
// long as the process.
template <class Handle, class Object, std::uint8_t Kind>
class Handles {
  static_assert(Kind % 2 == 1 && sizeof(Handle) == sizeof(std::uint64_t));

 public:
  // The two texts are for messages: "expected a message that qspi_create_msg made".
  constexpr Handles(const char* what, const char* maker) noexcept : what_(what), maker_(maker) {}

  template <class... Arguments>
  Handle add(Arguments&&... arguments) {
    const std::lock_guard guard(mutex_);
    const bool again = free_ != none;
    const std::uint32_t number = again ? free_ : used_;
    if (number == most) throw Error("no room for another " + std::string(what_) + "; free some");
    Place& place = made(number);
    place.object.emplace(std::forward<Arguments>(arguments)...);
    (again ? free_ : used_) = again ? place.next_free : used_ + 1;
    const std::uint32_t use = place.use.load(std::memory_order_relaxed) + 1;
    place.use.store(use, std::memory_order_release);
    return std::bit_cast<Handle>(std::uint64_t{use} << 32 | std::uint64_t{number} << 8 | Kind);
  }

  [[nodiscard]] bool has(Handle handle) const noexcept { return place_of(handle) != nullptr; }

  // Throws BadInput if the handle is a null pointer, was freed, or is none of this table.
  [[nodiscard]] Object& at(Handle handle) const {
    Place* const place = place_of(handle);
    if (place == nullptr) [[unlikely]]
      refuse(handle);
    return *place->object;
  }

  // Destroys the object. Throws like at().
  void remove(Handle handle) {
    Place* const place = place_of(handle);
    if (place == nullptr) refuse(handle);
    place->object.reset();
    const std::lock_guard guard(mutex_);
    place->use.store(use_of(handle) + 1, std::memory_order_release);
    place->next_free = std::exchange(free_, number_of(handle));
  }

 private:
  // The uses of a place have odd numbers; between two of them its number is even.
  struct Place {
    std::atomic<std::uint32_t> use{0};
    std::uint32_t next_free = none;
    std::optional<Object> object;
  };

  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t most = 1 << 24;  // places
  static constexpr unsigned first_bits = 6;       // block b has 2^(b + first_bits) places
  static constexpr std::size_t blocks = 19;

  static std::uint32_t use_of(Handle handle) noexcept { return std::bit_cast<std::uint64_t>(handle) >> 32; }
  static std::uint32_t number_of(Handle handle) noexcept {
    return std::bit_cast<std::uint64_t>(handle) >> 8 & (most - 1);
  }

  static std::pair<std::size_t, std::size_t> block_and_index(std::uint32_t number) noexcept {
    const std::uint32_t at = number + (1U << first_bits);
    const auto bits = static_cast<unsigned>(std::bit_width(at)) - 1;
    return {bits - first_bits, at - (1U << bits)};
  }

  Place& made(std::uint32_t number) {
    const auto [block, index] = block_and_index(number);
    Place* places = blocks_[block].load(std::memory_order_relaxed);
    if (places == nullptr) {
      places = new Place[std::size_t{1} << (block + first_bits)];
      blocks_[block].store(places, std::memory_order_release);
    }
    return places[index];
  }

  // Null if the handle does not name an object.
  Place* place_of(Handle handle) const noexcept {
    const std::uint32_t use = use_of(handle);
    if (static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(handle)) != Kind || use % 2 == 0) return nullptr;
    const auto [block, index] = block_and_index(number_of(handle));
    Place* const places = blocks_[block].load(std::memory_order_acquire);
    if (places == nullptr || places[index].use.load(std::memory_order_acquire) != use) return nullptr;
    return &places[index];
  }

  [[noreturn]] void refuse(Handle handle) const {
    const char* const found = handle == nullptr ? "a null pointer"
                              : static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(handle)) != Kind
                                  ? "something else"
                                  : "one that was freed";
    throw BadInput(std::string("expected ") + what_ + " that " + maker_ + " made, found " + found);
  }

  const char* what_;
  const char* maker_;
  std::mutex mutex_;
  std::array<std::atomic<Place*>, blocks> blocks_{};  // never freed
  std::uint32_t used_ = 0;
  std::uint32_t free_ = none;
};

}  // namespace onehop::compat
