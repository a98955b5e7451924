// What layers with a state of fixed size do with it (docs/kernels.md#recurrence). Lanes are channels and columns of the
// state, so each lane does what the scalar code does.

/// One vector of channels.
template <int kTaps>
STOKER_INLINE void convolve_channels(const ConvolveArgs& a, int64_t channel) {
  const int64_t left = a.n_channels - channel;
  Floats w[kTaps], before[kTaps];
  STOKER_UNROLL for (int j = 0; j < kTaps; ++j) w[j] = load_first(a.w + j * a.w_stride + channel, left);
  STOKER_UNROLL for (int j = 0; j < kTaps - 1; ++j) {
    before[j] = a.from ? load_first(a.from + j * a.state_stride + channel, left) : floats(0.0f);
  }
  const Floats bias = a.bias ? load_first(a.bias + channel, left) : floats(0.0f);
  for (int64_t t = 0; t < a.n; ++t) {
    float* x = a.x + t * a.stride + channel;
    before[kTaps - 1] = load_first(x, left);
    Floats y = bias;
    STOKER_UNROLL for (int j = 0; j < kTaps; ++j) y = fma(w[j], before[j], y);
    STOKER_UNROLL for (int j = 0; j < kTaps - 1; ++j) before[j] = before[j + 1];
    store_first(x, a.silu ? silu(y) : y, left);
  }
  STOKER_UNROLL for (int j = 0; j < kTaps - 1; ++j) store_first(a.to + j * a.state_stride + channel, before[j], left);
}

template <int kTaps>
STOKER_INLINE void convolve_all(const ConvolveArgs& a) {
  for (int64_t channel = 0; channel < a.n_channels; channel += kWidth) convolve_channels<kTaps>(a, channel);
}

/// kVectors vectors of a row of the state, which lies in columns of 16.
template <int kVectors>
struct StateColumns {
  const float* from;
  float* to;
  int64_t column_floats;  ///< From one column of 16 to the next.
  static constexpr int kPerColumn = 16 / kWidth;
  STOKER_INLINE int64_t at(int64_t row, int j) const {
    return j / kPerColumn * column_floats + row * 16 + j % kPerColumn * kWidth;
  }
};

/// sums[j] += x * S over a row.
template <int kVectors>
STOKER_INLINE void add_row(const StateColumns<kVectors>& s, int64_t row, float x, Floats (&sums)[kVectors]) {
  STOKER_UNROLL for (int j = 0; j < kVectors; ++j) {
    sums[j] = fma(floats(x), load_floats(s.from + s.at(row, j)), sums[j]);
  }
}

template <int kVectors>
STOKER_INLINE void update_row(const StateColumns<kVectors>& s, const RecurArgs& a, int64_t i, int64_t row,
                              const Floats (&e)[kVectors], Floats (&sums)[kVectors]) {
  const Floats g = floats(a.g[i]), k = floats(a.k[i]), q = floats(a.q[i]);
  STOKER_UNROLL for (int j = 0; j < kVectors; ++j) {
    const Floats x = fma(k, e[j], mul(g, load_floats(s.from + s.at(row, j))));
    store_floats(s.to + s.at(row, j), x);
    sums[j] = fma(q, x, sums[j]);
  }
}

/// One token; rows of even and of odd number are summed by themselves.
template <int kVectors>
STOKER_INLINE void recur_token(const RecurArgs& a, const StateColumns<kVectors>& s, int64_t t, int64_t column) {
  const int64_t first = t * a.k_dim;
  Floats even[kVectors], odd[kVectors], e[kVectors];
  STOKER_UNROLL for (int j = 0; j < kVectors; ++j) even[j] = odd[j] = floats(0.0f);
  if (a.delta) {
    int64_t row = 0;
    for (; row + 1 < a.k_dim; row += 2) {
      add_row(s, row, a.w[first + row], even);
      add_row(s, row + 1, a.w[first + row + 1], odd);
    }
    if (row < a.k_dim) add_row(s, row, a.w[first + row], even);
  }
  const float* v = a.v + t * a.v_stride + column;
  const Floats beta = floats(a.beta[t]);
  STOKER_UNROLL for (int j = 0; j < kVectors; ++j) {
    const Floats x = load_floats(v + j * kWidth);
    e[j] = mul(beta, a.delta ? sub(x, add(even[j], odd[j])) : x);
    even[j] = odd[j] = floats(0.0f);
  }
  int64_t row = 0;
  for (; row + 1 < a.k_dim; row += 2) {
    update_row(s, a, first + row, row, e, even);
    update_row(s, a, first + row + 1, row + 1, e, odd);
  }
  if (row < a.k_dim) update_row(s, a, first + row, row, e, even);
  float* out = a.out + t * a.out_stride + column;
  STOKER_UNROLL for (int j = 0; j < kVectors; ++j) store_floats(out + j * kWidth, add(even[j], odd[j]));
}

template <int kVectors>
STOKER_INLINE void recur_columns(const RecurArgs& a, int64_t column) {
  const int64_t column_floats = a.k_dim * 16, at = column / 16 * column_floats;
  const int64_t n = kVectors * kWidth / 16 * column_floats;
  if (!a.from) {
    for (int64_t i = 0; i < n; i += kWidth) store_floats(a.to + at + i, floats(0.0f));
  }
  recur_token<kVectors>(a, {(a.from ? a.from : a.to) + at, a.to + at, column_floats}, 0, column);
  for (int64_t t = 1; t < a.n; ++t) recur_token<kVectors>(a, {a.to + at, a.to + at, column_floats}, t, column);
}
