// a * b + c with one rounding, without the library call that std::fma is where the target has no such instruction.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace stoker::kernels::scalar {

#if defined(__FMA__) || defined(__aarch64__)
inline float exact_fma(float a, float b, float c) { return std::fma(a, b, c); }
#else
// The product of two floats is exact in double. The sum is rounded to odd: where it is not exact, the neighbour with an
// odd last bit is taken. 53 bits rounded to odd and then to 24 are the correctly rounded result (Boldo and Melquiond,
// "Emulation of a FMA and correctly rounded sums", 2008). Free of branches, so that compilers vectorize it.
inline float exact_fma(float a, float b, float c) {
  const double product = static_cast<double>(a) * b;
  const double addend = c;
  const double sum = product + addend;
  // Knuth's two-sum: sum + error is the exact value. Not finite: error is NaN and both comparisons fail.
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  const int64_t bits = std::bit_cast<int64_t>(sum);
  const int64_t inexact = static_cast<int64_t>(error > 0.0) | static_cast<int64_t>(error < 0.0);
  const int64_t even = ~bits & 1;
  // Towards the exact value: away from zero when the error has the sum's sign.
  const int64_t step = static_cast<int64_t>((error > 0.0) == (sum > 0.0)) * 2 - 1;
  return static_cast<float>(std::bit_cast<double>(bits + (inexact & even) * step));
}
#endif

}  // namespace stoker::kernels::scalar
