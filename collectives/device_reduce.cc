#include "collectives/device_reduce.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "onehop/error.h"

namespace onehop::collectives {
namespace {

using device::AllReduceArguments;
using device::NumberType;
using device::WindowLayout;

std::optional<NumberType> number_type(ElementType type) {
  if (type == ElementType::float32) return NumberType::float32;
  if (type == ElementType::float16) return NumberType::float16;
  if (type == ElementType::bfloat16) return NumberType::bfloat16;
  return std::nullopt;
}

std::string kernel_of(Codec codec) { return "onehop_all_reduce_" + std::string(to_string(codec)); }

std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }

}  // namespace

DeviceReduce::DeviceReduce(const Collectives& collectives, std::shared_ptr<device::Device> device)
    : collectives_(collectives),
      group_(collectives.group()),
      device_(std::move(device)),
      table_(agreed_table(group_, ReducePlace::cards)) {
  const int ranks = group_.size();
  DeviceWindows::Offer offer;
  offer.groups = window_groups;
  offer.doing = "adds arrays";
  offer.shape = {1, threads, device::all_reduce_shared_bytes};
  if (ranks != 2 && ranks != 4 && ranks != 8) {
    offer.no_path = "kernels add the arrays of 2, 4 or 8 ranks, not of " + std::to_string(ranks);
  } else if (group_.local_ranks().size() != static_cast<std::size_t>(ranks)) {
    offer.no_path = "the ranks are on several hosts";  // the same on all ranks: each sees one of another host
  } else {
    offer.bytes = static_cast<std::int64_t>(WindowLayout{static_cast<std::uint32_t>(ranks), window_groups}.bytes());
    for (const Codec codec :
         {Codec::raw, Codec::fp16, Codec::bf16, Codec::fp8, Codec::q8, Codec::q6, Codec::q4, Codec::q3})
      offer.kernels.push_back(kernel_of(codec));
  }
  windows_ = std::make_unique<DeviceWindows>(group_, device_, offer);
}

DeviceChoice DeviceReduce::choose(const Reduction& reduction, int shots) const {
  if (shots < 0 || shots > 2) throw BadInput("expected 0, 1 or 2 shots, found " + std::to_string(shots));
  if (reduction.elements < 0)
    throw BadInput("expected a number of elements of at least 0, found " + std::to_string(reduction.elements));
  if (!takes(reduction.codec, reduction.type))
    throw BadInput("the codec " + std::string(to_string(reduction.codec)) + " is not for " +
                   std::string(to_string(reduction.type)));
  if (group_.size() > most_ranks(reduction.codec))
    throw BadInput("the codec " + std::string(to_string(reduction.codec)) + " is for groups of " +
                   std::to_string(most_ranks(reduction.codec)) + " ranks, found " + std::to_string(group_.size()));
  DeviceChoice choice;
  const auto type = number_type(reduction.type);
  if (!windows_->no_path().empty()) {
    choice.reason = windows_->no_path();
  } else if (!type) {
    choice.reason = "kernels add float32, float16 and bfloat16, not " + std::string(to_string(reduction.type));
  } else if (reduction.op != ReduceOp::sum) {
    choice.reason = "kernels compute sums, not " + std::string(to_string(reduction.op));
  } else {
    const auto ranks = static_cast<std::uint32_t>(group_.size());
    const std::int64_t bytes = reduction.elements * bytes_of(reduction.type);
    const ReduceRule& rule = table_.rule(bytes, reduction.codec != Codec::raw);
    choice.shots = shots != 0 ? shots : rule.algorithm == ReduceAlgorithm::one_shot ? 1 : 2;
    const std::uint32_t segments = choice.shots == 2 ? ranks : 1;
    const std::uint64_t tiles = rounded_up(static_cast<std::uint64_t>(reduction.elements), device::tile_numbers);
    choice.tiles = tiles > std::uint64_t{windows_->groups()} * segments ? device::most_tiles : 1;
    choice.groups = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(rounded_up(tiles, std::uint64_t{segments} * choice.tiles), 1, windows_->groups()));
  }
  return choice;
}

void DeviceReduce::run(const device::Stream& stream, const void* source, void* target, const Reduction& reduction,
                       int shots) {
  const DeviceChoice choice = choose(reduction, shots);
  if (reduction.elements == 0) return;
  if (choice.shots == 0 && device_->is_capturing(stream))
    throw BadInput("a sum through the processor's memory cannot be captured in a graph: " + choice.reason);
  windows_->run(stream, [&] {
    if (choice.shots == 0) return through_host(stream, source, target, reduction);
    // Here, because a rank that refuses alone has to end the waits of the others.
    const auto addresses = reinterpret_cast<std::uintptr_t>(source) | reinterpret_cast<std::uintptr_t>(target);
    if (addresses % static_cast<std::uintptr_t>(bytes_of(reduction.type)) != 0)
      throw BadInput("expected arrays of " + std::string(to_string(reduction.type)) + " at multiples of " +
                     std::to_string(bytes_of(reduction.type)) + " bytes, which cards need");
    AllReduceArguments arguments{};
    for (int r = 0; r < group_.size(); ++r) arguments.windows[r] = reinterpret_cast<unsigned char*>(windows_->of(r));
    arguments.source = source;
    arguments.target = target;
    arguments.count = static_cast<std::uint64_t>(reduction.elements);
    arguments.stop = windows_->stop_words();
    arguments.type = *number_type(reduction.type);
    arguments.rank = static_cast<std::uint32_t>(group_.rank());
    arguments.ranks = static_cast<std::uint32_t>(group_.size());
    arguments.window_groups = window_groups;
    arguments.tiles = choice.tiles;
    arguments.shots = static_cast<std::uint32_t>(choice.shots);
    const device::Shape shape{choice.groups, threads, device::all_reduce_shared_bytes};
    device_->launch(stream, kernel_of(reduction.codec), shape, arguments);
  });
}

void DeviceReduce::through_host(const device::Stream& stream, const void* source, void* target,
                                const Reduction& reduction) {
  const std::int64_t bytes = reduction.elements * bytes_of(reduction.type);
  if (staging_.host.bytes() < bytes) staging_ = device_->allocate_pinned(bytes);
  const std::span<std::byte> host(staging_.host.data(), static_cast<std::size_t>(bytes));
  device_->copy_out(stream, host.data(), static_cast<const std::byte*>(source), bytes);
  device_->synchronize(stream);
  collectives_.allreduce(reduction).run(host, host);
  device_->copy_in(stream, static_cast<std::byte*>(target), host.data(), bytes);
  device_->synchronize(stream);  // the next sum may use the same memory
}

}  // namespace onehop::collectives
