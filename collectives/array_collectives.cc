#include "onehop/collectives/array_collectives.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectives/number_combine.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::collectives {

namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::array<std::string_view, 12> type_names = {"int8",    "int16",   "int32",     "int64",
                                                         "uint8",   "uint16",  "uint32",    "uint64",
                                                         "float32", "float64", "complex64", "complex128"};
constexpr std::array<std::string_view, 11> op_names = {"sum",         "prod",        "min",         "max",
                                                       "logical_and", "logical_or",  "logical_xor", "bitwise_and",
                                                       "bitwise_or",  "bitwise_xor", "mean"};
// Arrays are combined in pieces of this size, which limits the memory beside them.
constexpr std::int64_t piece_bytes = 1 << 20;
constexpr std::size_t most_prepared = 512;

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
std::size_t unsigned_of(std::int64_t number) { return static_cast<std::size_t>(number); }

template <class Byte>
std::span<Byte> part(std::span<Byte> bytes, std::int64_t begin, std::int64_t length) {
  return bytes.subspan(unsigned_of(begin), unsigned_of(length));
}

Lengths scaled(Lengths lengths, std::int64_t factor) {
  for (std::int64_t& one : lengths) one *= factor;
  return lengths;
}

// A length for rank `root`, none for the others.
Lengths only(int root, std::int64_t length, int ranks) {
  Lengths lengths(index(ranks), 0);
  lengths[index(root)] = length;
  return lengths;
}

// What `Collectives` combine with the same bits: complex numbers are two numbers, and sums do not ask for a sign.
std::optional<std::pair<ElementType, ReduceOp>> native(NumberType type, ArrayOp op) {
  const bool adds = op == ArrayOp::sum || op == ArrayOp::mean;
  const bool wraps = op == ArrayOp::sum || op == ArrayOp::prod;
  std::optional<ElementType> element;
  if (type == NumberType::float32 || (type == NumberType::complex64 && adds)) element = ElementType::float32;
  if (type == NumberType::float64 || (type == NumberType::complex128 && adds)) element = ElementType::float64;
  if (type == NumberType::int32 || (type == NumberType::uint32 && wraps)) element = ElementType::int32;
  if (type == NumberType::int64 || (type == NumberType::uint64 && wraps)) element = ElementType::int64;
  if (!element || op > ArrayOp::mean) return std::nullopt;
  const std::string_view name = to_string(op);
  if (name.starts_with("logical") || name.starts_with("bitwise")) return std::nullopt;
  return std::pair(*element, reduce_op_from_string(name));
}

}  // namespace

std::string_view to_string(NumberType type) { return type_names.at(static_cast<std::size_t>(type)); }
std::string_view to_string(ArrayOp op) { return op_names.at(static_cast<std::size_t>(op)); }

std::int64_t bytes_of(NumberType type) {
  constexpr std::array<std::int64_t, 12> sizes = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16};
  return sizes.at(static_cast<std::size_t>(type));
}

// One call: what it is, for errors and for the comparison between the ranks.
struct ArrayCollectives::Call {
  const Collectives& collectives;
  std::string what;
  std::int64_t size = 1;  // bytes of a number
  Content content{};
  detail::NumberCombine op{};

  [[nodiscard]] int ranks() const { return collectives.group().size(); }
  [[nodiscard]] int rank() const { return collectives.group().rank(); }

  // The shape that all ranks compare has this number, too.
  void compare(std::int64_t number) { content.shape.push_back(number); }

  [[noreturn]] void refuse(const std::string& text) const { throw BadInput(what + ": " + text); }

  // The number of elements of an array.
  [[nodiscard]] std::int64_t elements(Source bytes) const {
    const auto length = static_cast<std::int64_t>(bytes.size());
    if (length % size != 0)
      refuse("expected a multiple of " + base::counted(size, "byte") + ", found " + std::to_string(length));
    return length / size;
  }

  void check_length(const char* array, Source bytes, std::int64_t wanted) const {
    if (const std::int64_t found = elements(bytes); found != wanted) {
      refuse("expected a " + std::string(array) + " of " + base::counted(wanted, "element") + ", found " +
             std::to_string(found));
    }
  }

  // Checks lengths, one for each rank, and that an array is as long as all of them; returns them in bytes.
  [[nodiscard]] Lengths bytes_of_blocks(const char* array, std::span<const std::int64_t> lengths, Source bytes) const {
    if (lengths.size() != index(ranks()))
      refuse("expected a length for each of the " + base::counted(ranks(), "rank") + ", found " +
             std::to_string(lengths.size()));
    std::int64_t all = 0;
    for (const std::int64_t one : lengths) {
      if (one < 0 || one > std::numeric_limits<std::int64_t>::max() / 64 / ranks())
        refuse("expected lengths of 0 or more that fit in memory, found " + std::to_string(one));
      all += one;
    }
    check_length(array, bytes, all);
    return scaled({lengths.begin(), lengths.end()}, size);
  }

