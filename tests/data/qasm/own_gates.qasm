// Gates of its own, one of them under a name that libraries know, parameters with arithmetic, whole registers.
OPENQASM 2.0;
include "qelib1.inc";
gate mine(t, s) a, b, c { rx(t/2) a; cu3(s, -t, pi/3) a, b; barrier a, b; cswap c, a, b; rccx a, b, c; }
gate ecr a, b { h a; cz a, b; }
qreg a[2];
qreg b[3];
creg m[5];
h a;
u2(0, pi/5) b;
mine(sin(0.4)^2, -ln(2)) a[0], b[1], b[2];
ecr a[1], b[0];
cx a[0], b;
rzz(0.3) b[0], b[2];
rxx(1.1) a[0], b[1];
c3sqrtx a[0], a[1], b[0], b[1];
c4x a[0], a[1], b[0], b[1], b[2];
u0(1) a[0];
