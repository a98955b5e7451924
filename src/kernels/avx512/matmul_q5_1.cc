// Lines: f16 scale and minimum, the fifth bits, then 32 nibbles.
#include "kernels/avx512/matmul_32.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q5_1 {
  static constexpr int kLines = 6, kHeader = 0, kOffset = 0;
  static constexpr bool kHasMin = true;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines + 2 * kLine, v);
    add_fifth_bits(load(lines + kLine), v);
  }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines)); }
};

}  // namespace

const MatmulKernels kMatmulQ5_1 = kernels_of<Family32<Q5_1>>();

}  // namespace stoker::kernels::avx512
