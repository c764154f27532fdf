#include "onehop/collectives/collectives.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "collectives/by_host.h"
#include "collectives/exchange.h"
#include "collectives/policy.h"
#include "collectives/relay.h"
#include "onehop/error.h"
#include "src/base/text.h"

namespace onehop::collectives {

using detail::Exchange;
using detail::Header;
using detail::index;
using detail::Operation;
using detail::Path;
using detail::Range;
using detail::SharedUse;

namespace {

constexpr std::array<std::string_view, 5> op_names = {"sum", "mean", "min", "max", "prod"};
constexpr std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max() / 2;
std::string text(std::int64_t value) { return std::to_string(value); }

void check_length(const std::string& what, std::int64_t count, std::int64_t bytes_each, std::int64_t times) {
  if (count < 0) throw BadInput(what + ": expected a length of 0 or more, found " + text(count));
  const std::int64_t most = max_bytes / bytes_each / times;
  if (count > most) throw BadInput(what + ": expected at most " + text(most) + " elements, found " + text(count));
}

// Counts the chunks of both phases, now that the ranges are known.
void complete(Operation& operation) {
  for (const Range& range : operation.contribute)
    operation.reduce_chunks = std::max(operation.reduce_chunks, operation.chunks(range));
  for (const auto* ranges : {&operation.gather_send, &operation.gather_receive}) {
    for (const Range& range : *ranges)
      operation.gather_chunks = std::max(operation.gather_chunks, operation.chunks(range));
  }
  // A rank may have nothing to send or receive in an all-to-all of the others.
  operation.uses_slots =
      operation.reduce_chunks + operation.gather_chunks > 0 || operation.header.kind == Header::Kind::all_to_all;
}

// Has the blocks passed on.
void forward(Operation& operation, const Exchange& exchange, std::span<const std::int64_t> blocks) {
  const std::int64_t bytes = operation.result_bytes();
  set_chunk(operation, exchange, bytes, detail::forwarded_chunk(exchange.size, bytes));
  const bool in_chain = operation.header.kind == Header::Kind::broadcast && detail::goes_in_chain(exchange.size, bytes);
  operation.forwarding = std::make_shared<detail::Forwarding>(
      in_chain ? detail::chain_of(bytes, operation.header.root, exchange.size, exchange.rank, operation.chunk)
               : detail::forwarding_of(blocks, exchange.rank, operation.chunk));
}

// Lets the ranks compare the lengths of the blocks, which are in bytes.
void compare_lengths(Operation& operation, int rank) {
  operation.compares_lengths = true;
  for (int other = 0; other < static_cast<int>(operation.gather_send.size()); ++other) {
    operation.lengths_sum += detail::length_hash(rank, other, operation.gather_send[index(other)].elements());
    operation.lengths_sum -= detail::length_hash(other, rank, operation.gather_receive[index(other)].elements());
  }
}

// `times`: how many times `elements` numbers each rank contributes.
Operation reduction_of(const Reduction& reduction, Header::Kind kind, const std::string& what, int ranks,
                       std::int64_t times) {
  Operation operation;
  operation.reduce =
      reduction.type == ElementType::bytes ? nullptr : detail::reduce_function(reduction.type, reduction.op);
  if (operation.reduce == nullptr) {
    throw BadInput(what + ": there is no " + std::string(to_string(reduction.op)) + " of " +
                   std::string(to_string(reduction.type)));
  }
  if (!takes(reduction.codec, reduction.type)) {
    throw BadInput(what + ": the codec " + std::string(to_string(reduction.codec)) + " does not take " +
                   std::string(to_string(reduction.type)) + "; use raw");
  }
  if (ranks > most_ranks(reduction.codec)) {
    throw BadInput(what + ": the codec " + std::string(to_string(reduction.codec)) + " is for groups of " +
                   base::counted(most_ranks(reduction.codec), "rank") + ", found " + base::counted(ranks, "rank") +
                   "; use q4");
  }
  const bool is_double = reduction.type == ElementType::float64;
  operation.reduce_wide = detail::reduce_function(is_double ? reduction.type : ElementType::float32, reduction.op);
  operation.encoded = reduction.codec != Codec::raw;
  operation.adds =
      reduction.type == ElementType::float32 && (reduction.op == ReduceOp::sum || reduction.op == ReduceOp::mean);
  operation.element_bytes = bytes_of(reduction.type);
  check_length(what, reduction.elements, operation.element_bytes, times);
  if (reduction.chunk_bytes < 0)
    throw BadInput(what + ": expected chunk_bytes of 0 or more, found " + text(reduction.chunk_bytes));
  operation.header = {.kind = kind,
                      .type = reduction.type,
                      .op = reduction.op,
                      .codec = reduction.codec,
                      .elements = reduction.elements,
                      .shape = detail::shape_word(reduction.shape)};
  operation.reduces = true;
  return operation;
}

// Number of cache lines of a header that carries a contribution of `bytes` bytes.
int lines_for(std::int64_t bytes, const Exchange& exchange) {
  const auto first = static_cast<std::int64_t>(exchange.first_line_bytes);
  constexpr auto each = static_cast<std::int64_t>(detail::more_bytes);
  return 1 + static_cast<int>((std::max(bytes - first, std::int64_t{0}) + each - 1) / each);
}

Header moving(Header::Kind kind, std::int64_t bytes, const Content& content) {
  return {.kind = kind, .type = content.type, .elements = bytes, .shape = detail::shape_word(content.shape)};
}

// Consecutive ranges of these lengths.
std::vector<Range> blocks_of(std::span<const std::int64_t> lengths) {
  std::vector<Range> ranges;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    ranges.push_back({begin, begin + length});
    begin += length;
  }
  return ranges;
}

std::int64_t total(std::span<const std::int64_t> lengths, int ranks, const std::string& what) {
  if (lengths.size() != index(ranks)) {
    throw BadInput(what + ": expected a length for each of the " + base::counted(ranks, "rank") + ", found " +
                   text(static_cast<std::int64_t>(lengths.size())));
  }
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths) {
    check_length(what, length, 1, ranks);
    sum += length;
  }
  return sum;
}

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && std::less<>()(a.data(), b.data() + b.size()) &&
         std::less<>()(b.data(), a.data() + a.size());
}

}  // namespace

