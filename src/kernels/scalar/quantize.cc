// The activation quantizers, as docs/kernels.md defines them.
#include <cstring>

#include "kernels/scalar/functions.h"
#include "kernels/scalar/numbers.h"

namespace stoker::kernels::scalar {
namespace {

constexpr int kSuper = 256;

/// Quantizes `n` values with one scale, which it returns. A block that is not finite gives zeros and sets `bad`.
float quantize_block(const float* x, int n, int8_t* q, bool& bad) {
  // As an integer the maximum does not depend on the order, and NaN and infinity win it.
  uint32_t top = 0;
  for (int i = 0; i < n; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu;
    top = magnitude > top ? magnitude : top;
  }
  bad |= top >= kInfinityBits;
  const float amax = std::bit_cast<float>(top);
  // Below 2^-100 the inverse of the scale comes near infinity; such a block is zero for all that follows.
  if (top >= kInfinityBits || amax < 0x1p-100f) {
    std::memset(q, 0, static_cast<size_t>(n));
    return 0.0f;
  }
  const float d = amax / 127.0f;
  const float inverse = 1.0f / d;
  for (int i = 0; i < n; ++i) q[i] = static_cast<int8_t>(round_to_int(x[i] * inverse));
  return d;
}

/// One super-block of at most 256 values, with one scale per kBlock of them.
template <int kBlock>
bool quantize_super(const float* x, int n, int8_t* q, float* d) {
  bool bad = false;
  std::memset(q, 0, kSuper);
  for (int begin = 0; begin < kSuper; begin += kBlock) {
    const int size = n - begin < kBlock ? n - begin : kBlock;
    d[begin / kBlock] = size > 0 ? quantize_block(x + begin, size, q + begin, bad) : 0.0f;
  }
  return bad;
}

void sum_blocks(const int8_t* q, int block, int16_t* sums) {
  for (int begin = 0; begin < kSuper; begin += block) {
    int sum = 0;
    for (int i = 0; i < block; ++i) sum += q[begin + i];
    sums[begin / block] = static_cast<int16_t>(sum);
  }
}

template <int kBlock, int kSumBlock>
void quantize(const QuantizeArgs& a) {
  const int64_t n_super = (a.k + kSuper - 1) / kSuper;
  for (int64_t row = a.row_begin; row < a.row_end; ++row) {
    bool bad = false;
    for (int64_t s = 0; s < n_super; ++s) {
      const int64_t left = a.k - s * kSuper;
      const int64_t entry = s * a.n + row;
      int8_t* q = a.q + entry * kSuper;
      bad |= quantize_super<kBlock>(a.x + row * a.stride + s * kSuper, static_cast<int>(left < kSuper ? left : kSuper),
                                    q, a.d + entry * (kSuper / kBlock));
      sum_blocks(q, kSumBlock, a.sums + entry * (kSuper / kSumBlock));
    }
    if (bad && a.bad != nullptr) a.bad[row] = 1;
  }
}

}  // namespace

void quantize_a256(const QuantizeArgs& a) noexcept { quantize<256, 16>(a); }
void quantize_a32(const QuantizeArgs& a) noexcept { quantize<32, 32>(a); }

}  // namespace stoker::kernels::scalar
