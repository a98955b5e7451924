// Built on AArch64 only; cpu_x86.cc is its twin.
#include <sys/auxv.h>

#include "base/cpu_detect.h"

namespace stoker {

bool is_intel() { return false; }

std::vector<Isa> detect_isas() { return isas_of(ArmFacts{getauxval(AT_HWCAP), getauxval(AT_HWCAP2)}); }

}  // namespace stoker
