// The activation quantizers: 32 values are 4 vectors.
#include "kernels/avx2/functions.h"
#include "kernels/avx2/simd.h"

namespace stoker::kernels::avx2 {
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
  STOKER_UNROLL for (int i = 1; i < 4; ++i) top = max_unsigned(top, to_bits(magnitude(load_floats(x + 8 * i))));
  return top;
}

/// Rounds 32 values and returns their sums over 16, in lanes 0 and 4.
STOKER_INLINE Ints quantize_32(const float* x, float inverse, int8_t* q) {
  Ints v[4];
  STOKER_UNROLL for (int i = 0; i < 4; ++i) v[i] = _mm256_cvtps_epi32(mul(load_floats(x + 8 * i), floats(inverse)));
  // The packs work on 128-bit halves; words 0 4 1 5 2 6 3 7 are the values in order.
  const Ints packed = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  const Ints bytes = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  store_ints(q, bytes);
  const Ints by_2 = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  Ints sums = _mm256_madd_epi16(by_2, _mm256_set1_epi16(1));
  sums = add_ints(sums, _mm256_shuffle_epi32(sums, 0x4e));
  return add_ints(sums, _mm256_shuffle_epi32(sums, 0xb1));
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
    const Ints by_16 = quantize_32(x + 32 * i, inverses[kBlock == 32 ? i : 0], q + 32 * i);
    const int low = _mm256_extract_epi32(by_16, 0), high = _mm256_extract_epi32(by_16, 4);
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

}  // namespace stoker::kernels::avx2
