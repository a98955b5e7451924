// Lines: the 32 signed bytes. Header: f16 scales.
#include "kernels/avx512/matmul_32.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q8_0 {
  static constexpr int kLines = 8, kHeader = 32, kOffset = 128;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = _mm512_xor_si512(load(lines + i * kLine), bytes(0x80));
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

}  // namespace

const MatmulKernels kMatmulQ8_0 = kernels_of<Family32<Q8_0>>();

}  // namespace stoker::kernels::avx512
