#include "collectives/relay.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "collectives/arrays.h"

namespace onehop::collectives::detail {

namespace {

// Beyond those of Exchange's channels.
constexpr int host_tag = 16;
constexpr int between_tag = 17;
// The longest contribution that travels along between two hosts. On hosts of one core even 512 KiB took 0.6 of the time
// of a reduction by hosts, in which all ranks of a host send; where every rank has a core of its own, these share the
// work.
constexpr std::int64_t longest_of_two = 256 << 10;
// Between more hosts a relay sends more bytes than a two-shot reduction does.
constexpr std::int64_t longest_of_more = 32 << 10;
// Up to this length, contributions travel each by itself unless there are very many ranks or hosts.
constexpr std::int64_t always_by_rank = 1 << 10;
// Limits for the slots of a rank that speaks: from (and to) its host, and from (and to) other hosts.
constexpr std::int64_t most_memory = 2 << 20;
constexpr int slots = 2;
constexpr auto head = static_cast<std::int64_t>(sizeof(Summary));

void put(Sender& to, const Summary& summary, std::span<const std::byte> data) {
  std::byte* const slot = to.slot().data();
  std::memcpy(slot, &summary, sizeof summary);
  if (!data.empty()) std::memcpy(slot + sizeof summary, data.data(), data.size());
  to.publish(onehop::detail::whole, head + static_cast<std::int64_t>(data.size()));
  to.advance();
}

Summary read(const std::byte* message) {
  Summary theirs;
  std::memcpy(&theirs, message, sizeof theirs);
  return theirs;
}

}  // namespace

RelayLimits relay_limits(std::int64_t hosts, std::int64_t ranks_per_host) {
  const auto slot_among = [](std::int64_t peers) {
    const std::int64_t fits = std::max(most_memory / slots / std::max(peers, std::int64_t{1}), std::int64_t{1});
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(fits)));
  };
  const std::int64_t between = slot_among(hosts - 1);
  RelayLimits limits;
  limits.contribution =
      std::min({hosts == 2 ? longest_of_two : longest_of_more, slot_among(ranks_per_host - 1), between});
  limits.of_host = std::max(limits.contribution, std::min(ranks_per_host * always_by_rank, between));
  return limits;
}

Relay::Relay(const Group& group, const std::vector<std::vector<int>>& hosts, const CollectivesOptions& options)
    : rank_(group.rank()) {
  using Direction = ChannelSpec::Direction;
  for (const auto& ranks : hosts) most_ranks_ = std::max(most_ranks_, std::ssize(ranks));
  const RelayLimits limits = relay_limits(std::ssize(hosts), most_ranks_);
  longest_ = limits.contribution;
  longest_of_host_ = limits.of_host;
  std::vector<ChannelSpec> specs;
  const auto add_pair = [&](int peer, std::int64_t bytes, int tag) {
    for (const Direction direction : {Direction::send, Direction::receive})
      specs.push_back(
          {.direction = direction, .peer = peer, .bytes = bytes, .tag = tag, .slots = slots, .slot_bytes = bytes});
  };
  for (const auto& ranks : hosts) {
    if (std::ranges::find(ranks, rank_) != ranks.end()) here_ = hosts_.size();
    hosts_.push_back({ranks, {}, {}});
  }
  const std::vector<int>& own = hosts_[here_].ranks;
  speaks_ = own.front() == rank_;
  if (speaks_) {
    for (const int other : own) {
      if (other != rank_) add_pair(other, head + longest_, host_tag);
    }
    for (std::size_t h = 0; h < hosts_.size(); ++h) {
      if (h != here_) add_pair(hosts_[h].ranks.front(), head + longest_of_host_, between_tag);
    }
    combined_.resize(index(longest_of_host_));
    sources_.resize(index(group.size()));
  } else {
    add_pair(own.front(), head + longest_, host_tag);
  }
  Channels channels = open_channels(group, specs, options.transport);
  for (const Receiver& receiver : channels.receivers)
    staging_bytes_ += static_cast<std::int64_t>(receiver.ring().stride) * receiver.ring().slots;
  if (!speaks_) {
    to_speaker_ = std::move(channels.senders.front());
    from_speaker_ = std::move(channels.receivers.front());
    return;
  }
  auto sender = channels.senders.begin();
  auto receiver = channels.receivers.begin();
  for (std::size_t i = 1; i < own.size(); ++i) {
    down_.push_back(std::move(*sender++));
    up_.push_back(std::move(*receiver++));
  }
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (h == here_) continue;
    hosts_[h].out = std::move(*sender++);
    hosts_[h].in = std::move(*receiver++);
  }
}

bool Relay::takes_by_rank(std::int64_t bytes) const noexcept { return bytes * most_ranks_ <= longest_of_host_; }

std::int64_t Relay::bytes() const noexcept { return operation_->is_relayed() ? operation_->source_bytes() : 0; }

