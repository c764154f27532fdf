#include "collectives/device_plan.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "onehop/error.h"
#include "onehop/verify.h"

namespace onehop::collectives {
namespace {

using device::most_slice_dims;
using device::most_slice_groups;
using device::SliceMessage;
using device::SlicePiece;

constexpr std::int64_t word = sizeof(device::Wide);
constexpr std::int64_t flags_of_message = most_slice_groups * sizeof(std::uint32_t);
constexpr std::int64_t bytes_of_group = std::int64_t{1} << 14;  // more groups for longer rounds

std::int64_t whole_words(std::int64_t bytes) { return (bytes + word - 1) / word * word; }

void mix(std::uint64_t& hash, std::int64_t value) {
  hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3U;  // of FNV-1a
  hash ^= hash >> 29U;
}

void check(const Schedule& schedule, int rank, std::span<const DeviceArray> arrays) {
  if (arrays.size() != schedule.arrays.size())
    throw BadInput("expected " + std::to_string(schedule.arrays.size()) + " arrays, found " +
                   std::to_string(arrays.size()));
  verify_or_throw(schedule.part(rank));
  for (const Round& round : schedule.rounds) {
    for (const Transfer& one : round.transfers) {
      if (one.combine == Combine::replace && one.codec == Codec::raw) continue;
      throw BadInput("plans of arrays on devices copy elements as they are, found combine '" +
                     std::string(to_string(one.combine)) + "' and the codec '" + std::string(to_string(one.codec)) +
                     "'; onehop.allreduce adds arrays on devices");
    }
  }
}

}  // namespace

DevicePlan::DevicePlan(const Group& group, const Schedule& schedule, std::shared_ptr<device::Device> device,
                       std::span<const DeviceArray> arrays, const std::string& error)
    : group_(group), device_(std::move(device)), rounds_(schedule.rounds.size()) {
  DeviceWindows::Offer offer;
  try {
    if (!error.empty()) throw BadInput(error);
    if (schedule.ranks != group.size())
      throw BadInput("expected a schedule of " + std::to_string(group.size()) + " ranks, found one of " +
                     std::to_string(schedule.ranks));
    check(schedule, group.rank(), arrays);
    list_messages(schedule, arrays);
  } catch (const Error& found) {
    offer.error = found.what();
  }
  for (int r = 0; r < group.size(); ++r)
    if (!group.shares_memory(r)) offer.no_path = "the ranks are on several hosts";
  offer.groups = most_slice_groups;
  offer.doing = "moves arrays";
  offer.shape = {1, threads, device::slice_shared_bytes(threads)};
  offer.kernels = {"onehop_move_slices"};
  offer.bytes = flag_bytes_ + (offer.no_path.empty() ? 2 * incoming_bytes_ : 0);
  const auto table = std::as_bytes(std::span(messages_));
  offer.more.assign(table.begin(), table.end());
  windows_ = std::make_unique<DeviceWindows>(group_, device_, offer);
  const std::vector<std::vector<Message>> all = agreed_messages();
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> leaving;  // of a rank in a round
  std::int64_t most = 0;
  for (std::size_t r = 0; r < all.size(); ++r)
    for (const Message& one : all[r])
      if (one.incoming == 0) most = std::max(most, leaving[{r, one.round}] += one.bytes);
  groups_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(most / bytes_of_group, 1, windows_->groups()));
  if (windows_->no_path().empty()) {
    prepare_kernels(all);
  } else {
    prepare_host(all);
  }
}

