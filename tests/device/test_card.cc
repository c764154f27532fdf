// Cards behind the drivers of CUDA and HIP, by stand-ins for both.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "onehop/error.h"
#include "src/base/one_size.h"
#include "src/device/all_kernels.h"
#include "src/device/device.h"
#include "src/device/images.h"
#include "tests/device/standin/standin.h"
#include "tests/support/faults.h"
#include "tests/support/ranks.h"
#include "tests/support/thrown.h"

namespace onehop::device {
namespace {

using testing::StandIn;
using testing::Variable;

class DeviceCard : public ::testing::TestWithParam<Kind> {
 protected:
  [[nodiscard]] static std::string name() { return std::string(name_of(GetParam())); }
  [[nodiscard]] static std::string variable() { return GetParam() == Kind::cuda ? "ONEHOP_CUDA" : "ONEHOP_HIP"; }
  [[nodiscard]] static const char* either(const char* cuda, const char* hip) {
    return GetParam() == Kind::cuda ? cuda : hip;
  }
};

constexpr std::int64_t count = tile_numbers;
constexpr Shape shape{.groups = 2, .threads = 64, .shared_bytes = 64U << 10U};  // CUDA must be asked for so much

// Sends numbers through a codec on a device, and uses every kind of call on the way. Returns what comes back.
std::vector<float> round_trip(Device& device) {
  std::vector<float> back(count);  // outlives the streams, also after a failure
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 97) - 40.5F;
  const Memory plain = device.allocate(4 * count);
  const Memory wire = device.allocate_for_peers(tile_bytes<Q8>);
  const PinnedMemory pinned = device.allocate_pinned(4 * count);
  const Stream first = device.make_stream();
  const Stream second = device.make_stream();
  const Event begin = device.record(first);
  std::memcpy(pinned.host.data(), numbers.data(), 4 * count);
  device.copy_in(first, plain.data(), pinned.host.data(), 4 * count);
  const CodecArguments from_pinned{pinned.on_device, wire.data(), count, NumberType::float32};
  EXPECT_GE(device.resident_groups("onehop_encode_q8", shape), shape.groups);
  device.launch(first, "onehop_encode_q8", shape, from_pinned);
  device.fill(first, plain.data(), std::byte{0xff}, plain.bytes());
  const Event encoded = device.record(first);
  device.wait(second, encoded);
  const CodecArguments to_plain{plain.data(), wire.data(), count, NumberType::float32};
  device.launch(second, "onehop_decode_q8", shape, to_plain);
  const Memory more = device.allocate(4 * count);
  device.copy(second, more.data(), plain.data(), more.bytes());
  device.copy_out(second, back.data(), more.data(), more.bytes());
  device.synchronize(second);
  EXPECT_TRUE(device.is_done(second));
  EXPECT_GE(device.seconds_between(begin, encoded), 0.0);
  device.synchronize_all();
  const bool is_card = device.kind() != Kind::processor;
  EXPECT_EQ(Device::holder(device.kind(), plain.data()), is_card ? device.index() : -1);
  static_cast<void>(device.handle_of(plain));
  return back;
}

TEST_P(DeviceCard, GivesTheResultsOfTheProcessor) {
  const StandIn standin(GetParam());
  const auto card = Device::named(name() + ":1");
  EXPECT_EQ(card->text(), name() + ":1 (stand-in)");
  EXPECT_EQ(card->memory(), std::int64_t{1} << 30U);
  EXPECT_EQ(card, Device::named(name() + ":1"));
  EXPECT_EQ(round_trip(*card), round_trip(*Device::processor()));
  int own = 0;
  EXPECT_EQ(Device::holder(GetParam(), &own), -1);
  EXPECT_EQ(card->free_memory(), std::int64_t{1} << 30U);  // all is freed
  const Memory other = Device::named(name() + ":0")->allocate(100);
  EXPECT_NE(Device::holder(GetParam(), other.data()), card->index());
  std::vector<float> in_thread;
  std::thread([&] { in_thread = round_trip(*card); }).join();
  EXPECT_EQ(in_thread, round_trip(*card));
}

TEST_P(DeviceCard, RefusesWhatIsNotThere) {
  const StandIn standin(GetParam());
  EXPECT_THROW(static_cast<void>(Device::named(name() + ":2")), BadInput);
  const auto card = Device::named(name());
  EXPECT_NE(testing::thrown<Error>([&] {
              static_cast<void>(card->allocate(std::int64_t{2} << 30U));
            }).find("expected 2 GiB of free memory on " + name() + ":0 (stand-in), found 1 GiB"),
            std::string::npos);
  EXPECT_THROW(card->launch({}, "onehop_encode_q8", shape, 7), BadInput);
  {
    const Variable none("STANDIN_CARDS", "0");
    EXPECT_NE(testing::thrown<Error>([&] { static_cast<void>(Device::named(name())); }).find("its driver sees no card"),
              std::string::npos);
  }
  const Variable off(variable().c_str(), "none");
  EXPECT_NE(testing::thrown<Error>([&] { static_cast<void>(Device::named(name())); }).find(variable() + "=none"),
            std::string::npos);
  const Variable absent(variable().c_str(), "/nowhere/lib.so");
  EXPECT_NE(testing::thrown<Error>([&] { static_cast<void>(Device::named(name())); }).find("was found (/nowhere"),
            std::string::npos);
}

TEST_P(DeviceCard, RefusesAnOldDriver) {
  const StandIn standin(GetParam());
  const std::string version = either("11070", "60032830");  // of CUDA 11.7 and ROCm 6.0
  const Variable old("STANDIN_VERSION", version);
  testing::expect_says<Error>([&] { static_cast<void>(Device::named(name())); },
                              "or newer, found version " + version + ": update the driver");
}

TEST_P(DeviceCard, RefusesImagesOfOtherCardsAndImagesWithoutTheKernel) {
  {
    const StandIn standin(GetParam(), "elf", 100);
    EXPECT_NE(testing::thrown<Error>([&] {
                static_cast<void>(Device::named(name()));
              }).find(either("CUDA_ERROR_NO_BINARY_FOR_GPU", "hipErrorNoBinaryForGpu")),
              std::string::npos);
  }
  const StandIn standin(GetParam(), "elf", 0, false);
  const auto card = Device::named(name());
  EXPECT_NE(testing::thrown<Error>([&] {
              static_cast<void>(round_trip(*card));
            }).find("expected the kernel onehop_encode_q8 in the image"),
            std::string::npos);
}

// The first call of each function of the driver fails, and then none.
TEST_P(DeviceCard, ReportsEveryFailureOfTheDriver) {
  // `holder` says that it does not know an address, and a stream of unknown state counts as captured; nobody is told
  // what freeing and restoring find; another test maps.
  const std::set<std::string> others{"pointer_attribute", "free",      "free_pinned", "destroy_stream", "destroy_event",
                                     "pop_context",       "capturing", "map",         "unmap"};
  std::vector<std::pair<std::string, const char*>> functions;
#define ONEHOP_CALL(name, cuda, hip, ...) functions.emplace_back(#name, either(cuda, hip));
#include "src/device/driver_calls.inc"
#undef ONEHOP_CALL
  for (const auto& [call, function] : functions) {
    if (function == nullptr || others.contains(call)) continue;
    const StandIn standin(GetParam());
    const auto use = [&] { return round_trip(*Device::named(name() + ":1")); };
    {
      const Variable failing("STANDIN_FAIL", function + std::string(":1"));
      const std::string text = testing::thrown<Error>([&] { static_cast<void>(use()); });
      EXPECT_NE(text.find(function), std::string::npos) << function << ": " << text;
      EXPECT_NE(text.find(either("CUDA_ERROR_UNKNOWN", "hipErrorUnknown")), std::string::npos) << text;
    }
    EXPECT_EQ(use(), round_trip(*Device::processor())) << "after a failure of " << function;
  }
}

// An event that keeps time makes the streams slower that it is recorded in.
TEST_P(DeviceCard, EventsThatOrderStreamsKeepNoTime) {
  const StandIn standin(GetParam());
  const auto card = Device::named(name());
  const Stream stream = card->make_stream();
  const Event begin = card->record(stream);
  Event end;
  card->record(stream, end);
  card->wait({}, end);
  card->synchronize({});
  EXPECT_THROW(static_cast<void>(card->seconds_between(begin, end)), Error);
}

TEST_P(DeviceCard, ProcessesShareMemory) {
  testing::on_ranks(2, [](const Group& group) {
    const StandIn standin(GetParam());
    const auto card = Device::named(name());
    const Memory mine = card->allocate_for_peers(8);
    const std::int64_t number = 7 + group.rank();
    card->copy_in({}, mine.data(), &number, 8);
    card->synchronize({});
    const auto handles = group.allgather(card->handle_of(mine).bytes);
    MemoryHandle other;
    std::memcpy(other.bytes.data(), handles[static_cast<std::size_t>(1 - group.rank())].data(), other.bytes.size());
    std::int64_t found = 0;
    {
      const Memory mapped = card->map(other, 8);
      card->copy_out({}, &found, mapped.data(), 8);
      card->synchronize({});
    }
    EXPECT_EQ(found, 8 - group.rank());
    group.barrier();
  });
}

// Memory is freed once the last process that maps it has unmapped it, or has ended.
TEST_P(DeviceCard, SharedMemoryOutlivesWhoMapsIt) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ranks that are processes";
#endif
  const testing::SharedCounter steps;
  const auto await = [&steps](int step) {
    for (int polls = 0; *steps < step && polls < 1000; ++polls) testing::nap(0.01);
  };
  const auto ended = testing::fork_ranks(3, [&](const Group& group) {
    const StandIn standin(GetParam());
    const auto card = Device::named(name());
    Memory mine = card->allocate_for_peers(shared_block);
    const std::int64_t without = card->free_memory() + shared_block;
    const auto places = base::values_of_all(group, card->share(mine));
    Memory theirs = card->reach(places[0]);
    group.barrier();
    if (group.rank() == 0) {
      const char* const frees = GetParam() == Kind::cuda ? "cuMemFree_v2" : "hipFree";
      const int before = standin.calls(frees);
      theirs = {};
      mine = {};
      for (const int step : {1, 3}) {
        EXPECT_LT(card->free_memory(), without);
        EXPECT_EQ(standin.freed_while_mapped(), 0);
        ++*steps;
        if (step == 1) await(2);
      }
      // Without another call of this process.
      for (int polls = 0; standin.calls(frees) == before && polls < 500; ++polls) testing::nap(0.01);
      EXPECT_GT(standin.calls(frees), before);
      EXPECT_EQ(card->free_memory(), without);
    } else if (group.rank() == 1) {
      await(1);
      theirs = {};
      ++*steps;
    } else {
      await(3);
      std::_Exit(0);
    }
  });
  EXPECT_TRUE(ended[0].ok) << ended[0].message;
  EXPECT_TRUE(ended[1].ok) << ended[1].message;
}

