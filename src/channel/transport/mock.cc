// A transport that moves nothing and never waits: slots are always free, messages have always arrived. A plan over it
// spends its time on packing and unpacking only, with ordinary stores.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "onehop/error.h"
#include "src/channel/transport/transport.h"
#include "src/group/group_state.h"

namespace onehop::detail {
namespace {

// Larger than any flag that is waited for, and far from wrapping around when slots are added.
constexpr std::uint64_t always = std::uint64_t{1} << 62;

struct FreeMemory {
  void operator()(std::byte* memory) const noexcept { std::free(memory); }
};

std::byte* allocate(std::int64_t bytes) {
  constexpr std::size_t line = 128;
  const std::size_t all = (static_cast<std::size_t>(bytes) + line - 1) / line * line;
  auto* const memory = static_cast<std::byte*>(std::aligned_alloc(line, all));
  if (memory == nullptr) throw Error("not enough memory for the slots of a mock channel");
  std::memset(memory, 0, all);
  return memory;
}

class MockEndpoint final : public Endpoint {
 public:
  MockEndpoint(std::shared_ptr<GroupState> group, const ChannelShape& shape)
      : Endpoint(std::move(group), shape),
        memory_(allocate(ring_bytes(shape))),
        ring_(make_ring(shape, memory_.get())) {
    for (std::uint32_t slot = 0; slot < ring_.slots; ++slot) {
      ring_.flag_at(ring_.first + slot * ring_.stride).store(always, std::memory_order_relaxed);
    }
  }

  void published(std::uint64_t, std::uint64_t, std::int64_t) override {}
  void released(std::uint64_t) override {}

  [[nodiscard]] const SlotRing& ring() const noexcept { return ring_; }
  std::atomic<std::uint64_t> released_word{always};
  std::atomic<std::uint32_t> bell{0};

 private:
  // Not shared memory: a process may have thousands of mock channels, and only so many file descriptors.
  std::unique_ptr<std::byte, FreeMemory> memory_;
  SlotRing ring_;
};

class MockTransport final : public Transport {
 public:
  std::string_view name() const override { return "mock"; }
  std::string unreachable(int) const override { return ""; }

  Opened open(const std::shared_ptr<GroupState>& group, std::span<const ChannelShape> shapes) override {
    Opened opened;
    for (ChannelShape shape : shapes) {
      // The cost of stores past the caches depends on the memory that they reach, and here they reach none.
      shape.stores = StoreKind::plain;
      if (shape.from == group->rank) {
        auto end = std::make_shared<MockEndpoint>(group, shape);
        opened.senders.push_back({end->ring(), &end->released_word, &end->bell, end});
      }
      if (shape.to == group->rank) {
        auto end = std::make_shared<MockEndpoint>(group, shape);
        opened.receivers.push_back({end->ring(), &end->released_word, &end->bell, 0, end});
      }
    }
    return opened;
  }
};

}  // namespace

std::unique_ptr<Transport> make_mock_transport() { return std::make_unique<MockTransport>(); }

}  // namespace onehop::detail
