#include "kernels/tables_internal.h"

namespace stoker::kernels {

void fill_native(Isa isa, Table& table) noexcept {
  // Every x86 processor with a better set also has AVX2 (available_isas() sees to it).
  avx2::fill_matmul(table);
  avx2::fill_vector(table);
  if (isa == Isa::kAvxVnni) avxvnni::fill_matmul(table);
  if (isa == Isa::kAvx512 || isa == Isa::kAmx) {
    avx512::fill_matmul(table);
    avx512::fill_vector(table);
  }
  if (isa == Isa::kAmx) amx::fill_matmul(table);
}

}  // namespace stoker::kernels
