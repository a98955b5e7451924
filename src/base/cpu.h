#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stoker {

/// An instruction set that kernels are built for, worst first. avx2 means AVX2, FMA and F16C; avxvnni adds AVX-VNNI;
/// avx512 means F, BW, VL, DQ and VNNI; amx adds AMX-INT8, AMX-BF16 and the system's permission; neon means ASIMD with
/// dot-product, neon-i8mm adds I8MM.
enum class Isa { kScalar, kAvx2, kAvxVnni, kAvx512, kAmx, kNeon, kNeonI8mm };

std::string_view isa_name(Isa isa);

/// What CPUID and, through XGETBV, the operating system allow here, worst first; kScalar is always in it.
const std::vector<Isa>& available_isas();

/// The best of them, or the one named in STOKER_ISA.
/// kInvalidArgument: STOKER_ISA names none of the seven, or one that this machine lacks; the message lists what there
/// is.
Result<Isa> pick_isa();

/// Whether it is an x86 processor that Intel made.
bool is_intel();

/// The processor's own name, as in /proc/cpuinfo.
std::string cpu_model();

}  // namespace stoker
