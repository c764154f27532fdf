// `ArrayCollectives` are collective operations on arrays of every type of number of C and Fortran, each in one call.
// They combine in the order of ranks: results have the same bits on every rank, except that sums, products and means of
// 32 and 64 bits between hosts are combined by host where `Collectives` do so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "onehop/collectives/collectives.h"
#include "onehop/group.h"

namespace onehop::collectives {

// complex64 and complex128 are a real and an imaginary part of float32 and float64.
enum class NumberType : std::uint8_t {
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  complex64,
  complex128
};

enum class ArrayOp : std::uint8_t {
  sum,
  prod,
  min,
  max,
  logical_and,
  logical_or,
  logical_xor,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  mean
};

[[nodiscard]] std::string_view to_string(NumberType type);
[[nodiscard]] std::string_view to_string(ArrayOp op);
[[nodiscard]] std::int64_t bytes_of(NumberType type);

// All functions are collective: every rank calls them in the same order, with the same type, operator and root. They
// throw BadInput for arguments that are wrong on this rank (no communication takes place then), Mismatch on every rank
// if the calls of two ranks differ, PeerLost and Timeout. There is no minimum, maximum and bitwise operation of complex
// numbers, no bitwise operation of floating-point numbers, and no mean of integers. Integers wrap around; a logical
// operation gives 0 or 1; a NaN on any rank gives a NaN. Lengths named `elements` have one number for each rank.
class ArrayCollectives {
 public:
  using Source = std::span<const std::byte>;
  using Result = std::span<std::byte>;

  // Collective over the group.
  explicit ArrayCollectives(const Group& group, const CollectivesOptions& options = {});

  // Source and result have the same length on every rank. They may be the same memory, and must not overlap otherwise.
  void allreduce(NumberType type, ArrayOp op, Source source, Result result);
  // The same, with the result on rank `root` alone.
  void reduce(NumberType type, ArrayOp op, Source source, Result result, int root);
  // The combination of the ranks up to this one; if exclusive, of those before it: rank 0 gets the neutral element
  // then, which minimum, maximum and mean do not have.
  void scan(NumberType type, ArrayOp op, Source source, Result result, bool exclusive = false);
  // Rank r gets block r of the combined array, of elements[r] numbers.
  void reduce_scatter(NumberType type, ArrayOp op, std::span<const std::int64_t> elements, Source source,
                      Result result);

  // These move numbers unchanged, and memory must be disjoint.
  void broadcast(NumberType type, Result array, int root);
  void allgather(NumberType type, std::span<const std::int64_t> elements, Source source, Result result);
  // Only rank `root` needs `elements` and the result, or the source of the scatter.
  void gather(NumberType type, std::span<const std::int64_t> elements, Source source, Result result, int root);
  void scatter(NumberType type, std::span<const std::int64_t> elements, Source source, Result result, int root);
  // Block r of the source goes to rank r, and block r of the result comes from rank r.
  void alltoall(NumberType type, std::span<const std::int64_t> sent, Source source,
                std::span<const std::int64_t> received, Result result);

  [[nodiscard]] const Collectives& collectives() const noexcept { return collectives_; }

 private:
  struct Call;
  [[nodiscard]] Call call_of(std::string_view name, NumberType type) const;
  [[nodiscard]] Call reduction(std::string_view name, NumberType type, ArrayOp op) const;
  void check_root(const Call& call, int root) const;

  Collectives collectives_;
  // By bytes.
  std::map<std::tuple<std::size_t, NumberType, ArrayOp>, Collective> prepared_;
};

}  // namespace onehop::collectives