// Sorts the transfers of this rank into messages, in the order of the schedule, which is that of the other end.
void DevicePlan::list_messages(const Schedule& schedule, std::span<const DeviceArray> arrays) {
  const int rank = group_.rank();
  for (std::size_t round = 0; round < rounds_; ++round) {
    std::map<std::pair<bool, int>, std::vector<const Transfer*>> sorted;
    for (const Transfer& one : schedule.rounds[round].transfers) {
      if (one.from.slice.elements() == 0) continue;
      if (one.from.rank == rank) sorted[{false, one.to.rank}].push_back(&one);
      if (one.to.rank == rank) sorted[{true, one.from.rank}].push_back(&one);
    }
    for (const auto& [end, list] : sorted) {
      Message message{.peer = end.second, .incoming = end.first ? 1 : 0, .round = static_cast<std::int64_t>(round)};
      message.signature = 0xcbf29ce484222325U;
      message.first_piece = pieces_.size();
      for (const Transfer* const one : list) {
        const Place& place = end.first ? one->to : one->from;
        const auto number = static_cast<std::size_t>(place.array);
        const std::int64_t element = schedule.arrays[number].element_bytes;
        const std::int64_t bytes = element * place.slice.elements();
        if (place.slice.bounds().second * element > arrays[number].bytes)
          throw BadInput("expected " + std::to_string(schedule.arrays[number].elements_on(rank) * element) +
                         " bytes of array '" + schedule.arrays[number].name + "' on rank " + std::to_string(rank) +
                         ", found " + std::to_string(arrays[number].bytes));
        add_piece(place.slice, element, arrays[number], message.bytes);
        message.bytes += whole_words(bytes);
        message.payload += bytes;
        mix(message.signature, place.slice.elements());
        mix(message.signature, element);
      }
      message.pieces = pieces_.size() - message.first_piece;
      place(message);
    }
  }
}

// Windows have two words of every group, the flags of all messages, and two times those that arrive.
void DevicePlan::place(Message message) {
  message.flags = flag_bytes_;
  flag_bytes_ += flags_of_message;
  const bool arrives = message.incoming != 0;
  std::int64_t& side = arrives ? incoming_bytes_ : outgoing_bytes_;
  message.wire = std::exchange(side, side + message.bytes);
  messages_.push_back(message);
  if (message.peer != group_.rank()) {
    ++(arrives ? per_run_.messages_received : per_run_.messages_sent);
    (arrives ? per_run_.bytes_received : per_run_.bytes_sent) += message.payload;
  } else if (!arrives) {
    per_run_.bytes_local += message.payload;
  }
}

// In the widest words that fit everywhere.
void DevicePlan::add_piece(const Slice& slice, std::int64_t element_bytes, const DeviceArray& array,
                           std::int64_t wire) {
  SlicePiece piece{.array = reinterpret_cast<unsigned char*>(array.data), .wire = static_cast<std::uint64_t>(wire)};
  std::int64_t run = element_bytes;                         // of consecutive bytes
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // extents and strides in bytes, the fastest index first
  const bool is_box = !slice.is_list() && slice.dims() < static_cast<int>(most_slice_dims);
  if (is_box) {
    piece.array += slice.offset() * element_bytes;
    for (int d = slice.dims() - 1; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      if (d == slice.dims() - 1 && slice.strides()[at] == 1) {
        run *= slice.extents()[at];
      } else {
        dims.emplace_back(slice.extents()[at], slice.strides()[at] * element_bytes);
      }
    }
  } else {
    piece.list = lists_.size();
    slice.for_each_run([&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i) lists_.push_back(i * element_bytes);
    });
  }
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(piece.array) | static_cast<std::uint64_t>(run | word);
  for (const auto& [extent, stride] : dims) all |= static_cast<std::uint64_t>(stride);
  piece.word_bytes = static_cast<std::uint32_t>(all & (~all + 1));
  dims.insert(dims.begin(), {run / piece.word_bytes, piece.word_bytes});
  for (const auto& [extent, stride] : dims) {
    piece.extents[piece.dims] = static_cast<std::uint64_t>(extent);
    piece.strides[piece.dims++] = stride;
  }
  piece.words = static_cast<std::uint64_t>(slice.elements() * element_bytes) / piece.word_bytes;
  pieces_.push_back(piece);
}

namespace {

// The other end of a message of `rank`.
template <class Message>
const Message* other_end(const std::vector<std::vector<Message>>& all, int rank, const Message& message) {
  for (const Message& one : all[static_cast<std::size_t>(message.peer)])
    if (one.round == message.round && one.peer == rank && one.incoming != message.incoming) return &one;
  return nullptr;
}

}  // namespace

