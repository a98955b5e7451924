// Lines: the fifth bits, then 32 nibbles, 16 above the weights together. Header: f16 scales.
#include "kernels/avx512/matmul_32.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q5_0 {
  static constexpr int kLines = 5, kHeader = 32, kOffset = 16;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines + kLine, v);
    add_fifth_bits(load(lines), v);
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

}  // namespace

const MatmulKernels kMatmulQ5_0 = kernels_of<Family32<Q5_0>>();

}  // namespace stoker::kernels::avx512
