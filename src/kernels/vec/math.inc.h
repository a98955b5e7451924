// The functions of base/math.h in vectors: the same steps, the same bits. NaN goes through (max and min give back their
// second operand for it).

STOKER_INLINE Floats horner(Floats x, Floats sum) { return (void)x, sum; }
template <class... Rest>
STOKER_INLINE Floats horner(Floats x, Floats sum, float next, Rest... rest) {
  return horner(x, fma(sum, x, floats(next)), rest...);
}

STOKER_INLINE Floats exp(Floats x) {
  x = min(floats(88.0f), max(floats(-87.0f), x));
  const Floats k = round_even(mul(x, floats(1.44269504f)));
  Floats r = fma(k, floats(-0.693145752f), x);
  r = fma(k, floats(-1.42860677e-6f), r);
  const Floats p = horner(r, floats(0.00139262679f), 0.00836324692f, 0.0416665524f, 0.166665763f, 0.5f, 1.0f, 1.0f);
  return mul(p, power_of_2(k));
}

STOKER_INLINE Floats tanh(Floats x) {
  const Floats a = min(floats(10.0f), magnitude(x));
  const Floats z = mul(x, x);
  const Floats p =
      horner(z, floats(0.00229274482f), -0.00834394526f, 0.0217689183f, -0.0539592579f, 0.133333042f, -0.333333343f);
  const Floats small = fma(x, mul(z, p), x);
  const Floats large = sub(floats(1.0f), div(floats(2.0f), add(exp(add(a, a)), floats(1.0f))));
  return select_less(a, floats(0.625f), small, with_sign(large, x));
}

STOKER_INLINE Floats negate(Floats x) { return sub(floats(-0.0f), x); }

STOKER_INLINE Floats silu(Floats x) { return div(x, add(floats(1.0f), exp(negate(x)))); }

STOKER_INLINE Floats sigmoid(Floats x) { return div(floats(1.0f), add(floats(1.0f), exp(negate(x)))); }

STOKER_INLINE Floats softplus(Floats x) {
  const Floats y = exp(negate(magnitude(x)));
  const Floats s = div(y, add(floats(2.0f), y)), z = mul(s, s);
  const Floats p = horner(z, floats(2.0f / 13), 2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3);
  return add(max(floats(0.0f), x), fma(mul(s, z), p, add(s, s)));
}

STOKER_INLINE Floats gelu(Floats x) {
  const Floats u = mul(floats(0.797884561f), x);
  const Floats v = mul(u, fma(floats(0.044715f), mul(x, x), floats(1.0f)));
  return div(x, add(floats(1.0f), exp(negate(add(v, v)))));
}

STOKER_INLINE Floats gelu_erf(Floats x) {
  const Floats t = div(floats(1.0f), fma(floats(0.3f), magnitude(x), floats(1.0f)));
  const Floats p = horner(t, floats(0.0360367708f), -0.158715427f, 0.208967477f, -0.0560983196f, 0.129844591f,
                          0.0995227396f, 0.120816939f, 0.119625166f);
  const Floats q = mul(mul(t, p), exp(mul(floats(-0.5f), mul(x, x))));
  return mul(x, select_less(x, floats(0.0f), q, sub(floats(1.0f), q)));
}
