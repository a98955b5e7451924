// Lines: d and dmin, three of 6-bit scales and minimums, 32 of nibbles; sub-blocks 2 p and 2 p + 1 share 8 lines.
#include "kernels/avx512/matmul_256.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q4K {
  static constexpr int kLines = 36, kHeader = 0, kSubs = 8, kOffset = 0, kPeriod = 2;
  static constexpr bool kHasMin = true, kJumps = false;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      v[i] = both(bits_down(load(lines + (4 + 8 * part + i) * kLine), 4 * c), bytes(15));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) { return six_bit_scale(lines, j); }
  static STOKER_INLINE Ints sub_min(const uint8_t* lines, int j) { return six_bit_min(lines, j); }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines)); }
};

}  // namespace

const MatmulKernels kMatmulQ4K = kernels_of<Family256<Q4K>>();

}  // namespace stoker::kernels::avx512
