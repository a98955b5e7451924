// Lines: 32 indices of a table of 16 levels. Header: f16 scales.
#include "kernels/avx512/matmul_32.h"
#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

// The levels, 128 higher.
constexpr uint8_t kLevels[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

struct Iq4Nl {
  static constexpr int kLines = 4, kHeader = 32, kOffset = 128;
  static constexpr bool kHasMin = false;
  static STOKER_INLINE void decode(const uint8_t* lines, Ints (&v)[8]) {
    split_nibbles(lines, v);
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = look_up(table_of(kLevels), v[i]);
  }
  static STOKER_INLINE Floats scale(const uint8_t*, const uint8_t* header) { return halves(header); }
};

}  // namespace

const MatmulKernels kMatmulIq4Nl = kernels_of<Family32<Iq4Nl>>();

}  // namespace stoker::kernels::avx512
