#include "onehop/quantum/circuit.h"

#include <nanobind/ndarray.h>
#include <nanobind/operators.h>
#include <nanobind/stl/complex.h>

#include <iterator>
#include <utility>

#include "onehop/error.h"
#include "python/bindings/bindings.h"

using onehop::quantum::Circuit;
using onehop::quantum::Complex;
using onehop::quantum::Condition;
using onehop::quantum::GateName;
using onehop::quantum::Operation;
using onehop::quantum::OperationKind;
using onehop::quantum::Register;

namespace {

using Numbers = nb::ndarray<const Complex, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OwnNumbers = nb::ndarray<nb::numpy, Complex, nb::ndim<1>>;

constexpr const char* kind_names[] = {"matrix",  "diagonal", "swap",    "pauli_rotation", "global_phase",
                                      "measure", "reset",    "barrier", "assign"};

OperationKind kind_from(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kind_names); ++i) {
    if (name == kind_names[i]) return static_cast<OperationKind>(i);
  }
  throw onehop::BadInput("there is no kind of operation called '" + name + "'; there are matrix, diagonal, swap, " +
                         "pauli_rotation, global_phase, measure, reset, barrier, assign");
}

OwnNumbers as_numbers(std::vector<Complex> values) {
  auto* held = new std::vector<Complex>(std::move(values));
  const nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<Complex>*>(p); });
  return {held->data(), {held->size()}, owner};
}

void make_operation(Operation* self, const std::string& kind, std::string name, std::vector<int> targets,
                    std::vector<int> controls, std::uint64_t control_values, const std::optional<Numbers>& values,
                    std::string paulis, double angle, std::vector<int> clbits, Condition condition) {
  const OperationKind the_kind = kind_from(kind);
  std::vector<Complex> numbers;
  if (values) numbers.assign(values->data(), values->data() + values->size());
  new (self) Operation{the_kind,          std::move(name),     std::move(targets), std::move(controls),
                       control_values,    std::move(numbers),  std::move(paulis),  angle,
                       std::move(clbits), std::move(condition)};
}

