// The AVX-512 instructions of the matrix products, under the names that kernels/vec/matmul_*.inc.h use.
// Lanes are the 16 rows of a group.
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
constexpr int kWidth = 16;
constexpr int kLineBytes = 64;

// How many activation rows a tile takes: integers 16 sums, 8 decoded weights and 4 dot products in 32 registers.
constexpr int kIntRows = 16;
constexpr int kFloatRows = 8;
// Whether tiles of 2 to 4 rows keep up with a single stream of reads.
constexpr bool kFewStream = true;

STOKER_INLINE Ints load(const void* p) { return _mm512_loadu_si512(p); }
STOKER_INLINE Floats load_floats(const float* p) { return _mm512_load_ps(p); }
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

// Of 8 sums of activations: as floats; times x.
STOKER_INLINE __m256i eight_ints(const int16_t* sums) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sums)));
}
STOKER_INLINE void eight_floats(const int16_t* sums, float* out) {
  _mm256_store_ps(out, _mm256_cvtepi32_ps(eight_ints(sums)));
}
STOKER_INLINE void eight_times(const int16_t* sums, int x, int32_t* out) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(out), _mm256_mullo_epi32(eight_ints(sums), _mm256_set1_epi32(x)));
}
// From 16 sums to those of neighbours.
STOKER_INLINE void add_neighbours(const int16_t* sums, int16_t* out) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
  const __m256i twos = _mm256_madd_epi16(x, _mm256_set1_epi16(1));
  const __m128i eight = _mm_packs_epi32(_mm256_castsi256_si128(twos), _mm256_extracti128_si256(twos, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), eight);
}

STOKER_INLINE Ints both(Ints a, Ints b) { return _mm512_and_si512(a, b); }
STOKER_INLINE Ints either(Ints a, Ints b) { return _mm512_or_si512(a, b); }
STOKER_INLINE Ints shift_left(Ints v, int n) { return _mm512_slli_epi32(v, static_cast<unsigned>(n)); }
STOKER_INLINE Ints shift_right(Ints v, int n) { return _mm512_srli_epi32(v, static_cast<unsigned>(n)); }
STOKER_INLINE Ints shift_right_signed(Ints v, int n) { return _mm512_srai_epi32(v, static_cast<unsigned>(n)); }
STOKER_INLINE Ints shift_left_by(Ints v, Ints n) { return _mm512_sllv_epi32(v, n); }
// Shifts that let bits cross from byte to byte inside 16 bits: the caller masks.
STOKER_INLINE Ints bits_up(Ints v, int n) { return _mm512_slli_epi16(v, static_cast<unsigned>(n)); }
STOKER_INLINE Ints bits_down(Ints v, int n) { return _mm512_srli_epi16(v, static_cast<unsigned>(n)); }

STOKER_INLINE Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
STOKER_INLINE Ints add_bytes(Ints a, Ints b) { return _mm512_add_epi8(a, b); }
STOKER_INLINE Ints mul(Ints a, Ints b) { return _mm512_mullo_epi32(a, b); }
STOKER_INLINE Ints select_less(Ints a, Ints b, Ints yes, Ints no) {
  return _mm512_mask_mov_epi32(no, _mm512_cmplt_epi32_mask(a, b), yes);
}
// v + x in the bytes where test has the one bit of `bit`.
STOKER_INLINE Ints add_where(Ints v, int x, Ints test, Ints bit) {
  return _mm512_mask_add_epi8(v, _mm512_test_epi8_mask(test, bit), v, bytes(x));
}

// 16 bytes as a table, and its entries for indices 0 ... 15.
STOKER_INLINE Ints table_of(const uint8_t (&codes)[16]) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}
STOKER_INLINE Ints look_up(Ints table, Ints index) { return _mm512_shuffle_epi8(table, index); }

STOKER_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
STOKER_INLINE Floats fma_minus(Floats a, Floats b, Floats c) { return _mm512_fmsub_ps(a, b, c); }
STOKER_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
STOKER_INLINE Floats to_floats(Ints v) { return _mm512_cvtepi32_ps(v); }
STOKER_INLINE Floats as_floats(Ints v) { return _mm512_castsi512_ps(v); }
STOKER_INLINE Ints as_ints(Floats v) { return _mm512_castps_si512(v); }

// 16 consecutive f16; the f16 in the low half of every lane; in the high half; 16 consecutive bytes.
STOKER_INLINE Floats halves(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
STOKER_INLINE Floats low_halves(Ints v) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v)); }
STOKER_INLINE Floats high_halves(Ints v) { return low_halves(shift_right(v, 16)); }
STOKER_INLINE Ints exponents(const void* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}

// Reads a line for nothing but the order of reads.
STOKER_INLINE void touch(const void* p) {
  asm volatile("vmovdqu64 %0, %%zmm31" : : "m"(*static_cast<const Ints*>(p)) : "xmm31");
}
// Into the second-level cache.
STOKER_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

}  // namespace
}  // namespace stoker::kernels::avx512
