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

const PackFn kPackF32 = pack<gguf::TensorType::kF32>;
const PackFn kPackF16 = pack_f16;
const PackFn kPackBf16 = pack<gguf::TensorType::kBF16>;
const PackFn kPackQ4_0 = pack<gguf::TensorType::kQ4_0>;
const PackFn kPackQ4_1 = pack<gguf::TensorType::kQ4_1>;
const PackFn kPackQ5_0 = pack<gguf::TensorType::kQ5_0>;
const PackFn kPackQ5_1 = pack<gguf::TensorType::kQ5_1>;
const PackFn kPackQ8_0 = pack<gguf::TensorType::kQ8_0>;
const PackFn kPackIq4Nl = pack<gguf::TensorType::kIQ4NL>;
const PackFn kPackMxfp4 = pack<gguf::TensorType::kMXFP4>;
const PackFn kPackQ2K = pack<gguf::TensorType::kQ2K>;
const PackFn kPackQ3K = pack<gguf::TensorType::kQ3K>;
const PackFn kPackQ4K = pack<gguf::TensorType::kQ4K>;
const PackFn kPackQ5K = pack<gguf::TensorType::kQ5K>;
const PackFn kPackQ6K = pack<gguf::TensorType::kQ6K>;
const PackFn kPackIq4Xs = pack<gguf::TensorType::kIQ4XS>;

}  // namespace stoker::kernels::neon
