#include "kernels/avx512/matmul_simd.h"
#include "kernels/avx512/matmul_types.h"
#include "kernels/r16.h"

namespace stoker::kernels::avx512 {
namespace {

// The 4 words at `rows` of 16 rows: words[w] has word w of each.
STOKER_INLINE void transpose(const std::byte* rows, int64_t row_bytes, Ints (&words)[4]) {
  Ints quads[4];  // Rows i, 4 + i, 8 + i and 12 + i.
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    const auto row = [&](int r) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + r * row_bytes)); };
    quads[i] = _mm512_castsi128_si512(row(i));
    quads[i] = _mm512_mask_broadcast_i32x4(quads[i], 0x00f0, row(4 + i));
    quads[i] = _mm512_mask_broadcast_i32x4(quads[i], 0x0f00, row(8 + i));
    quads[i] = _mm512_mask_broadcast_i32x4(quads[i], 0xf000, row(12 + i));
  }
  const Ints a = _mm512_unpacklo_epi32(quads[0], quads[1]), b = _mm512_unpackhi_epi32(quads[0], quads[1]);
  const Ints c = _mm512_unpacklo_epi32(quads[2], quads[3]), d = _mm512_unpackhi_epi32(quads[2], quads[3]);
  words[0] = _mm512_unpacklo_epi64(a, c);
  words[1] = _mm512_unpackhi_epi64(a, c);
  words[2] = _mm512_unpacklo_epi64(b, d);
  words[3] = _mm512_unpackhi_epi64(b, d);
}

STOKER_INLINE void stream(std::byte* p, Ints v) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), v); }
// The low halves of the lanes to p, the high ones behind those of all 16 rows.
STOKER_INLINE void stream_halves(std::byte* p, Ints v) {
  const __m256i low = _mm512_cvtepi32_epi16(v), high = _mm512_cvtepi32_epi16(shift_right(v, 16));
  stream(p, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
}
STOKER_INLINE void finish_streams() { _mm_sfence(); }

#include "kernels/vec/pack.inc.h"

}  // namespace

#include "kernels/vec/pack_kernels.inc.h"

}  // namespace stoker::kernels::avx512