  template <class Run>
  void moving(Run&& run) const {
    try {
      std::forward<Run>(run)();
    } catch (const Mismatch& error) {
      throw Mismatch(what + ": the ranks differ in type, operator, root or lengths: " + error.what());
    }
  }

  void exchange(const Lengths& to, Source source, const Lengths& from, Result result) const {
    moving([&] { collectives.all_to_all(to, from, content).run(source, result); });
  }

  // The segments of `elements` elements that the ranks combine.
  [[nodiscard]] Lengths segments(std::int64_t elements) const {
    Lengths lengths;
    for (std::int64_t rank = 0; rank < ranks(); ++rank)
      lengths.push_back(elements / ranks() + (rank < elements % ranks() ? 1 : 0));
    return lengths;
  }

  // Sends segment r of the source to rank r, and combines what this rank gets. `rows` has one row of this rank's
  // segment for each rank, then the combination of the rows up to it.
  void combine_rows(const Lengths& lengths, Source source, Result rows) const {
    const std::int64_t mine = lengths[index(rank())];
    const auto elements = unsigned_of(mine);
    exchange(scaled(lengths, size), source, Lengths(index(ranks()), mine * size), rows);
    const auto row = [&](int r) { return rows.data() + index(r) * elements * unsigned_of(size); };
    if (op.begin != nullptr) op.begin(row(0), elements);
    for (int r = 1; r < ranks(); ++r) op.combine(row(r - 1), row(r), row(r), elements);
    for (int r = 1; r < ranks() && op.divide != nullptr; ++r) op.divide(row(r), elements, r + 1);
  }

  // Combines an array in pieces. deliver(lengths, rows, own, begin, length) gets the segments of the ranks, the rows
  // of this rank's segment behind one row for a neutral element, the bytes of a row, and the place of the piece in
  // bytes.
  template <class Deliver>
  void combine_pieces(std::int64_t elements, Source source, Deliver&& deliver) const {
    const std::int64_t step = std::max(piece_bytes / size, std::int64_t{1});
    std::vector<std::byte> rows;
    std::int64_t begin = 0;
    do {  // once for an empty array, too, so that the ranks compare their calls
      const std::int64_t length = std::min(step, elements - begin);
      const Lengths lengths = segments(length);
      const std::int64_t own = lengths[index(rank())] * size;
      rows.resize(unsigned_of(own * (ranks() + 1)));
      combine_rows(lengths, part(source, begin * size, length * size), Result(rows).subspan(unsigned_of(own)));
      deliver(scaled(lengths, size), Result(rows), own, begin * size, length * size);
      begin += step;
    } while (begin < elements);
  }
};

ArrayCollectives::ArrayCollectives(const Group& group, const CollectivesOptions& options)
    : collectives_(group, options) {}

ArrayCollectives::Call ArrayCollectives::call_of(std::string_view name, NumberType type) const {
  Call call{collectives_, std::string(name), bytes_of(type)};
  std::uint64_t sum = 0;  // of the name, which the ranks compare
  for (const char letter : name) sum = sum * 31 + static_cast<unsigned char>(letter);
  call.content.shape = {static_cast<std::int64_t>(type), static_cast<std::int64_t>(sum)};
  return call;
}

ArrayCollectives::Call ArrayCollectives::reduction(std::string_view name, NumberType type, ArrayOp op) const {
  Call made = call_of(name, type);
  made.what += " (" + std::string(to_string(op)) + ")";
  made.op = detail::number_combine(type, op);
  if (made.op.combine == nullptr)
    made.refuse("there is no " + std::string(to_string(op)) + " of " + std::string(to_string(type)));
  made.compare(static_cast<std::int64_t>(op));
  return made;
}

void ArrayCollectives::check_root(const Call& call, int root) const {
  if (root < 0 || root >= call.ranks()) {
    call.refuse("expected the root as a rank from 0 to " + std::to_string(call.ranks() - 1) + ", found " +
                std::to_string(root));
  }
}

void ArrayCollectives::allreduce(NumberType type, ArrayOp op, Source source, Result result) {
  const std::tuple key(source.size(), type, op);
  if (const auto found = prepared_.find(key); found != prepared_.end() && result.size() == source.size()) {
    found->second.run(source, result);
    return;
  }
  Call call = reduction("allreduce", type, op);
  const std::int64_t elements = call.elements(source);
  call.check_length("result", result, elements);
  if (const auto kind = native(type, op)) {
    if (prepared_.size() >= most_prepared) prepared_.clear();
    const std::int64_t numbers = elements * call.size / bytes_of(kind->first);
    Collective made = collectives_.allreduce({.elements = numbers, .type = kind->first, .op = kind->second});
    prepared_.emplace(key, std::move(made)).first->second.run(source, result);
    return;
  }
  call.compare(elements);
  call.combine_pieces(elements, source, [&](const Lengths& lengths, Source rows, auto own, auto begin, auto length) {
    call.moving([&] {
      collectives_.allgather(lengths, call.content)
          .run(part(rows, own * call.ranks(), own), part(result, begin, length));
    });
  });
}