void Relay::start(const Operation& operation, const std::byte* source) {
  operation_ = &operation;
  source_ = source;
  spoken_ = false;
  sent_ = received_ = 0;
  summary_ = {};
  summary_.header = operation.header;
  summary_.rank = rank_;
  summary_.lengths_sum = operation.lengths_sum;
  if (speaks_) {
    if (may_speak()) speak();
    return;
  }
  put(*to_speaker_, summary_, {source, index(bytes())});
  sent_ = bytes();
}

void Relay::refuse(const Operation& operation) {
  summary_ = {};
  summary_.header = operation.header;
  summary_.rank = summary_.other_rank = rank_;
  summary_.other.kind = Header::Kind::refused;
  if (!speaks_) return put(*to_speaker_, summary_, {});
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (h != here_) put(hosts_[h].out, summary_, {});
  }
  tell_host(summary_, nullptr);
}

// Takes over a header that differs. A refusal matters more than another operation.
void Relay::add(const Summary& theirs) {
  summary_.lengths_sum += theirs.lengths_sum;
  const auto take = [&](const Header& header, int rank) {
    const bool refuses = header.kind == Header::Kind::refused;
    if (header == summary_.header) return;
    if (!summary_.all_equal() && !(refuses && summary_.other.kind != Header::Kind::refused)) return;
    summary_.other = header;
    summary_.other_rank = rank;
  };
  take(theirs.header, theirs.rank);
  if (!theirs.all_equal()) take(theirs.other, theirs.other_rank);
}

bool Relay::may_speak() {
  for (const Receiver& receiver : up_) {
    if (!receiver.ready()) return false;
  }
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (h != here_ && !hosts_[h].out.ready()) return false;
  }
  return true;
}

void Relay::speak() {
  spoken_ = true;
  const std::vector<int>& own = hosts_[here_].ranks;
  sources_[index(own[0])] = source_;
  for (std::size_t i = 0; i < up_.size(); ++i) {
    const std::byte* const message = up_[i].wait().data();
    add(read(message));
    sources_[index(own[i + 1])] = message + head;
  }
  const std::int64_t length = bytes();
  std::int64_t wire = 0;
  if (summary_.all_equal() && length > 0) {
    received_ += length * std::ssize(up_);
    combine_host(combined_.data());
    wire = operation_->path == Path::relayed_by_rank ? length * std::ssize(own) : length;
  }
  const Summary told = summary_;
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (h == here_) continue;
    put(hosts_[h].out, told, {combined_.data(), index(wire)});
    sent_ += wire;
  }
}

// The contribution of this host: those of its ranks one behind the other, or what they give together.
void Relay::combine_host(std::byte* to) {
  const std::int64_t length = bytes();
  host_sources_.clear();
  for (const int rank : hosts_[here_].ranks) host_sources_.push_back(sources_[index(rank)]);
  if (operation_->path == Path::relayed_by_host) {
    operation_->reduce(host_sources_.data(), static_cast<int>(host_sources_.size()), to,
                       index(operation_->source_elements));
    return;
  }
  for (const std::byte* source : host_sources_) {
    std::memcpy(to, source, index(length));
    to += length;
  }
}

Summary Relay::finish(std::byte* result) {
  const std::int64_t length = bytes();
  if (!speaks_) {
    const std::byte* const message = from_speaker_->wait().data();
    const Summary all = read(message);
    if (all.all_equal() && length > 0) {
      std::memcpy(result, message + head, index(length));
      received_ = length;
    }
    from_speaker_->release();
    return all;
  }
  if (!spoken_) speak();
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (h != here_) add(read(hosts_[h].in.wait().data()));
  }
  const Summary all = summary_;
  const bool combines = all.all_equal() && length > 0;
  if (combines) combine_hosts(result);
  tell_host(all, combines ? result : nullptr);
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    if (h != here_) hosts_[h].in.release();
  }
  for (Receiver& receiver : up_) receiver.release();
  return all;
}

void Relay::combine_hosts(std::byte* result) {
  const std::int64_t length = bytes();
  const bool by_rank = operation_->path == Path::relayed_by_rank;
  host_sources_.clear();
  for (std::size_t h = 0; h < hosts_.size(); ++h) {
    const std::byte* data = h == here_ ? combined_.data() : hosts_[h].in.wait().data() + head;
    if (!by_rank) {
      host_sources_.push_back(data);
      if (h != here_) received_ += length;
      continue;
    }
    for (const int rank : hosts_[h].ranks) {
      if (h != here_) {
        sources_[index(rank)] = data;
        received_ += length;
      }
      data += length;
    }
  }
  const std::vector<const std::byte*>& sources = by_rank ? sources_ : host_sources_;
  operation_->reduce(sources.data(), static_cast<int>(sources.size()), result, index(operation_->source_elements));
}

void Relay::tell_host(const Summary& all, const std::byte* result) {
  const std::int64_t length = result != nullptr ? bytes() : 0;
  for (Sender& to : down_) {
    put(to, all, {result, index(length)});
    sent_ += length;
  }
}

}  // namespace onehop::collectives::detail
