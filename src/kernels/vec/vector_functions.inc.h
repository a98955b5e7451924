// The functions of table.h on top of vec/vector.inc.h.

void rms_norm(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  const Floats r = floats(1.0f / square_root(mean + eps));
  if (gain == nullptr) {
    map(x, x, n, y, [r](Floats v, Floats) { return mul(v, r); });
  } else {
    map(x, gain, n, y, [r](Floats v, Floats g) { return mul(mul(v, r), g); });
  }
}

void layer_norm(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept {
  const Floats mean = floats(sum_of(x, n) / static_cast<float>(n));
  map(x, x, n, y, [mean](Floats v, Floats) { return sub(v, mean); });
  rms_norm(y, gain, eps, n, y);
}

float sum(const float* x, int64_t n) noexcept { return sum_of(x, n); }

void add(const float* x, const float* b, int64_t n, float* y) noexcept {
  map(x, b, n, y, [](Floats v, Floats w) { return add(v, w); });
}

void mul(const float* x, const float* b, int64_t n, float* y) noexcept {
  map(x, b, n, y, [](Floats v, Floats w) { return mul(v, w); });
}

void scale(const float* x, float s, int64_t n, float* y) noexcept {
  map(x, x, n, y, [s](Floats v, Floats) { return mul(v, floats(s)); });
}

void silu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  map(gate, up, n, y, [](Floats g, Floats u) { return mul(silu(g), u); });
}

void gelu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  map(gate, up, n, y, [](Floats g, Floats u) { return mul(gelu(g), u); });
}

void gelu(const float* x, int64_t n, float* y) noexcept {
  map(x, x, n, y, [](Floats v, Floats) { return gelu(v); });
}

void gelu_erf_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  map(gate, up, n, y, [](Floats g, Floats u) { return mul(gelu_erf(g), u); });
}

void gelu_erf(const float* x, int64_t n, float* y) noexcept {
  map(x, x, n, y, [](Floats v, Floats) { return gelu_erf(v); });
}

void relu_squared(const float* x, int64_t n, float* y) noexcept {
  map(x, x, n, y, [](Floats v, Floats) {
    v = max(floats(0.0f), v);
    return mul(v, v);
  });
}

void xielu(const float* x, const Xielu& p, int64_t n, float* y) noexcept {
  map(x, x, n, y, [&p](Floats v, Floats) {
    const Floats beta = floats(p.beta);
    const Floats above = mul(v, fma(floats(p.alpha_p), v, beta));
    const Floats e = sub(exp(min(floats(p.eps), v)), floats(1.0f));
    return select_less(floats(0.0f), v, above, fma(floats(p.alpha_n), sub(e, v), mul(beta, v)));
  });
}

void clamped_silu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  map(gate, up, n, y, [](Floats g, Floats u) {
    g = min(floats(7.0f), g);
    u = max(floats(-7.0f), min(floats(7.0f), u));
    const Floats swish = div(g, add(floats(1.0f), exp(negate(mul(floats(1.702f), g)))));
    return mul(swish, add(u, floats(1.0f)));
  });
}

void sigmoid(const float* x, int64_t n, float* y) noexcept {
  map(x, x, n, y, [](Floats v, Floats) { return sigmoid(v); });
}

void sigmoid_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  map(gate, up, n, y, [](Floats g, Floats u) { return div(u, add(floats(1.0f), exp(negate(g)))); });
}

void softplus(const float* x, int64_t n, float* y) noexcept {
  map(x, x, n, y, [](Floats v, Floats) { return softplus(v); });
}

void exp_mul(const float* x, const float* a, int64_t n, float* y) noexcept {
  map(x, a, n, y, [](Floats v, Floats w) { return exp(mul(v, w)); });
}

void add_scaled(float a, const float* x, int64_t n, float* y) noexcept {
  map(x, y, n, y, [a](Floats v, Floats w) { return fma(floats(a), v, w); });
}

void softcap(float* x, float cap, int64_t n) noexcept {
  const float inverse = 1.0f / cap;
  map(x, x, n, x, [=](Floats v, Floats) { return mul(floats(cap), tanh(mul(v, floats(inverse)))); });
}

void rope_interleaved(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept {
  for (int64_t i = 0; i < n_pairs; i += kWidth) {
    const int64_t left = n_pairs - i, n_values = 2 * left;
    const Floats c = load_first(cos + i, left), s = load_first(sin + i, left);
    float* low = x + 2 * i;
    store_first(low, rotate_pairs(load_first(low, n_values), interleave_low(c, s)), n_values);
    if (n_values <= kWidth) break;
    float* high = low + kWidth;
    store_first(high, rotate_pairs(load_first(high, n_values - kWidth), interleave_high(c, s)), n_values - kWidth);
  }
}

void rope_halves(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept {
  for (int64_t i = 0; i < n_pairs; i += kWidth) {
    const int64_t left = n_pairs - i;
    rotate_halves(x + i, x + n_pairs + i, load_first(cos + i, left), load_first(sin + i, left), left);
  }
}

bool all_finite(const float* x, int64_t n) noexcept {
  Ints top = ints(0);
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) top = max_unsigned(top, to_bits(magnitude(load_floats(x + i))));
  top = max_unsigned(top, to_bits(magnitude(load_part(x + i, n - i))));
  return max_unsigned_lane(top) < 0x7f800000u;
}

int64_t argmax(const float* x, int64_t n) noexcept {
  const Floats lowest = floats(-__builtin_inff());
  Floats top = lowest;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) top = max(load_floats(x + i), top);
  const int rest = static_cast<int>(n - i);
  top = max(keep_lanes(load_part(x + i, rest), 0, rest, lowest), top);
  const Floats best = floats(max_lane(top));
  for (i = 0; i < n; i += kWidth) {
    const int count = static_cast<int>(smaller(n - i, kWidth));
    const uint32_t hits = equal_lanes(load_first(x + i, count), best) & ((1u << count) - 1u);
    if (hits != 0) return i + __builtin_ctz(hits);
  }
  return 0;  // Nothing but NaN.
}
