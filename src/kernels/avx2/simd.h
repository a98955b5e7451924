// AVX2 with FMA and F16C under the names that the files of kernels/vec use. Everything has internal linkage and is
// inlined: a copy that the linker kept for all CPUs would crash the older ones.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

#define STOKER_INLINE inline __attribute__((always_inline))
#define STOKER_UNROLL _Pragma("GCC unroll 64")

namespace stoker::kernels::avx2 {
namespace {

using Floats = __m256;
using Ints = __m256i;
constexpr int kWidth = 8;

// Register blocks of kernels/vec/attention_*.inc.h: accumulators, operands and one broadcast in 16 registers.
constexpr int kRegisters = 16;

/// All ones in the lanes [begin, end).
STOKER_INLINE Ints lane_range(int64_t begin, int64_t end) {
  const auto clamp = [](int64_t n) { return static_cast<int>(n < 0 ? 0 : n > kWidth ? kWidth : n); };
  const Ints lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const Ints before = _mm256_cmpgt_epi32(_mm256_set1_epi32(clamp(begin)), lane);
  return _mm256_andnot_si256(before, _mm256_cmpgt_epi32(_mm256_set1_epi32(clamp(end)), lane));
}

STOKER_INLINE Floats floats(float x) { return _mm256_set1_ps(x); }
STOKER_INLINE Floats load_floats(const float* p) { return _mm256_loadu_ps(p); }
STOKER_INLINE void store_floats(float* p, Floats v) { _mm256_storeu_ps(p, v); }
/// The first n lanes; the others are zero and their memory is not touched.
STOKER_INLINE Floats load_part(const float* p, int64_t n) { return _mm256_maskload_ps(p, lane_range(0, n)); }
STOKER_INLINE void store_part(float* p, Floats v, int64_t n) { _mm256_maskstore_ps(p, lane_range(0, n), v); }

STOKER_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
STOKER_INLINE Floats fma_minus(Floats a, Floats b, Floats c) { return _mm256_fmsub_ps(a, b, c); }
/// Even lanes a b - c, odd lanes a b + c.
STOKER_INLINE Floats fma_minus_plus(Floats a, Floats b, Floats c) { return _mm256_fmaddsub_ps(a, b, c); }
STOKER_INLINE Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
STOKER_INLINE Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
STOKER_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
STOKER_INLINE Floats div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
/// a > b ? a : b and a < b ? a : b; b where one of them is NaN.
STOKER_INLINE Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
STOKER_INLINE Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
STOKER_INLINE Floats round_even(Floats v) { return _mm256_round_ps(v, 8); }
STOKER_INLINE Floats magnitude(Floats v) { return _mm256_andnot_ps(floats(-0.0f), v); }
/// `v` >= 0 with the sign of `sign`.
STOKER_INLINE Floats with_sign(Floats v, Floats sign) { return _mm256_or_ps(v, _mm256_and_ps(sign, floats(-0.0f))); }
/// a < b ? yes : no, per lane.
STOKER_INLINE Floats select_less(Floats a, Floats b, Floats yes, Floats no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}
/// `v` where `test` is a number, `nan` where it is NaN.
STOKER_INLINE Floats select_ordered(Floats test, Floats v, Floats nan) {
  return _mm256_blendv_ps(nan, v, _mm256_cmp_ps(test, test, _CMP_ORD_Q));
}
/// Lanes [begin, end) of v, the others from `fill`.
STOKER_INLINE Floats keep_lanes(Floats v, int begin, int end, Floats fill) {
  return _mm256_blendv_ps(fill, v, _mm256_castsi256_ps(lane_range(begin, end)));
}
/// Bit i: lane i of a equals that of b.
STOKER_INLINE uint32_t equal_lanes(Floats a, Floats b) {
  return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)));
}
/// 2^k for whole k in [-126, 127].
STOKER_INLINE Floats power_of_2(Floats k) {
  const Ints biased = _mm256_add_epi32(_mm256_cvtps_epi32(k), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}

STOKER_INLINE float max_lane(Floats v) {
  __m128 a = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  a = _mm_max_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_max_ss(a, _mm_shuffle_ps(a, a, 1)));
}
/// The tree of docs/kernels.md over 16 lanes: i and i + 8, then + 4, + 2, + 1.
STOKER_INLINE float sum_lanes(const Floats (&lanes)[2]) {
  const __m256 a = _mm256_add_ps(lanes[0], lanes[1]);
  __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  b = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}

