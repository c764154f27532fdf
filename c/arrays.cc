// Collective operations and messages of the C interface.
#include <limits>
#include <vector>

#include "c/handles.h"

using namespace onehop::c;  // NOLINT(google-build-using-namespace)
using onehop::BadInput;
using onehop::collectives::ArrayCollectives;
using onehop::collectives::ArrayOp;
using onehop::collectives::Messages;
using onehop::collectives::NumberType;

static_assert(ONEHOP_UINT64 == static_cast<int>(NumberType::uint64) &&
              ONEHOP_DOUBLE_COMPLEX == static_cast<int>(NumberType::complex128));
static_assert(ONEHOP_LOGICAL_AND == static_cast<int>(ArrayOp::logical_and) &&
              ONEHOP_MEAN == static_cast<int>(ArrayOp::mean));

namespace {

NumberType type_of(int type) {
  if (type < 0 || type > ONEHOP_DOUBLE_COMPLEX)
    throw BadInput("expected the type of a number, such as ONEHOP_DOUBLE, found " + std::to_string(type));
  return static_cast<NumberType>(type);
}

ArrayOp op_of(int op) {
  if (op < 0 || op > ONEHOP_MEAN)
    throw BadInput("expected an operator, such as ONEHOP_SUM, found " + std::to_string(op));
  return static_cast<ArrayOp>(op);
}

ArrayCollectives& arrays_of(onehop_group* group) {
  GroupObject& object = groups.at(group);
  if (!object.arrays) object.arrays.emplace(object.group);
  return *object.arrays;
}

Messages& messages_of(onehop_group* group) {
  GroupObject& object = groups.at(group);
  if (!object.messages) object.messages.emplace(object.group);
  return *object.messages;
}

template <class Byte, class Pointer>
std::span<Byte> memory(Pointer* pointer, std::int64_t count, int type, const char* name) {
  const std::int64_t size = bytes_of(type_of(type));
  if (count < 0 || count > std::numeric_limits<std::int64_t>::max() / size)
    throw BadInput(std::string("expected a length of ") + name + " of 0 or more that fits in memory, found " +
                   std::to_string(count));
  return numbers(static_cast<Byte*>(pointer), count * size, name);
}

std::span<const std::byte> source_of(const void* pointer, std::int64_t count, int type) {
  return memory<const std::byte>(pointer, count, type, "the source");
}

std::span<std::byte> result_of(void* pointer, std::int64_t count, int type) {
  return memory<std::byte>(pointer, count, type, "the result");
}

bool is_rank(onehop_group* group, int rank) { return groups.at(group).group.rank() == rank; }

// A length for each rank, the length of all and of this one. Of an operation with a root, only the
// root has any.
struct Blocks {
  std::vector<std::int64_t> lengths;
  std::int64_t all = 0;
  std::int64_t own = 0;

  Blocks(onehop_group* group, const std::int64_t* counts, std::int64_t count) {
    const onehop::Group& ranks = arrays_of(group).collectives().group();
    const auto size = static_cast<std::size_t>(ranks.size());
    lengths = counts == nullptr ? std::vector(size, count) : std::vector(counts, counts + size);
    // A sum that wraps around has a length that is refused later.
    for (const std::int64_t one : lengths)
      all = static_cast<std::int64_t>(static_cast<std::uint64_t>(all) + static_cast<std::uint64_t>(one));
    own = lengths[static_cast<std::size_t>(ranks.rank())];
  }
  Blocks(onehop_group* group, const std::int64_t* counts, std::int64_t count, int root)
      : Blocks(is_rank(group, root) ? Blocks(group, counts, count) : Blocks()) {}

 private:
  Blocks() = default;
};

void tell(int* to, int sender) {
  if (to != nullptr) *to = sender;
}

void wait(onehop_request** request) {
  check_pointer(request, "the place of a handle");
  requests.at(*request).wait();
  release(requests, request);
}

void test(onehop_request** request, int* done) {
  check_pointer(request, "the place of a handle");
  put(done, static_cast<int>(requests.at(*request).test()));
  if (*done != 0) release(requests, request);
}

}  // namespace

using Place = onehop_group*;  // for short lines

