#include "onehop/quantum/circuit.h"

#include <nanobind/operators.h>
#include <nanobind/stl/array.h>

#include <iterator>
#include <utility>

#include "onehop/error.h"
#include "python/bindings/quantum_arrays.h"
#include "quantum/engine/kak.h"
#include "src/base/text.h"

using onehop::quantum::Circuit;
using onehop::quantum::Complex;
using onehop::quantum::Condition;
using onehop::quantum::Expression;
using onehop::quantum::GateName;
using onehop::quantum::Operation;
using onehop::quantum::OperationKind;
using onehop::quantum::Register;

namespace {

using Numbers = nb::ndarray<const Complex, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr const char* kind_names[] = {
    "matrix", "diagonal", "swap",    "pauli_rotation", "global_phase", "measure",    "reset", "barrier",
    "assign", "channel",  "misread", "save",           "set_state",    "postselect", "mark",  "jump"};

OperationKind kind_from(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kind_names); ++i) {
    if (name == kind_names[i]) return static_cast<OperationKind>(i);
  }
  throw onehop::BadInput("there is no kind of operation called '" + name + "'; there are matrix, diagonal, swap, " +
                         "pauli_rotation, global_phase, measure, reset, barrier, assign");
}

// Sets a field of an operation that is among the keywords, and counts it. A wrong type is an error of the call.
template <class Field>
void take(const nb::kwargs& given, const char* name, Field& field, std::size_t& taken) {
  if (!given.contains(name)) return;
  ++taken;
  if (!nb::try_cast(given[name], field)) throw nb::next_overload();
}

void make_operation(Operation* self, const std::string& kind, std::string name, std::vector<int> targets,
                    const nb::kwargs& more) {
  Operation made;
  made.kind = kind_from(kind);
  made.name = std::move(name);
  made.targets = std::move(targets);
  std::optional<Numbers> values;
  std::size_t taken = 0;
  take(more, "controls", made.controls, taken);
  take(more, "control_values", made.control_values, taken);
  take(more, "values", values, taken);
  take(more, "paulis", made.paulis, taken);
  take(more, "angle", made.angle, taken);
  take(more, "clbits", made.clbits, taken);
  take(more, "condition", made.condition, taken);
  take(more, "index", made.index, taken);
  if (taken != more.size()) throw nb::next_overload();
  if (values) made.values.assign(values->data(), values->data() + values->size());
  new (self) Operation(std::move(made));
}

// A linear expression of parameters: its constant, and index and factor of each parameter.
using Terms = std::pair<double, std::vector<std::pair<int, double>>>;

std::vector<Expression> expressions(const std::vector<Terms>& terms) {
  std::vector<Expression> result;
  for (const auto& [constant, factors] : terms) result.push_back({constant, factors});
  return result;
}

nb::tuple expressions(const std::vector<Expression>& angles) {
  nb::list list;
  for (const Expression& angle : angles) {
    nb::list terms;
    for (const auto& [parameter, factor] : angle.terms) terms.append(nb::make_tuple(parameter, factor));
    list.append(nb::make_tuple(angle.constant, nb::tuple(terms)));
  }
  return nb::tuple(list);
}

void bind_gates_with_parameters(nb::module_& module) {
  module.def(
      "parametrised_gate",
      [](const std::string& name, const std::vector<int>& qubits, const std::vector<Terms>& angles) {
        return onehop::quantum::parametrised_gate(name, qubits, expressions(angles));
      },
      "name"_a, "qubits"_a, "angles"_a,
      "Make the operation of a named gate whose angles are linear expressions of parameters: for each angle a "
      "constant, "
      "and index and factor of each parameter. Raises BadInput as `gate` does.");
  module.def(
      "bind",
      [](const Circuit& circuit, const std::vector<double>& values) { return bind_parameters(circuit, values); },
      "circuit"_a, "values"_a, nb::call_guard<nb::gil_scoped_release>(),
      "Return the circuit with a value for each of its parameters. Raises BadInput for a wrong number of values, or "
      "one "
      "that is not finite.");
}

