// Who fills which entries of a Table. Every instruction set overwrites what it has and leaves the rest as it was.
#pragma once

#include "kernels/table.h"

// fill_matmul sets matmul, matmul_isa, pack and row; fill_vector sets everything else.
#define STOKER_TABLE_FILLERS(set)          \
  namespace set {                          \
  void fill_matmul(Table& table) noexcept; \
  void fill_vector(Table& table) noexcept; \
  }

namespace stoker::kernels {

STOKER_TABLE_FILLERS(scalar)
STOKER_TABLE_FILLERS(avx2)
STOKER_TABLE_FILLERS(avx512)
STOKER_TABLE_FILLERS(neon)

}  // namespace stoker::kernels

#undef STOKER_TABLE_FILLERS
