#include <algorithm>

#include "kernels/scalar/exact_fma.h"
#include "kernels/scalar/matmul.h"
#include "kernels/scalar/weight.h"

namespace stoker::kernels::scalar {
template <class Type>
void matmul_f(const MatmulArgs& args) noexcept {
  const Activations& x = *args.x;
  for (int64_t g = args.group_begin; g < args.group_end; ++g) {
    const std::byte* group = args.w + g * args.group_bytes;
    for (int64_t row = args.row_begin; row < args.row_end; ++row) {
      std::fill_n(args.y + row * args.y_stride + g * kGroupRows, kGroupRows, 0.0f);
    }
    for (int64_t k = 0; k < args.k; ++k) {
      float w[kGroupRows];
      for (int lane = 0; lane < kGroupRows; ++lane) w[lane] = read_weight<Type>(group, k, lane);
      for (int64_t row = args.row_begin; row < args.row_end; ++row) {
        float* y = args.y + row * args.y_stride + g * kGroupRows;
        const float value = x.f32[row * x.f32_stride + k];
        for (int lane = 0; lane < kGroupRows; ++lane) y[lane] = exact_fma(w[lane], value, y[lane]);
      }
    }
  }
}

template void matmul_f<quant::F32>(const MatmulArgs&) noexcept;
template void matmul_f<quant::F16>(const MatmulArgs&) noexcept;
template void matmul_f<quant::BF16>(const MatmulArgs&) noexcept;

}  // namespace stoker::kernels::scalar
