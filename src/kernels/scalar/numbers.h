// The arithmetic that the scalar kernels share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

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

inline float exp(float x) {
  if (x != x) return x;
  x = x > -87.0f ? x : -87.0f;
  x = x < 88.0f ? x : 88.0f;
  const float k = round_even(x * 1.44269504f);
  float r = std::fma(k, -0.693145752f, x);
  r = std::fma(k, -1.42860677e-6f, r);
  float p = 0.00139262679f;
  for (float c : {0.00836324692f, 0.0416665524f, 0.166665763f, 0.5f, 1.0f, 1.0f}) p = std::fma(p, r, c);
  return p * std::bit_cast<float>(static_cast<uint32_t>(static_cast<int>(k) + 127) << 23);
}

inline float tanh(float x) {
  if (x != x) return x;
  const float magnitude = std::fabs(x);
  if (magnitude < 0.625f) {
    const float z = x * x;
    float p = 0.00229274482f;
    for (float c : {-0.00834394526f, 0.0217689183f, -0.0539592579f, 0.133333042f, -0.333333343f}) p = std::fma(p, z, c);
    return std::fma(x, z * p, x);
  }
  const float a = magnitude < 10.0f ? magnitude : 10.0f;
  return std::copysign(1.0f - 2.0f / (exp(a + a) + 1.0f), x);
}

inline float silu(float x) { return x / (1.0f + exp(-x)); }

inline float gelu(float x) {
  const float v = 0.797884561f * x * std::fma(0.044715f, x * x, 1.0f);
  return x / (1.0f + exp(-(v + v)));
}

}  // namespace stoker::kernels::scalar
