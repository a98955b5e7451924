// Lines: d and the high bits of the scales, their low nibbles, 32 of indices of a table of 16 levels.
#include "kernels/avx512/matmul_256.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

// The levels of IQ4_NL, 128 higher.
constexpr uint8_t kLevels[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

struct Iq4Xs {
  static constexpr int kLines = 34, kHeader = 0, kSubs = 8, kOffset = 128, kPeriod = 1;
  static constexpr bool kHasMin = false, kJumps = false;
  static STOKER_INLINE void decode(const uint8_t* lines, int part, int, Ints (&v)[8]) {
    const Ints levels = table_of(kLevels);
    STOKER_UNROLL for (int i = 0; i < 4; ++i) {
      const Ints x = load(lines + (2 + 4 * part + i) * kLine);
      v[i] = look_up(levels, both(x, bytes(15)));
      v[i + 4] = look_up(levels, both(bits_down(x, 4), bytes(15)));
    }
  }
  static STOKER_INLINE Ints sub_scale(const uint8_t* lines, int j) {
    const Ints low = nibble_of(load(lines + kLine), j);
    const Ints high = both(shift_right(load(lines), 16 + 2 * j), ints(3));
    return _mm512_sub_epi32(either(low, shift_left(high, 4)), ints(32));
  }
  static STOKER_INLINE Floats scale(const uint8_t* lines, const uint8_t*) { return low_halves(load(lines)); }
};

}  // namespace

const MatmulKernels kMatmulIq4Xs = kernels_of<Family256<Iq4Xs>>();

}  // namespace stoker::kernels::avx512
