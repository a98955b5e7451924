// The element-wise functions. A rest that does not fill a vector goes through the same code with the other lanes zero.

STOKER_INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// y[i] = f(a[i], b[i]).
template <class F>
STOKER_INLINE void map(const float* a, const float* b, int64_t n, float* y, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store_floats(y + i, f(load_floats(a + i), load_floats(b + i)));
  if (i < n) store_part(y + i, f(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

STOKER_INLINE float sum_of(const float* x, int64_t n) {
  Floats lanes[16 / kWidth];
  STOKER_UNROLL for (Floats& lane : lanes) lane = floats(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    STOKER_UNROLL for (int j = 0; j < 16 / kWidth; ++j) lanes[j] = add(lanes[j], load_floats(x + i + j * kWidth));
  }
  STOKER_UNROLL for (int j = 0; j < 16 / kWidth; ++j) {
    lanes[j] = add(lanes[j], load_part(x + i + j * kWidth, n - i - j * kWidth));
  }
  return sum_lanes(lanes);
}

STOKER_INLINE float sum_of_squares(const float* x, int64_t n) {
  Floats lanes[16 / kWidth];
  STOKER_UNROLL for (Floats& lane : lanes) lane = floats(0.0f);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    STOKER_UNROLL for (int j = 0; j < 16 / kWidth; ++j) {
      const Floats v = load_floats(x + i + j * kWidth);
      lanes[j] = fma(v, v, lanes[j]);
    }
  }
  STOKER_UNROLL for (int j = 0; j < 16 / kWidth; ++j) {
    const Floats v = load_part(x + i + j * kWidth, n - i - j * kWidth);
    lanes[j] = fma(v, v, lanes[j]);
  }
  return sum_lanes(lanes);
}

// A whole vector, or the first n lanes: partial stores are slow on some CPUs.
STOKER_INLINE Floats load_first(const float* p, int64_t n) { return n >= kWidth ? load_floats(p) : load_part(p, n); }
STOKER_INLINE void store_first(float* p, Floats v, int64_t n) {
  if (n >= kWidth) {
    store_floats(p, v);
  } else {
    store_part(p, v, n);
  }
}

/// Turns the pairs (x0[i], x1[i]) by the angles of c and s.
STOKER_INLINE void rotate_halves(float* x0, float* x1, Floats c, Floats s, int64_t n) {
  const Floats a = load_first(x0, n), b = load_first(x1, n);
  store_first(x0, fma_minus(a, c, mul(b, s)), n);
  store_first(x1, fma(a, s, mul(b, c)), n);
}

/// Even lanes of x: x0 c - x1 s, odd lanes: x0 s + x1 c; cs holds c s c s ...
STOKER_INLINE Floats rotate_pairs(Floats x, Floats cs) {
  return fma_minus_plus(copy_even(x), cs, mul(copy_odd(x), swap_pairs(cs)));
}
