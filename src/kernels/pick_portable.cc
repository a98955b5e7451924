#include "kernels/tables_internal.h"

namespace stoker::kernels {

// No kernels but the scalar ones on this kind of processor yet.
void fill_native(Isa, Table&) noexcept {}

}  // namespace stoker::kernels
