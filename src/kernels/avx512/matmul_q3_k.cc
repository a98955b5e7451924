// Lines: 8 of third bits (bit c for weights 32 c ...), 16 of two-bit weights, 3 of 6-bit scales. Header: f16 d.
#include "kernels/avx512/matmul_256.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q3K {
  static constexpr int kLines = 27, kHeader = 32, kSubs = 16, kOffset = 4, kPeriod = 4;
  static constexpr bool kHasMin = false, kJumps = true;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const Ints low = bits_down(load(lines + (8 + 8 * part + i) * kLine), 2 * c);
      const Ints bits = bits_down(load(lines + i * kLine), 4 * part);
      const Ints high = c < 2 ? bits_up(bits, 2 - c) : bits_down(bits, c - 2);
      v[i] = either(both(low, bytes(3)), both(high, bytes(4)));
    }
  }
  // Low nibbles in two lines (low halves of the bytes first), pairs of high bits in the third; 32 above the scale.
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    const Ints low = nibble_of(load(lines + (24 + j / 4 % 2) * kLine), 2 * (j % 4) + j / 8);
    const Ints high = both(shift_right(load(lines + 26 * kLine), 8 * (j % 4) + 2 * (j / 4)), ints(3));
    return _mm512_sub_epi32(either(low, shift_left(high, 4)), ints(32));
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

}  // namespace

const MatmulKernels kMatmulQ3K = kernels_of<Family256<Q3K>>();

}  // namespace stoker::kernels::avx512
