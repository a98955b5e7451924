#include <algorithm>

#include "kernels/scalar/exact_fma.h"
#include "kernels/scalar/group.h"
#include "kernels/scalar/matmul.h"
#include "quant/iq4.h"
#include "quant/mxfp4.h"
#include "quant/q4.h"
#include "quant/q5.h"
#include "quant/q8_0.h"

namespace stoker::kernels::scalar {
namespace {

constexpr int kWeights = 32;
constexpr int kPerSuper = 8;  // Blocks per super-block of the activations.

// Block j of 16 rows, ready to be multiplied. 16 bits per weight: compilers then use multiply-add of pairs.
struct Panel {
  alignas(64) int16_t q[kGroupRows][kWeights];
  float d[kGroupRows];
  float m[kGroupRows];
};

template <class Type>
void read_panel(const std::byte* group, int64_t k, int64_t index, Panel& panel) {
  for (int lane = 0; lane < kGroupRows; ++lane) {
    const auto block = read_block<Type>({group, k, lane}, index);
    int8_t q[kWeights];
    Type::levels(block, q);
    std::copy_n(q, kWeights, panel.q[lane]);
    panel.d[lane] = Type::scale(block);
    if constexpr (Type::kHasMin) panel.m[lane] = Type::minimum(block);
  }
}

template <class Type>
void add_block(const Panel& panel, const int8_t* a, float da, int sum, float* y) {
  int16_t wide[kWeights];
  std::copy_n(a, kWeights, wide);
  float dot[kGroupRows];
  for (int lane = 0; lane < kGroupRows; ++lane) {
    int32_t total = 0;
    for (int i = 0; i < kWeights; ++i) total += panel.q[lane][i] * wide[i];
    dot[lane] = static_cast<float>(total);
  }
  for (int lane = 0; lane < kGroupRows; ++lane) {
    if constexpr (Type::kHasMin) {
      const float offset = panel.m[lane] * static_cast<float>(sum);
      y[lane] = exact_fma(da, exact_fma(panel.d[lane], dot[lane], offset), y[lane]);
    } else {
      y[lane] = exact_fma(panel.d[lane] * da, dot[lane], y[lane]);
    }
  }
}

}  // namespace

template <class Type>
void matmul_b(const MatmulArgs& args) noexcept {
  static_assert(Type::kWeights == kWeights);
  const Activations& x = *args.x;
  const int64_t n_blocks = args.k / kWeights;
  for (int64_t g = args.group_begin; g < args.group_end; ++g) {
    const std::byte* group = args.w + g * args.group_bytes;
    for (int64_t row = args.row_begin; row < args.row_end; ++row) {
      std::fill_n(args.y + row * args.y_stride + g * kGroupRows, kGroupRows, 0.0f);
    }
    for (int64_t j = 0; j < n_blocks; ++j) {
      Panel panel;
      read_panel<Type>(group, args.k, j, panel);
      for (int64_t row = args.row_begin; row < args.row_end; ++row) {
        const int64_t at = (j / kPerSuper * x.n + row) * kPerSuper + j % kPerSuper;
        add_block<Type>(panel, x.q32 + at * kWeights, x.d32[at], x.sums32[at],
                        args.y + row * args.y_stride + g * kGroupRows);
      }
    }
  }
}

template void matmul_b<quant::Q4_0>(const MatmulArgs&) noexcept;
template void matmul_b<quant::Q4_1>(const MatmulArgs&) noexcept;
template void matmul_b<quant::Q5_0>(const MatmulArgs&) noexcept;
template void matmul_b<quant::Q5_1>(const MatmulArgs&) noexcept;
template void matmul_b<quant::Q8_0>(const MatmulArgs&) noexcept;
template void matmul_b<quant::IQ4NL>(const MatmulArgs&) noexcept;
template void matmul_b<quant::MXFP4>(const MatmulArgs&) noexcept;

}  // namespace stoker::kernels::scalar