void bind_parts(nb::module_& module) {
  nb::class_<Condition>(
      module, "Condition",
      "The condition of an operation: classical bits, read as a number, must equal a value.\n\n"
      "Parameters\n----------\n"
      "clbits : sequence of int\n    Classical bits, the least significant first. Empty: no condition.\n"
      "value : int\n    Number to compare with.\n"
      "negated : bool\n    If True, the bits must not equal `value`.")
      .def(
          "__init__",
          [](Condition* self, std::vector<int> clbits, std::uint64_t value, bool negated) {
            new (self) Condition{std::move(clbits), value, negated};
          },
          "clbits"_a, "value"_a, "negated"_a = false)
      .def_prop_ro("clbits", tuple_of(&Condition::clbits), "Classical bits, the least significant first.")
      .def_ro("value", &Condition::value, "Number that the bits are compared with.")
      .def_ro("negated", &Condition::negated, "Whether the bits must not equal `value`.")
      .def("__bool__", [](const Condition& c) { return !c.clbits.empty(); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"));
  nb::class_<Register>(module, "Register",
                       "A named register: `size` consecutive classical bits, beginning with bit `first`.")
      .def(
          "__init__",
          [](Register* self, std::string name, int first, int size) {
            new (self) Register{std::move(name), first, size};
          },
          "name"_a, "first"_a, "size"_a)
      .def_ro("name", &Register::name, "Name of the register.")
      .def_ro("first", &Register::first, "Number of the first classical bit.")
      .def_ro("size", &Register::size, "Number of classical bits.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"));
}

void bind_operation(nb::module_& module) {
  nb::class_<Operation>(
      module, "Operation",
      "One operation of a circuit: a gate, a measurement, a reset, a barrier or an assignment.\n\n"
      "Parameters\n----------\n"
      "kind : str\n    matrix, diagonal, swap, pauli_rotation, global_phase, measure, reset, barrier or "
      "assign.\n"
      "name : str\n    Name in messages and noise models.\n"
      "targets : sequence of int\n    Target qubits. The first one is the least significant bit of the "
      "matrix's index.\n"
      "controls : sequence of int\n    Control qubits.\n"
      "control_values : int\n    Bit i is the value that controls[i] must have.\n"
      "values : array of complex128, optional\n    Numbers of a matrix (4^k, row-major) or of a diagonal "
      "(2^k) on k targets.\n"
      "paulis : str\n    Letters X, Y or Z of a Pauli rotation, one per target.\n"
      "angle : float\n    Angle of a Pauli rotation or a global phase in radians.\n"
      "clbits : sequence of int\n    Classical bits that the operation writes.\n"
      "condition : Condition\n    Condition under which the operation is executed.\n"
      "index : int\n    Number of a channel, of saved data or of a mark, in programs.\n\n"
      "Raises\n------\n"
      "BadInput\n    There is no such kind. `Circuit.validate` checks everything else.")
      .def("__init__", &make_operation,
           nb::sig(
               "def __init__(self, kind: str, name: str, targets: Sequence[int], *, controls: Sequence[int] = [], "
               "control_values: int = 0, values: NDArray[numpy.complex128] | None = None, paulis: str = '', "
               "angle: float = 0.0, clbits: Sequence[int] = [], condition: Condition = ..., index: int = 0) -> None"),
           "kind"_a, "name"_a, "targets"_a, "more"_a)
      .def_prop_ro(
          "kind", [](const Operation& o) { return kind_names[static_cast<std::size_t>(o.kind)]; },
          "Kind of the operation, such as \"matrix\" or \"measure\".")
      .def_rw("name", &Operation::name, "Name in messages and noise models.")
      .def_prop_rw("targets", tuple_of(&Operation::targets), setter_of(&Operation::targets), "Target qubits.")
      .def_prop_rw("controls", tuple_of(&Operation::controls), setter_of(&Operation::controls), "Control qubits.")
      .def_rw("control_values", &Operation::control_values, "Values of the controls: bit i belongs to controls[i].")
      .def_prop_ro("values", array_of(&Operation::values), nb::rv_policy::automatic,
                   "Copy of the numbers of a matrix (row-major) or of a diagonal.")
      .def_ro("paulis", &Operation::paulis, "Letters X, Y or Z of a Pauli rotation, one per target.")
      .def_ro("angle", &Operation::angle, "Angle of a Pauli rotation or a global phase in radians.")
      .def_prop_rw("clbits", tuple_of(&Operation::clbits), setter_of(&Operation::clbits),
                   "Classical bits that the operation writes.")
      .def_ro("index", &Operation::index, "Number of a channel, of saved data or of a mark, in programs.")
      .def_rw("condition", &Operation::condition, "Condition under which the operation is executed.")
      .def_prop_rw(
          "angles", [](const Operation& o) { return expressions(o.angles); },
          [](Operation& o, const std::vector<Terms>& angles) { o.angles = expressions(angles); },
          nb::for_getter(nb::sig("def angles(self) -> tuple[tuple[float, tuple[tuple[int, float], ...]], ...]")),
          "Angles of a gate that depends on parameters: a constant, and a factor for each index of a parameter. Empty "
          "without parameters.")
      .def_prop_ro("is_gate", &Operation::is_gate,
                   "Whether the operation is a gate: no measurement, reset, barrier or assignment.")
      .def_prop_ro(
          "is_diagonal", [](const Operation& o) { return onehop::quantum::is_diagonal(o); },
          "Whether the operation is a gate with a diagonal matrix.")
      .def(
          "matrix", [](const Operation& o) { return as_array(onehop::quantum::matrix_of(o)); },
          nb::rv_policy::automatic, "Return the matrix on the k targets, without controls: 4^k numbers, row-major.")
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"))
      .def("__repr__", [](const Operation& o) {
        return nb::str("<Operation: {} ({}) on {}>")
            .format(o.name, kind_names[static_cast<std::size_t>(o.kind)], as_tuple(o.targets));
      });
}

}  // namespace