INSTANTIATE_TEST_SUITE_P(, DeviceCard, ::testing::Values(Kind::cuda, Kind::hip));

TEST(DeviceImage, OneThatIsMissingIsNamed) {
  const StandIn standin(Kind::cuda);
  const auto use = [] { static_cast<void>(Device::cuda()); };
  {
    const Variable absent("ONEHOP_DEVICE_IMAGE", "/nowhere/image.ptx");
    testing::expect_says<BadInput>(use,
                                   "ONEHOP_DEVICE_IMAGE: expected a file with an image, found '/nowhere/image.ptx'");
  }
  // From here on without the stand-in's image.
  const Variable old("STANDIN_ARCH", "70");
  testing::expect_says<Error>(use, images().empty()
                                       ? "expected kernels for cuda in this build of onehop, found none"
                                       : "compute capability 8.0 or more, found cuda:0 (stand-in) with 7.0");
}

TEST(DeviceImage, RunsPtxUpToItsArchitecture) {
  {
    const StandIn standin(Kind::cuda, "ptx", 80);
    EXPECT_EQ(round_trip(*Device::cuda()), round_trip(*Device::processor()));
  }
  const StandIn newer(Kind::cuda, "ptx", 100);
  EXPECT_THROW(static_cast<void>(Device::cuda()), Error);
}

}  // namespace
}  // namespace onehop::device
