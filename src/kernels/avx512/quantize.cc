// The activation quantizers: 256 values are 16 vectors.
#include "kernels/avx512/functions.h"
#include "kernels/avx512/simd.h"

namespace stoker::kernels::avx512 {
namespace {

constexpr int kSuper = 256;
constexpr uint32_t kInfinityBits = 0x7f800000u;

/// For 8 blocks of 32 at once: the inverses of their scales; false when one is not finite. `tops` are the largest
/// magnitudes, 16 lanes per block.
STOKER_INLINE bool scales_of_32(const Ints (&tops)[8], float* d, float* inverses) {
  __m256i half[8];
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    half[i] = _mm256_max_epu32(_mm512_castsi512_si256(tops[i]), _mm512_extracti64x4_epi64(tops[i], 1));
  }
  // Transposes while it takes maxima: 8 vectors of 8 lanes become one.
  const auto max_32 = [](__m256i a, __m256i b) {
    return _mm256_max_epu32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  };
  const auto max_64 = [](__m256i a, __m256i b) {
    return _mm256_max_epu32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
  };
  const __m256i low = max_64(max_32(half[0], half[1]), max_32(half[2], half[3]));
  const __m256i high = max_64(max_32(half[4], half[5]), max_32(half[6], half[7]));
  const __m256i top =
      _mm256_max_epu32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));

  const __m256 amax = _mm256_castsi256_ps(top);
  const __m256 scale = _mm256_div_ps(amax, _mm256_set1_ps(127.0f));
  const __mmask8 big = _mm256_cmp_ps_mask(amax, _mm256_set1_ps(0x1p-100f), _CMP_GE_OQ);
  _mm256_storeu_ps(d, _mm256_maskz_mov_ps(big, scale));
  _mm256_storeu_ps(inverses, _mm256_maskz_div_ps(big, _mm256_set1_ps(1.0f), scale));
  return _mm256_cmpge_epu32_mask(top, _mm256_set1_epi32(static_cast<int>(kInfinityBits))) == 0;
}

STOKER_INLINE bool scale_of_256(const Ints (&tops)[8], float* d, float* inverses) {
  Ints all = tops[0];
  STOKER_UNROLL for (int i = 1; i < 8; ++i) all = max_unsigned(all, tops[i]);
  const uint32_t top = max_unsigned_lane(all);
  float amax;
  __builtin_memcpy(&amax, &top, sizeof amax);
  const bool big = amax >= 0x1p-100f;
  *d = big ? amax / 127.0f : 0.0f;
  *inverses = big ? 1.0f / *d : 0.0f;
  return top < kInfinityBits;
}

/// The 16 sums of 16 consecutive values each.
STOKER_INLINE __m256i sums_of_16(const int8_t* q) {
  Ints by_4[4];  // Sums of 4; each 128-bit quarter is a run of 16.
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    by_4[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), load_ints(q + 64 * i));
  }
  const auto add_32 = [](Ints a, Ints b) {
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  };
  const Ints low = add_32(by_4[0], by_4[1]), high = add_32(by_4[2], by_4[3]);
  const Ints sums = _mm512_add_epi32(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
  // Lane i of quarter c is now the sum of quarter c of vector i.
  const Ints order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_cvtepi32_epi16(_mm512_permutexvar_epi32(order, sums));
}

template <int kBlock>
STOKER_INLINE bool quantize_super(const float* x, int8_t* q, float* d, int16_t* sums) {
  Floats v[16];
  Ints tops[8];  // The largest magnitudes of 32 values, as integers: NaN and infinity win.
  STOKER_UNROLL for (int i = 0; i < 16; ++i) v[i] = load_floats(x + 16 * i);
  STOKER_UNROLL for (int i = 0; i < 8; ++i) {
    tops[i] = max_unsigned(to_bits(magnitude(v[2 * i])), to_bits(magnitude(v[2 * i + 1])));
  }
  float inverses[8];
  const bool finite = kBlock == 32 ? scales_of_32(tops, d, inverses) : scale_of_256(tops, d, inverses);
  if (!finite) return false;
  STOKER_UNROLL for (int i = 0; i < 16; ++i) {
    const Ints rounded = _mm512_cvtps_epi32(mul(v[i], floats(inverses[kBlock == 32 ? i / 2 : 0])));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16 * i), _mm512_cvtepi32_epi8(rounded));
  }
  const __m256i by_16 = sums_of_16(q);
  if (kBlock == 256) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), by_16);
  } else {
    const __m256i by_32 = _mm256_madd_epi16(by_16, _mm256_set1_epi16(1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums), _mm256_cvtepi32_epi16(by_32));
  }
  return true;
}

#include "kernels/vec/quantize.inc.h"

}  // namespace

void quantize_a256(const QuantizeArgs& a) noexcept { quantize<256, 16>(a); }
void quantize_a32(const QuantizeArgs& a) noexcept { quantize<32, 32>(a); }

}  // namespace stoker::kernels::avx512
