// The gates of qelib1.inc, hqslib1.inc and stdgates.inc.
#include <algorithm>

#include "quantum/language/gates/gates.h"

namespace onehop::quantum::language {
namespace {

constexpr std::string_view qelib1 =
    "u3 u2 u1 cx id u0 u p x y z h s sdg t tdg rx ry rz sx sxdg cz cy swap ch ccx cswap crx cry crz cu1 cp cu3 csx cu "
    "rxx rzz rccx rc3x c3x c3sqrtx c4x";
constexpr std::string_view stdgates =
    "p x y z h s sdg t tdg sx rx ry rz cx cy cz cp crx cry crz ch swap ccx cswap cu CX phase cphase id u1 u2 u3";
constexpr std::string_view always_2 =
    "U CX u0 u p sx sxdg swap cswap crx cry cp csx cu rxx rzz rccx rc3x c3x c3sqrtx c4x";
constexpr std::string_view always_3 = "U gphase";

// Those of hqslib1.inc beside gates of qelib1.inc.
constexpr std::string_view hqslib1 =
    "gate Rz(a) q { rz(a) q; }\n"
    "gate U1q(a, b) q { U(a, b - pi/2, pi/2 - b) q; }\n"
    "gate RZZ(a) q, r { rzz(a) q, r; }\n"
    "gate ZZ() q, r { rzz(pi/2) q, r; }\n"
    "gate RXX(a) q, r { rxx(a) q, r; }\n"
    "gate RYY(a) q, r { sdg q; sdg r; rxx(a) q, r; s q; s r; }\n"
    "gate Rxxyyzz(a, b, c) q, r { RXX(a) q, r; RYY(b) q, r; RZZ(c) q, r; }\n";

constexpr std::string_view braket_names =
    "x y z h s t sx sxdg sdg tdg id p rx ry rz cx CX cy cz ch cp csx ccx swap cswap iswap ecr rxx ryy rzz r";
constexpr std::string_view braket =
    "gate i a { id a; } gate si a { sdg a; } gate ti a { tdg a; } gate v a { sx a; } gate vi a { sxdg a; }\n"
    "gate phaseshift(t) a { p(t) a; } gate prx(t, f) a { r(t, f) a; }\n"
    "gate gpi(f) a { x a; rz(2 * f) a; } gate gpi2(f) a { r(pi / 2, f) a; }\n"
    "gate cnot a, b { cx a, b; } gate cv a, b { csx a, b; } gate ccnot a, b, c { ccx a, b, c; }\n"
    "gate cphaseshift(t) a, b { cp(t) a, b; } gate cphaseshift01(t) a, b { negctrl @ p(t) a, b; }\n"
    "gate cphaseshift10(t) a, b { negctrl @ p(t) b, a; } gate cphaseshift00(t) a, b { x b; negctrl @ p(t) a, b; x b; "
    "}\n"
    "gate xx(t) a, b { rxx(t) a, b; } gate yy(t) a, b { ryy(t) a, b; } gate zz(t) a, b { rzz(t) a, b; }\n"
    "gate xy(t) a, b { rxx(-t / 2) a, b; ryy(-t / 2) a, b; }\n"
    "gate pswap(t) a, b { swap a, b; rzz(t) a, b; gphase(t / 2); }\n"
    "gate ms(f, g, t) a, b { rz(-f) a; rz(-g) b; rxx(t) a, b; rz(f) a; rz(g) b; }\n";

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    found.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

}  // namespace

std::vector<std::string_view> library_gates(std::string_view file) {
  if (file == "qelib1.inc" || file == "hqslib1.inc") return words(qelib1);
  if (file == "braket") return words(braket_names);
  return file == "stdgates.inc" ? words(stdgates) : std::vector<std::string_view>();
}

std::vector<std::string_view> gates_without_include(int version) { return words(version == 2 ? always_2 : always_3); }

std::string_view library_text(std::string_view file) {
  return file == "hqslib1.inc" ? hqslib1 : file == "braket" ? braket : "";
}

}  // namespace onehop::quantum::language