std::string_view to_string(ReduceOp op) { return op_names.at(static_cast<std::size_t>(op)); }

ReduceOp reduce_op_from_string(std::string_view name) {
  const auto found = std::find(op_names.begin(), op_names.end(), name);
  if (found == op_names.end()) {
    throw BadInput("expected a reduction (one of: sum, mean, min, max, prod), found '" + std::string(name) + "'");
  }
  return static_cast<ReduceOp>(found - op_names.begin());
}

Collective::Collective(std::shared_ptr<Exchange> exchange, std::shared_ptr<Operation> operation)
    : exchange_(std::move(exchange)), operation_(std::move(operation)) {}

std::int64_t Collective::source_bytes() const noexcept { return operation_->source_bytes(); }
std::int64_t Collective::result_bytes() const noexcept { return operation_->result_bytes(); }
ReduceAlgorithm Collective::algorithm() const noexcept { return operation_->header.algorithm; }
std::int64_t Collective::chunk_bytes() const noexcept { return operation_->chunk * operation_->element_bytes; }

void Collective::start(std::span<const std::byte> source, std::span<std::byte> result) {
  const Operation& operation = *operation_;
  if (static_cast<std::int64_t>(source.size()) != operation.source_bytes() ||
      static_cast<std::int64_t>(result.size()) != operation.result_bytes()) [[unlikely]] {
    throw BadInput("expected a source of " + base::counted(source_bytes(), "byte") + " and a result of " +
                   base::counted(result_bytes(), "byte") + ", found " + text(static_cast<std::int64_t>(source.size())) +
                   " and " + text(static_cast<std::int64_t>(result.size())));
  }
  if ((source.data() == nullptr && !source.empty()) || (result.data() == nullptr && !result.empty())) [[unlikely]] {
    throw BadInput("expected the address of an array, found none");
  }
  const bool in_place = overlap(source, result);
  if (in_place) {
    const std::int64_t apart = (operation.in_place_at_source - operation.in_place_at_result) * operation.element_bytes;
    if (!operation.in_place || source.data() + apart != result.data()) [[unlikely]] {
      throw BadInput("source and result overlap in a way that this operation does not allow");
    }
  }
  exchange_->check_idle();
  exchange_->arrays.set(source.data(), result.data(), operation.element_bytes, in_place);
  exchange_->start(operation);
}

