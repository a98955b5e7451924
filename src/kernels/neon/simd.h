// NEON under the names that the files of kernels/vec use. Everything has internal linkage and is inlined: a copy that
// the linker kept for all CPUs would crash the older ones.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

#define STOKER_INLINE inline __attribute__((always_inline))
#define STOKER_UNROLL _Pragma("GCC unroll 64")

namespace stoker::kernels::neon {
namespace {

using Floats = float32x4_t;
using Ints = uint32x4_t;
constexpr int kWidth = 4;

// Register blocks of kernels/vec/attention_*.inc.h: accumulators, operands and one broadcast in 32 registers.
constexpr int kRegisters = 32;

/// All ones in the lanes [begin, end).
STOKER_INLINE Ints lane_range(int64_t begin, int64_t end) {
  const auto clamp = [](int64_t n) { return static_cast<uint32_t>(n < 0 ? 0 : n > kWidth ? kWidth : n); };
  const Ints lane = {0, 1, 2, 3};
  return vandq_u32(vcgeq_u32(lane, vdupq_n_u32(clamp(begin))), vcltq_u32(lane, vdupq_n_u32(clamp(end))));
}

STOKER_INLINE Floats floats(float x) { return vdupq_n_f32(x); }
STOKER_INLINE Floats load_floats(const float* p) { return vld1q_f32(p); }
STOKER_INLINE void store_floats(float* p, Floats v) { vst1q_f32(p, v); }
/// The first n lanes; the others are zero and their memory is not touched.
STOKER_INLINE Floats load_part(const float* p, int64_t n) {
  if (n >= kWidth) return load_floats(p);
  Floats v = floats(0.0f);
  if (n > 0) v = vld1q_lane_f32(p, v, 0);
  if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
  if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
  return v;
}
STOKER_INLINE void store_part(float* p, Floats v, int64_t n) {
  if (n >= kWidth) return store_floats(p, v);
  if (n > 0) vst1q_lane_f32(p, v, 0);
  if (n > 1) vst1q_lane_f32(p + 1, v, 1);
  if (n > 2) vst1q_lane_f32(p + 2, v, 2);
}

STOKER_INLINE Floats fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
STOKER_INLINE Floats fma_minus(Floats a, Floats b, Floats c) { return vfmaq_f32(vnegq_f32(c), a, b); }
/// Even lanes a b - c, odd lanes a b + c.
STOKER_INLINE Floats fma_minus_plus(Floats a, Floats b, Floats c) {
  const Ints signs = {0x80000000u, 0, 0x80000000u, 0};
  return vfmaq_f32(vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(c), signs)), a, b);
}
STOKER_INLINE Floats add(Floats a, Floats b) { return vaddq_f32(a, b); }
STOKER_INLINE Floats sub(Floats a, Floats b) { return vsubq_f32(a, b); }
STOKER_INLINE Floats mul(Floats a, Floats b) { return vmulq_f32(a, b); }
STOKER_INLINE Floats div(Floats a, Floats b) { return vdivq_f32(a, b); }
/// a > b ? a : b and a < b ? a : b; b where one of them is NaN, unlike in FMAX and FMIN.
STOKER_INLINE Floats max(Floats a, Floats b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
STOKER_INLINE Floats min(Floats a, Floats b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
STOKER_INLINE Floats round_even(Floats v) { return vrndnq_f32(v); }
STOKER_INLINE Floats magnitude(Floats v) { return vabsq_f32(v); }
/// `v` >= 0 with the sign of `sign`.
STOKER_INLINE Floats with_sign(Floats v, Floats sign) { return vbslq_f32(vdupq_n_u32(0x80000000u), sign, v); }
/// a < b ? yes : no, per lane.
STOKER_INLINE Floats select_less(Floats a, Floats b, Floats yes, Floats no) {
  return vbslq_f32(vcltq_f32(a, b), yes, no);
}
/// `v` where `test` is a number, `nan` where it is NaN.
STOKER_INLINE Floats select_ordered(Floats test, Floats v, Floats nan) {
  return vbslq_f32(vceqq_f32(test, test), v, nan);
}
/// Lanes [begin, end) of v, the others from `fill`.
STOKER_INLINE Floats keep_lanes(Floats v, int begin, int end, Floats fill) {
  return vbslq_f32(lane_range(begin, end), v, fill);
}
/// Bit i: lane i of a equals that of b.
STOKER_INLINE uint32_t equal_lanes(Floats a, Floats b) {
  const Ints bits = {1, 2, 4, 8};
  return vaddvq_u32(vandq_u32(vceqq_f32(a, b), bits));
}
/// 2^k for whole k in [-126, 127].
STOKER_INLINE Floats power_of_2(Floats k) {
  return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(k), vdupq_n_s32(127)), 23));
}

