#pragma once

/// Elementary functions whose bits are the same on every machine: only + - * /, fma and comparisons, in a fixed order.
/// libm's differ between versions and processors. The errors given are in units in the last place (ulp); those of f32
/// are the largest found: every float where the error peaks, every seventh elsewhere (math_test).
namespace stoker::math {

/// 0.96 ulp on [-87, 88]; arguments beyond count as the border (never 0, never infinite). NaN counts as -87.
float exp_f32(float x);
/// 1.38 ulp. NaN gives 1 or -1: kernels look for NaN elsewhere.
float tanh_f32(float x);
/// x / (1 + exp(-x)), 2.4 ulp on [-80, 80].
float silu_f32(float x);
/// log(1 + exp(x)), 2.5 ulp. NaN as exp_f32.
float softplus_f32(float x);
/// The tanh form of GELU, 9 ulp on [-2, 10]; below, an absolute error of at most 5e-7.
float gelu_f32(float x);
/// GELU itself, x times the normal distribution's integral up to x: 9 ulp on [-2, 12]; below, an absolute error of at
/// most 4e-7.
float gelu_erf_f32(float x);

/// 1 ulp. 0 below -708, infinity above 709.78.
double exp(double x);
/// 0.6 ulp. -infinity for 0, NaN below.
double log(double x);
/// `base` to the power of `y` for base >= 0, 1.2 ulp; 0 below exp(-708). NaN for a negative base.
double pow(double base, double y);

struct SinCos {
  double sin, cos;
};
/// 1.1 ulp for |x| <= 2^21 (about 2 million positions of rope); NaN beyond, where the reduction by pi/2 is not exact.
SinCos sincos(double x);

/// The IEEE square root.
inline double sqrt(double x) { return __builtin_sqrt(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }

}  // namespace stoker::math
