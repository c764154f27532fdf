// The operators of the Wilson solver on even sites: M^ = A - kappa^2 D A^-1 D, its normal product, and M^ with the
// Schwarz preconditioner. Fields are those of `space()`; the operators refer to what they are made from.
#pragma once

#include <span>

#include "lattice/solver/krylov.h"
#include "lattice/wilson/wilson_impl.h"

namespace onehop::lattice::detail {

// The preconditioned operator M^ on even sites.
template <class T>
class Preconditioned : public LinearOperator<T> {
 public:
  Preconditioned(const Wilson::Impl& impl, WilsonCore<T>& core, VectorSpace<T>& space)
      : impl_(impl), core_(core), space_(space), input_(space.make()), middle_(core.size(1)) {}
  VectorSpace<T>& space() override { return space_; }
  T* input() override { return input_.data(); }
  void apply(const T* in, T* out) override { impl_.precondition(core_, in, middle_.data(), out, false); }
  void apply_adjoint(const T* in, T* out) { impl_.precondition(core_, in, middle_.data(), out, true); }

 private:
  const Wilson::Impl& impl_;
  WilsonCore<T>& core_;
  VectorSpace<T>& space_;
  Buffer<T> input_;
  Buffer<T> middle_;
};

// The product of the adjoint of M^ and M^, for CGNR.
template <class T>
class Normal : public LinearOperator<T> {
 public:
  explicit Normal(Preconditioned<T>& op) : op_(op), between_(op.space().make()) {}
  VectorSpace<T>& space() override { return op_.space(); }
  T* input() override { return op_.input(); }
  void apply(const T* in, T* out) override {
    op_.apply(in, between_.data());
    op_.apply_adjoint(between_.data(), out);
  }
  void apply_and_project(const T* in, T* out, std::span<double> products) override {
    op_.apply(in, between_.data());
    space().norm(between_.data(), products);
    op_.apply_adjoint(between_.data(), out);
  }

 private:
  Preconditioned<T>& op_;
  Buffer<T> between_;
};

// M^ K with the additive Schwarz preconditioner K: a few Jacobi steps y = A^-1 (x + kappa^2 D A^-1 D y) on each rank's
// block, with Dirichlet boundaries. K is linear and needs no communication.
template <class T>
class Schwarz : public LinearOperator<T> {
 public:
  Schwarz(const Wilson::Impl& impl, WilsonCore<T>& core, Preconditioned<T>& op, int steps)
      : impl_(impl),
        core_(core),
        op_(op),
        steps_(steps),
        input_(op.space().make()),
        refined_(op.space().make()),
        middle_(core.size(1)) {}
  VectorSpace<T>& space() override { return op_.space(); }
  T* input() override { return input_.data(); }
  void apply(const T* in, T* out) override {
    refine(in, refined_.data());
    op_.apply(refined_.data(), out);
  }
  // out = K in
  void refine(const T* in, T* out) {
    const bool clover = core_.storage().has_clover();
    const double square = impl_.options.kappa * impl_.options.kappa;
    core_.domain = true;
    core_.blocks(0, in, out, true);
    for (int step = 0; step < steps_; ++step) {
      core_.dslash(1, out, middle_.data(), {.form = clover ? WilsonForm::clover : WilsonForm::plain, .inverse = true});
      core_.dslash(0, middle_.data(), out, {.form = WilsonForm::add, .factor = square, .other = in});
      core_.blocks(0, out, out, true);
    }
    core_.domain = false;
  }

 private:
  const Wilson::Impl& impl_;
  WilsonCore<T>& core_;
  Preconditioned<T>& op_;
  int steps_;
  Buffer<T> input_;
  Buffer<T> refined_;
  Buffer<T> middle_;
};

}  // namespace onehop::lattice::detail
