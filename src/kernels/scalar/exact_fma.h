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
  // Knuth's two-sum: sum + error is the exact value. Where the sum is not finite, the error is NaN and not above zero.
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  const auto bits = std::bit_cast<uint64_t>(sum);
  const uint64_t inexact = std::fabs(error) > 0.0 ? 1 : 0;
  const uint64_t step = inexact & ~bits;
  // Towards the exact value: back to zero where the error has the other sign.
  const uint64_t back = step & ((bits ^ std::bit_cast<uint64_t>(error)) >> 63);
  return static_cast<float>(std::bit_cast<double>(bits + step - 2 * back));
}
#endif

}  // namespace stoker::kernels::scalar