void Collective::start(std::span<const Part> parts) {
  if (operation_->header.kind != Header::Kind::allreduce)
    throw BadInput("only an all-reduce takes several arrays at once");
  std::int64_t elements = 0;
  for (const Part& part : parts) {
    if (part.elements < 0 || part.elements > operation_->source_elements - elements) {
      throw BadInput("expected arrays of " + base::counted(operation_->source_elements, "element") +
                     " together, found more, or a negative length");
    }
    elements += part.elements;
  }
  if (elements != operation_->source_elements) {
    throw BadInput("expected arrays of " + base::counted(operation_->source_elements, "element") + " together, found " +
                   text(elements));
  }
  exchange_->check_idle();
  exchange_->arrays.set(parts, operation_->element_bytes);
  exchange_->start(*operation_);
}

void Collective::finish() {
  if (exchange_->running != operation_.get()) throw BadInput("finish() needs a start() before it");
  exchange_->finish();
}

Collectives::Collectives(const Group& group, const CollectivesOptions& options)
    : exchange_(std::make_shared<Exchange>(group, options)) {
  if (options.transport == TransportKind::automatic) {
    const detail::Hosts hosts = detail::ranks_by_host(group);
    exchange_->hosts = detail::HostStages::make(group, options, hosts);
    exchange_->apart = hosts.size() == index(group.size());
  } else {
    exchange_->apart = options.transport == TransportKind::mpi || options.transport == TransportKind::ucx;
  }
  if (exchange_->hosts) exchange_->relay = std::make_shared<detail::Relay>(group, exchange_->hosts->hosts(), options);
}

const Group& Collectives::group() const noexcept { return exchange_->group; }
CollectivesCounters Collectives::counters() const noexcept { return exchange_->counters; }
std::int64_t Collectives::staging_bytes() const noexcept {
  return exchange_->staging_bytes + (exchange_->hosts ? exchange_->hosts->staging_bytes() : 0) +
         (exchange_->relay ? exchange_->relay->staging_bytes() : 0);
}
const ReduceTable& Collectives::table() const noexcept { return exchange_->table; }

Collective Collectives::allreduce(const Reduction& reduction) const {
  const int ranks = exchange_->size;
  const int rank = exchange_->rank;
  Operation operation = reduction_of(reduction, Header::Kind::allreduce, "allreduce", ranks, 1);
  const std::int64_t elements = reduction.elements;
  const std::int64_t bytes = elements * operation.element_bytes;
  const ReduceRule& rule = exchange_->table.rule(bytes, operation.encoded);
  operation.source_elements = operation.result_elements = elements;
  operation.in_place = true;
  const auto [path, algorithm] = choose_path(*exchange_, reduction, bytes);
  operation.path = path;
  operation.header.algorithm = algorithm;
  if (path == Path::by_host) operation.by_host = exchange_->hosts->allreduce(reduction);
  if (algorithm == ReduceAlgorithm::by_host) return {exchange_, std::make_shared<Operation>(std::move(operation))};
  if (path == Path::in_lines) operation.lines = lines_for(bytes, *exchange_);
  const bool two_shot = algorithm == ReduceAlgorithm::two_shot;
  const std::int64_t to_each = two_shot ? bytes / ranks : bytes;
  set_chunk(operation, *exchange_, to_each,
            reduction.chunk_bytes == 0 ? detail::table_chunk(rule, to_each) : reduction.chunk_bytes);
  for (int r = 0; r < ranks; ++r) {
    const auto [first, last] = two_shot ? reduce_segment(elements, ranks, r) : std::pair(std::int64_t{0}, elements);
    operation.contribute.push_back({first, last});
  }
  operation.reduced_at = operation.contribute[index(rank)].first;
  if (two_shot) {
    operation.gathers = operation.gathers_result = true;
    operation.gather_receive = operation.contribute;
    operation.gather_send.assign(index(ranks), operation.contribute[index(rank)]);
    operation.shares = exchange_->shares_gathers();
  }
  complete(operation);
  if (operation.is_relayed()) operation.uses_slots = false;
  operation.choice = exchange_->choice_for(operation, to_each);
  if (two_shot && !operation.encoded && ranks > 1 && exchange_->table.in_memory()) {
    operation.may_share = true;
    operation.shared_choices = {exchange_->choice_for(operation, to_each, SharedUse::two_arrays),
                                exchange_->choice_for(operation, to_each, SharedUse::in_place)};
  }
  return {exchange_, std::make_shared<Operation>(std::move(operation))};
}

