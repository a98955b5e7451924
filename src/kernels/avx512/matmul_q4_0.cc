// Lines: 32 nibbles, 8 above the weights. Header: f16 scales.
#include "kernels/avx512/matmul_32.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q4_0 {
  static constexpr int kLines = 4, kHeader = 32, kOffset = 8;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) { split_nibbles(lines, v); }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

}  // namespace

const MatmulKernels kMatmulQ4_0 = kernels_of<Family32<Q4_0>>();

}  // namespace stoker::kernels::avx512
