#include <algorithm>

#include "kernels/scalar/exact_fma.h"
#include "kernels/scalar/group.h"
#include "kernels/scalar/matmul.h"
#include "quant/iq4.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"

namespace stoker::kernels::scalar {
namespace {

constexpr int kWeights = 256;
constexpr int kSums = 16;  // Per super-block: sums of 16 activations.

// Super-block s of 16 rows. Sub-scale times level is an exact integer below 2^13, so the whole block is one sum.
struct Panel {
  alignas(64) int16_t w[kGroupRows][kWeights];
  int16_t mins[kGroupRows][kSums];
  float d[kGroupRows];
  float dmin[kGroupRows];
};

template <class Type>
void read_panel(const std::byte* group, int64_t k, int64_t index, Panel& panel) {
  for (int lane = 0; lane < kGroupRows; ++lane) {
    const auto block = read_block<Type>({group, k, lane}, index);
    int8_t q[kWeights], scales[kWeights / Type::kSubBlock];
    Type::levels(block, q);
    if constexpr (Type::kHasMin) {
      int8_t mins[kWeights / Type::kSubBlock];
      Type::scales(block, scales, mins);
      for (int i = 0; i < kSums; ++i) panel.mins[lane][i] = mins[i * 16 / Type::kSubBlock];
      panel.dmin[lane] = Type::minimum(block);
    } else {
      Type::scales(block, scales);
    }
    for (int j = 0; j < kWeights; j += Type::kSubBlock) {
      const int16_t scale = scales[j / Type::kSubBlock];
      for (int i = j; i < j + Type::kSubBlock; ++i) panel.w[lane][i] = static_cast<int16_t>(scale * q[i]);
    }
    panel.d[lane] = Type::scale(block);
  }
}

template <class Type>
void add_block(const Panel& panel, const int8_t* a, float da, const int16_t* sums, float* y) {
  int16_t wide[kWeights];
  std::copy_n(a, kWeights, wide);
  float dot[kGroupRows], min_dot[kGroupRows];
  for (int lane = 0; lane < kGroupRows; ++lane) {
    int32_t total = 0;
    for (int i = 0; i < kWeights; ++i) total += panel.w[lane][i] * wide[i];
    dot[lane] = static_cast<float>(total);
    if constexpr (Type::kHasMin) {
      int32_t min_total = 0;
      for (int i = 0; i < kSums; ++i) min_total += panel.mins[lane][i] * sums[i];
      min_dot[lane] = static_cast<float>(min_total);
    }
  }
  for (int lane = 0; lane < kGroupRows; ++lane) {
    float t;
    if constexpr (Type::kHasMin) {
      t = exact_fma(panel.d[lane], dot[lane], -(panel.dmin[lane] * min_dot[lane]));
    } else {
      t = panel.d[lane] * dot[lane];
    }
    y[lane] = exact_fma(da, t, y[lane]);
  }
}

}  // namespace

template <class Type>
void matmul_k(const MatmulArgs& args) noexcept {
  static_assert(Type::kWeights == kWeights);
  const Activations& x = *args.x;
  const int64_t n_blocks = args.k / kWeights;
  for (int64_t g = args.group_begin; g < args.group_end; ++g) {
    const std::byte* group = args.w + g * args.group_bytes;
    for (int64_t row = args.row_begin; row < args.row_end; ++row) {
      std::fill_n(args.y + row * args.y_stride + g * kGroupRows, kGroupRows, 0.0f);
    }
    for (int64_t s = 0; s < n_blocks; ++s) {
      Panel panel;
      read_panel<Type>(group, args.k, s, panel);
      for (int64_t row = args.row_begin; row < args.row_end; ++row) {
        const int64_t at = s * x.n + row;
        add_block<Type>(panel, x.q256 + at * kWeights, x.d256[at], x.sums256 + at * kSums,
                        args.y + row * args.y_stride + g * kGroupRows);
      }
    }
  }
}

template void matmul_k<quant::Q2K>(const MatmulArgs&) noexcept;
template void matmul_k<quant::Q3K>(const MatmulArgs&) noexcept;
template void matmul_k<quant::Q4K>(const MatmulArgs&) noexcept;
template void matmul_k<quant::Q5K>(const MatmulArgs&) noexcept;
template void matmul_k<quant::Q6K>(const MatmulArgs&) noexcept;
template void matmul_k<quant::IQ4XS>(const MatmulArgs&) noexcept;

}  // namespace stoker::kernels::scalar
