// Into R16 and, row by row, out of it again: for the scalar set and every type.
#pragma once

#include "kernels/args.h"

namespace stoker::kernels::scalar {

template <class Type>
void pack(const PackArgs& args) noexcept;

template <class Type>
void row(const RowArgs& args) noexcept;

}  // namespace stoker::kernels::scalar
