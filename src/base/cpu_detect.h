#pragma once

#include <cstdint>
#include <vector>

#include "base/cpu.h"

namespace stoker {

/// What a x86 processor says of itself; zero where it says nothing.
struct X86Facts {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0, leaf7_ecx = 0, leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;
  uint64_t xcr0 = 0;         ///< The register states that the operating system saves; 0 without OSXSAVE.
  bool amx_allowed = false;  ///< The system let this process use tiles.
};

/// What the Linux kernel says of an ARM processor (getauxval).
struct ArmFacts {
  uint64_t hwcap = 0, hwcap2 = 0;
};

std::vector<Isa> isas_of(const X86Facts& facts);
std::vector<Isa> isas_of(const ArmFacts& facts);

/// This machine's, from cpu_x86.cc or cpu_arm.cc.
std::vector<Isa> detect_isas();

}  // namespace stoker
