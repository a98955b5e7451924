// The element-wise functions, as docs/kernels.md defines them.
#include <cmath>
#include <limits>

#include "kernels/scalar/exact_fma.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/numbers.h"

namespace stoker::kernels::scalar {

void rms_norm(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept {
  float lanes[16] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  const float mean = sum_lanes(lanes) / static_cast<float>(n);
  const float r = 1.0f / square_root(mean + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = gain ? x[i] * r * gain[i] : x[i] * r;
}

float sum(const float* x, int64_t n) noexcept {
  float lanes[16] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % 16] += x[i];
  return sum_lanes(lanes);
}

void layer_norm(const float* x, const float* gain, float eps, int64_t n, float* y) noexcept {
  const float mean = sum(x, n) / static_cast<float>(n);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - mean;
  rms_norm(y, gain, eps, n, y);
}

void add(const float* x, const float* b, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + b[i];
}

void mul(const float* x, const float* b, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * b[i];
}

void scale(const float* x, float s, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * s;
}

void silu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = silu(gate[i]) * up[i];
}

void gelu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu(gate[i]) * up[i];
}

void gelu(const float* x, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu(x[i]);
}

void gelu_erf_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu_erf(gate[i]) * up[i];
}

void gelu_erf(const float* x, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = gelu_erf(x[i]);
}

void relu_squared(const float* x, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    const float positive = 0.0f > x[i] ? 0.0f : x[i];  // A value that is not a number goes through.
    y[i] = positive * positive;
  }
}

void xielu(const float* x, const Xielu& p, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    if (v > 0.0f) {
      y[i] = v * exact_fma(p.alpha_p, v, p.beta);
    } else {
      const float e = exp(p.eps < v ? p.eps : v) - 1.0f;
      y[i] = exact_fma(p.alpha_n, e - v, p.beta * v);
    }
  }
}

void clamped_silu_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) {
    // A value that is not a number is not smaller than the bounds and goes through.
    const float g = 7.0f < gate[i] ? 7.0f : gate[i];
    float u = 7.0f < up[i] ? 7.0f : up[i];
    u = -7.0f > u ? -7.0f : u;
    y[i] = g / (1.0f + exp(-(1.702f * g))) * (u + 1.0f);
  }
}

void sigmoid(const float* x, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = 1.0f / (1.0f + exp(-x[i]));
}

void sigmoid_mul(const float* gate, const float* up, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = up[i] / (1.0f + exp(-gate[i]));
}

void softplus(const float* x, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = softplus(x[i]);
}

void exp_mul(const float* x, const float* a, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = exp(x[i] * a[i]);
}

void add_scaled(float a, const float* x, int64_t n, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = exact_fma(a, x[i], y[i]);
}

void softcap(float* x, float cap, int64_t n) noexcept {
  const float inverse = 1.0f / cap;
  for (int64_t i = 0; i < n; ++i) x[i] = cap * tanh(x[i] * inverse);
}

namespace {

void rotate(float& x0, float& x1, float c, float s) {
  const float y0 = std::fma(x0, c, -(x1 * s));
  const float y1 = std::fma(x0, s, x1 * c);
  x0 = y0;
  x1 = y1;
}

}  // namespace

void rope_interleaved(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept {
  for (int64_t i = 0; i < n_pairs; ++i) rotate(x[2 * i], x[2 * i + 1], cos[i], sin[i]);
}

void rope_halves(float* x, const float* cos, const float* sin, int64_t n_pairs) noexcept {
  for (int64_t i = 0; i < n_pairs; ++i) rotate(x[i], x[i + n_pairs], cos[i], sin[i]);
}

bool all_finite(const float* x, int64_t n) noexcept {
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) finite &= is_finite(x[i]);
  return finite;
}

int64_t argmax(const float* x, int64_t n) noexcept {
  float best = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < n; ++i) best = x[i] > best ? x[i] : best;
  for (int64_t i = 0; i < n; ++i) {
    if (x[i] == best) return i;
  }
  return 0;  // Nothing but NaN.
}

}  // namespace stoker::kernels::scalar
