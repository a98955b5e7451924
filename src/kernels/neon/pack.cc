#include "kernels/neon/matmul_simd.h"
#include "kernels/neon/matmul_types.h"
#include "kernels/r16.h"

namespace stoker::kernels::neon {
namespace {

// The 4 words at `rows` of 4 rows: words[w] has word w of each.
STOKER_INLINE void transpose(const std::byte* rows, int64_t row_bytes, Ints (&words)[4]) {
  const auto zip_low = [](Ints a, Ints b) {
    return vreinterpretq_s32_s64(vzip1q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  };
  const auto zip_high = [](Ints a, Ints b) {
    return vreinterpretq_s32_s64(vzip2q_s64(vreinterpretq_s64_s32(a), vreinterpretq_s64_s32(b)));
  };
  Ints row[4];
  STOKER_UNROLL for (int i = 0; i < 4; ++i) row[i] = load(rows + i * row_bytes);
  const Ints even_01 = vtrn1q_s32(row[0], row[1]), odd_01 = vtrn2q_s32(row[0], row[1]);
  const Ints even_23 = vtrn1q_s32(row[2], row[3]), odd_23 = vtrn2q_s32(row[2], row[3]);
  words[0] = zip_low(even_01, even_23);
  words[1] = zip_low(odd_01, odd_23);
  words[2] = zip_high(even_01, even_23);
  words[3] = zip_high(odd_01, odd_23);
}

// Ordinary stores: four of them make a line, which the processor notices.
STOKER_INLINE void stream(std::byte* p, Ints v) { store(p, v); }
// The low halves of the lanes to p, the high ones behind those of all 16 rows.
STOKER_INLINE void stream_halves(std::byte* p, Ints v) {
  vst1_s16(reinterpret_cast<int16_t*>(p), vmovn_s32(v));
  vst1_s16(reinterpret_cast<int16_t*>(p + 32), vshrn_n_s32(v, 16));
}
STOKER_INLINE void finish_streams() {}

#include "kernels/vec/pack.inc.h"

}  // namespace

#include "kernels/vec/pack_kernels.inc.h"

}  // namespace stoker::kernels::neon
