// Global operations. In a reduction every node gathers the values of all nodes and combines them in node order, so the
// results are bit-identical on all nodes.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "compat/qmp/state.h"
#include "onehop/error.h"
#include "src/base/extremes.h"

using onehop::BadInput;
using onehop::Mismatch;
using onehop::compat::checked_span;
using onehop::compat::checked_value;
using onehop::compat::guarded;
using onehop::compat::throw_negative;
using namespace onehop::compat::qmp;

namespace {

[[noreturn]] void refuse(std::size_t node) {
  throw Mismatch("expected the same operation on all nodes, found another one on node " + std::to_string(node));
}

// What a node sends before its values in a binary reduction: a hash of the file that has the function, and the place of
// the function in it; 0 if they are unknown. In another executable the same function may have another place.
struct Signature {
  std::array<char, 8> kind{'b'};
  std::uint64_t file = 0;
  std::uint64_t place = 0;
};

Signature signature_of(QMP_binary_func function) {
  Signature found;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(function), &info) != 0 && info.dli_fname != nullptr) {
    found.file = std::hash<std::string_view>{}(info.dli_fname);
    found.place = reinterpret_cast<std::uintptr_t>(function) - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
  }
  return found;
}

void check_signature(const Signature& own, const Signature& theirs, std::size_t node) {
  if (theirs.kind != own.kind || (theirs.file == own.file && theirs.place != own.place)) refuse(node);
}

template <class T>
constexpr char type_letter = std::is_floating_point_v<T> ? 'f' : 'i';

// Combines each element in node order: op(... op(op(node 0, node 1), node 2) ...).
template <class T, class Op>
QMP_status_t reduce(QMP_comm_t comm, T* first, int length, const Op& op) {
  QMP_comm_struct& among = checked(comm);
  const std::span<T> values = checked_span(first, length);
  const std::size_t n = values.size();
  // Before its values every node sends which operation it performs on which type.
  constexpr std::array<char, 8> kind{Op::letter, type_letter<T>, sizeof(T)};
  std::vector<std::byte>& mine = among.contribution;
  mine.resize(sizeof kind + values.size_bytes());
  std::memcpy(mine.data(), kind.data(), sizeof kind);
  if (n > 0) std::memcpy(mine.data() + sizeof kind, first, values.size_bytes());
  const std::span<const std::byte> all = among.collectives->gather(mine);
  for (std::size_t node = 0; node < among.ranks.size(); ++node) {
    const std::span<const std::byte> part = all.subspan(node * mine.size(), mine.size());
    if (std::memcmp(part.data(), kind.data(), sizeof kind) != 0) {
      refuse(node);
    }
    const std::span<const std::byte> theirs = part.subspan(sizeof kind);
    for (std::size_t i = 0; i < n; ++i) {
      values[i] = node == 0 ? value_at<T>(theirs, i) : op(values[i], value_at<T>(theirs, i));
    }
  }
  return QMP_SUCCESS;
}

// The same for one number, reduced in another type.
template <class Wide, class T, class Op>
QMP_status_t reduce_as(QMP_comm_t comm, T* value, const Op& op) {
  Wide wide = static_cast<Wide>(checked_value(value));
  reduce(comm, &wide, 1, op);
  *value = static_cast<T>(wide);
  return QMP_SUCCESS;
}

template <char Letter, class Function>
struct Operation : Function {
  static constexpr char letter = Letter;
};
template <char Letter, class Function>
constexpr Operation<Letter, Function> operation(Function function) {
  return {function};
}
constexpr auto plus = operation<'+'>([](auto a, auto b) { return a + b; });
constexpr auto wrapping_plus =
    operation<'+'>([](int a, int b) { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); });
constexpr auto larger = operation<'>'>([](auto a, auto b) { return onehop::base::larger(a, b); });
constexpr auto smaller = operation<'<'>([](auto a, auto b) { return onehop::base::smaller(a, b); });
constexpr auto exclusive_or = operation<'^'>([](auto a, auto b) { return a ^ b; });

}  // namespace

// Defines QMP_comm_NAME and QMP_NAME, which replace a number, or those of an array, by the result of `reduction`.
#define QMP_REDUCTION(name, type, reduction)                                     \
  ONEHOP_COMPAT_API QMP_status_t QMP_comm_##name(QMP_comm_t comm, type* value) { \
    return guarded(__func__, [&] { return reduction; });                         \
  }                                                                              \
  QMP_OF_DEFAULT(QMP_status_t, name, (type * value), value)
