// Built with -mfma.
#include "base/math_functions.h"

namespace stoker::math {

const Functions& fma_functions() { return kFunctions; }

}  // namespace stoker::math
