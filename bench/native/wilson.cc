// `onehop bench wilson`: the Wilson hopping term, against the time in which memory could move its bytes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "bench/native/bench.h"
#include "bench/native/face_clock.h"
#include "lattice/wilson/wilson_core.h"
#include "onehop/lattice/clover.h"
#include "onehop/lattice/gauge.h"
#include "onehop/lattice/solver.h"
#include "src/base/simd.h"
#include "src/base/thread_count.h"
#include "src/base/thread_pool.h"

namespace onehop::bench {
namespace {

using lattice::WilsonForm;
using lattice::detail::Buffer;
using lattice::detail::WilsonCore;
using lattice::detail::WilsonStorage;

constexpr const char* by_mpi_name = "plain MPI, the same kernels";

struct WilsonOptions {
  Effort effort;
  Extents extents{};  // of the whole lattice
  std::array<int, 4> grid{};
  // half: matrices of 16-bit integers, spinors in single precision
  lattice::Precision precision = lattice::Precision::double_;
  int recon = 18;       // real numbers kept per link: 18 or 12
  bool clover = false;  // with the inverse blocks of the clover term
  int threads = 0;      // per rank; 0: one per core of the rank
};

// Links, blocks, the spinors that are read, and those that are written, which are read before unless they are stored
// non-temporally.
LatticeWork work_of(const WilsonOptions& options, int ranks) {
  const double sites = 0.5 * sites_of_rank(options.extents, ranks);
  const double of_matrices = 8 * options.recon + (options.clover ? 72 : 0);
  const bool is_double = options.precision == lattice::Precision::double_;
  const double bytes = options.precision == lattice::Precision::half ? 2 : is_double ? 8 : 4;
  return {sites * (1320 + (options.clover ? 504 : 0)), sites * (of_matrices * bytes + 3 * 24 * (is_double ? 8 : 4))};
}

// Reads all of `from` in four streams and writes all of `to`, evenly interleaved. A single stream, or sums that do not
// fit in registers, would be slower than the machine can be.
void move_all(const double* from, std::int64_t read, double* to, std::int64_t written) {
  constexpr std::int64_t piece = 32;  // of every stream
  using Pair = simd::Vector<double, 2>;
  Pair sums[4]{};
  const auto add = [&sums](const double* line) {
    for (std::size_t i = 0; i < 4; ++i) sums[i] += simd::load<Pair>(line + 2 * i);
  };
  std::int64_t out = 0;
  const std::int64_t quarter = read / 4 / piece * piece;
  for (std::int64_t at = 0; at < quarter; at += piece) {
    const double* line = from + at;
#pragma GCC unroll 1
    for (int stream = 0; stream < 4; ++stream, line += quarter) {
      add(line);
      add(line + 8);
      add(line + 16);
      add(line + 24);
    }
    const std::int64_t until = written * (at + piece) / quarter / 8 * 8;
#pragma GCC unroll 1
    for (; out < until; out += 8) __builtin_memcpy(to + out, &sums, sizeof sums);
  }
  __asm__ volatile("" : : "m"(sums) : "memory");
}

// Exchanges faces as a careful user of MPI would: projects into buffers, Isend and Irecv, uses them where they arrive.
class MpiExchange final : public lattice::detail::WilsonExchange {
 public:
  // `site_bytes`: size of the half spinors of one vector.
  MpiExchange(const Group& group, const lattice::Geometry& geometry, int origin_parity, std::int64_t site_bytes) {
    const int rank = group.rank();
    for (const int parity : {0, 1}) {
      const int local = (parity + origin_parity) % 2;
      Parity& of = parities_[static_cast<std::size_t>(parity)];
      std::int64_t bytes = 0;
      const auto place = [&](const Slice& face) {
        of.places.push_back({bytes, static_cast<std::int64_t>(face.elements()) * site_bytes});
        bytes += of.places.back().bytes;
      };
      for (int side = 0; side < 8; ++side) place(geometry.face(side / 2, side_of(side), local));
      for (int side = 0; side < 8; ++side) place(geometry.ghost(side / 2, side_of(side), local));
      of.memory = Buffer<std::byte>(static_cast<std::size_t>(bytes));
      Schedule schedule;
      schedule.name = "half spinors";
      schedule.ranks = group.size();
      schedule.arrays = {{"faces", 1, ElementType::bytes, {bytes}}};
      schedule.rounds.resize(1);
      for (int side = 0; side < 8; ++side) {  // as it is sent
        if (!geometry.is_cut(side / 2)) continue;
        const auto beside = [&](int step) {
          std::vector<int> at = geometry.coordinates(rank);
          at[static_cast<std::size_t>(side / 2)] += step;
          return geometry.rank_at(at);
        };
        const auto whole = [&](int number) {
          const Place& at = of.places[static_cast<std::size_t>(number)];
          return Slice::subarray(std::array{bytes}, std::array{at.first}, std::array{at.bytes});
        };
        const int up = side % 2 == 0 ? -1 : 1;
        const Slice sent = whole(side);
        const Slice received = whole(8 + (side ^ 1));
        schedule.rounds[0].transfers.push_back({{rank, 0, sent}, {beside(up), 0, sent}});
        schedule.rounds[0].transfers.push_back({{beside(-up), 0, received}, {rank, 0, received}});
      }
      of.peer = std::move(mpi_halo_peers(group, "derived datatypes, Isend/Irecv").at(0));
      of.peer->prepare(schedule, std::array{std::as_writable_bytes(of.memory.span())});
    }
  }
  std::span<std::byte> outgoing(int parity, int side) override { return at(parity, side); }
  void start(int parity) override { parities_[static_cast<std::size_t>(parity)].peer->start(); }
  void finish(int parity) override { parities_[static_cast<std::size_t>(parity)].peer->finish(); }
  const std::byte* incoming(int parity, int side) override { return at(parity, 8 + side).data(); }

