// The AVX2 instructions of the matrix products, under the names that kernels/vec/matmul_*.inc.h use.
// Lanes are 8 of the 16 rows of a group: a line is two vectors.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

#define STOKER_INLINE inline __attribute__((always_inline))
#define STOKER_UNROLL _Pragma("GCC unroll 64")

namespace stoker::kernels::avx2 {
namespace {

using Ints = __m256i;
using Floats = __m256;
constexpr int kWidth = 8;
constexpr int kLineBytes = 64;

// How many activation rows a tile takes: floats 12 sums, 2 weights and 1 activation in 16 registers.
constexpr int kIntRows = 8;
constexpr int kFloatRows = 6;
// Whether tiles of 2 to 4 rows keep up with a single stream of reads.
constexpr bool kFewStream = false;

STOKER_INLINE Ints load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
STOKER_INLINE Floats load_floats(const float* p) { return _mm256_load_ps(p); }
STOKER_INLINE void store(void* p, Ints v) { _mm256_store_si256(static_cast<__m256i*>(p), v); }
STOKER_INLINE void store(float* p, Floats v) { _mm256_store_ps(p, v); }

STOKER_INLINE Ints ints(int x) { return _mm256_set1_epi32(x); }
STOKER_INLINE Ints bytes(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
STOKER_INLINE Floats floats(float x) { return _mm256_set1_ps(x); }
// The 4 bytes at p in every lane.
STOKER_INLINE Ints word_of(const void* p) {
  int32_t x;
  __builtin_memcpy(&x, p, sizeof x);
  return _mm256_set1_epi32(x);
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

STOKER_INLINE Ints both(Ints a, Ints b) { return _mm256_and_si256(a, b); }
STOKER_INLINE Ints either(Ints a, Ints b) { return _mm256_or_si256(a, b); }
STOKER_INLINE Ints shift_left(Ints v, int n) { return _mm256_slli_epi32(v, n); }
STOKER_INLINE Ints shift_right(Ints v, int n) { return _mm256_srli_epi32(v, n); }
STOKER_INLINE Ints shift_right_signed(Ints v, int n) { return _mm256_srai_epi32(v, n); }
STOKER_INLINE Ints shift_left_by(Ints v, Ints n) { return _mm256_sllv_epi32(v, n); }
// Shifts that let bits cross from byte to byte inside 16 bits: the caller masks.
STOKER_INLINE Ints bits_up(Ints v, int n) { return _mm256_slli_epi16(v, n); }
STOKER_INLINE Ints bits_down(Ints v, int n) { return _mm256_srli_epi16(v, n); }

STOKER_INLINE Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
STOKER_INLINE Ints add_bytes(Ints a, Ints b) { return _mm256_add_epi8(a, b); }
STOKER_INLINE Ints mul(Ints a, Ints b) { return _mm256_mullo_epi32(a, b); }
STOKER_INLINE Ints select_less(Ints a, Ints b, Ints yes, Ints no) {
  return _mm256_blendv_epi8(no, yes, _mm256_cmpgt_epi32(b, a));
}
// v + x in the bytes where test has the one bit of `bit`.
STOKER_INLINE Ints add_where(Ints v, int x, Ints test, Ints bit) {
  return add_bytes(v, both(_mm256_cmpeq_epi8(both(test, bit), bit), bytes(x)));
}

// 16 bytes as a table, and its entries for indices 0 ... 15.
STOKER_INLINE Ints table_of(const uint8_t (&codes)[16]) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
}
STOKER_INLINE Ints look_up(Ints table, Ints index) { return _mm256_shuffle_epi8(table, index); }

STOKER_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
STOKER_INLINE Floats fma_minus(Floats a, Floats b, Floats c) { return _mm256_fmsub_ps(a, b, c); }
STOKER_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
STOKER_INLINE Floats to_floats(Ints v) { return _mm256_cvtepi32_ps(v); }
STOKER_INLINE Floats as_floats(Ints v) { return _mm256_castsi256_ps(v); }
STOKER_INLINE Ints as_ints(Floats v) { return _mm256_castps_si256(v); }

// 8 consecutive f16; the f16 in the low half of every lane; in the high half; 8 consecutive bytes.
STOKER_INLINE Floats halves(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
STOKER_INLINE Floats narrow_halves(Ints v) {
  const Ints packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
  return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
}
STOKER_INLINE Floats low_halves(Ints v) { return narrow_halves(both(v, ints(0xffff))); }
STOKER_INLINE Floats high_halves(Ints v) { return narrow_halves(shift_right(v, 16)); }
STOKER_INLINE Ints exponents(const void* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(p)));
}

// Reads a line for nothing but the order of reads.
STOKER_INLINE void touch(const void* p) {
  const auto* halves_of_line = static_cast<const Ints*>(p);
  asm volatile("vmovdqu %0, %%ymm15\n\tvmovdqu %1, %%ymm15"
               :
               : "m"(halves_of_line[0]), "m"(halves_of_line[1])
               : "xmm15");
}
// Into the second-level cache.
STOKER_INLINE void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

}  // namespace
}  // namespace stoker::kernels::avx2