// Pairs of neighbouring lanes.
STOKER_INLINE Floats copy_even(Floats v) { return _mm256_moveldup_ps(v); }
STOKER_INLINE Floats copy_odd(Floats v) { return _mm256_movehdup_ps(v); }
STOKER_INLINE Floats swap_pairs(Floats v) { return _mm256_permute_ps(v, 0xb1); }
/// a0 b0 a1 b1 ... of the lower and of the upper half of the lanes.
STOKER_INLINE Floats interleave_low(Floats a, Floats b) {
  return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20);
}
STOKER_INLINE Floats interleave_high(Floats a, Floats b) {
  return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31);
}

// 32-bit integers.
STOKER_INLINE Ints ints(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
STOKER_INLINE Ints load_ints(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
STOKER_INLINE void store_ints(void* p, Ints v) { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
STOKER_INLINE Ints to_bits(Floats v) { return _mm256_castps_si256(v); }
STOKER_INLINE Floats from_bits(Ints v) { return _mm256_castsi256_ps(v); }
STOKER_INLINE Ints add_ints(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
STOKER_INLINE Ints and_ints(Ints a, Ints b) { return _mm256_and_si256(a, b); }
STOKER_INLINE Ints or_ints(Ints a, Ints b) { return _mm256_or_si256(a, b); }
STOKER_INLINE Ints max_unsigned(Ints a, Ints b) { return _mm256_max_epu32(a, b); }
STOKER_INLINE Ints shift_left_16(Ints v) { return _mm256_slli_epi32(v, 16); }
STOKER_INLINE Ints shift_right_16(Ints v) { return _mm256_srli_epi32(v, 16); }
STOKER_INLINE uint32_t max_unsigned_lane(Ints v) {
  __m128i a = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  a = _mm_max_epu32(a, _mm_shuffle_epi32(a, 0x4e));
  a = _mm_max_epu32(a, _mm_shuffle_epi32(a, 0xb1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(a));
}

/// Word j is the high half of lane 2j (low) and of lane 2j + 1 (high), of a and then of b; their low halves are zero.
STOKER_INLINE Ints pair_words(Ints a, Ints b) {
  const auto words = [](Ints v) {
    return _mm256_castsi256_ps(_mm256_or_si256(_mm256_srli_epi64(v, 16), _mm256_srli_epi64(v, 32)));
  };
  const Ints mixed = _mm256_castps_si256(_mm256_shuffle_ps(words(a), words(b), 0x88));
  return _mm256_permute4x64_epi64(mixed, 0xd8);
}
/// Lane j of row i becomes lane i of row j.
STOKER_INLINE void transpose(Ints (&m)[8]) {
  Ints t[8];
  STOKER_UNROLL for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_epi32(m[i], m[i + 1]);
    t[i + 1] = _mm256_unpackhi_epi32(m[i], m[i + 1]);
  }
  // m[4 i + j]: halves of lanes 4 h + j of rows 4 i ... 4 i + 3.
  STOKER_UNROLL for (int i = 0; i < 8; i += 4) {
    m[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
    m[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
    m[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
    m[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  STOKER_UNROLL for (int j = 0; j < 4; ++j) {
    const Ints low = m[j], high = m[4 + j];
    m[j] = _mm256_permute2x128_si256(low, high, 0x20);
    m[4 + j] = _mm256_permute2x128_si256(low, high, 0x31);
  }
}

// f16 in memory.
STOKER_INLINE Floats load_halves(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
/// To nearest, ties to even.
STOKER_INLINE Ints to_halves(Floats v) { return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT)); }
/// The low 16 bits of every lane; the high ones are zero.
STOKER_INLINE void store_low_halves(uint16_t* p, Ints v) {
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}

// int8 in memory.
STOKER_INLINE Floats load_bytes(const int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
/// Whole numbers as integers.
STOKER_INLINE Ints to_ints(Floats v) { return _mm256_cvtps_epi32(v); }
/// The low 8 bits of every lane, all within [-128, 127].
STOKER_INLINE void store_low_bytes(int8_t* p, Ints v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
}

STOKER_INLINE float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
STOKER_INLINE void prefetch_l2(const std::byte* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }

}  // namespace
}  // namespace stoker::kernels::avx2