 private:
  struct Place {
    std::int64_t first = 0;
    std::int64_t bytes = 0;
  };
  struct Parity {
    std::vector<Place> places;  // of the faces, then of the ghosts
    Buffer<std::byte> memory;
    std::unique_ptr<HaloPeer> peer;
  };
  static lattice::Side side_of(int number) { return number % 2 == 0 ? lattice::Side::below : lattice::Side::above; }
  [[nodiscard]] std::span<std::byte> at(int parity, int number) {
    Parity& of = parities_[static_cast<std::size_t>(parity)];
    const Place& place = of.places[static_cast<std::size_t>(number)];
    return of.memory.span().subspan(static_cast<std::size_t>(place.first), static_cast<std::size_t>(place.bytes));
  }

  std::array<Parity, 2> parities_;
};

// One variant of applying the operator to both parities, with fields of its own.
template <class T>
struct Runner {
  Runner(const WilsonStorage<T>& storage, const base::ThreadPool& pool, const WilsonOptions& options,
         std::unique_ptr<lattice::detail::WilsonExchange> exchange = nullptr)
      : core(storage, pool, 1, std::move(exchange)),
        fields{random_numbers<T>(core.size(0)), random_numbers<T>(core.size(1))},
        results{Buffer<T>(core.size(0)), Buffer<T>(core.size(1))},
        tail{.form = options.clover ? WilsonForm::clover : WilsonForm::plain, .factor = 0.1, .inverse = true} {}
  void run(int times, bool alone = false) {
    core.alone = alone;
    for (int i = 0; i < times; ++i) {
      for (const int parity : {1, 0}) {
        const double before = core.sending + core.waited;
        core.dslash(parity, fields[1 - parity].data(), results[parity].data(), tail);
        if (!alone) clock.add(core.sending + core.waited - before);
      }
    }
    clock.end_block();
  }

  WilsonCore<T> core;
  Buffer<T> fields[2];
  Buffer<T> results[2];
  typename WilsonCore<T>::Tail tail;
  FaceClock clock;
};

// Candidates that only move memory, as much as the applications of the operator to both parities use, so that it is in
// caches only if theirs is.
class MemoryTraffic {
 public:
  // `used` and `written`: bytes that the operator uses, and those of them that it writes. `ranks` share the caches.
  MemoryTraffic(const base::ThreadPool& pool, std::int64_t used, std::int64_t written, int ranks)
      : pool_(pool),
        count_(used / number),
        written_(written / number),
        read_(count_ - 2 * written_),  // a line is read before it is written
        whole_(std::max(count_, (std::int64_t{192} << 20) / number / ranks)),
        from_(static_cast<std::size_t>(read_)),
        to_(static_cast<std::size_t>(written_)),
        far_(static_cast<std::size_t>(whole_)) {}

  // Reads piece by piece through so much memory that none of it is still in a cache when its turn comes again.
  void read_far(int times) {
    for (int i = 0; i < times; ++i) {
      if (at_ + count_ > whole_) at_ = 0;
      pool_.run([&](int thread) {
        const auto [first, last] = pool_.part(0, count_ / 8, thread);
        move_all(far_.data() + at_ + 8 * first, 8 * (last - first), nullptr, 0);
      });
      at_ += count_ / 8 * 8;
    }
  }

  void move(int times) {
    for (int i = 0; i < times; ++i) {
      pool_.run([&](int thread) {
        const auto [first, last] = pool_.part(0, read_ / 8, thread);
        const auto [begin, end] = pool_.part(0, written_ / 8, thread);
        move_all(from_.data() + 8 * first, 8 * (last - first), to_.data() + 8 * begin, 8 * (end - begin));
      });
    }
  }

