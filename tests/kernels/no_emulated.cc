#include "tests/kernels/emulated.h"

namespace stoker::testing {

std::vector<const kernels::Table*> emulated_tables() { return {}; }

}  // namespace stoker::testing
