#include "kernels/avx2/matmul_simd.h"
#include "kernels/avx2/matmul_types.h"
#include "kernels/r16.h"

namespace stoker::kernels::avx2 {
namespace {

// The 4 words at `rows` of 8 rows: words[w] has word w of each.
STOKER_INLINE void transpose(const std::byte* rows, int64_t row_bytes, Ints (&words)[4]) {
  Ints pairs[4];  // Rows i and 4 + i.
  STOKER_UNROLL for (int i = 0; i < 4; ++i) {
    const auto row = [&](int r) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + r * row_bytes)); };
    pairs[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(row(i)), row(4 + i), 1);
  }
  const Ints a = _mm256_unpacklo_epi32(pairs[0], pairs[1]), b = _mm256_unpackhi_epi32(pairs[0], pairs[1]);
  const Ints c = _mm256_unpacklo_epi32(pairs[2], pairs[3]), d = _mm256_unpackhi_epi32(pairs[2], pairs[3]);
  words[0] = _mm256_unpacklo_epi64(a, c);
  words[1] = _mm256_unpackhi_epi64(a, c);
  words[2] = _mm256_unpacklo_epi64(b, d);
  words[3] = _mm256_unpackhi_epi64(b, d);
}

STOKER_INLINE void stream(std::byte* p, Ints v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), v); }
STOKER_INLINE __m128i narrow(Ints v) {
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08));
}
// The low halves of the lanes to p, the high ones behind those of all 16 rows.
STOKER_INLINE void stream_halves(std::byte* p, Ints v) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), narrow(both(v, ints(0xffff))));
  _mm_stream_si128(reinterpret_cast<__m128i*>(p + 32), narrow(shift_right(v, 16)));
}
STOKER_INLINE void finish_streams() { _mm_sfence(); }

#include "kernels/vec/pack.inc.h"

}  // namespace

#include "kernels/vec/pack_kernels.inc.h"

}  // namespace stoker::kernels::avx2