 private:
  static constexpr std::int64_t number = sizeof(double);
  const base::ThreadPool& pool_;
  std::int64_t count_;
  std::int64_t written_;
  std::int64_t read_;
  std::int64_t whole_;
  Buffer<double> from_;
  Buffer<double> to_;
  Buffer<double> far_;
  std::int64_t at_ = 0;
};

// The storages of random links, and with `options.clover` of their clover blocks, for vectors of so many lanes.
template <class T>
class Storages {
 public:
  Storages(const Group& group, const WilsonOptions& options)
      : group_(group), options_(options), gauge_(random_gauge(group, options)) {
    if (options.clover) blocks_ = lattice::clover_blocks(lattice::clover_leaves(gauge_), 0.13);
    inverses_ = lattice::inverse_blocks(blocks_);
  }
  [[nodiscard]] WilsonStorage<T> make(int lanes) const {
    lattice::GeometrySpec spec = gauge_.geometry().spec();
    spec.parities = 2;
    spec.lanes = geometry_lanes(spec, lanes);
    WilsonStorage<T> storage(group_, lattice::Geometry(spec), gauge_.links(), options_.recon, true,
                             options_.precision == lattice::Precision::half);
    if (options_.clover) storage.set_clover(blocks_, inverses_);
    return storage;
  }

 private:
  static lattice::Gauge random_gauge(const Group& group, const WilsonOptions& options) {
    const std::vector<std::int64_t> extents(options.extents.begin(), options.extents.end());
    const std::vector<int> grid(options.grid.begin(), options.grid.end());
    lattice::Gauge gauge(group, extents, grid);
    gauge.set_random(1);
    return gauge;
  }

  const Group& group_;
  const WilsonOptions& options_;
  lattice::Gauge gauge_;
  std::vector<double> blocks_;
  std::vector<double> inverses_;
};

template <class T>
std::vector<Samples> measured(const Group& group, const WilsonOptions& options) {
  const Storages<T> storages(group, options);
  const WilsonStorage<T> storage = storages.make(lattice::detail::wilson_lanes<T>());
  const WilsonStorage<T> scalar_storage = storages.make(1);
  base::ThreadPool pool(base::thread_count(options.threads, group));
  Runner<T> ours(storage, pool, options);
  Runner<T> scalar(scalar_storage, pool, options);
  std::unique_ptr<Runner<T>> by_mpi;
  if (group.size() > 1 && why_no_mpi_peers(group).empty()) {
    const auto half_spinors = static_cast<std::int64_t>(12 * sizeof(T)) * storage.lanes();
    by_mpi = std::make_unique<Runner<T>>(
        storage, pool, options, std::make_unique<MpiExchange>(group, storage.geometry, storage.local(0), half_spinors));
  }
  const auto written = static_cast<std::int64_t>((ours.core.size(0) + ours.core.size(1)) * sizeof(T));
  MemoryTraffic memory(pool, static_cast<std::int64_t>(2 * work_of(options, group.size()).bytes), written,
                       group.size());
  std::vector<Candidate> candidates;
  candidates.push_back({"onehop", Role::ours, [&](int times) { ours.run(times); }, 0.5});
  if (group.size() > 1) {
    candidates.push_back({"onehop, without faces", Role::variant, [&](int times) { ours.run(times, true); }, 0.5});
  }
  if (by_mpi) {
    candidates.push_back({by_mpi_name, Role::peer, [&](int times) { by_mpi->run(times); }, 0.5});
  }
  candidates.push_back({"scalar code", Role::variant, [&](int times) { scalar.run(times); }, 0.5});
  candidates.push_back(
      {"reading as many bytes from memory", Role::variant, [&](int times) { memory.read_far(times); }, 0.5});
  candidates.push_back(
      {"speed of light: moving as many bytes", Role::speed_of_light, [&](int times) { memory.move(times); }, 0.5});
  Arena arena(group);
  std::vector<Samples> samples = run_rounds(arena, candidates, options.effort);
  if (group.size() > 1) samples.push_back(ours.clock.samples(group, samples[0].name));
  if (by_mpi) samples.push_back(by_mpi->clock.samples(group, by_mpi_name));
  return samples;
}

}  // namespace

// The same as for dslash. The speed of light is the time to move as many bytes.
void bind_wilson(nb::module_& module) {
  module.def(
      "wilson",
      [](const Group& group, const Extents& extents, const std::array<int, 4>& grid, const std::string& precision,
         int recon, bool clover, int threads, const Effort& effort) {
        const WilsonOptions options{effort, extents, grid,   lattice::precision_from_string(precision),
                                    recon,  clover,  threads};
        return with_work(work_of(options, group.size()), [&] {
          return precision == "double" ? measured<double>(group, options) : measured<float>(group, options);
        });
      },
      "group"_a, "extents"_a, "grid"_a, "precision"_a, "recon"_a, "clover"_a, "threads"_a, "effort"_a,
      "Measure the Wilson hopping term on the sites of one parity. Returns flop and bytes of a rank, and the samples.");
}

}  // namespace onehop::bench
