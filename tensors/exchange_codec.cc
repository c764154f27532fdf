// Reductions of encoded numbers. What arrives is the sum of what each rank's numbers became on the wire, encoded once more:
// each value is rounded exactly twice, whatever the algorithm and the number of ranks, and so is the own contribution.
#include <algorithm>
#include <cstring>

#include "exchange.h"

namespace onehop::tensors::detail {

namespace {

// Calculated in blocks that stay in the nearest cache with those of some ranks beside them.
constexpr std::int64_t block = 1024;

std::size_t index(std::int64_t value) { return static_cast<std::size_t>(value); }

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

// Folds one block of all ranks, given encoded, into rows[0].
void fold_block(const Operation& operation, const std::vector<const std::byte*>& sources, std::int64_t wire_begin,
                std::int64_t wire_bytes, std::int64_t elements, std::vector<std::byte>& rows) {
  const Codec codec = operation.what.codec;
  const ElementType type = wide(operation.what.type);
  const auto bytes = index(elements * bytes_of(type));
  const auto ranks = static_cast<int>(sources.size());
  const bool sums = operation.what.op == ReduceOp::sum || operation.what.op == ReduceOp::mean;
  const auto wire = [&](int r) { return std::span(sources[index(r)] + wire_begin, index(wire_bytes)); };
  decode(codec, type, wire(0), {rows.data(), bytes});
  for (int r = 1; r < ranks; ++r) {
    if (sums) {
      decode_add(codec, type, wire(r), {rows.data(), bytes});
      continue;
    }
    std::byte* const other = rows.data() + block * bytes_of(type);
    decode(codec, type, wire(r), {other, bytes});
    const std::byte* const both[] = {rows.data(), other};
    operation.fold_wide(both, 2, rows.data(), index(elements));
  }
  if (operation.what.op != ReduceOp::mean) return;
  if (type == ElementType::float64) {
    divide<double>(rows.data(), elements, ranks);
  } else {
    divide<float>(rows.data(), elements, ranks);
  }
}

}  // namespace

std::int64_t Exchange::wire_bytes(const Range& range) const {
  if (!running->encoded) return range.elements() * running->element_bytes;
  return encoded_bytes(running->what.codec, running->what.type, range.elements());
}

void Exchange::prepare_codec() {
  own_encoded_until_ = 0;
  if (!own_encoded_.empty()) return;
  own_encoded_.assign(index(slots_), std::vector<std::byte>(index(slot_bytes)));
  folded_encoded_.resize(index(slot_bytes));
  decoded_.resize(index(2 * block * bytes_of(ElementType::float64)));
}

std::span<const std::byte> Exchange::encoded(const Range& range, std::int64_t number) {
  // In one-shot everybody gets the same chunks, and this rank folds them itself.
  const bool shared = running->what.algorithm == ReduceAlgorithm::one_shot;
  std::vector<std::byte>& memory = shared ? own_encoded_[index(number % slots_)] : folded_encoded_;
  const std::span<std::byte> wire(memory.data(), index(wire_bytes(range)));
  if (!shared || number >= own_encoded_until_) {
    const auto bytes = index(range.elements() * running->element_bytes);
    encode(running->what.codec, running->what.type, {gathered(range), bytes}, wire);
    if (shared) own_encoded_until_ = number + 1;
  }
  return wire;
}

void Exchange::fold_encoded(const Range& range, std::int64_t number, std::byte* result) {
  const Operation& operation = *running;
  const Codec codec = operation.what.codec;
  const ElementType type = wide(operation.what.type);
  std::span<const std::byte> own = encoded(range, number);
  if (own.data() == folded_encoded_.data()) {  // where the folded chunk is to come
    std::memcpy(own_encoded_[0].data(), own.data(), own.size());
    own = {own_encoded_[0].data(), own.size()};
  }
  sources_[index(rank)] = own.data();
  for (std::int64_t first = 0; first < range.elements(); first += block) {
    const std::int64_t elements = std::min(block, range.elements() - first);
    const std::int64_t begin = encoded_bytes(codec, type, first);
    const std::int64_t bytes = encoded_bytes(codec, type, elements);
    fold_block(operation, sources_, begin, bytes, elements, decoded_);
    const std::span<std::byte> wire(folded_encoded_.data() + begin, index(bytes));
    encode(codec, type, {decoded_.data(), index(elements * bytes_of(type))}, wire);
    decode(codec, operation.what.type, wire,
           {result + first * operation.element_bytes, index(elements * operation.element_bytes)});
  }
}

}  // namespace onehop::tensors::detail
