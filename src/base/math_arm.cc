// Built on AArch64 only, where fma is an instruction of the base set; math_x86.cc is its twin.
#include "base/math_functions.h"

namespace stoker::math {

const Functions& plain_functions() { return kFunctions; }
const Functions& functions() { return kFunctions; }

}  // namespace stoker::math
