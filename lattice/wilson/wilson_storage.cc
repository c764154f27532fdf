#include "lattice/wilson/wilson_storage.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "lattice/geometry/memory_need.h"
#include "onehop/error.h"
#include "onehop/plan.h"
#include "src/base/cpu.h"

namespace onehop::lattice::detail {

namespace {

constexpr double table_bytes = 200;  // of a site: its neighbours, and its place

// Packs `numbers` numbers of each of these sites, given in lexicographic order, as [vector][number][lane].
template <class T>
Buffer<T> in_lanes(std::span<const double> values, std::size_t numbers, std::span<const std::int64_t> sites,
                   std::size_t lanes) {
  Buffer<T> found(sites.size() * numbers);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    T* to = found.data() + i / lanes * numbers * lanes + i % lanes;
    for (std::size_t n = 0; n < numbers; ++n) to[n * lanes] = static_cast<T>(values[index(sites[i]) * numbers + n]);
  }
  return found;
}

// Rounds to the nearest 16-bit integer, in a form that compilers vectorise.
template <class T>
std::int16_t to_short(T x) {
  const T bounded = std::clamp(x, static_cast<T>(-short_one), static_cast<T>(short_one));
  return static_cast<std::int16_t>(bounded + (bounded < 0 ? T{-0.5} : T{0.5}));
}

// Converts matrices, [vector][number][lane], to 16-bit integers with a scale per site.
template <class T>
void shorten(typename WilsonStorage<T>::Matrices& matrices, std::size_t numbers, std::size_t lanes) {
  const Buffer<T> from = std::move(matrices.whole);
  matrices.whole = {};
  matrices.shorts = Buffer<std::int16_t>(from.size());
  matrices.scales = Buffer<T>(from.size() / numbers);
  std::vector<T> inverse(lanes);
  for (std::size_t vector = 0; vector < matrices.scales.size() / lanes; ++vector) {
    const T* numbers_of = from.data() + vector * numbers * lanes;
    T* scales = matrices.scales.data() + vector * lanes;
    for (std::size_t i = 0; i < numbers * lanes; ++i)
      scales[i % lanes] = std::max(scales[i % lanes], std::abs(numbers_of[i]));
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      inverse[lane] = scales[lane] > 0 ? static_cast<T>(short_one) / scales[lane] : 0;
      scales[lane] /= static_cast<T>(short_one);
    }
    for (std::size_t i = 0; i < numbers * lanes; ++i)
      matrices.shorts.data()[vector * numbers * lanes + i] = to_short(numbers_of[i] * inverse[i % lanes]);
  }
}

}  // namespace

template <class T>
const WilsonKernels<T>* wilson_kernels(int lanes) {
  const auto pick = [lanes](auto of_float, auto of_double) -> const WilsonKernels<T>* {
    if constexpr (std::is_same_v<T, float>) {
      return of_float(lanes);
    } else {
      return of_double(lanes);
    }
  };
  const WilsonKernels<T>* found = nullptr;
#if defined(__x86_64__)
  if (cpu::level() == cpu::Level::avx512) found = pick(&avx512::float_wilson, &avx512::double_wilson);
  if (found == nullptr && cpu::level() != cpu::Level::portable) found = pick(&avx2::float_wilson, &avx2::double_wilson);
#endif
  return found != nullptr ? found : pick(&portable::float_wilson, &portable::double_wilson);
}

template const WilsonKernels<float>* wilson_kernels<float>(int lanes);
template const WilsonKernels<double>* wilson_kernels<double>(int lanes);

template <class T>
int wilson_lanes() {
  const int bytes = cpu::level() == cpu::Level::avx512 ? 64 : cpu::level() == cpu::Level::avx2 ? 32 : 16;
  return bytes / static_cast<int>(sizeof(T));
}
template int wilson_lanes<float>();
template int wilson_lanes<double>();

template <class T>
WilsonStorage<T>::WilsonStorage(const Group& the_group, const Geometry& the_geometry,
                                std::span<const std::complex<double>> gauge_links, int with_recon, bool antiperiodic,
                                bool with_half)
    : group(the_group),
      geometry(the_geometry),
      recon(with_recon),
      half(with_half),
      kernels(wilson_kernels<T>(geometry.spec().lanes)) {
  if (geometry.dims() != 4)
    throw BadInput("wilson: expected a lattice of four directions, found " + std::to_string(geometry.dims()));
  if (kernels == nullptr) {
    throw BadInput("wilson: expected a number of lanes that is a power of two, at most " +
                   std::to_string(wilson_lanes<T>()) + " on this processor, found " + std::to_string(lanes()));
  }
  const double sites_here = static_cast<double>(geometry.sites());
  const double places = static_cast<double>(geometry.vectors() + geometry.ghosts()) * lanes();
  require_memory_for(group, geometry.spec().extents,
                     places * 4 * 18 * sizeof(T) + sites_here * (8.0 * recon * sizeof(T) + table_bytes),
                     "a Wilson operator");
  for (std::int64_t k = 0; k < geometry.vectors(); ++k) {
    for (int lane = 0; lane < lanes(); ++lane) sites.push_back(geometry.site(k, lane));
  }
  make_neighbours(antiperiodic);
  make_links(gauge_links);
}

