// The NEON instructions of the matrix products, under the names that kernels/vec/matmul_*.inc.h use.
// Lanes are 4 of the 16 rows of a group: a line is four vectors.
#pragma once

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

#define STOKER_INLINE inline __attribute__((always_inline))
#define STOKER_UNROLL _Pragma("GCC unroll 64")

namespace stoker::kernels::neon {
namespace {

using Ints = int32x4_t;
using Floats = float32x4_t;
constexpr int kWidth = 4;
constexpr int kLineBytes = 64;

// How many activation rows a tile takes: floats 24 sums, 4 weights and activations in 32 registers.
constexpr int kIntRows = 16;
constexpr int kFloatRows = 6;
// Whether tiles of 2 to 4 rows keep up with a single stream of reads; not measured.
constexpr bool kFewStream = false;

STOKER_INLINE uint8x16_t as_bytes(Ints v) { return vreinterpretq_u8_s32(v); }
STOKER_INLINE Ints as_ints(uint8x16_t v) { return vreinterpretq_s32_u8(v); }

STOKER_INLINE Ints load(const void* p) { return as_ints(vld1q_u8(static_cast<const uint8_t*>(p))); }
STOKER_INLINE Floats load_floats(const float* p) { return vld1q_f32(p); }
STOKER_INLINE void store(void* p, Ints v) { vst1q_u8(static_cast<uint8_t*>(p), as_bytes(v)); }
STOKER_INLINE void store(float* p, Floats v) { vst1q_f32(p, v); }

STOKER_INLINE Ints ints(int x) { return vdupq_n_s32(x); }
STOKER_INLINE Ints bytes(int x) { return as_ints(vdupq_n_u8(static_cast<uint8_t>(x))); }
STOKER_INLINE Floats floats(float x) { return vdupq_n_f32(x); }
// The 4 bytes at p in every lane.
STOKER_INLINE Ints word_of(const void* p) {
  int32_t x;
  __builtin_memcpy(&x, p, sizeof x);
  return vdupq_n_s32(x);
}

// Of 8 sums of activations: as floats; times x.
STOKER_INLINE void eight_floats(const int16_t* sums, float* out) {
  const int16x8_t eight = vld1q_s16(sums);
  vst1q_f32(out, vcvtq_f32_s32(vmovl_s16(vget_low_s16(eight))));
  vst1q_f32(out + 4, vcvtq_f32_s32(vmovl_high_s16(eight)));
}
STOKER_INLINE void eight_times(const int16_t* sums, int x, int32_t* out) {
  const int16x8_t eight = vld1q_s16(sums);
  const auto factor = static_cast<int16_t>(x);
  vst1q_s32(out, vmull_n_s16(vget_low_s16(eight), factor));
  vst1q_s32(out + 4, vmull_high_n_s16(eight, factor));
}
// From 16 sums to those of neighbours.
STOKER_INLINE void add_neighbours(const int16_t* sums, int16_t* out) {
  vst1q_s16(out, vpaddq_s16(vld1q_s16(sums), vld1q_s16(sums + 8)));
}

STOKER_INLINE Ints both(Ints a, Ints b) { return vandq_s32(a, b); }
STOKER_INLINE Ints either(Ints a, Ints b) { return vorrq_s32(a, b); }
STOKER_INLINE Ints shift_left(Ints v, int n) { return vshlq_s32(v, vdupq_n_s32(n)); }
STOKER_INLINE Ints shift_right(Ints v, int n) {
  return vreinterpretq_s32_u32(vreinterpretq_u32_s32(v) >> vdupq_n_u32(static_cast<uint32_t>(n)));
}
STOKER_INLINE Ints shift_right_signed(Ints v, int n) { return v >> vdupq_n_s32(n); }
STOKER_INLINE Ints shift_left_by(Ints v, Ints n) { return vshlq_s32(v, n); }
// Shifts that let bits cross from byte to byte inside 16 bits: the caller masks.
STOKER_INLINE Ints bits_up(Ints v, int n) {
  return vreinterpretq_s32_u16(vreinterpretq_u16_s32(v) << vdupq_n_u16(static_cast<uint16_t>(n)));
}
STOKER_INLINE Ints bits_down(Ints v, int n) {
  return vreinterpretq_s32_u16(vreinterpretq_u16_s32(v) >> vdupq_n_u16(static_cast<uint16_t>(n)));
}

STOKER_INLINE Ints add(Ints a, Ints b) { return vaddq_s32(a, b); }
STOKER_INLINE Ints add_bytes(Ints a, Ints b) { return as_ints(vaddq_u8(as_bytes(a), as_bytes(b))); }
STOKER_INLINE Ints mul(Ints a, Ints b) { return vmulq_s32(a, b); }
STOKER_INLINE Ints select_less(Ints a, Ints b, Ints yes, Ints no) { return vbslq_s32(vcltq_s32(a, b), yes, no); }
// v + x in the bytes where test has the one bit of `bit`.
STOKER_INLINE Ints add_where(Ints v, int x, Ints test, Ints bit) {
  return add_bytes(v, both(as_ints(vtstq_u8(as_bytes(test), as_bytes(bit))), bytes(x)));
}

// 16 bytes as a table, and its entries for indices 0 ... 15.
STOKER_INLINE Ints table_of(const uint8_t (&codes)[16]) { return as_ints(vld1q_u8(codes)); }
STOKER_INLINE Ints look_up(Ints table, Ints index) { return as_ints(vqtbl1q_u8(as_bytes(table), as_bytes(index))); }

STOKER_INLINE Floats fma(Floats a, Floats b, Floats c) { return vfmaq_f32(c, a, b); }
STOKER_INLINE Floats fma_minus(Floats a, Floats b, Floats c) { return vfmaq_f32(vnegq_f32(c), a, b); }
STOKER_INLINE Floats mul(Floats a, Floats b) { return vmulq_f32(a, b); }
STOKER_INLINE Floats to_floats(Ints v) { return vcvtq_f32_s32(v); }
STOKER_INLINE Floats as_floats(Ints v) { return vreinterpretq_f32_s32(v); }
STOKER_INLINE Ints as_ints(Floats v) { return vreinterpretq_s32_f32(v); }

// 4 consecutive f16; the f16 in the low half of every lane; in the high half; 4 consecutive bytes.
STOKER_INLINE Floats halves(const void* p) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(static_cast<const uint8_t*>(p))));
}
STOKER_INLINE Floats low_halves(Ints v) { return vcvt_f32_f16(vreinterpret_f16_s16(vmovn_s32(v))); }
STOKER_INLINE Floats high_halves(Ints v) { return vcvt_f32_f16(vreinterpret_f16_s16(vshrn_n_s32(v, 16))); }
STOKER_INLINE Ints exponents(const void* p) {
  uint32_t four;
  __builtin_memcpy(&four, p, sizeof four);
  const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(words)));
}

// A line that is read soon, of a stream in order: into the first-level cache.
STOKER_INLINE void touch(const void* p) { __builtin_prefetch(p, 0, 3); }
// Into the second-level cache.
STOKER_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

}  // namespace
}  // namespace stoker::kernels::neon
