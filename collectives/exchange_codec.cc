// Reductions of encoded numbers. The result is the sum of all ranks' encoded and decoded numbers, encoded once more.
// Every value, including this rank's contribution, is rounded exactly twice, whatever the algorithm and the number of
// ranks.
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "collectives/exchange.h"
#include "src/channel/store.h"
#include "src/codec/encoded_sum.h"

namespace onehop::collectives::detail {

namespace {

// Numbers are processed in blocks that stay in the first-level cache together with those of several ranks, and stored
// block by block, so that the processor moves one block while it computes the next.
constexpr std::int64_t block = 2048;
constexpr std::size_t row = block * sizeof(double);
constexpr std::size_t wire_row = block * sizeof(float);

using Row = std::array<std::byte, row>;
using WireRow = std::array<std::byte, wire_row>;

ElementType wide(ElementType type) { return type == ElementType::float64 ? type : ElementType::float32; }

template <class T>
void divide(std::byte* numbers, std::int64_t elements, int by) {
  for (std::int64_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, numbers + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    value /= static_cast<T>(by);
    std::memcpy(numbers + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

// Reduces the encoded contributions of all ranks, in the order of ranks, into numbers of the wide type.
void reduce_wires(const Operation& operation, std::span<const std::byte* const> wires, std::int64_t elements,
                  std::span<std::byte> total) {
  const Codec codec = operation.header.codec;
  const ElementType type = wide(operation.header.type);
  const auto bytes = index(encoded_bytes(codec, type, elements));
  const bool sums = operation.header.op == ReduceOp::sum || operation.header.op == ReduceOp::mean;
  alignas(64) Row other;
  decode(codec, type, {wires[0], bytes}, total);
  for (const std::byte* const wire : wires.subspan(1)) {
    if (sums) {
      decode_add(codec, type, {wire, bytes}, total);
      continue;
    }
    decode(codec, type, {wire, bytes}, {other.data(), total.size()});
    const std::byte* const both[] = {total.data(), other.data()};
    operation.reduce_wide(both, 2, total.data(), index(elements));
  }
  if (operation.header.op != ReduceOp::mean) return;
  const auto ranks = static_cast<int>(wires.size());
  if (type == ElementType::float64) {
    divide<double>(total.data(), elements, ranks);
  } else {
    divide<float>(total.data(), elements, ranks);
  }
}

}  // namespace

std::int64_t Exchange::wire_bytes(const Range& range) const {
  if (!running->encoded) return range.elements() * running->element_bytes;
  return encoded_bytes(running->header.codec, running->header.type, range.elements());
}

void Exchange::send_encoded(const Range& range, std::byte* slot) {
  const Operation& operation = *running;
  const std::byte* source = gathered(range);
  alignas(64) WireRow wire;
  if (stores_ == StoreKind::plain) {
    const auto bytes = index(range.elements() * operation.element_bytes);
    return encode(operation.header.codec, operation.header.type, {source, bytes}, {slot, index(wire_bytes(range))});
  }
  for (std::int64_t first = 0; first < range.elements(); first += block) {
    const std::int64_t elements = std::min(block, range.elements() - first);
    const auto bytes = index(elements * operation.element_bytes);
    const std::span<std::byte> now(wire.data(), index(wire_bytes({0, elements})));
    encode(operation.header.codec, operation.header.type, {source, bytes}, now);
    store_piece(stores_, slot, now);
    source += bytes;
    slot += now.size();
  }
  finish_pieces(stores_);
}

void Exchange::reduce_encoded(const Range& range, std::byte* result) {
  const Operation& operation = *running;
  gather_with_reduce_ = operation.gathers_result;
  if (gather_with_reduce_) open_gather();
  sources_[index(rank)] = gathered(range);
  shifted_ = sources_;
  if (gather_with_reduce_ && operation.adds && stores_ == StoreKind::plain && peers_.size() == 1) {
    reduce_block(range.elements(), gather_to_.front(), result);
    return publish_gather(wire_bytes(range));
  }
  alignas(64) WireRow wire;
  std::int64_t at = 0;
  for (std::int64_t first = 0; first < range.elements(); first += block) {
    const std::int64_t elements = std::min(block, range.elements() - first);
    reduce_block(elements, wire.data(), result + first * operation.element_bytes);
    const std::int64_t bytes = wire_bytes({0, elements});
    for (int r = 0; r < size; ++r) shifted_[index(r)] += r == rank ? elements * operation.element_bytes : bytes;
    if (gather_with_reduce_) {
      for (std::byte* const to : gather_to_) store_piece(stores_, to + at, {wire.data(), index(bytes)});
    }
    at += bytes;
  }
  if (gather_with_reduce_) publish_gather(at);
}

// Reduces the next `elements` numbers of all ranks (`shifted_`) into `wire` and `result`.
void Exchange::reduce_block(std::int64_t elements, std::byte* wire, std::byte* result) {
  const Operation& operation = *running;
  const Codec codec = operation.header.codec;
  if (operation.adds) {
    const bool mean = operation.header.op == ReduceOp::mean;
    return add_encoded({codec, shifted_, rank, mean}, elements, gather_with_reduce_ ? wire : nullptr, result);
  }
  const ElementType type = wide(operation.header.type);
  const auto bytes = index(elements * operation.element_bytes);
  alignas(64) WireRow own_wire;
  const std::span<std::byte> own(own_wire.data(), index(wire_bytes({0, elements})));
  const std::byte* const source = std::exchange(shifted_[index(rank)], own.data());
  encode(codec, operation.header.type, {source, bytes}, own);
  alignas(64) Row memory;
  const std::span<std::byte> total(memory.data(), index(elements * bytes_of(type)));
  reduce_wires(operation, shifted_, elements, total);
  shifted_[index(rank)] = source;
  const std::span<std::byte> reduced(wire, own.size());
  encode(codec, type, total, reduced);
  decode(codec, operation.header.type, reduced, {result, bytes});
}

}  // namespace onehop::collectives::detail
