// OpenQASM 3: modifiers, a loop, conditions, aliases.
OPENQASM 3.0;
include "stdgates.inc";
qubit[4] q;
bit[2] c;
let low = q[0:1];
gate half(t) a { U(t/2, 0, 0) a; gphase(t/4); }
h low;
for uint k in [1:3] { rx(k * 0.2) q[3]; ry(0.1) q[0]; }
ctrl @ half(0.8) q[0], q[2];
negctrl @ inv @ s q[1], q[3];
ctrl(2) @ pow(0.5) @ x q[0], q[1], q[3];
c = measure low;
if (c == 2) { x q[3]; h q[2]; } else { y q[2]; }
c[0] = measure q[3];
