// The activation quantizers: 32 values are 8 vectors.
#include "kernels/neon/functions.h"
#include "kernels/neon/simd.h"

namespace stoker::kernels::neon {
namespace {

constexpr int kSuper = 256;
constexpr uint32_t kInfinityBits = 0x7f800000u;

/// The scale of a block whose largest magnitude has the bits `top`, and its inverse.
STOKER_INLINE float scale_of(uint32_t top, float& inverse) {
  float amax;
  __builtin_memcpy(&amax, &top, sizeof amax);
  const bool big = amax >= 0x1p-100f;
  const float d = amax / 127.0f;
  inverse = big ? 1.0f / d : 0.0f;
  return big ? d : 0.0f;
}

/// The largest magnitudes of 32 values, as integers: NaN and infinity win.
STOKER_INLINE Ints top_of_32(const float* x) {
  Ints top = to_bits(magnitude(load_floats(x)));
  STOKER_UNROLL for (int i = 1; i < 8; ++i) top = max_unsigned(top, to_bits(magnitude(load_floats(x + 4 * i))));
  return top;
}

/// Rounds 16 values and returns their sum.
STOKER_INLINE int quantize_16(const float* x, float inverse, int8_t* q) {
  int16x4_t v[4];
  STOKER_UNROLL for (int i = 0; i < 4; ++i) v[i] =
      vmovn_s32(vcvtnq_s32_f32(mul(load_floats(x + 4 * i), floats(inverse))));
  const int8x16_t rounded = vcombine_s8(vmovn_s16(vcombine_s16(v[0], v[1])), vmovn_s16(vcombine_s16(v[2], v[3])));
  vst1q_s8(q, rounded);
  return vaddlvq_s8(rounded);
}

template <int kBlock>
STOKER_INLINE bool quantize_super(const float* x, int8_t* q, float* d, int16_t* sums) {
  float inverses[8];
  Ints all = ints(0);
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    const Ints top = top_of_32(x + 32 * i);
    all = max_unsigned(all, top);
    if (kBlock == 32) d[i] = scale_of(max_unsigned_lane(top), inverses[i]);
  }
  const uint32_t top = max_unsigned_lane(all);
  if (top >= kInfinityBits) return false;
  if (kBlock == 256) *d = scale_of(top, inverses[0]);
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    const float inverse = inverses[kBlock == 32 ? i : 0];
    const int low = quantize_16(x + 32 * i, inverse, q + 32 * i);
    const int high = quantize_16(x + 32 * i + 16, inverse, q + 32 * i + 16);
    if (kBlock == 256) {
      sums[2 * i] = static_cast<int16_t>(low);
      sums[2 * i + 1] = static_cast<int16_t>(high);
    } else {
      sums[i] = static_cast<int16_t>(low + high);
    }
  }
  return true;
}

#include "kernels/vec/quantize.inc.h"

}  // namespace

void quantize_a256(const QuantizeArgs& a) noexcept { quantize<256, 16>(a); }
void quantize_a32(const QuantizeArgs& a) noexcept { quantize<32, 32>(a); }

}  // namespace stoker::kernels::neon
