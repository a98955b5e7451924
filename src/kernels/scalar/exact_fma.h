// a * b + c with one rounding, without the library call that std::fma is where the target has no such instruction.
#pragma once

#include <cmath>
#include <cstdint>

namespace stoker::kernels::scalar {

#if defined(__FMA__) || defined(__aarch64__)

inline float exact_fma(float a, float b, float c) { return std::fma(a, b, c); }

/// acc[i] = a[i] * b + acc[i].
template <int kLanes>
void exact_fma_lanes(const float* a, float b, float* acc) {
  for (int i = 0; i < kLanes; ++i) acc[i] = std::fma(a[i], b, acc[i]);
}

#else

// Two at once: GNU vectors, since neither compiler vectorizes the integer view of doubles by itself. SSE2 has all of
// it.
using DoublePair = double __attribute__((vector_size(16)));
using BitsPair = int64_t __attribute__((vector_size(16)));

/// product + addend rounded to odd: where the sum is not exact, the neighbour with an odd last bit. 53 bits rounded to
/// odd and then to the 24 of a float are the correctly rounded sum (Boldo and Melquiond, "Emulation of a FMA and
/// correctly rounded sums: proved algorithms using rounding to odd", 2008).
inline DoublePair sum_to_odd(DoublePair product, DoublePair addend) {
  const DoublePair sum = product + addend;
  // Knuth's two-sum: sum + error is the exact value. Where the sum is not finite the error is NaN and neither
  // comparison holds.
  const DoublePair part = sum - product;
  const DoublePair error = (product - (sum - part)) + (addend - part);
  const BitsPair below = error<0.0, above = error> 0.0;
  const BitsPair step = (below | above) & ~reinterpret_cast<BitsPair>(sum) & 1;
  // Towards the exact value: nearer to zero where the error has the other sign.
  const BitsPair nearer = below ^ (sum < 0.0);
  return reinterpret_cast<DoublePair>(reinterpret_cast<BitsPair>(sum) + ((step ^ nearer) - nearer));
}

inline float exact_fma(float a, float b, float c) {
  // The product of two floats is exact in double.
  const DoublePair product{static_cast<double>(a) * b, 0.0}, addend{c, 0.0};
  return static_cast<float>(sum_to_odd(product, addend)[0]);
}

/// acc[i] = a[i] * b + acc[i].
template <int kLanes>
void exact_fma_lanes(const float* a, float b, float* acc) {
  static_assert(kLanes % 2 == 0);
  for (int i = 0; i < kLanes; i += 2) {
    const DoublePair product = DoublePair{a[i], a[i + 1]} * static_cast<double>(b);
    const DoublePair sum = sum_to_odd(product, DoublePair{acc[i], acc[i + 1]});
    acc[i] = static_cast<float>(sum[0]);
    acc[i + 1] = static_cast<float>(sum[1]);
  }
}

#endif

}  // namespace stoker::kernels::scalar
