// The integer products with AVX-512 VNNI.
#pragma once

#include "kernels/avx512/matmul_simd.h"

namespace stoker::kernels::avx512 {
namespace {

STOKER_INLINE Ints flip(Ints v, Ints bits) { return _mm512_xor_si512(v, bits); }
STOKER_INLINE Ints dot4(Ints c, Ints u, Ints s) { return _mm512_dpbusd_epi32(c, u, s); }
// With the 4 bytes at p in every lane. g++ has no intrinsic that reads them as part of the instruction.
STOKER_INLINE Ints dot4_word(Ints c, Ints u, const int8_t* p) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(c) : "v"(u), "m"(*reinterpret_cast<const int8_t(*)[4]>(p)));
  return c;
}
STOKER_INLINE Ints dot2(Ints c, Ints x, Ints y) { return _mm512_dpwssd_epi32(c, x, y); }
// Halves for dot2.
STOKER_INLINE Ints pair(Ints low, Ints high) { return either(low, shift_left(high, 16)); }
// Of 16 sums of activations: times x.
STOKER_INLINE void sixteen_times(const int16_t* sums, int x, int32_t* out) {
  const __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
  store(out, mul(_mm512_cvtepi16_epi32(row), ints(x)));
}

#include "kernels/vec/matmul_dots_vnni.inc.h"

}  // namespace
}  // namespace stoker::kernels::avx512