void bind_quantum_circuit(nb::module_& module) {
  module.def(
      "kak_decomposition",
      [](const std::vector<Complex>& matrix) {
        const auto found = matrix.size() == 16 ? onehop::quantum::kak_decomposition(matrix) : std::nullopt;
        if (!found) throw onehop::BadInput("expected a unitary matrix of two qubits, found another one");
        return nb::make_tuple(nb::make_tuple(found->before[0], found->before[1]),
                              nb::make_tuple(found->after[0], found->after[1]),
                              nb::make_tuple(found->xx, found->yy, found->zz));
      },
      "matrix"_a,
      nb::sig("def kak_decomposition(matrix: Sequence[complex]) -> tuple[tuple[list[complex], list[complex]], "
              "tuple[list[complex], list[complex]], tuple[float, float, float]]"),
      "Decompose a unitary matrix of two qubits, row by row, as one-qubit gates before and after exp(i (a X X + b Y Y "
      "+ "
      "c Z Z)), those of the less significant qubit first. Raises BadInput for other matrices.");
  bind_parts(module);
  bind_operation(module);
  bind_gates_with_parameters(module);
  nb::class_<Circuit>(module, "Circuit",
                      "A quantum circuit as plain data; see `onehop.quantum.Circuit`, which adds a builder.\n\n"
                      "Parameters\n----------\n"
                      "qubits, clbits : int\n    Number of qubits and of classical bits.\n"
                      "name : str\n    Name in messages and reports.")
      .def(
          "__init__",
          [](Circuit* self, int qubits, int clbits, std::string name) {
            new (self) Circuit();
            self->qubits = qubits;
            self->clbits = clbits;
            self->name = std::move(name);
          },
          "qubits"_a, "clbits"_a = 0, "name"_a = "")
      .def_rw("name", &Circuit::name, "Name in messages and reports.")
      .def_ro("qubits", &Circuit::qubits, "Number of qubits.")
      .def_ro("clbits", &Circuit::clbits, "Number of classical bits.")
      .def_rw("hidden_clbits", &Circuit::hidden_clbits,
              "Number of further classical bits for intermediate results. They follow the others, and no outcome shows "
              "them.")
      .def_prop_rw("registers", tuple_of(&Circuit::registers), setter_of(&Circuit::registers),
                   "Named registers of classical bits, which separate the bits of an outcome.")
      .def_prop_ro("operations", tuple_of(&Circuit::operations), "Copies of the operations in program order.")
      .def(
          "operation",
          [](const Circuit& c, std::size_t i) {
            if (i < c.operations.size()) return c.operations[i];
            throw onehop::BadInput("expected the index of one of " +
                                   onehop::base::counted(c.operations.size(), "operation") + ", found " +
                                   std::to_string(i));
          },
          "index"_a, "Return a copy of the operation with this index.")
      .def(
          "add", [](Circuit& c, const Operation& o) { c.operations.push_back(o); }, "operation"_a,
          "Append a copy of an operation, without checking it.\n\n"
          "Angles that depend on parameters refer to them by index into `parameters` of this circuit, also in an "
          "operation of another circuit.")
      .def(
          "require_bound", [](const Circuit& circuit) { circuit.require_bound(); },
          "Raise BadInput that names an operation and its parameter if a gate depends on one.")
      .def_prop_rw("parameters", tuple_of(&Circuit::parameters), setter_of(&Circuit::parameters),
                   "Names of the parameters.")
      .def(
          "validate", [](const Circuit& circuit) { circuit.validate(); },
          "Check all operations. Raises BadInput, which names the first invalid operation.")
      .def("__len__", [](const Circuit& c) { return c.operations.size(); })
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object) -> bool"));
  module.def(
      "gate",
      [](const std::string& name, const std::vector<int>& qubits, const std::vector<double>& parameters) {
        return onehop::quantum::gate(name, qubits, parameters);
      },
      "name"_a, "qubits"_a, "parameters"_a = std::vector<double>(),
      "Make the operation of a named gate of OpenQASM 2 or 3.\n\n"
      "Parameters\n----------\n"
      "name : str\n    One of `gate_names`.\n"
      "qubits : sequence of int\n    Controls first, then targets.\n"
      "parameters : sequence of float\n    Angles in radians.\n\n"
      "Raises\n------\n"
      "BadInput\n    The name is unknown, or the number of qubits or parameters is wrong.");
  module.def(
      "gate_names",
      [] {
        nb::list names;
        for (const GateName& g : onehop::quantum::gate_names())
          names.append(nb::make_tuple(g.name, g.qubits, g.parameters));
        return names;
      },
      nb::sig("def gate_names() -> list[tuple[str, int, int]]"),
      "List the gates that `gate` knows: (name, number of qubits or -1 for any, number of parameters).");
}
