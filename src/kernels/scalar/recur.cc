// Convolution and recurrence, as docs/kernels.md#recurrence defines them.
#include <algorithm>

#include "kernels/scalar/exact_fma.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/numbers.h"

namespace stoker::kernels::scalar {

void convolve(const ConvolveArgs& a) noexcept {
  constexpr int kMostTaps = 4;
  for (int64_t c = 0; c < a.n_channels; ++c) {
    float before[kMostTaps] = {};
    for (int j = 0; j < a.taps - 1; ++j) before[j] = a.from ? a.from[j * a.state_stride + c] : 0.0f;
    for (int64_t t = 0; t < a.n; ++t) {
      float* x = a.x + t * a.stride + c;
      before[a.taps - 1] = *x;
      float y = a.bias ? a.bias[c] : 0.0f;
      for (int j = 0; j < a.taps; ++j) y = exact_fma(a.w[j * a.w_stride + c], before[j], y);
      for (int j = 0; j < a.taps - 1; ++j) before[j] = before[j + 1];
      *x = a.silu ? silu(y) : y;
    }
    for (int j = 0; j < a.taps - 1; ++j) a.to[j * a.state_stride + c] = before[j];
  }
}

namespace {

constexpr int kLanes = 16;

/// One token of one column of 16.
void recur_token(const RecurArgs& a, const float* from, float* to, int64_t t, int64_t column) noexcept {
  const float *w = a.w + t * a.k_dim, *k = a.k + t * a.k_dim, *q = a.q + t * a.k_dim, *g = a.g + t * a.k_dim;
  float sums[2][kLanes] = {}, e[kLanes];
  for (int64_t row = 0; a.delta && row < a.k_dim; ++row) {
    exact_fma_lanes<kLanes>(from + row * kLanes, w[row], sums[row % 2]);
  }
  for (int i = 0; i < kLanes; ++i) {
    const float v = a.v[t * a.v_stride + column + i];
    e[i] = a.beta[t] * (a.delta ? v - (sums[0][i] + sums[1][i]) : v);
    sums[0][i] = sums[1][i] = 0.0f;
  }
  for (int64_t row = 0; row < a.k_dim; ++row) {
    float* s = to + row * kLanes;
    for (int i = 0; i < kLanes; ++i) s[i] = g[row] * from[row * kLanes + i];
    exact_fma_lanes<kLanes>(e, k[row], s);
    exact_fma_lanes<kLanes>(s, q[row], sums[row % 2]);
  }
  for (int i = 0; i < kLanes; ++i) a.out[t * a.out_stride + column + i] = sums[0][i] + sums[1][i];
}

}  // namespace

void recur(const RecurArgs& a) noexcept {
  for (int64_t column = 0; column < a.v_dim; column += kLanes) {
    float* to = a.to + column * a.k_dim;
    const float* from = a.from ? a.from + column * a.k_dim : to;
    if (!a.from) std::fill_n(to, a.k_dim * kLanes, 0.0f);
    recur_token(a, from, to, 0, column);
    for (int64_t t = 1; t < a.n; ++t) recur_token(a, to, to, t, column);
  }
}

}  // namespace stoker::kernels::scalar