void bind_parts(nb::module_& module) {
  nb::class_<Condition>(module, "Condition",
                        "Whether an operation is done: classical bits, read as a number, compared with a value.")
      .def(
          "__init__",
          [](Condition* self, std::vector<int> clbits, std::uint64_t value, bool negated) {
            new (self) Condition{std::move(clbits), value, negated};
          },
          "clbits"_a, "value"_a, "negated"_a = false)
      .def_prop_ro("clbits", [](const Condition& c) { return as_tuple(c.clbits); })
      .def_ro("value", &Condition::value)
      .def_ro("negated", &Condition::negated, "Done when the number is another one.")
      .def("__bool__", [](const Condition& c) { return !c.clbits.empty(); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"));
  nb::class_<Register>(module, "Register", "A named run of classical bits.")
      .def(
          "__init__",
          [](Register* self, std::string name, int first, int size) {
            new (self) Register{std::move(name), first, size};
          },
          "name"_a, "first"_a, "size"_a)
      .def_ro("name", &Register::name)
      .def_ro("first", &Register::first)
      .def_ro("size", &Register::size)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"));
}

void bind_operation(nb::module_& module) {
  nb::class_<Operation>(module, "Operation", "One operation of a circuit.")
      .def("__init__", &make_operation, "kind"_a, "name"_a, "targets"_a, nb::kw_only(),
           "controls"_a = std::vector<int>(), "control_values"_a = 0, "values"_a = nb::none(), "paulis"_a = "",
           "angle"_a = 0.0, "clbits"_a = std::vector<int>(), "condition"_a = Condition())
      .def_prop_ro("kind", [](const Operation& o) { return kind_names[static_cast<std::size_t>(o.kind)]; })
      .def_rw("name", &Operation::name)
      .def_prop_rw(
          "targets", [](const Operation& o) { return as_tuple(o.targets); },
          [](Operation& o, std::vector<int> targets) { o.targets = std::move(targets); },
          nb::for_getter(nb::sig("def targets(self) -> tuple[int, ...]")))
      .def_prop_rw(
          "controls", [](const Operation& o) { return as_tuple(o.controls); },
          [](Operation& o, std::vector<int> controls) { o.controls = std::move(controls); },
          nb::for_getter(nb::sig("def controls(self) -> tuple[int, ...]")))
      .def_rw("control_values", &Operation::control_values, "Bit i: the value that controls[i] must have.")
      .def_prop_ro(
          "values", [](const Operation& o) { return as_numbers(o.values); }, nb::rv_policy::automatic,
          "The numbers of a matrix (row-major) or diagonal, copied.")
      .def_ro("paulis", &Operation::paulis)
      .def_ro("angle", &Operation::angle)
      .def_prop_rw(
          "clbits", [](const Operation& o) { return as_tuple(o.clbits); },
          [](Operation& o, std::vector<int> clbits) { o.clbits = std::move(clbits); },
          nb::for_getter(nb::sig("def clbits(self) -> tuple[int, ...]")))
      .def_rw("condition", &Operation::condition)
      .def_prop_ro("is_gate", &Operation::is_gate)
      .def_prop_ro("is_diagonal", [](const Operation& o) { return onehop::quantum::is_diagonal(o); })
      .def(
          "matrix", [](const Operation& o) { return as_numbers(onehop::quantum::matrix_of(o)); },
          nb::rv_policy::automatic, "The matrix on its targets, controls left out: 4^k numbers, row-major.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__repr__", [](const Operation& o) {
        return nb::str("<Operation: {} ({}) on {}>")
            .format(o.name, kind_names[static_cast<std::size_t>(o.kind)], as_tuple(o.targets));
      });
}

}  // namespace

void bind_quantum_circuit(nb::module_& module) {
  bind_parts(module);
  bind_operation(module);
  nb::class_<Circuit>(module, "Circuit", "A quantum circuit as plain data.")
      .def(
          "__init__",
          [](Circuit* self, int qubits, int clbits, std::string name) {
            new (self) Circuit();
            self->qubits = qubits;
            self->clbits = clbits;
            self->name = std::move(name);
          },
          "qubits"_a, "clbits"_a = 0, "name"_a = "")
      .def_rw("name", &Circuit::name)
      .def_ro("qubits", &Circuit::qubits)
      .def_ro("clbits", &Circuit::clbits)
      .def_rw("hidden_clbits", &Circuit::hidden_clbits, "Further classical bits after those of the source.")
      .def_prop_rw(
          "registers", [](const Circuit& c) { return as_tuple(c.registers); },
          [](Circuit& c, std::vector<Register> registers) { c.registers = std::move(registers); },
          nb::for_getter(nb::sig("def registers(self) -> tuple[Register, ...]")))
      .def_prop_ro(
          "operations", [](const Circuit& c) { return as_tuple(c.operations); },
          nb::sig("def operations(self) -> tuple[Operation, ...]"), "Copies, in program order.")
      .def(
          "operation", [](const Circuit& c, std::size_t i) { return c.operations.at(i); }, "index"_a)
      .def(
          "add", [](Circuit& c, const Operation& o) { c.operations.push_back(o); }, "operation"_a,
          "Appends an operation as it is.")
      .def(
          "validate", [](const Circuit& circuit) { circuit.validate(); },
          "Raises BadInput that names the operation that cannot be.")
      .def("__len__", [](const Circuit& c) { return c.operations.size(); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"));
  module.def("gate", &onehop::quantum::gate, "name"_a, "qubits"_a, "parameters"_a = std::vector<double>(),
             "The operation of a named gate.");
  module.def(
      "gate_names",
      [] {
        nb::list names;
        for (const GateName& g : onehop::quantum::gate_names())
          names.append(nb::make_tuple(g.name, g.qubits, g.parameters));
        return names;
      },
      nb::sig("def gate_names() -> list[tuple[str, int, int]]"),
      "Every name that `gate` knows, with its numbers of qubits (-1: any) and parameters.");
}
