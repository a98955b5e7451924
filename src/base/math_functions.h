#pragma once

// The definition of base/math.h. Included by files that are built for different instruction sets, so everything here
// has internal linkage and calls no inline function of another header: such a copy, built with FMA, could be the one
// that the linker keeps for all.

#include <cstdint>
#include <cstring>

#include "base/math.h"

namespace stoker::math {

struct Functions {
  float (*exp_f32)(float);
  float (*tanh_f32)(float);
  float (*silu_f32)(float);
  float (*gelu_f32)(float);
  float (*gelu_erf_f32)(float);
  float (*softplus_f32)(float);
  double (*exp)(double);
  double (*log)(double);
  double (*pow)(double, double);
  SinCos (*sincos)(double);
};

/// The fastest copy for this CPU, chosen once. All give the same bits: fma is exactly rounded, in hardware or not.
const Functions& functions();
/// The copy for the target's own instruction set; on x86-64 that means libm's fma.
const Functions& plain_functions();
/// The copy with FMA instructions, on x86-64 only.
const Functions& fma_functions();

namespace {

inline float fma_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }

inline uint32_t bits_of(float x) {
  uint32_t out;
  std::memcpy(&out, &x, sizeof out);
  return out;
}
inline uint64_t bits_of(double x) {
  uint64_t out;
  std::memcpy(&out, &x, sizeof out);
  return out;
}
inline float float_of(uint32_t bits) {
  float out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}
inline double double_of(uint64_t bits) {
  double out;
  std::memcpy(&out, &bits, sizeof out);
  return out;
}

/// Nearest integer, ties to even, by adding and taking away a number whose ulp is 1: |x| < 2^22, 2^51.
inline float round_even(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
inline double round_even(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

inline float power_of_2_f32(int k) { return float_of(static_cast<uint32_t>(k + 127) << 23); }
inline double power_of_2(int k) { return double_of(static_cast<uint64_t>(k + 1023) << 52); }

/// c[0] + c[1] x + ... + c[N - 1] x^(N - 1), highest first.
template <class T, int N>
inline T horner(T x, const T (&c)[N]) {
  T sum = c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = fma_(sum, x, c[i]);
  return sum;
}

// ---- f32

// Cody-Waite: ln 2 in two parts, the first with few enough bits that k * part is exact. The polynomial is an own
// Chebyshev fit on [-ln2 / 2, ln2 / 2], relative error 1e-8.
inline float exp_f32_impl(float x) {
  static constexpr float kCoefficients[] = {1.f,           1.f, 0.5f, 0.166665763f, 0.0416665524f, 0.00836324692f,
                                            0.00139262679f};
  x = x > -87.f ? x : -87.f;
  x = x < 88.f ? x : 88.f;
  const float k = round_even(x * 1.44269504f);
  float r = fma_(k, -0.693145752f, x);
  r = fma_(k, -1.42860677e-6f, r);
  return horner(r, kCoefficients) * power_of_2_f32(static_cast<int>(k));
}

// Near zero an odd polynomial (own Chebyshev interpolation): 1 - 2 / (exp(2x) + 1) cancels there.
inline float tanh_f32_impl(float x) {
  static constexpr float kCoefficients[] = {-0.333333343f, 0.133333042f,    -0.0539592579f,
                                            0.0217689183f, -0.00834394526f, 0.00229274482f};
  float a = __builtin_fabsf(x);
  a = a < 10.f ? a : 10.f;
  if (a < 0.625f) {
    const float z = x * x;
    return fma_(x, z * horner(z, kCoefficients), x);
  }
  return __builtin_copysignf(1.f - 2.f / (exp_f32_impl(a + a) + 1.f), x);
}

inline float silu_f32_impl(float x) { return x / (1.f + exp_f32_impl(-x)); }

// x / (1 + exp(-2v)) instead of x / 2 (1 + tanh v): the same, without cancellation for negative x.
inline float gelu_f32_impl(float x) {
  const float u = 0.797884561f * x;  // sqrt(2 / pi) x
  const float v = u * fma_(0.044715f, x * x, 1.f);
  return x / (1.f + exp_f32_impl(-(v + v)));
}

// The integral from |x| on is t exp(-x^2 / 2) times a polynomial of t = 1 / (1 + 0.3 |x|), an own fit with a relative
// error of 1.2e-7; where x is positive it is taken from 1.
inline float gelu_erf_f32_impl(float x) {
  static constexpr float kCoefficients[] = {0.119625166f,   0.120816939f, 0.0995227396f, 0.129844591f,
                                            -0.0560983196f, 0.208967477f, -0.158715427f, 0.0360367708f};
  const float t = 1.f / fma_(0.3f, __builtin_fabsf(x), 1.f);
  const float q = t * horner(t, kCoefficients) * exp_f32_impl(-0.5f * (x * x));
  return x * (x < 0.f ? q : 1.f - q);
}

// max(x, 0) + log(1 + y) with y = exp(-|x|) up to 1: 2 artanh(y / (2 + y)), whose series is short up to 1/3.
inline float softplus_f32_impl(float x) {
  static constexpr float kCoefficients[] = {2.f / 3, 2.f / 5, 2.f / 7, 2.f / 9, 2.f / 11, 2.f / 13};
  const float y = exp_f32_impl(-__builtin_fabsf(x));
  const float s = y / (2.f + y), z = s * s;
  return (x > 0.f ? x : 0.f) + fma_(s * z, horner(z, kCoefficients), s + s);
}

// ---- double: the coefficients are those of the Taylor series, the constants splits of pi / 2 and ln 2.

constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kInfinity = __builtin_inf(), kNaN = __builtin_nan("");

/// exp(x + x_low), |x_low| tiny.
inline double exp_impl(double x, double x_low) {
  // (e^r - 1 - r) / r^2
  static constexpr double kCoefficients[] = {0.5,           1.0 / 6,        1.0 / 24,        1.0 / 120,
                                             1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                             1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  if (x != x) return x;
  if (x < -708) return 0;
  if (x > 709.78) return kInfinity;
  const double k = round_even(x * 0x1.71547652b82fep+0);
  const double r = fma_(k, -kLn2Low, fma_(k, -kLn2High, x)) + x_low;
  const double e = fma_(r * r, horner(r, kCoefficients), r) + 1.0;
  // 2^1024 does not exist, e * 2^1023 * 2 does.
  const int exponent = static_cast<int>(k);
  return exponent > 1023 ? e * power_of_2(1023) * 2 : e * power_of_2(exponent);
}
inline double exp_impl_1(double x) { return exp_impl(x, 0); }

struct Sum {
  double high, low;
};

/// log(x) as an unevaluated sum; x positive and finite.
inline Sum log_parts(double x) {
  // 1/3, 1/5 ... of log((1 + s) / (1 - s)) = 2 (s + s^3/3 + s^5/5 + ...)
  static constexpr double kCoefficients[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                             1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  int exponent = -1023;
  if (x < 0x1p-1022) {  // denormal
    x *= 0x1p54;
    exponent -= 54;
  }
  const uint64_t bits = bits_of(x);
  exponent += static_cast<int>(bits >> 52);
  double m = double_of((bits & 0xfffffffffffffull) | 0x3ff0000000000000ull);
  if (m > 0x1.6a09e667f3bcdp+0) {  // sqrt 2
    m *= 0.5;
    ++exponent;
  }
  // s = f / (2 + f) with its rounding error s_low.
  const double f = m - 1.0, d = 2.0 + f, d_low = f - (d - 2.0);
  const double s = f / d, rest = fma_(-s, d, f), s_low = (rest - s * d_low) / d;
  const double z = s * s;
  const double a = exponent * kLn2High, b = 2 * s;
  const double sum = a + b, v = sum - a;
  double low = (a - (sum - v)) + (b - v);
  low += fma_(static_cast<double>(exponent), kLn2Low, 2 * s_low + b * z * horner(z, kCoefficients));
  const double high = sum + low;
  return {high, low - (high - sum)};
}

inline double log_impl(double x) {
  if (x > 0 && x < kInfinity) {
    const Sum parts = log_parts(x);
    return parts.high + parts.low;
  }
  return x == 0 ? -kInfinity : x > 0 ? x : kNaN;
}

inline double pow_impl(double base, double y) {
  if (y == 0 || base == 1) return 1;
  if (base > 0 && base < kInfinity && y - y == 0) {
    const Sum parts = log_parts(base);
    const double p = y * parts.high;
    return exp_impl(p, p - p == 0 ? fma_(y, parts.high, -p) + y * parts.low : 0);
  }
  if (!(base >= 0) || y != y) return kNaN;
  if (base == 0 || base == kInfinity) return (base == 0) == (y > 0) ? 0 : kInfinity;
  return (base > 1) == (y > 0) ? kInfinity : 0;  // y is infinite
}

inline SinCos sincos_impl(double x) {
  static constexpr double kSin[] = {-1.0 / 6,
                                    1.0 / 120,
                                    -1.0 / 5040,
                                    1.0 / 362880,
                                    -1.0 / 39916800,
                                    1.0 / 6227020800.0,
                                    -1.0 / 1307674368000.0,
                                    1.0 / 355687428096000.0};
  static constexpr double kCos[] = {1.0 / 24,
                                    -1.0 / 720,
                                    1.0 / 40320,
                                    -1.0 / 3628800,
                                    1.0 / 479001600,
                                    -1.0 / 87178291200.0,
                                    1.0 / 20922789888000.0,
                                    -1.0 / 6402373705728000.0};
  // x - k pi/2 = r + r_low, pi/2 in 33 + 32 + 53 bits: k has at most 21, so k times the second is exact. From 2^22 on
  // results near zero lose all their digits.
  if (!(x <= 0x1p21 && x >= -0x1p21)) return {kNaN, kNaN};
  const double k = round_even(x * 0x1.45f306dc9c883p-1);
  const double head = fma_(k, -0x1.921fb544p+0, x);
  const double t = fma_(k, -0x1.0b4611a6p-34, head), t_low = fma_(k, -0x1.0b4611a6p-34, head - t);
  const double w = fma_(k, -0x1.3198a2e037073p-69, t_low);
  const double r = t + w, r_low = (t - r) + w;
  const double z = r * r;
  const double s = r + fma_(r * z, horner(z, kSin), r_low);
  const double half_z = 0.5 * z, one_less = 1.0 - half_z;
  const double c = one_less + (((1.0 - one_less) - half_z) + fma_(z * z, horner(z, kCos), -(r * r_low)));
  switch (static_cast<int64_t>(k) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

constexpr Functions kFunctions = {exp_f32_impl,      tanh_f32_impl, silu_f32_impl, gelu_f32_impl, gelu_erf_f32_impl,
                                  softplus_f32_impl, exp_impl_1,    log_impl,      pow_impl,      sincos_impl};

}  // namespace
}  // namespace stoker::math
