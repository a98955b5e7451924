// Lines: 4 of nibble pairs (scale, minimum), 16 of two-bit weights, d and dmin.
#include "kernels/avx512/matmul_256.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q2K {
  static constexpr int kLines = 21, kHeader = 0, kSubs = 16, kOffset = 0, kPeriod = 4;
  static constexpr bool kHasMin = true, kJumps = false;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      v[i] = both(bits_down(load(lines + (4 + 8 * part + i) * kLine), 2 * c), bytes(3));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    return nibble_of(load(lines + j / 4 * kLine), 2 * (j % 4));
  }
  static STOKER_INLINE Ints sub_min(const uint8_t* lines, int j) {
    return nibble_of(load(lines + j / 4 * kLine), 2 * (j % 4) + 1);
  }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) {
    return low_halves(load(lines + 20 * kLine));
  }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines + 20 * kLine)); }
};

}  // namespace

const MatmulKernels kMatmulQ2K = kernels_of<Family256<Q2K>>();

}  // namespace stoker::kernels::avx512
