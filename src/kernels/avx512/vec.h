// Short names for the AVX-512 instructions that the matrix products use. Lanes are the 16 rows of a group.
#pragma once

// g++ 12 takes the undefined vectors inside its own intrinsics for ours (GCC bug 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

#define STOKER_INLINE inline __attribute__((always_inline))
#define STOKER_UNROLL _Pragma("GCC unroll 64")

namespace stoker::kernels::avx512 {
namespace {

using Ints = __m512i;
using Floats = __m512;

constexpr int kLine = 64;  // Bytes of one 4-byte word of 16 rows.

STOKER_INLINE Ints load(const void* p) { return _mm512_loadu_si512(p); }
STOKER_INLINE void store(void* p, Ints v) { _mm512_store_si512(p, v); }
STOKER_INLINE void store(float* p, Floats v) { _mm512_store_ps(p, v); }

STOKER_INLINE Ints ints(int x) { return _mm512_set1_epi32(x); }
STOKER_INLINE Ints bytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
STOKER_INLINE Floats floats(float x) { return _mm512_set1_ps(x); }
// The 4 bytes at p in every lane.
STOKER_INLINE Ints word_of(const void* p) {
  int32_t x;
  __builtin_memcpy(&x, p, sizeof x);
  return _mm512_set1_epi32(x);
}

STOKER_INLINE Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
STOKER_INLINE Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
STOKER_INLINE Ints shift_left(Ints v, int n) { return _mm512_slli_epi32(v, static_cast<unsigned>(n)); }
STOKER_INLINE Ints shift_right(Ints v, int n) { return _mm512_srli_epi32(v, static_cast<unsigned>(n)); }
// Shifts that let bits cross from byte to byte inside 16 bits: the caller masks.
STOKER_INLINE Ints bits_up(Ints v, int n) { return _mm512_slli_epi16(v, static_cast<unsigned>(n)); }
STOKER_INLINE Ints bits_down(Ints v, int n) { return _mm512_srli_epi16(v, static_cast<unsigned>(n)); }

// 16 bytes as a table, and its entries for indices 0 ... 15.
STOKER_INLINE Ints table_of(const uint8_t (&codes)[16]) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}
STOKER_INLINE Ints look_up(Ints table, Ints index) { return _mm512_shuffle_epi8(table, index); }

// c + four products of unsigned w and signed a per lane: exact, this instruction does not saturate.
STOKER_INLINE Ints dot4(Ints c, Ints w, Ints a) { return _mm512_dpbusd_epi32(c, w, a); }
// c + two products of signed 16-bit halves per lane.
STOKER_INLINE Ints dot2(Ints c, Ints x, Ints y) { return _mm512_dpwssd_epi32(c, x, y); }
STOKER_INLINE Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
STOKER_INLINE Ints mul(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }

STOKER_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
STOKER_INLINE Floats fma_minus(Floats a, Floats b, Floats c) { return _mm512_fmsub_ps(a, b, c); }
STOKER_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
STOKER_INLINE Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }

// 16 consecutive f16; the f16 in the low half of every lane; in the high half.
STOKER_INLINE Floats halves(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
STOKER_INLINE Floats low_halves(Ints v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
STOKER_INLINE Floats high_halves(Ints v) { return low_halves(shift_right(v, 16)); }

// Reads a line for the sake of the processor's own prefetcher, which follows whole-line reads in ascending order only.
STOKER_INLINE void touch(const void* p) {
  asm volatile("vmovdqu64 %0, %%zmm31" : : "m"(*static_cast<const Ints*>(p)) : "xmm31");
}
// Into the second-level cache.
STOKER_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

// How a tile of n rows is cut: the dot products of `kStep` rows run side by side, to hide their latency.
template <int N>
constexpr int kStep = N == 8 ? 4 : N;

}  // namespace
}  // namespace stoker::kernels::avx512