template <class T>
void WilsonStorage<T>::make_neighbours(bool antiperiodic) {
  const auto width = index(lanes());
  for (int n = 0; n < 8; ++n) {
    const auto source = geometry.lane_source(n / 2, side_of(n));
    lane_sources.insert(lane_sources.end(), source.begin(), source.end());
  }
  signs.assign(8 * width, T{1});
  const auto block = geometry.block();
  const std::int64_t below_time = block[0] * block[1] * block[2];
  const std::int64_t first_time = geometry.origin(group.rank())[3];
  const std::int64_t last_time = geometry.spec().extents[3] - 1;
  const auto found = geometry.neighbours();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const int n = static_cast<int>(i % 8);
    const std::size_t k = i / 8;
    const int other = static_cast<std::int64_t>(k) < geometry.parity_end(0) ? 1 : 0;
    const bool ghost = found[i].vector >= geometry.vectors();
    const std::int64_t begin = ghost ? geometry.ghost(n / 2, side_of(n), other).offset() : geometry.parity_begin(other);
    WilsonNeighbour neighbour{
        static_cast<std::int32_t>(found[i].vector - begin),
        (found[i].rotated ? WilsonNeighbour::rotated : 0U) | (ghost ? WilsonNeighbour::ghost : 0U)};
    for (std::size_t lane = 0; antiperiodic && n >= 6 && lane < width; ++lane) {
      const std::int64_t time = first_time + sites[k * width + lane] / below_time;
      if (time != (n == 6 ? 0 : last_time)) continue;
      neighbour.kind |= WilsonNeighbour::ends;
      signs[index(n) * width + lane] = T{-1};
    }
    neighbours.push_back(neighbour);
  }
}

template <class T>
void WilsonStorage<T>::make_links(std::span<const std::complex<double>> gauge_links) {
  const auto width = index(lanes());
  const std::size_t of_whole = 18 * width;
  const std::size_t of_link = static_cast<std::size_t>(recon) * width;
  const auto vectors = index(geometry.vectors());
  Buffer<T> ahead((vectors + index(geometry.ghosts())) * 4 * of_whole);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    for (std::size_t n = 0; n < 36; ++n) {
      const std::complex<double>& entry = gauge_links[index(sites[i]) * 36 + n];
      T* to = ahead.data() + i / width * 4 * of_whole + n * 2 * width + i % width;
      to[0] = static_cast<T>(entry.real());
      to[width] = static_cast<T>(entry.imag());
    }
  }
  const std::array arrays{std::as_writable_bytes(ahead.span())};
  Plan(group, geometry.halo(static_cast<std::int64_t>(4 * of_whole * sizeof(T)), ElementType::bytes, {}, group.rank()),
       arrays)
      .run();
  links.whole = Buffer<T>(vectors * 8 * of_link);
  const auto found = geometry.neighbours();
  for (std::size_t k = 0; k < vectors; ++k) {
    for (std::size_t mu = 0; mu < 4; ++mu) {
      const Geometry::Neighbour& below = found[k * 8 + 2 * mu];
      const T* from = ahead.data() + (index(below.vector) * 4 + mu) * of_whole;
      T* to = links.whole.data() + (k * 8 + 2 * mu) * of_link;
      for (std::size_t i = 0; i < of_link / (2 * width); ++i) {
        for (std::size_t lane = 0; lane < width; ++lane) {
          const std::size_t source_lane = below.rotated ? index(lane_sources[2 * mu * width + lane]) : lane;
          const T* entry = from + (i % 3 * 3 + i / 3) * 2 * width + source_lane;  // transposed
          to[i * 2 * width + lane] = entry[0];
          to[(i * 2 + 1) * width + lane] = -entry[width];
        }
      }
      std::copy_n(ahead.data() + (k * 4 + mu) * of_whole, of_link, to + of_link);
    }
  }
  if (!half) return;
  links.shorts = Buffer<std::int16_t>(links.whole.size());
  for (std::size_t i = 0; i < links.whole.size(); ++i)
    links.shorts.data()[i] = to_short(links.whole.data()[i] * static_cast<T>(short_one));
  links.whole = {};
}

template <class T>
void WilsonStorage<T>::set_clover(std::span<const double> blocks, std::span<const double> inverses) {
  const auto width = index(lanes());
  require_memory_for(group, geometry.spec().extents, static_cast<double>(geometry.sites()) * 2 * 72 * sizeof(T),
                     "the clover blocks of a Wilson operator");
  for (const int parity : {0, 1}) {
    const std::int64_t begin = geometry.parity_begin(parity);
    const std::int64_t count = geometry.parity_end(parity) - begin;
    const auto of_parity = std::span(sites).subspan(index(begin) * width, index(count) * width);
    clover[index(parity)].whole = in_lanes<T>(blocks, 72, of_parity, width);
    inverse[index(parity)].whole = in_lanes<T>(inverses, 72, of_parity, width);
    if (!half) continue;
    shorten<T>(clover[index(parity)], 72, width);
    shorten<T>(inverse[index(parity)], 72, width);
  }
}

template class WilsonStorage<float>;
template class WilsonStorage<double>;

}  // namespace onehop::lattice::detail