std::vector<std::vector<DevicePlan::Message>> DevicePlan::agreed_messages() const {
  std::vector<std::vector<Message>> all(static_cast<std::size_t>(group_.size()));
  for (int r = 0; r < group_.size(); ++r) {
    const auto bytes = windows_->more(r);
    all[static_cast<std::size_t>(r)].resize(bytes.size() / sizeof(Message));
    if (!bytes.empty()) std::memcpy(all[static_cast<std::size_t>(r)].data(), bytes.data(), bytes.size());
  }
  for (int r = 0; r < group_.size(); ++r) {
    for (const Message& message : all[static_cast<std::size_t>(r)]) {
      const Message* const other = other_end(all, r, message);
      if (other != nullptr && other->signature == message.signature && other->bytes == message.bytes) continue;
      const bool arrives = message.incoming != 0;
      throw Mismatch("round " + std::to_string(message.round) + ": rank " + std::to_string(r) +
                     (arrives ? " receives from" : " sends to") + " rank " + std::to_string(message.peer) +
                     " what that rank does not " + (arrives ? "send" : "receive") +
                     ": expected the same schedule on all ranks");
    }
  }
  return all;
}

void DevicePlan::prepare_kernels(const std::vector<std::vector<Message>>& all) {
  staging_bytes_ = 2 * incoming_bytes_;
  std::vector<SliceMessage> found;
  const auto flags_at = [&](int rank, std::int64_t place) {
    return reinterpret_cast<std::uint32_t*>(windows_->of(rank) + place);
  };
  for (const Message& message : messages_) {
    const Message& other = *other_end(all, group_.rank(), message);
    const int receiver = message.incoming != 0 ? group_.rank() : message.peer;
    const auto& theirs = all[static_cast<std::size_t>(receiver)];
    const std::int64_t control = flags_of_message * (std::ssize(theirs) + 2);
    SliceMessage& one = found.emplace_back();
    one.wire = reinterpret_cast<unsigned char*>(windows_->of(receiver) + control +
                                                (message.incoming != 0 ? message : other).wire);
    for (const Message& arriving : theirs)
      if (arriving.incoming != 0) one.set_bytes += static_cast<std::uint64_t>(arriving.bytes);
    one.awaited = flags_at(group_.rank(), message.flags);
    one.stored = flags_at(message.peer, other.flags);
  }
  upload_messages(std::move(found));
}

void DevicePlan::prepare_host(const std::vector<std::vector<Message>>& all) {
  staging_bytes_ = incoming_bytes_ + outgoing_bytes_;
  sent_ = device_->allocate_pinned(outgoing_bytes_);
  received_ = device_->allocate_pinned(incoming_bytes_);
  std::vector<SliceMessage> found;
  Schedule schedule;
  schedule.ranks = group_.size();
  schedule.arrays = {{"sent", word, ElementType::bytes, {}}, {"received", word, ElementType::bytes, {}}};
  for (const auto& messages : all) {
    std::array<std::int64_t, 2> words{};
    for (const Message& one : messages) words[static_cast<std::size_t>(one.incoming)] += one.bytes / word;
    for (std::size_t side = 0; side < words.size(); ++side) schedule.arrays[side].elements.push_back(words[side]);
  }
  std::vector<Round> rounds(rounds_);
  for (const Message& message : messages_) {
    const bool arrives = message.incoming != 0;
    const auto end = [&](int rank, const Message& one) {
      return Place{rank, one.incoming, Slice::range(one.wire / word, one.bytes / word)};
    };
    const Place mine = end(group_.rank(), message);
    const Place theirs = end(message.peer, *other_end(all, group_.rank(), message));
    if (!arrives || message.peer != group_.rank())
      rounds[static_cast<std::size_t>(message.round)].transfers.push_back(
          {.from = arrives ? theirs : mine, .to = arrives ? mine : theirs});
    found.push_back(
        {.wire = reinterpret_cast<unsigned char*>((arrives ? *received_ : *sent_).on_device) + message.wire});
  }
  const std::array memory{std::span(sent_->host.data(), static_cast<std::size_t>(outgoing_bytes_)),
                          std::span(received_->host.data(), static_cast<std::size_t>(incoming_bytes_))};
  for (Round& round : rounds) {
    schedule.rounds = {std::move(round)};
    plans_.emplace_back(group_, schedule, memory);
  }
  upload_messages(std::move(found));
}

