#include "lattice/solver/vector_loops.h"

namespace onehop::lattice::detail {

namespace {

template <int Count>
using Wide = simd::Vector<double, Count>;

// Adds one number per site, a site in each lane, to a sum. Callers finish the sum within a site first, so that its
// order is always the same.
template <int Count>
inline void add_sites(const Wide<Count>& value, Wide<Count>& plain, Superaccumulator* wide) {
  if (wide == nullptr) {
    plain += value;
    return;
  }
  for (int lane = 0; lane < Count; ++lane) wide->add(value[lane]);
}

template <int Count>
inline double across(const Wide<Count>& value) {
  double sum = 0;
  for (int lane = 0; lane < Count; ++lane) sum += value[lane];
  return sum;
}

template <class Real, int Count>
inline Wide<Count> load_wide(const Real* from) {
  return simd::convert<Wide<Count>>(simd::load<simd::Vector<Real, Count>>(from));
}

template <class Real, int Count>
struct Dot {
  static inline void run(const DotLoop<Real>& loop) {
    const std::int64_t unit = loop.shape.unit();
    for (int rhs = 0; rhs < loop.shape.num_rhs; ++rhs) {
      Wide<Count> sum_re{};
      Wide<Count> sum_im{};
      for (std::int64_t vector = loop.first; vector < loop.last; ++vector) {
        const Real* a = loop.a + (vector * loop.shape.num_rhs + rhs) * unit;
        const Real* b = loop.b + (vector * loop.shape.num_rhs + rhs) * unit;
        Wide<Count> re{};
        Wide<Count> im{};
        for (std::int64_t i = 0; i < unit; i += std::int64_t{2} * Count) {
          const Wide<Count> a_re = load_wide<Real, Count>(a + i);
          const Wide<Count> a_im = load_wide<Real, Count>(a + i + Count);
          const Wide<Count> b_re = load_wide<Real, Count>(b + i);
          const Wide<Count> b_im = load_wide<Real, Count>(b + i + Count);
          re += a_re * b_re;
          re += a_im * b_im;
          im += a_re * b_im;
          im -= a_im * b_re;
        }
        add_sites<Count>(re, sum_re, loop.is_wide ? loop.wide + 2 * rhs : nullptr);
        add_sites<Count>(im, sum_im, loop.is_wide ? loop.wide + 2 * rhs + 1 : nullptr);
      }
      loop.plain[2 * rhs] += across<Count>(sum_re);
      loop.plain[2 * rhs + 1] += across<Count>(sum_im);
    }
  }
};

template <class Real, int Count>
struct Norm {
  static inline void run(const DotLoop<Real>& loop) {
    const std::int64_t unit = loop.shape.unit();
    for (int rhs = 0; rhs < loop.shape.num_rhs; ++rhs) {
      Wide<Count> sum{};
      for (std::int64_t vector = loop.first; vector < loop.last; ++vector) {
        const Real* a = loop.a + (vector * loop.shape.num_rhs + rhs) * unit;
        Wide<Count> square{};
        for (std::int64_t i = 0; i < unit; i += Count) {
          const Wide<Count> value = load_wide<Real, Count>(a + i);
          square += value * value;
        }
        add_sites<Count>(square, sum, loop.is_wide ? loop.wide + rhs : nullptr);
      }
      loop.plain[rhs] += across<Count>(sum);
    }
  }
};

template <class Real, int Count>
struct Step {
  static inline void run(const StepLoop<Real>& loop) {
    const std::int64_t unit = loop.shape.unit();
    for (int rhs = 0; rhs < loop.shape.num_rhs; ++rhs) {
      const auto alpha = static_cast<Real>(loop.alpha[rhs]);
      Wide<Count> sum{};
      for (std::int64_t vector = loop.first; vector < loop.last; ++vector) {
        const std::int64_t at = (vector * loop.shape.num_rhs + rhs) * unit;
        Wide<Count> square{};
        for (std::int64_t i = at; i < at + unit; i += Count) {
          if (loop.x != nullptr) {
            simd::Vector<Real, Count> x = simd::load<simd::Vector<Real, Count>>(loop.x + i);
            x += alpha * simd::load<simd::Vector<Real, Count>>(loop.p + i);
            simd::store(loop.x + i, x);
          }
          simd::Vector<Real, Count> r = simd::load<simd::Vector<Real, Count>>(loop.r + i);
          r -= alpha * simd::load<simd::Vector<Real, Count>>(loop.q + i);
          simd::store(loop.stepped + i, r);
          const Wide<Count> value = simd::convert<Wide<Count>>(r);
          square += value * value;
        }
        add_sites<Count>(square, sum, loop.is_wide ? loop.wide + rhs : nullptr);
      }
      loop.plain[rhs] += across<Count>(sum);
    }
  }
};

template <class Real, int Count>
struct Direct {
  static inline void run(const DirectLoop<Real>& loop) {
    const std::int64_t unit = loop.shape.unit();
    for (int rhs = 0; rhs < loop.shape.num_rhs; ++rhs) {
      const auto beta = static_cast<Real>(loop.beta[rhs]);
      for (std::int64_t vector = loop.first; vector < loop.last; ++vector) {
        const std::int64_t at = (vector * loop.shape.num_rhs + rhs) * unit;
        for (std::int64_t i = at; i < at + unit; i += Count) {
          simd::Vector<Real, Count> r = simd::load<simd::Vector<Real, Count>>(loop.r + i);
          r += beta * simd::load<simd::Vector<Real, Count>>(loop.p + i);
          simd::store(loop.p + i, r);
        }
      }
    }
  }
};

template <class Real, int Count>
struct Combine {
  static inline void run(const CombineLoop<Real>& loop) {
    const std::int64_t unit = loop.shape.unit();
    for (std::int64_t piece = loop.first * loop.shape.num_rhs; piece < loop.last * loop.shape.num_rhs; ++piece) {
      const Coefficient* coefficient = loop.coefficients + piece % loop.shape.num_rhs;
      for (std::int64_t i = piece * unit; i < (piece + 1) * unit; i += std::int64_t{2} * Count) {
        simd::Vector<Real, Count> re{};
        simd::Vector<Real, Count> im{};
        for (int t = 0; t < loop.count; ++t) {
          const simd::Vector<Real, Count> term_re =
              simd::load<simd::Vector<Real, Count>>(loop.terms[static_cast<std::size_t>(t)] + i);
          const simd::Vector<Real, Count> term_im =
              simd::load<simd::Vector<Real, Count>>(loop.terms[static_cast<std::size_t>(t)] + i + Count);
          const auto c_re = static_cast<Real>(coefficient[t * loop.shape.num_rhs].real());
          const auto c_im = static_cast<Real>(coefficient[t * loop.shape.num_rhs].imag());
          re += c_re * term_re;
          re -= c_im * term_im;
          im += c_re * term_im;
          im += c_im * term_re;
        }
        simd::store(loop.y + i, re);
        simd::store(loop.y + i + Count, im);
      }
    }
  }
};

template <class Real, int Count>
struct Shift {
  static inline void run(const ShiftLoop<Real>& loop) {
    constexpr std::int64_t piece = std::int64_t{96} * Count;  // the residuals of a piece stay in L1 during all shifts
    const std::int64_t end = loop.last * loop.shape.unit();
    for (std::int64_t begin = loop.first * loop.shape.unit(); begin < end; begin += piece) {
      const std::int64_t stop = begin + piece < end ? begin + piece : end;
      for (int s = 0; s < loop.shifts; ++s) {
        Real alpha[shift_steps];
        Real beta[shift_steps];
        Real zeta[shift_steps];
        for (int t = 0; t < loop.steps; ++t) {
          alpha[t] = static_cast<Real>(loop.alpha[t * loop.shifts + s]);
          beta[t] = static_cast<Real>(loop.beta[t * loop.shifts + s]);
          zeta[t] = static_cast<Real>(loop.zeta[t * loop.shifts + s]);
        }
        for (std::int64_t i = begin; i < stop; i += Count) {
          simd::Vector<Real, Count> x = simd::load<simd::Vector<Real, Count>>(loop.x[s] + i);
          simd::Vector<Real, Count> p = simd::load<simd::Vector<Real, Count>>(loop.p[s] + i);
          for (int t = 0; t < loop.steps; ++t) {
            x += alpha[t] * p;
            simd::Vector<Real, Count> next =
                zeta[t] * simd::load<simd::Vector<Real, Count>>(loop.r[static_cast<std::size_t>(t)] + i);
            next += beta[t] * p;
            p = next;
          }
          simd::store(loop.x[s] + i, x);
          simd::store(loop.p[s] + i, p);
        }
      }
    }
  }
};

template <class Real, int Count>
VectorLoops<Real> best() {
  return {best_loop<Dot<Real, Count>, DotLoop<Real>>(),         best_loop<Norm<Real, Count>, DotLoop<Real>>(),
          best_loop<Step<Real, Count>, StepLoop<Real>>(),       best_loop<Direct<Real, Count>, DirectLoop<Real>>(),
          best_loop<Combine<Real, Count>, CombineLoop<Real>>(), best_loop<Shift<Real, Count>, ShiftLoop<Real>>()};
}

}  // namespace

template <class Real>
VectorLoops<Real> loops(int lanes) {
  if (lanes > 8) return best<Real, 16>();
  if (lanes > 4) return best<Real, 8>();
  if (lanes > 2) return best<Real, 4>();
  return lanes > 1 ? best<Real, 2>() : best<Real, 1>();
}

template VectorLoops<double> loops(int);
template VectorLoops<float> loops(int);

}  // namespace onehop::lattice::detail
