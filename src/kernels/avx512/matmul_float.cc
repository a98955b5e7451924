#include "kernels/avx512/matmul_float.h"

#include "kernels/avx512/matmul_types.h"

namespace stoker::kernels::avx512 {
namespace {

struct F32 {
  static constexpr int kPairBytes = 128;
  static STOKER_INLINE Floats even(const uint8_t* w) { return _mm512_loadu_ps(w); }
  static STOKER_INLINE Floats odd(const uint8_t* w) { return _mm512_loadu_ps(w + 64); }
};

struct F16 {
  static constexpr int kPairBytes = 64;
  static STOKER_INLINE Floats even(const uint8_t* w) { return halves(w); }
  static STOKER_INLINE Floats odd(const uint8_t* w) { return halves(w + 32); }
};

// Two neighbours in a lane; an odd k has a zero in the last high half, which is never multiplied.
struct Bf16 {
  static constexpr int kPairBytes = 64;
  static STOKER_INLINE Floats even(const uint8_t* w) { return _mm512_castsi512_ps(shift_left(load(w), 16)); }
  static STOKER_INLINE Floats odd(const uint8_t* w) {
    return _mm512_castsi512_ps(both(load(w), ints(static_cast<int>(0xffff0000))));
  }
};

}  // namespace

const MatmulKernels kMatmulF32 = kernels_of<FamilyFloat<F32>>();
const MatmulKernels kMatmulF16 = kernels_of<FamilyFloat<F16>>();
const MatmulKernels kMatmulBf16 = kernels_of<FamilyFloat<Bf16>>();

}  // namespace stoker::kernels::avx512
