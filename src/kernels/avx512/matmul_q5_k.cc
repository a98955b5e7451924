// Lines: d and dmin, three of 6-bit scales and minimums, 8 of fifth bits (bit j for sub-block j), 32 of nibbles.
#include "kernels/avx512/matmul_256.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q5K {
  static constexpr int kLines = 44, kHeader = 0, kSubs = 8, kOffset = 0, kPeriod = 2;
  static constexpr bool kHasMin = true, kJumps = false;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const Ints low = both(bits_down(load(lines + (12 + 8 * part + i) * kLine), 4 * c), bytes(15));
      const Ints bits = bits_down(load(lines + (4 + i) * kLine), 2 * part);
      v[i] = either(low, both(bits_up(bits, 4 - c), bytes(16)));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) { return six_bit_scale(lines, j); }
  static STOKER_INLINE Ints sub_min(const uint8_t* lines, int j) { return six_bit_min(lines, j); }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
  static STOKER_INLINE Floats min(const uint8_t* lines) { return high_halves(load(lines)); }
};

}  // namespace

const MatmulKernels kMatmulQ5K = kernels_of<Family256<Q5K>>();

}  // namespace stoker::kernels::avx512
