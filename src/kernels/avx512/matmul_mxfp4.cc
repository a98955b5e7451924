// Lines: 32 four-bit floats (E2M1). Header: one exponent byte per row (E8M0).
#include "kernels/avx512/matmul_32.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

// The doubled values 0, 1, 2, 3, 4, 6, 8, 12 and their negatives, 12 higher.
constexpr uint8_t kLevels[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

struct Mxfp4 {
  static constexpr int kLines = 4, kHeader = 16, kOffset = 12;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines, v);
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = look_up(table_of(kLevels), v[i]);
  }
  // 2^(e - 128), because the values are doubled; e = 0 and 1 are denormal.
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) {
    const Ints e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(header)));
    const Ints normal = shift_left(_mm512_sub_epi32(e, ints(1)), 23);
    const Ints denormal = _mm512_sllv_epi32(ints(0x00200000), e);
    return _mm512_castsi512_ps(_mm512_mask_mov_epi32(normal, _mm512_cmplt_epu32_mask(e, ints(2)), denormal));
  }
};

}  // namespace

const MatmulKernels kMatmulMxfp4 = kernels_of<Family32<Mxfp4>>();

}  // namespace stoker::kernels::avx512
