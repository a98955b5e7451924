// Built on x86-64 only; cpu_arm.cc is its twin.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cpu_detect.h"

namespace stoker {
namespace {

uint64_t read_xcr0() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

/// Linux keeps the 8 KiB of tile state from a process until it asks.
bool request_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

X86Facts read_facts() {
  X86Facts facts;
  uint32_t eax, ebx, ecx, edx;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return facts;
  facts.leaf1_ecx = ecx;
  if ((ecx >> 27 & 1) != 0) facts.xcr0 = read_xcr0();
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return facts;
  facts.leaf7_ebx = ebx;
  facts.leaf7_ecx = ecx;
  facts.leaf7_edx = edx;
  if (eax >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) facts.leaf7_1_eax = eax;
  return facts;
}

}  // namespace

bool is_intel() {
  uint32_t eax, ebx, ecx, edx;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return ebx == signature_INTEL_ebx && ecx == signature_INTEL_ecx && edx == signature_INTEL_edx;
}

std::vector<Isa> detect_isas() {
  X86Facts facts = read_facts();
  // Asked only where it can matter: it is a system call with a lasting effect on signal stacks.
  if ((facts.leaf7_edx >> 24 & 1) != 0) facts.amx_allowed = request_tiles();
  return isas_of(facts);
}

}  // namespace stoker
