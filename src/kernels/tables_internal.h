// Who fills which entries of a Table. Every instruction set overwrites what it has and leaves the rest as it was.
#pragma once

#include "kernels/table.h"

namespace stoker::kernels {

// In each set: fill_matmul sets matmul, matmul_isa, pack and row; fill_vector everything else.
// The sets without fill_vector have nothing of their own there.
namespace scalar {
void fill_matmul(Table& table) noexcept;
void fill_vector(Table& table) noexcept;
}  // namespace scalar
namespace avx2 {
void fill_matmul(Table& table) noexcept;
void fill_vector(Table& table) noexcept;
}  // namespace avx2
namespace avxvnni {
void fill_matmul(Table& table) noexcept;  // Products of integers only.
}  // namespace avxvnni
namespace avx512 {
void fill_matmul(Table& table) noexcept;
void fill_vector(Table& table) noexcept;
}  // namespace avx512
namespace amx {
void fill_matmul(Table& table) noexcept;  // `many` of the types that it has.
}  // namespace amx
namespace neon {
void fill_matmul(Table& table) noexcept;
void fill_vector(Table& table) noexcept;
}  // namespace neon
namespace neon_i8mm {
void fill_matmul(Table& table) noexcept;  // Only `many`, and only where it has one.
}  // namespace neon_i8mm

/// Overwrites the scalar entries of `table` with what this build has for `isa` and the sets below it.
void fill_native(Isa isa, Table& table) noexcept;

}  // namespace stoker::kernels
