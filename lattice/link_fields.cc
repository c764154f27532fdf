#include "link_fields.h"

namespace onehop::lattice::detail {

namespace {

constexpr std::size_t link_numbers = 9;

}  // namespace

LinkFields::LinkFields(const MatrixSpace& space) : space_(&space) {
  for (int mu = 0; mu < space.dims(); ++mu) links_.emplace_back(space);
}

void LinkFields::load(std::span<const std::complex<double>> links) {
  for (std::size_t mu = 0; mu < links_.size(); ++mu)
    links_[mu].load(links.data() + mu * link_numbers, links_.size() * link_numbers);
}

std::vector<std::complex<double>> LinkFields::store() const {
  std::vector<std::complex<double>> links(space_->sites() * links_.size() * link_numbers);
  for (std::size_t mu = 0; mu < links_.size(); ++mu)
    links_[mu].store(links.data() + mu * link_numbers, links_.size() * link_numbers);
  return links;
}

void LinkFields::fill_ahead() {
  for (MatrixField& field : links_) {
    for (int direction = 0; direction < dims(); ++direction) field.fill(direction, Side::above);
  }
}

void LinkFields::fill_all() {
  for (MatrixField& field : links_) {
    for (int direction = 0; direction < dims(); ++direction) {
      field.fill(direction, Side::below);
      field.fill(direction, Side::above);
    }
  }
}

std::array<const double*, 4> LinkFields::data() const {
  std::array<const double*, 4> found{};
  for (std::size_t mu = 0; mu < links_.size(); ++mu) found[mu] = links_[mu].data();
  return found;
}

}  // namespace onehop::lattice::detail