STOKER_INLINE float max_lane(Floats v) { return vmaxvq_f32(v); }
/// The tree of docs/kernels.md over 16 lanes: i and i + 8, then + 4, + 2, + 1.
STOKER_INLINE float sum_lanes(const Floats (&lanes)[4]) {
  const Floats fours = vaddq_f32(vaddq_f32(lanes[0], lanes[2]), vaddq_f32(lanes[1], lanes[3]));
  const float32x2_t twos = vadd_f32(vget_low_f32(fours), vget_high_f32(fours));
  return vget_lane_f32(twos, 0) + vget_lane_f32(twos, 1);
}

// Pairs of neighbouring lanes.
STOKER_INLINE Floats copy_even(Floats v) { return vtrn1q_f32(v, v); }
STOKER_INLINE Floats copy_odd(Floats v) { return vtrn2q_f32(v, v); }
STOKER_INLINE Floats swap_pairs(Floats v) { return vrev64q_f32(v); }
/// a0 b0 a1 b1 ... of the lower and of the upper half of the lanes.
STOKER_INLINE Floats interleave_low(Floats a, Floats b) { return vzip1q_f32(a, b); }
STOKER_INLINE Floats interleave_high(Floats a, Floats b) { return vzip2q_f32(a, b); }

// 32-bit integers.
STOKER_INLINE Ints ints(uint32_t x) { return vdupq_n_u32(x); }
STOKER_INLINE Ints load_ints(const void* p) { return vreinterpretq_u32_u8(vld1q_u8(static_cast<const uint8_t*>(p))); }
STOKER_INLINE void store_ints(void* p, Ints v) { vst1q_u8(static_cast<uint8_t*>(p), vreinterpretq_u8_u32(v)); }
STOKER_INLINE Ints to_bits(Floats v) { return vreinterpretq_u32_f32(v); }
STOKER_INLINE Floats from_bits(Ints v) { return vreinterpretq_f32_u32(v); }
STOKER_INLINE Ints add_ints(Ints a, Ints b) { return vaddq_u32(a, b); }
STOKER_INLINE Ints and_ints(Ints a, Ints b) { return vandq_u32(a, b); }
STOKER_INLINE Ints or_ints(Ints a, Ints b) { return vorrq_u32(a, b); }
STOKER_INLINE Ints max_unsigned(Ints a, Ints b) { return vmaxq_u32(a, b); }
STOKER_INLINE Ints shift_left_16(Ints v) { return vshlq_n_u32(v, 16); }
STOKER_INLINE Ints shift_right_16(Ints v) { return vshrq_n_u32(v, 16); }
STOKER_INLINE uint32_t max_unsigned_lane(Ints v) { return vmaxvq_u32(v); }

/// Word j is the high half of lane 2j (low) and of lane 2j + 1 (high), of a and then of b; their low halves are zero.
STOKER_INLINE Ints pair_words(Ints a, Ints b) {
  return vreinterpretq_u32_u16(vuzp2q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)));
}
/// Lane j of row i becomes lane i of row j.
STOKER_INLINE void transpose(Ints (&m)[4]) {
  const auto low = [](Ints a, Ints b) {
    return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
  };
  const auto high = [](Ints a, Ints b) {
    return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
  };
  // Lanes 0 and 2, 1 and 3, of rows 0 and 1, 2 and 3.
  const Ints even_01 = vtrn1q_u32(m[0], m[1]), odd_01 = vtrn2q_u32(m[0], m[1]);
  const Ints even_23 = vtrn1q_u32(m[2], m[3]), odd_23 = vtrn2q_u32(m[2], m[3]);
  m[0] = low(even_01, even_23);
  m[1] = low(odd_01, odd_23);
  m[2] = high(even_01, even_23);
  m[3] = high(odd_01, odd_23);
}

// f16 in memory.
STOKER_INLINE Floats load_halves(const uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
/// To nearest, ties to even.
STOKER_INLINE Ints to_halves(Floats v) { return vmovl_u16(vreinterpret_u16_f16(vcvt_f16_f32(v))); }
/// The low 16 bits of every lane.
STOKER_INLINE void store_low_halves(uint16_t* p, Ints v) { vst1_u16(p, vmovn_u32(v)); }

// int8 in memory.
STOKER_INLINE Floats load_bytes(const int8_t* p) {
  uint32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  const int16x8_t words = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(words)));
}
/// Whole numbers as integers.
STOKER_INLINE Ints to_ints(Floats v) { return vreinterpretq_u32_s32(vcvtnq_s32_f32(v)); }
/// The low 8 bits of every lane.
STOKER_INLINE void store_low_bytes(int8_t* p, Ints v) {
  const uint16x4_t words = vmovn_u32(v);
  const uint32_t four = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(words, words))), 0);
  __builtin_memcpy(p, &four, sizeof four);
}

STOKER_INLINE float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }
STOKER_INLINE void prefetch_l2(const std::byte* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace
}  // namespace stoker::kernels::neon
