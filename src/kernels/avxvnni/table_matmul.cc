#include "kernels/avxvnni/matmul_types.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::avxvnni {

void fill_matmul(Table& table) noexcept {
  using T = gguf::TensorType;
  const struct {
    T type;
    const MatmulKernels& matmul;
  } entries[] = {
      {T::kQ4_0, kMatmulQ4_0},   {T::kQ4_1, kMatmulQ4_1},   {T::kQ5_0, kMatmulQ5_0},   {T::kQ5_1, kMatmulQ5_1},
      {T::kQ8_0, kMatmulQ8_0},   {T::kIQ4NL, kMatmulIq4Nl}, {T::kMXFP4, kMatmulMxfp4}, {T::kQ2K, kMatmulQ2K},
      {T::kQ3K, kMatmulQ3K},     {T::kQ4K, kMatmulQ4K},     {T::kQ5K, kMatmulQ5K},     {T::kQ6K, kMatmulQ6K},
      {T::kIQ4XS, kMatmulIq4Xs},
  };
  for (const auto& entry : entries) {
    const auto id = static_cast<size_t>(entry.type);
    table.matmul[id] = entry.matmul;
    table.matmul_isa[id] = Isa::kAvxVnni;
  }
}

}  // namespace stoker::kernels::avxvnni
