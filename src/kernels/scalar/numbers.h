// The arithmetic that the scalar kernels share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "base/math.h"

namespace stoker::kernels::scalar {

inline constexpr uint32_t kInfinityBits = 0x7f800000u;

inline bool is_finite(float x) { return (std::bit_cast<uint32_t>(x) & 0x7fffffffu) < kInfinityBits; }

/// Correctly rounded. Not std::sqrt: compilers call libm for it, if only to set errno.
inline float square_root(float x) {
#if defined(__SSE__)
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#elif defined(__aarch64__)
  float y;
  asm("fsqrt %s0, %s1" : "=w"(y) : "w"(x));
  return y;
#else
  return std::sqrt(x);
#endif
}

/// Nearest integer, ties to even, for |x| < 2^22: there the sum has an ulp of 1.
inline float round_even(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
inline int round_to_int(float x) { return static_cast<int>(round_even(x)); }

/// Sums the 16 lanes pairwise: i and i + 8, then + 4, + 2, + 1.
inline float sum_lanes(float (&lanes)[16]) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// The functions of base/math.h, but NaN goes through: otherwise a row of activations that failed would give a softmax
// that looks right.
inline float exp(float x) { return x != x ? x : math::exp_f32(x); }
inline float tanh(float x) { return x != x ? x : math::tanh_f32(x); }
inline float silu(float x) { return math::silu_f32(x); }
inline float softplus(float x) { return x != x ? x : math::softplus_f32(x); }
inline float gelu(float x) { return math::gelu_f32(x); }
inline float gelu_erf(float x) { return math::gelu_erf_f32(x); }

}  // namespace stoker::kernels::scalar
