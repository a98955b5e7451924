// Lines: 32 of low nibbles, 16 of two high bits, 4 of signed scales; weights are 32 lower. Header: f16 d.
#include "kernels/avx512/matmul_256.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct Q6K {
  static constexpr int kLines = 52, kHeader = 32, kSubs = 16, kOffset = 32, kPeriod = 4;
  static constexpr bool kHasMin = false, kJumps = true;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int c, Ints (&v)[8]) {
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const Ints low = bits_down(load(lines + (16 * part + 8 * (c % 2) + i) * kLine), 4 * (c / 2));
      const Ints bits = load(lines + (32 + 8 * part + i) * kLine);
      const Ints high = c < 2 ? bits_up(bits, 4 - 2 * c) : bits_down(bits, 2 * c - 4);
      v[i] = either(both(low, bytes(15)), both(high, bytes(0x30)));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    return _mm512_srai_epi32(shift_left(load(lines + (48 + j / 4) * kLine), 24 - 8 * (j % 4)), 24);
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

}  // namespace

const MatmulKernels kMatmulQ6K = kernels_of<Family256<Q6K>>();

}  // namespace stoker::kernels::avx512
