// Built on x86-64 only; math_arm.cc is its twin.
#include "base/cpu.h"
#include "base/math_functions.h"

namespace stoker::math {

const Functions& plain_functions() { return kFunctions; }

const Functions& functions() {
  // avx2 means AVX2, FMA and F16C, switched on by the operating system.
  static const Functions& chosen = available_isas().size() > 1 ? fma_functions() : plain_functions();
  return chosen;
}

}  // namespace stoker::math
