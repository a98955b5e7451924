#include "kernels/avx512/functions.h"
#include "kernels/tables_internal.h"

namespace stoker::kernels::avx512 {

void fill_vector(Table& table) noexcept {
#include "kernels/vec/fill_vector.inc.h"
}

}  // namespace stoker::kernels::avx512