void DevicePlan::upload_messages(std::vector<SliceMessage> messages) {
  launches_.assign(2 * rounds_, {});
  for (std::size_t m = 0; m < messages.size(); ++m) {
    const Message& from = messages_[m];
    messages[m].first_piece = from.first_piece;
    messages[m].pieces = from.pieces;
    messages[m].part_bytes = static_cast<std::uint64_t>(whole_words((from.bytes + groups_ - 1) / groups_));
    last_launch_ = static_cast<std::size_t>(2 * from.round + from.incoming);
    Launch& launch = launches_[last_launch_];
    if (launch.count++ == 0) launch.first = m;
  }
  const auto upload = [&](const auto& items) {
    const auto bytes = std::as_bytes(std::span(items));
    device::Memory memory = device_->allocate(static_cast<std::int64_t>(bytes.size()));
    device_->copy_in(stream_, memory.data(), bytes.data(), memory.bytes());
    device_->synchronize(stream_);
    return memory;
  };
  messages_there_ = upload(messages);
  pieces_there_ = upload(pieces_);
  lists_there_ = upload(lists_);
  pieces_ = {};
  lists_ = {};
}

void DevicePlan::launch(std::size_t round, bool packs, const device::Stream& stream) {
  const std::size_t number = 2 * round + (packs ? 0 : 1);
  const Launch& what = launches_[number];
  if (what.count == 0) return;
  device::SliceArguments arguments{};
  arguments.messages = reinterpret_cast<const SliceMessage*>(messages_there_.data()) + what.first;
  arguments.pieces = reinterpret_cast<const SlicePiece*>(pieces_there_.data());
  arguments.lists = reinterpret_cast<const std::int64_t*>(lists_there_.data());
  arguments.runs = reinterpret_cast<std::uint32_t*>(windows_->own().data());
  arguments.stop = windows_->stop_words();
  arguments.count = what.count;
  arguments.packs = packs ? 1 : 0;
  arguments.is_last = number == last_launch_ ? 1 : 0;
  device_->launch(stream, "onehop_move_slices", {groups_, threads, device::slice_shared_bytes(threads)}, arguments);
}

void DevicePlan::require_no_capture(const device::Stream& stream) const {
  if (!plans_.empty() && device_->is_capturing(stream))
    throw BadInput("a plan through the processor's memory cannot be captured in a graph: " + reason());
}

void DevicePlan::start(const device::Stream& stream) {
  if (is_running_) throw BadInput("start() was called twice without a finish() in between");
  require_no_capture(stream);
  windows_->run(stream, [&] {
    if (rounds_ > 0) launch(0, true, stream);
  });
  is_running_ = true;
  stream_ = stream;
}

void DevicePlan::finish(const device::Stream& stream) {
  if (!is_running_) throw BadInput("finish() needs a start() before it");
  require_no_capture(stream);
  is_running_ = false;
  windows_->run(stream, [&] {
    for (std::size_t round = 0; round < rounds_; ++round) {
      if (round > 0) launch(round, true, stream);
      if (!plans_.empty()) {
        device_->synchronize(stream);
        plans_[round].run();
      }
      launch(round, false, stream);
    }
    ++runs_;
  });
  stream_ = stream;
}

PlanCounters DevicePlan::counters() const noexcept {
  PlanCounters all = per_run_;
  all.runs = runs_;
  for (std::int64_t* const one :
       {&all.messages_sent, &all.messages_received, &all.bytes_sent, &all.bytes_received, &all.bytes_local})
    *one *= runs_;
  return all;
}

}  // namespace onehop::collectives
