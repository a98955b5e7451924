#include <algorithm>

#include "kernels/scalar/exact_fma.h"
#include "kernels/scalar/matmul.h"
#include "kernels/scalar/weight.h"

namespace stoker::kernels::scalar {
namespace {

constexpr int64_t kChunk = 64;  // Columns that are turned into floats before all rows of activations pass over them.

void add_columns(const float (*w)[kGroupRows], const float* x, int64_t n, float* y) {
  float acc[kGroupRows];
  std::copy_n(y, kGroupRows, acc);
  for (int64_t k = 0; k < n; ++k) {
    exact_fma_lanes<kGroupRows>(w[k], x[k], acc);
  }
  std::copy_n(acc, kGroupRows, y);
}

}  // namespace

template <class Type>
void matmul_f(const MatmulArgs& args) noexcept {
  const Activations& x = *args.x;
  for (int64_t g = args.group_begin; g < args.group_end; ++g) {
    const std::byte* group = args.w + g * args.group_bytes;
    for (int64_t row = args.row_begin; row < args.row_end; ++row) {
      std::fill_n(args.y + row * args.y_stride + g * kGroupRows, kGroupRows, 0.0f);
    }
    for (int64_t begin = 0; begin < args.k; begin += kChunk) {
      const int64_t n = std::min(kChunk, args.k - begin);
      float w[kChunk][kGroupRows];
      for (int64_t k = 0; k < n; ++k) {
        for (int lane = 0; lane < kGroupRows; ++lane) w[k][lane] = read_weight<Type>(group, begin + k, lane);
      }
      for (int64_t row = args.row_begin; row < args.row_end; ++row) {
        add_columns(w, x.f32 + row * x.f32_stride + begin, n, args.y + row * args.y_stride + g * kGroupRows);
      }
    }
  }
}

template void matmul_f<quant::F32>(const MatmulArgs&) noexcept;
template void matmul_f<quant::F16>(const MatmulArgs&) noexcept;
template void matmul_f<quant::BF16>(const MatmulArgs&) noexcept;

}  // namespace stoker::kernels::scalar