Collective Collectives::reduce_scatter(const Reduction& reduction) const {
  return reduce_scatter(reduction, std::vector<std::int64_t>(index(exchange_->size), reduction.elements));
}

Collective Collectives::reduce_scatter(const Reduction& reduction, std::span<const std::int64_t> elements) const {
  const int ranks = exchange_->size;
  const int rank = exchange_->rank;
  const std::int64_t all = total(elements, ranks, "reduce_scatter");
  Reduction longest = reduction;
  longest.elements = *std::ranges::max_element(elements);
  Operation operation = reduction_of(longest, Header::Kind::reduce_scatter, "reduce_scatter", ranks, ranks);
  const bool all_equal = *std::ranges::min_element(elements) == longest.elements;
  if (!all_equal) {
    std::vector<std::int64_t> shape;
    for (const std::int64_t one : elements) shape.insert(shape.end(), {-1, one});
    operation.header.shape = detail::shape_word(shape);
  }
  operation.source_elements = all;
  operation.result_elements = elements[index(rank)];
  operation.in_place = true;
  operation.contribute = blocks_of(elements);
  operation.in_place_at_source = operation.contribute[index(rank)].first;
  const std::int64_t to_each = longest.elements * operation.element_bytes;
  operation.path = choose_path(*exchange_, reduction, elements);
  if (operation.path == Path::by_host) {
    operation.header.algorithm = ReduceAlgorithm::by_host;
    operation.by_host = exchange_->hosts->reduce_scatter(reduction, elements);
    return {exchange_, std::make_shared<Operation>(std::move(operation))};
  }
  const bool usual = reduction.chunk_bytes == 0 && !operation.encoded;
  set_chunk(operation, *exchange_, to_each, usual ? phase_chunk(*exchange_, to_each) : reduction.chunk_bytes);
  complete(operation);
  if (all_equal) operation.choice = exchange_->choice_for(operation, to_each);
  return {exchange_, std::make_shared<Operation>(std::move(operation))};
}

Collective Collectives::allgather(std::int64_t bytes, const Content& content) const {
  return allgather(std::vector<std::int64_t>(index(exchange_->size), bytes), content);
}

Collective Collectives::allgather(std::span<const std::int64_t> bytes, const Content& content) const {
  const int rank = exchange_->rank;
  Operation operation;
  operation.result_elements = total(bytes, exchange_->size, "allgather");
  operation.source_elements = bytes[index(rank)];
  operation.header = moving(Header::Kind::allgather, operation.result_elements, content);
  operation.gathers = true;
  operation.gather_receive = blocks_of(bytes);
  operation.gather_send.assign(bytes.size(), {0, operation.source_elements});
  operation.shares = exchange_->shares_gathers();
  operation.in_place = true;
  operation.in_place_at_result = operation.gather_receive[index(rank)].first;
  const std::int64_t longest = *std::max_element(bytes.begin(), bytes.end());
  set_chunk(operation, *exchange_, longest, phase_chunk(*exchange_, longest));
  compare_lengths(operation, rank);
  operation.path = choose_path(*exchange_, bytes);
  if (operation.path == Path::by_host) {
    operation.by_host = exchange_->hosts->allgather(bytes);
    return {exchange_, std::make_shared<Operation>(std::move(operation))};
  }
  if (operation.path == Path::forwarded) forward(operation, *exchange_, bytes);
  complete(operation);
  operation.choice = exchange_->choice_for(operation, longest);
  return {exchange_, std::make_shared<Operation>(std::move(operation))};
}

