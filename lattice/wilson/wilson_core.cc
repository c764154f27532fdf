#include "lattice/wilson/wilson_core.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "src/base/clock.h"

namespace onehop::lattice::detail {

namespace {

// Links, clover blocks and fields that together exceed this do not stay in the caches until they are read again.
constexpr std::int64_t cached_bytes = std::int64_t{24} << 20;
// Above this, prefetching pays: it saved a fifth of the time at 11 MB and cost a tenth at 4 MB
// (notes/lattice.md).
constexpr std::int64_t fetched_bytes = std::int64_t{6} << 20;

// Bytes of a site's half spinor in a half-precision halo: a scale and twelve 16-bit integers. A vector's scales precede
// its integers.
constexpr std::int64_t short_face_bytes = sizeof(float) + 12 * sizeof(std::int16_t);

// Converts half spinors [first, last), counted over vectors and right-hand sides, to 16-bit integers.
template <class T>
void shorten_face(const T* wide, std::byte* to, std::int64_t first, std::int64_t last, int lanes) {
  for (std::int64_t k = first; k < last; ++k) {
    const T* from = wide + k * 12 * lanes;
    auto* scales = reinterpret_cast<float*>(to + k * lanes * short_face_bytes);
    auto* numbers = reinterpret_cast<std::int16_t*>(scales + lanes);
    std::array<float, 64> inverse{};
    for (int lane = 0; lane < lanes; ++lane) {
      float largest = 0;
      for (int n = 0; n < 12; ++n) largest = std::max(largest, static_cast<float>(std::abs(from[n * lanes + lane])));
      scales[lane] = largest / static_cast<float>(short_one);
      inverse[index(lane)] = largest > 0 ? static_cast<float>(short_one) / largest : 0;
    }
    for (int n = 0; n < 12; ++n) {
      for (int lane = 0; lane < lanes; ++lane) {
        const float x = static_cast<float>(from[n * lanes + lane]) * inverse[index(lane)];
        numbers[n * lanes + lane] = static_cast<std::int16_t>(x + (x > 0 ? 0.5F : -0.5F));
      }
    }
  }
}

template <class T>
void widen_face(const std::byte* from, T* wide, std::int64_t first, std::int64_t last, int lanes) {
  for (std::int64_t k = first; k < last; ++k) {
    const auto* scales = reinterpret_cast<const float*>(from + k * lanes * short_face_bytes);
    const auto* numbers = reinterpret_cast<const std::int16_t*>(scales + lanes);
    for (int n = 0; n < 12; ++n) {
      for (int lane = 0; lane < lanes; ++lane)
        wide[(k * 12 + n) * lanes + lane] =
            static_cast<T>(scales[lane] * static_cast<float>(numbers[n * lanes + lane]));
    }
  }
}

}  // namespace

template <class T>
WilsonCore<T>::WilsonCore(const WilsonStorage<T>& storage, const base::ThreadPool& pool, int num_rhs,
                          std::unique_ptr<WilsonExchange> exchange, bool half_halo)
    : storage_(storage), pool_(pool), num_rhs_(num_rhs), exchange_(std::move(exchange)), half_halo_(half_halo) {
  const std::int64_t of_matrices = (8 * storage.recon + 72) * storage.bytes_a_number();
  const std::int64_t bytes = storage.vectors(0) * storage.lanes() *
                             (of_matrices + std::int64_t{2} * 24 * num_rhs * static_cast<std::int64_t>(sizeof(T)));
  past_caches = bytes > cached_bytes;
  fetches = bytes > fetched_bytes;
  open_faces();
}

template <class T>
void WilsonCore<T>::open_faces() {
  const Geometry& geometry = storage_.geometry;
  const int rank = storage_.group.rank();
  const std::vector<int> coordinates = geometry.coordinates(rank);
  std::vector<ChannelSpec> specs;
  const auto add_channel = [&](ChannelSpec::Direction direction, int parity, int side, int sent_side,
                               const Slice& face) {
    std::vector<int> neighbour = coordinates;
    neighbour[index(side / 2)] += side % 2 == 0 ? -1 : 1;
    const std::int64_t bytes = face_bytes(face.elements());
    specs.push_back({.direction = direction,
                     .peer = geometry.rank_at(neighbour),
                     .bytes = bytes,
                     .tag = parity * 8 + sent_side,
                     .slots = direction == ChannelSpec::Direction::send ? 2 : 0,
                     .slot_bytes = direction == ChannelSpec::Direction::send ? bytes : 0,
                     .chunk_bytes = direction == ChannelSpec::Direction::send ? bytes : 0});
  };
  for (const int parity : {0, 1}) {
    const int local = storage_.local(parity);
    for (int side = 0; side < 8; ++side) {
      if (!geometry.is_cut(side / 2)) continue;
      const Slice& face = geometry.face(side / 2, side_of(side), local);
      const Slice& ghost = geometry.ghost(side / 2, side_of(side), local);
      if (face.elements() > 0) {
        Out& out = out_[index(parity)].emplace_back();
        out.side = side;
        face.for_each_run([&](std::int64_t first, std::int64_t length) {
          for (std::int64_t i = 0; i < length; ++i)
            out.vectors.push_back(static_cast<std::int32_t>(first + i - geometry.parity_begin(local)));
        });
        add_channel(ChannelSpec::Direction::send, parity, side, side, face);
        const auto numbers = index(face.elements() * element() / 2);
        if (half_halo_ && wide_.size() < numbers) wide_ = Buffer<T>(numbers);
      }
      if (ghost.elements() > 0) {
        in_[index(parity)].push_back({side, {}, {}});
        if (half_halo_) in_[index(parity)].back().wide = Buffer<T>(index(ghost.elements() * element() / 2));
        add_channel(ChannelSpec::Direction::receive, parity, side, side ^ 1, ghost);
      }
    }
  }
  if (exchange_) return;
  Channels channels = open_channels(storage_.group, specs);
  std::size_t sent = 0;
  std::size_t received = 0;
  for (const std::size_t parity : {0, 1}) {
    for (Out& out : out_[parity]) out.sender = std::move(channels.senders[sent++]);
    for (In& in : in_[parity]) in.receiver = std::move(channels.receivers[received++]);
  }
}

template <class T>
template <class Body>
void WilsonCore<T>::divide(std::int64_t first, std::int64_t last, const Body& body) {
  if (last <= first) return;
  if (pool_.size() == 1) return body(first, last);
  const auto run_part = [&](int thread) {
    const auto [begin, end] = pool_.part(first, last, thread);
    if (begin < end) body(begin, end);
  };
  pool_.run(std::ref(run_part));
}

template <class T>
void WilsonCore<T>::send_faces(int parity, const T* in, bool dagger) {
  if (out_[index(parity)].empty()) return;
  const double start = base::steady_seconds();
  const int lanes = storage_.lanes();
  for (Out& out : out_[index(parity)]) {
    const std::span<std::byte> slot = exchange_ ? exchange_->outgoing(parity, out.side) : out.sender.slot();
    WilsonFace<T> face{.vectors = out.vectors.data(),
                       .in = in,
                       .out = half_halo_ ? wide_.data() : reinterpret_cast<T*>(slot.data()),
                       .dagger = dagger ? T{-1} : T{1},
                       .side = out.side,
                       .num_rhs = num_rhs_};
    face.past_caches = !exchange_ && !half_halo_ && out.sender.stores() == StoreKind::nontemporal &&
                       reinterpret_cast<std::uintptr_t>(slot.data()) % 64 == 0;
    divide(0, static_cast<std::int64_t>(out.vectors.size()), [&](std::int64_t first, std::int64_t last) {
      WilsonFace<T> part = face;
      part.first = first;
      part.last = last;
      storage_.kernels->face(part);
      if (half_halo_) shorten_face(wide_.data(), slot.data(), first * num_rhs_, last * num_rhs_, lanes);
    });
    if (!exchange_) out.sender.put();
  }
  if (exchange_) exchange_->start(parity);
  sending += base::steady_seconds() - start;
}

template <class T>
std::int64_t WilsonCore<T>::face_bytes(std::int64_t vectors) const {
  const std::int64_t of_site = half_halo_ ? short_face_bytes : static_cast<std::int64_t>(12 * sizeof(T));
  return vectors * num_rhs_ * storage_.lanes() * of_site;
}

template <class T>
const T* WilsonCore<T>::arrived(In& face, const std::byte* bytes) {
  if (!half_halo_) return reinterpret_cast<const T*>(bytes);
  const auto lanes = storage_.lanes();
  divide(0, static_cast<std::int64_t>(face.wide.size()) / (12 * lanes),
         [&](std::int64_t first, std::int64_t last) { widen_face(bytes, face.wide.data(), first, last, lanes); });
  return face.wide.data();
}

template <class T>
const T* WilsonCore<T>::zeros() {
  if (zeros_.data() == nullptr) {
    std::size_t longest = 0;
    for (const auto& faces : in_) {
      for (const In& face : faces)
        longest = std::max(longest, half_halo_ ? face.wide.span().size_bytes() : index(face.receiver.bytes()));
    }
    zeros_ = Buffer<T>(longest / sizeof(T));
  }
  return zeros_.data();
}

template <class T>
void WilsonCore<T>::dslash(int parity, const T* in, T* out, const Tail& tail, bool dagger) {
  const Geometry& geometry = storage_.geometry;
  const int local = storage_.local(parity);
  const std::int64_t begin = geometry.parity_begin(local);
  const auto& blocks = tail.inverse ? storage_.inverse : storage_.clover;
  WilsonDslash<T> range;
  range.links = storage_.links.at(begin * 8 * storage_.recon * storage_.lanes());
  range.neighbours = storage_.neighbours.data() + begin * 8;
  range.lane_sources = storage_.lane_sources.data();
  range.signs = storage_.signs.data();
  range.in = in;
  range.out = out;
  range.other = tail.other;
  range.clover = blocks[index(local)].at(0);
  range.clover_scales = blocks[index(local)].scales.data();
  range.factor = static_cast<T>(storage_.half ? tail.factor / short_one : tail.factor);
  range.other_factor = static_cast<T>(tail.other_factor);
  range.dagger = dagger ? T{-1} : T{1};
  range.form = tail.form;
  range.past_caches = past_caches;
  range.num_rhs = num_rhs_;
  const auto& kernels = storage_.half ? storage_.kernels->half_dslash : storage_.kernels->dslash;
  const auto kernel = kernels[storage_.recon == 12 ? 1 : 0];
  const auto run = [&](std::int64_t first, std::int64_t last) {
    WilsonDslash<T> part = range;
    part.first = first;
    part.last = last;
    part.fetched_until = fetches ? last : 0;
    kernel(part);
  };
  count(parity, tail.form);
  const bool exchanges = !alone && !domain;
  if (exchanges) send_faces(1 - parity, in, dagger);
  divide(0, geometry.interior_end(local) - begin, run);
  auto& faces = in_[index(1 - parity)];
  if (domain) {
    for (In& face : faces) range.ghosts[face.side] = zeros();
  } else if (!faces.empty() && !alone) {
    const double start = base::steady_seconds();
    if (exchange_) exchange_->finish(1 - parity);
    for (In& face : faces) {
      const std::byte* received = exchange_ ? exchange_->incoming(1 - parity, face.side) : face.receiver.wait().data();
      range.ghosts[face.side] = arrived(face, received);
    }
    waited += base::steady_seconds() - start;
  } else {
    for (In& face : faces) range.ghosts[face.side] = reinterpret_cast<const T*>(face.receiver.payload());
  }
  divide(geometry.interior_end(local) - begin, geometry.parity_end(local) - begin, run);
  if (!exchanges || exchange_) return;
  for (In& face : faces) face.receiver.release();
}

template <class T>
void WilsonCore<T>::count(int parity, WilsonForm form) {
  const auto sites = static_cast<double>(storage_.vectors(parity) * storage_.lanes());
  const bool clover = form == WilsonForm::clover || form == WilsonForm::clover_other;
  flops += sites * num_rhs_ * (1320 + (clover ? 504 : 0) + (form == WilsonForm::add ? 48 : 0));
  const double of_matrices = 8 * storage_.recon + (clover ? 72 : 0);
  const double fields = form == WilsonForm::plain || form == WilsonForm::clover ? 2 : 3;
  bytes += sites * (of_matrices * storage_.bytes_a_number() + num_rhs_ * 24 * fields * sizeof(T));
}

template <class T>
void WilsonCore<T>::blocks(int parity, const T* in, T* out, bool inverse) {
  if (!storage_.has_clover()) {
    if (in != out) std::copy_n(in, size(parity), out);
    return;
  }
  const auto& matrices = (inverse ? storage_.inverse : storage_.clover)[index(storage_.local(parity))];
  divide(0, storage_.vectors(parity), [&](std::int64_t first, std::int64_t last) {
    const auto kernel = storage_.half ? storage_.kernels->short_blocks : storage_.kernels->blocks;
    kernel({matrices.at(0), matrices.scales.data(), in, out, num_rhs_, first, last});
  });
}

template class WilsonCore<float>;
template class WilsonCore<double>;

}  // namespace onehop::lattice::detail
