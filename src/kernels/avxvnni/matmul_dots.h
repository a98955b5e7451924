// The integer products with AVX-VNNI: vpdpbusd on 256 bits, without AVX-512.
#pragma once

#include "kernels/avx2/matmul_simd.h"

namespace stoker::kernels::avxvnni {
namespace {

using namespace avx2;  // NOLINT(google-build-using-namespace): the same vectors and instructions, but for these.

STOKER_INLINE Ints flip(Ints v, Ints bits) { return _mm256_xor_si256(v, bits); }
#ifndef STOKER_EMULATED
STOKER_INLINE Ints dot4(Ints c, Ints u, Ints s) { return _mm256_dpbusd_avx_epi32(c, u, s); }
STOKER_INLINE Ints dot2(Ints c, Ints x, Ints y) { return _mm256_dpwssd_avx_epi32(c, x, y); }
#else  // tests/kernels/emulated: AVX-512 has the same instructions in another encoding.
STOKER_INLINE Ints dot4(Ints c, Ints u, Ints s) { return _mm256_dpbusd_epi32(c, u, s); }
STOKER_INLINE Ints dot2(Ints c, Ints x, Ints y) { return _mm256_dpwssd_epi32(c, x, y); }
#endif
STOKER_INLINE Ints dot4_word(Ints c, Ints u, const int8_t* p) { return dot4(c, u, word_of(p)); }
// Halves for dot2.
STOKER_INLINE Ints pair(Ints low, Ints high) { return _mm256_blend_epi16(low, shift_left(high, 16), 0xaa); }
// Of 16 sums of activations: times x.
STOKER_INLINE void sixteen_times(const int16_t* sums, int x, int32_t* out) {
  eight_times(sums, x, out);
  eight_times(sums + 8, x, out + 8);
}

#include "kernels/vec/matmul_dots_vnni.inc.h"

}  // namespace
}  // namespace stoker::kernels::avxvnni
