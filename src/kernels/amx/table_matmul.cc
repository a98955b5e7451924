#include "kernels/amx/matmul_types.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::amx {

void fill_matmul(Table& table) noexcept {
  using T = gguf::TensorType;
  const struct {
    T type;
    const TileKernels& tiles;
  } entries[] = {
      {T::kQ4_0, kQ4_0},   {T::kQ4_1, kQ4_1},   {T::kQ5_0, kQ5_0},   {T::kQ5_1, kQ5_1}, {T::kQ8_0, kQ8_0},
      {T::kIQ4NL, kIq4Nl}, {T::kMXFP4, kMxfp4}, {T::kQ2K, kQ2K},     {T::kQ3K, kQ3K},   {T::kQ4K, kQ4K},
      {T::kQ5K, kQ5K},     {T::kQ6K, kQ6K},     {T::kIQ4XS, kIq4Xs},
  };
  for (const auto& entry : entries) {
    const auto id = static_cast<size_t>(entry.type);
    table.matmul[id].few = entry.tiles.few;
    table.matmul[id].many = entry.tiles.many;
    table.matmul_isa[id] = Isa::kAmx;
  }
}

}  // namespace stoker::kernels::amx