#define QMP_REDUCTION_OF_ARRAY(name, type)                                                    \
  ONEHOP_COMPAT_API QMP_status_t QMP_comm_##name(QMP_comm_t comm, type value[], int length) { \
    return guarded(__func__, [&] { return reduce(comm, value, length, plus); });              \
  }                                                                                           \
  QMP_OF_DEFAULT(QMP_status_t, name, (type value[], int length), value, length)

QMP_REDUCTION(sum_int, int, reduce(comm, value, 1, wrapping_plus))
QMP_REDUCTION(sum_uint64_t, uint64_t, reduce(comm, value, 1, plus))
QMP_REDUCTION(sum_float, float, reduce_as<double>(comm, value, plus))
QMP_REDUCTION(sum_double, double, reduce(comm, value, 1, plus))
QMP_REDUCTION(sum_long_double, long double, reduce(comm, value, 1, plus))
QMP_REDUCTION(sum_double_extended, double, reduce_as<long double>(comm, value, plus))
QMP_REDUCTION_OF_ARRAY(sum_float_array, float)
QMP_REDUCTION_OF_ARRAY(sum_double_array, double)
QMP_REDUCTION_OF_ARRAY(sum_long_double_array, long double)
QMP_REDUCTION(max_float, float, reduce(comm, value, 1, larger))
QMP_REDUCTION(max_double, double, reduce(comm, value, 1, larger))
QMP_REDUCTION(min_float, float, reduce(comm, value, 1, smaller))
QMP_REDUCTION(min_double, double, reduce(comm, value, 1, smaller))
QMP_REDUCTION(xor_ulong, unsigned long, reduce(comm, value, 1, exclusive_or))

ONEHOP_COMPAT_FUNCTION(QMP_status_t, QMP_comm_barrier, (QMP_comm_t comm), checked(comm).collectives->barrier(),
                       QMP_SUCCESS)
QMP_OF_DEFAULT(QMP_status_t, barrier, ())
ONEHOP_COMPAT_API QMP_status_t QMP_comm_broadcast(QMP_comm_t comm, void* buffer, size_t nbytes) {
  return guarded(__func__, [&] {
    checked(comm).collectives->broadcast(checked_span(static_cast<std::byte*>(buffer), nbytes), 0);
    return QMP_SUCCESS;
  });
}
QMP_OF_DEFAULT(QMP_status_t, broadcast, (void* buffer, size_t nbytes), buffer, nbytes)
ONEHOP_COMPAT_API QMP_status_t QMP_comm_alltoall(QMP_comm_t comm, char* recvbuffer, char* sendbuffer, int count) {
  return guarded(__func__, [&] {
    const QMP_comm_struct& among = checked(comm);
    if (count < 0) throw_negative(count);
    const std::int64_t bytes = std::int64_t{count} * among.size();
    const std::span received = checked_span(recvbuffer, bytes);
    const auto got = among.collectives->exchange(std::as_bytes(checked_span(sendbuffer, bytes)));
    if (!received.empty()) std::memcpy(received.data(), got.data(), received.size());
    return QMP_SUCCESS;
  });
}
ONEHOP_COMPAT_API QMP_status_t QMP_comm_binary_reduction(QMP_comm_t comm, void* lbuffer, size_t buflen,
                                                         QMP_binary_func bfunc) {
  return guarded(__func__, [&] {
    if (bfunc == nullptr) throw BadInput("expected a function, found a null pointer");
    QMP_comm_struct& among = checked(comm);
    const std::span<const std::byte> values = checked_span(static_cast<const std::byte*>(lbuffer), buflen);
    const Signature own = signature_of(bfunc);
    std::vector<std::byte>& mine = among.contribution;
    mine.resize(sizeof own + buflen);
    std::memcpy(mine.data(), &own, sizeof own);
    std::ranges::copy(values, mine.begin() + sizeof own);
    const std::span<const std::byte> gathered = among.collectives->gather(mine);
    const std::vector<std::byte> all(gathered.begin(), gathered.end());  // the function may call QMP
    // As in MPI, the second argument is the result so far; the first is the next node's value and becomes the result.
    std::vector<std::byte> before(buflen);
    for (std::size_t node = 0; node < among.ranks.size(); ++node) {
      const std::span<const std::byte> part = std::span(all).subspan(node * (sizeof own + buflen), sizeof own + buflen);
      check_signature(own, value_at<Signature>(part, 0), node);
      if (buflen == 0) continue;
      if (node > 0) std::memcpy(before.data(), lbuffer, buflen);
      std::memcpy(lbuffer, part.data() + sizeof own, buflen);
      if (node > 0) bfunc(lbuffer, before.data());
    }
    return QMP_SUCCESS;
  });
}
QMP_OF_DEFAULT(QMP_status_t, binary_reduction, (void* lbuffer, size_t buflen, QMP_binary_func bfunc), lbuffer, buflen,
               bfunc)
