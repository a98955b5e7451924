// AVX-512 under the names that the files of kernels/vec use. Everything has internal linkage and is inlined: a copy
// that the linker kept for all CPUs would crash the older ones.
#pragma once

// g++ 12 warns of the deliberately undefined operands inside its own header (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

#define STOKER_INLINE inline __attribute__((always_inline))
#define STOKER_UNROLL _Pragma("GCC unroll 64")

namespace stoker::kernels::avx512 {
namespace {

using Floats = __m512;
using Ints = __m512i;
constexpr int kWidth = 16;

// Register blocks of kernels/vec/attention_*.inc.h: accumulators, operands and one broadcast in 32 registers.
constexpr int kRegisters = 32;

STOKER_INLINE __mmask16 first_lanes(int64_t n) {
  return static_cast<__mmask16>(n >= kWidth ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

STOKER_INLINE Floats floats(float x) { return _mm512_set1_ps(x); }
STOKER_INLINE Floats load_floats(const float* p) { return _mm512_loadu_ps(p); }
STOKER_INLINE void store_floats(float* p, Floats v) { _mm512_storeu_ps(p, v); }
/// The first n lanes; the others are zero and their memory is not touched.
STOKER_INLINE Floats load_part(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
STOKER_INLINE void store_part(float* p, Floats v, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }

STOKER_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
STOKER_INLINE Floats fma_minus(Floats a, Floats b, Floats c) { return _mm512_fmsub_ps(a, b, c); }
/// Even lanes a b - c, odd lanes a b + c.
STOKER_INLINE Floats fma_minus_plus(Floats a, Floats b, Floats c) { return _mm512_fmaddsub_ps(a, b, c); }
STOKER_INLINE Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
STOKER_INLINE Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
STOKER_INLINE Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
STOKER_INLINE Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
/// a > b ? a : b and a < b ? a : b; b where one of them is NaN.
STOKER_INLINE Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
STOKER_INLINE Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
STOKER_INLINE Floats round_even(Floats v) { return _mm512_roundscale_ps(v, 8); }
STOKER_INLINE Floats magnitude(Floats v) { return _mm512_abs_ps(v); }
/// `v` >= 0 with the sign of `sign`.
STOKER_INLINE Floats with_sign(Floats v, Floats sign) { return _mm512_or_ps(v, _mm512_and_ps(sign, floats(-0.0f))); }
/// a < b ? yes : no, per lane.
STOKER_INLINE Floats select_less(Floats a, Floats b, Floats yes, Floats no) {
  return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes);
}
/// `v` where `test` is a number, `nan` where it is NaN.
STOKER_INLINE Floats select_ordered(Floats test, Floats v, Floats nan) {
  return _mm512_mask_mov_ps(nan, _mm512_cmp_ps_mask(test, test, _CMP_ORD_Q), v);
}
/// Lanes [begin, end) of v, the others from `fill`.
STOKER_INLINE Floats keep_lanes(Floats v, int begin, int end, Floats fill) {
  const auto keep = static_cast<__mmask16>(first_lanes(end) & ~first_lanes(begin));
  return _mm512_mask_mov_ps(fill, keep, v);
}
/// Bit i: lane i of a equals that of b.
STOKER_INLINE uint32_t equal_lanes(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
/// 2^k for whole k in [-126, 127].
STOKER_INLINE Floats power_of_2(Floats k) {
  const Ints biased = _mm512_add_epi32(_mm512_cvtps_epi32(k), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
}

STOKER_INLINE float max_lane(Floats v) {
  __m256 a = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  b = _mm_max_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
}
/// The tree of docs/kernels.md over 16 lanes: i and i + 8, then + 4, + 2, + 1.
STOKER_INLINE float sum_lanes(const Floats (&lanes)[1]) {
  __m256 a = _mm256_add_ps(_mm512_castps512_ps256(lanes[0]), _mm512_extractf32x8_ps(lanes[0], 1));
  __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  b = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

// Pairs of neighbouring lanes.
STOKER_INLINE Floats copy_even(Floats v) { return _mm512_moveldup_ps(v); }
STOKER_INLINE Floats copy_odd(Floats v) { return _mm512_movehdup_ps(v); }
STOKER_INLINE Floats swap_pairs(Floats v) { return _mm512_permute_ps(v, 0xb1); }
/// a0 b0 a1 b1 ... of the lower and of the upper half of the lanes.
STOKER_INLINE Floats interleave_low(Floats a, Floats b) {
  const Ints order = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return _mm512_permutex2var_ps(a, order, b);
}
STOKER_INLINE Floats interleave_high(Floats a, Floats b) {
  const Ints order = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return _mm512_permutex2var_ps(a, order, b);
}

// 32-bit integers.
STOKER_INLINE Ints ints(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
STOKER_INLINE Ints load_ints(const void* p) { return _mm512_loadu_si512(p); }
STOKER_INLINE void store_ints(void* p, Ints v) { _mm512_storeu_si512(p, v); }
STOKER_INLINE Ints to_bits(Floats v) { return _mm512_castps_si512(v); }
STOKER_INLINE Floats from_bits(Ints v) { return _mm512_castsi512_ps(v); }
STOKER_INLINE Ints add_ints(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
STOKER_INLINE Ints and_ints(Ints a, Ints b) { return _mm512_and_si512(a, b); }
STOKER_INLINE Ints or_ints(Ints a, Ints b) { return _mm512_or_si512(a, b); }
STOKER_INLINE Ints max_unsigned(Ints a, Ints b) { return _mm512_max_epu32(a, b); }
STOKER_INLINE Ints shift_left_16(Ints v) { return _mm512_slli_epi32(v, 16); }
STOKER_INLINE Ints shift_right_16(Ints v) { return _mm512_srli_epi32(v, 16); }
STOKER_INLINE uint32_t max_unsigned_lane(Ints v) {
  __m256i a = _mm256_max_epu32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
  __m128i b = _mm_max_epu32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  b = _mm_max_epu32(b, _mm_shuffle_epi32(b, 0x4e));
  b = _mm_max_epu32(b, _mm_shuffle_epi32(b, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(b));
}

/// Word j is the high half of lane 2j (low) and of lane 2j + 1 (high), of a and then of b; their low halves are zero.
STOKER_INLINE Ints pair_words(Ints a, Ints b) {
  const auto words = [](Ints v) {
    return _mm512_cvtepi64_epi32(_mm512_or_si512(_mm512_srli_epi64(v, 16), _mm512_srli_epi64(v, 32)));
  };
  return _mm512_inserti64x4(_mm512_castsi256_si512(words(a)), words(b), 1);
}
/// Lane j of row i becomes lane i of row j.
STOKER_INLINE void transpose(Ints (&m)[16]) {
  Ints t[16];
  STOKER_UNROLL for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(m[i], m[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(m[i], m[i + 1]);
  }
  // m[4 i + j]: quarters of lanes 4 q + j of rows 4 i ... 4 i + 3.
  STOKER_UNROLL for (int i = 0; i < 16; i += 4) {
    m[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    m[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    m[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    m[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // The quarters themselves, a 4 x 4 transposition.
  STOKER_UNROLL for (int j = 0; j < 4; ++j) {
    t[j] = _mm512_shuffle_i32x4(m[j], m[4 + j], 0x88);
    t[4 + j] = _mm512_shuffle_i32x4(m[j], m[4 + j], 0xdd);
    t[8 + j] = _mm512_shuffle_i32x4(m[8 + j], m[12 + j], 0x88);
    t[12 + j] = _mm512_shuffle_i32x4(m[8 + j], m[12 + j], 0xdd);
  }
  STOKER_UNROLL for (int j = 0; j < 4; ++j) {
    m[j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0x88);
    m[4 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0x88);
    m[8 + j] = _mm512_shuffle_i32x4(t[j], t[8 + j], 0xdd);
    m[12 + j] = _mm512_shuffle_i32x4(t[4 + j], t[12 + j], 0xdd);
  }
}

// f16 in memory.
STOKER_INLINE Floats load_halves(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
/// Eight values, the other lanes zero.
STOKER_INLINE Floats load_8(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
STOKER_INLINE Floats load_8(const float* p) { return load_part(p, 8); }
/// To nearest, ties to even.
STOKER_INLINE Ints to_halves(Floats v) { return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }
/// The low 16 bits of every lane.
STOKER_INLINE void store_low_halves(uint16_t* p, Ints v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(v));
}

// int8 in memory.
STOKER_INLINE Floats load_bytes(const int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
STOKER_INLINE Floats load_8(const int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
/// Whole numbers as integers.
STOKER_INLINE Ints to_ints(Floats v) { return _mm512_cvtps_epi32(v); }
/// The low 8 bits of every lane.
STOKER_INLINE void store_low_bytes(int8_t* p, Ints v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
}

STOKER_INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
STOKER_INLINE void prefetch_l2(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }

}  // namespace
}  // namespace stoker::kernels::avx512