ONEHOP_C_FUNCTION(onehop_allreduce, (Place group, const void* source, void* result, int64_t count, int type, int op),
                  arrays_of(group).allreduce(type_of(type), op_of(op), source_of(source, count, type),
                                             result_of(result, count, type)))
ONEHOP_C_FUNCTION(onehop_reduce,
                  (Place group, const void* source, void* result, int64_t count, int type, int op, int root),
                  arrays_of(group).reduce(type_of(type), op_of(op), source_of(source, count, type),
                                          result_of(result, is_rank(group, root) ? count : 0, type), root))
ONEHOP_C_FUNCTION(onehop_scan, (Place group, const void* source, void* result, int64_t count, int type, int op),
                  arrays_of(group).scan(type_of(type), op_of(op), source_of(source, count, type),
                                        result_of(result, count, type)))
ONEHOP_C_FUNCTION(onehop_exscan, (Place group, const void* source, void* result, int64_t count, int type, int op),
                  arrays_of(group).scan(type_of(type), op_of(op), source_of(source, count, type),
                                        result_of(result, count, type), true))
ONEHOP_C_FUNCTION(onehop_reduce_scatter,
                  (Place group, const void* source, void* result, int64_t count, const int64_t* counts, int type,
                   int op),
                  const Blocks blocks(group, counts, count);
                  arrays_of(group).reduce_scatter(type_of(type), op_of(op), blocks.lengths,
                                                  source_of(source, blocks.all, type),
                                                  result_of(result, blocks.own, type)))
ONEHOP_C_FUNCTION(onehop_broadcast, (Place group, void* array, int64_t count, int type, int root),
                  arrays_of(group).broadcast(type_of(type), result_of(array, count, type), root))
ONEHOP_C_FUNCTION(onehop_allgather,
                  (Place group, const void* source, void* result, int64_t count, const int64_t* counts, int type),
                  const Blocks blocks(group, counts, count);
                  arrays_of(group).allgather(type_of(type), blocks.lengths, source_of(source, blocks.own, type),
                                             result_of(result, blocks.all, type)))
ONEHOP_C_FUNCTION(onehop_gather,
                  (Place group, const void* source, int64_t count, void* result, const int64_t* counts, int type,
                   int root),
                  const Blocks blocks(group, counts, count, root);
                  arrays_of(group).gather(type_of(type), blocks.lengths, source_of(source, count, type),
                                          result_of(result, blocks.all, type), root))
ONEHOP_C_FUNCTION(onehop_scatter,
                  (Place group, const void* source, const int64_t* counts, void* result, int64_t count, int type,
                   int root),
                  const Blocks blocks(group, counts, count, root);
                  arrays_of(group).scatter(type_of(type), blocks.lengths, source_of(source, blocks.all, type),
                                           result_of(result, count, type), root))
ONEHOP_C_FUNCTION(onehop_alltoall,
                  (Place group, const void* source, const int64_t* sent, void* result, const int64_t* received,
                   int64_t count, int type),
                  const Blocks to(group, sent, count);
                  const Blocks from(group, received, count);
                  arrays_of(group).alltoall(type_of(type), to.lengths, source_of(source, to.all, type), from.lengths,
                                            result_of(result, from.all, type)))

ONEHOP_C_FUNCTION(onehop_send, (Place group, const void* array, int64_t count, int type, int to, int64_t tag),
                  messages_of(group).send(source_of(array, count, type), to, tag))
ONEHOP_C_FUNCTION(onehop_isend,
                  (Place group, const void* array, int64_t count, int type, int to, int64_t tag,
                   onehop_request** request),
                  Messages& messages = messages_of(group);
                  check_pointer(request, "a place for the result");
                  make(requests, request, messages.isend(source_of(array, count, type), to, tag)))
ONEHOP_C_FUNCTION(onehop_receive,
                  (Place group, void* array, int64_t count, int type, int source, int64_t tag, int* sender),
                  tell(sender, messages_of(group).receive(result_of(array, count, type), source, tag)))
ONEHOP_C_FUNCTION(onehop_wait, (onehop_request * *request), wait(request))
ONEHOP_C_FUNCTION(onehop_test, (onehop_request * *request, int* done), test(request, done))
