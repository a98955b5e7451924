#include "kernels/tables_internal.h"

namespace stoker::kernels {

void fill_native(Isa isa, Table& table) noexcept {
  // Every ARM set but the scalar one has NEON with dot products (available_isas() sees to it).
  neon::fill_matmul(table);
  neon::fill_vector(table);
  if (isa == Isa::kNeonI8mm) neon_i8mm::fill_matmul(table);
}

}  // namespace stoker::kernels