Collective Collectives::broadcast(std::int64_t bytes, int root, const Content& content) const {
  const int ranks = exchange_->size;
  const int rank = exchange_->rank;
  check_length("broadcast", bytes, 1, 1);
  if (root < 0 || root >= ranks)
    throw BadInput("broadcast: expected a root from 0 to " + text(ranks - 1) + ", found " + text(root));
  Operation operation;
  operation.header = moving(Header::Kind::broadcast, bytes, content);
  operation.header.root = static_cast<std::uint16_t>(root);
  operation.source_elements = operation.result_elements = bytes;
  operation.in_place = true;
  std::vector<std::int64_t> blocks(index(ranks), 0);
  blocks[index(root)] = bytes;
  operation.path = choose_path(*exchange_, blocks);
  if (operation.path == Path::by_host) {
    operation.by_host = exchange_->hosts->broadcast(bytes, root);
    return {exchange_, std::make_shared<Operation>(std::move(operation))};
  }
  operation.gathers = true;
  operation.gather_receive.resize(index(ranks));
  operation.gather_receive[index(root)] = {0, bytes};
  operation.gather_send.assign(index(ranks), rank == root ? Range{0, bytes} : Range{});
  operation.shares = exchange_->shares_gathers();
  set_chunk(operation, *exchange_, bytes, 0);
  if (operation.path == Path::forwarded) forward(operation, *exchange_, blocks);
  complete(operation);
  return {exchange_, std::make_shared<Operation>(std::move(operation))};
}

Collective Collectives::all_to_all(std::span<const std::int64_t> bytes_to, std::span<const std::int64_t> bytes_from,
                                   const Content& content) const {
  Operation operation;
  operation.source_elements = total(bytes_to, exchange_->size, "all_to_all");
  operation.result_elements = total(bytes_from, exchange_->size, "all_to_all");
  if (bytes_to[index(exchange_->rank)] != bytes_from[index(exchange_->rank)])
    throw BadInput("all_to_all: expected equal lengths to and from this rank itself, found two");
  // The header has no length, because lengths may differ from rank to rank.
  operation.header = moving(Header::Kind::all_to_all, 0, content);
  operation.gathers = true;
  operation.gather_send = blocks_of(bytes_to);
  operation.gather_receive = blocks_of(bytes_from);
  // The chunk must be the same on all ranks, whatever their lengths are.
  set_chunk(operation, *exchange_, exchange_->slot_bytes, 0);
  const std::int64_t longest = *std::max_element(bytes_to.begin(), bytes_to.end());
  operation.stores = stores_for(longest, *exchange_);
  complete(operation);
  compare_lengths(operation, exchange_->rank);
  // A rank knows its own lengths only. Where they differ, those of others may, too, and times would say little.
  const auto all_equal = [longest](std::int64_t one) { return one == longest; };
  if (std::ranges::all_of(bytes_to, all_equal) && std::ranges::all_of(bytes_from, all_equal)) {
    operation.choice = exchange_->choice_for(operation, longest);
  }
  return {exchange_, std::make_shared<Operation>(std::move(operation))};
}

void Collectives::barrier() const {
  Operation operation;
  operation.header = {.kind = Header::Kind::barrier};
  exchange_->check_idle();
  exchange_->start(operation);
  exchange_->finish();
}

}  // namespace onehop::collectives