void ArrayCollectives::reduce(NumberType type, ArrayOp op, Source source, Result result, int root) {
  Call call = reduction("reduce", type, op);
  check_root(call, root);
  const std::int64_t elements = call.elements(source);
  const bool is_root = call.rank() == root;
  if (is_root) call.check_length("result", result, elements);
  call.compare(root);
  call.compare(elements);
  call.combine_pieces(elements, source, [&](const Lengths& lengths, Source rows, auto own, auto begin, auto length) {
    call.exchange(only(root, own, call.ranks()), part(rows, own * call.ranks(), own),
                  is_root ? lengths : Lengths(lengths.size(), 0), is_root ? part(result, begin, length) : Result());
  });
}

void ArrayCollectives::scan(NumberType type, ArrayOp op, Source source, Result result, bool exclusive) {
  Call call = reduction(exclusive ? "exclusive scan" : "scan", type, op);
  const std::int64_t elements = call.elements(source);
  call.check_length("result", result, elements);
  if (exclusive && call.op.neutral == nullptr) call.refuse("expected an operator with a neutral element");
  call.compare(elements);
  call.combine_pieces(elements, source, [&](const Lengths& lengths, Result rows, auto own, auto begin, auto length) {
    if (exclusive) call.op.neutral(rows.data(), unsigned_of(own / call.size));
    call.exchange(Lengths(lengths.size(), own), part(Source(rows), exclusive ? 0 : own, own * call.ranks()), lengths,
                  part(result, begin, length));
  });
}

void ArrayCollectives::reduce_scatter(NumberType type, ArrayOp op, std::span<const std::int64_t> elements,
                                      Source source, Result result) {
  Call call = reduction("reduce_scatter", type, op);
  const Lengths bytes = call.bytes_of_blocks("source", elements, source);
  const std::int64_t own = elements[index(call.rank())];
  call.check_length("result", result, own);
  if (const auto kind = native(type, op)) {
    const Lengths numbers = scaled({elements.begin(), elements.end()}, call.size / bytes_of(kind->first));
    call.moving(
        [&] { collectives_.reduce_scatter({.type = kind->first, .op = kind->second}, numbers).run(source, result); });
    return;
  }
  for (const std::int64_t one : elements) call.compare(one);
  std::vector<std::byte> rows(result.size() * index(call.ranks()));
  call.combine_rows({elements.begin(), elements.end()}, source, rows);
  std::ranges::copy(std::span(rows).last(result.size()), result.begin());
}

void ArrayCollectives::broadcast(NumberType type, Result array, int root) {
  const Call call = call_of("broadcast", type);
  check_root(call, root);
  const std::int64_t bytes = call.elements(array) * call.size;
  call.moving([&] { collectives_.broadcast(bytes, root, call.content).run(array, array); });
}

void ArrayCollectives::allgather(NumberType type, std::span<const std::int64_t> elements, Source source,
                                 Result result) {
  const Call call = call_of("allgather", type);
  const Lengths bytes = call.bytes_of_blocks("result", elements, result);
  call.check_length("source", source, elements[index(call.rank())]);
  call.moving([&] { collectives_.allgather(bytes, call.content).run(source, result); });
}

void ArrayCollectives::gather(NumberType type, std::span<const std::int64_t> elements, Source source, Result result,
                              int root) {
  Call call = call_of("gather", type);
  check_root(call, root);
  call.compare(root);
  const std::int64_t own = call.elements(source);
  Lengths from(index(call.ranks()), 0);
  if (call.rank() == root) {
    from = call.bytes_of_blocks("result", elements, result);
    call.check_length("source", source, elements[index(root)]);
  }
  call.exchange(only(root, own * call.size, call.ranks()), source, from, call.rank() == root ? result : Result());
}

void ArrayCollectives::scatter(NumberType type, std::span<const std::int64_t> elements, Source source, Result result,
                               int root) {
  Call call = call_of("scatter", type);
  check_root(call, root);
  call.compare(root);
  const std::int64_t own = call.elements(result);
  Lengths to(index(call.ranks()), 0);
  if (call.rank() == root) {
    to = call.bytes_of_blocks("source", elements, source);
    call.check_length("result", result, elements[index(root)]);
  }
  call.exchange(to, call.rank() == root ? source : Source(), only(root, own * call.size, call.ranks()), result);
}

void ArrayCollectives::alltoall(NumberType type, std::span<const std::int64_t> sent, Source source,
                                std::span<const std::int64_t> received, Result result) {
  const Call call = call_of("alltoall", type);
  const Lengths to = call.bytes_of_blocks("source", sent, source);
  const Lengths from = call.bytes_of_blocks("result", received, result);
  call.exchange(to, source, from, result);
}

}  // namespace onehop::collectives
