#include "base/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/cpu_detect.h"
#include "base/file.h"

namespace stoker {
namespace {

using Isas = std::vector<Isa>;

/// A Sapphire Rapids as its CPUID and Linux describe it.
X86Facts everything() {
  X86Facts facts;
  facts.leaf1_ecx = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;
  facts.leaf7_ebx = 1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  facts.leaf7_ecx = 1u << 11;
  facts.leaf7_edx = 1u << 22 | 1u << 24 | 1u << 25;
  facts.leaf7_1_eax = 1u << 4;
  facts.xcr0 = 0x602e7;
  facts.amx_allowed = true;
  return facts;
}

TEST(Isas, AllOfX86) {
  EXPECT_EQ(isas_of(everything()), (Isas{Isa::kScalar, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx}));
  EXPECT_EQ(isas_of(X86Facts{}), Isas{Isa::kScalar});
}

TEST(Isas, EveryBitOfAvx2Counts) {
  for (int bit : {12, 28, 29}) {
    X86Facts facts = everything();
    facts.leaf1_ecx &= ~(1u << bit);
    EXPECT_EQ(isas_of(facts), Isas{Isa::kScalar}) << bit;
  }
  X86Facts facts = everything();
  facts.leaf7_ebx &= ~(1u << 5);
  EXPECT_EQ(isas_of(facts), Isas{Isa::kScalar});
}

TEST(Isas, EveryBitOfAvx512Counts) {
  const Isas without = {Isa::kScalar, Isa::kAvx2, Isa::kAvxVnni};
  for (int bit : {16, 17, 30, 31}) {
    X86Facts facts = everything();
    facts.leaf7_ebx &= ~(1u << bit);
    EXPECT_EQ(isas_of(facts), without) << bit;
  }
  X86Facts facts = everything();
  facts.leaf7_ecx = 0;
  EXPECT_EQ(isas_of(facts), without);
}

TEST(Isas, EveryBitOfAmxCounts) {
  const Isas without = {Isa::kScalar, Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512};
  for (int bit : {22, 24, 25}) {
    X86Facts facts = everything();
    facts.leaf7_edx &= ~(1u << bit);
    EXPECT_EQ(isas_of(facts), without) << bit;
  }
  X86Facts facts = everything();
  facts.amx_allowed = false;
  EXPECT_EQ(isas_of(facts), without);
}

TEST(Isas, TheSystemMustSaveTheRegisters) {
  X86Facts facts = everything();
  facts.xcr0 = 0xe7;  // no tiles
  EXPECT_EQ(isas_of(facts).back(), Isa::kAvx512);
  facts.xcr0 = 0x7;  // no ZMM
  EXPECT_EQ(isas_of(facts).back(), Isa::kAvxVnni);
  facts.xcr0 = 0x67;  // opmask without the upper half of the ZMM file
  EXPECT_EQ(isas_of(facts).back(), Isa::kAvxVnni);
  facts.xcr0 = 0x3;  // no YMM
  EXPECT_EQ(isas_of(facts).back(), Isa::kScalar);
}

TEST(Isas, Zen4HasNoAvxVnni) {
  X86Facts facts = everything();
  facts.leaf7_1_eax = 0;
  facts.leaf7_edx = 0;
  EXPECT_EQ(isas_of(facts), (Isas{Isa::kScalar, Isa::kAvx2, Isa::kAvx512}));
}

TEST(Isas, Arm) {
  const uint64_t asimd = 1u << 1, dot = 1u << 20, i8mm = 1u << 13;
  EXPECT_EQ(isas_of(ArmFacts{asimd, i8mm}), Isas{Isa::kScalar});
  EXPECT_EQ(isas_of(ArmFacts{asimd | dot, 0}), (Isas{Isa::kScalar, Isa::kNeon}));
  EXPECT_EQ(isas_of(ArmFacts{asimd | dot, i8mm}), (Isas{Isa::kScalar, Isa::kNeon, Isa::kNeonI8mm}));
}

#if defined(__x86_64__)
constexpr const char* kFlags = "\nflags";
#else
constexpr const char* kFlags = "\nFeatures";
#endif

std::string cpuinfo() { return std::move(read_text("/proc/cpuinfo", 64u << 20)).value(); }

bool machine_has(const std::string& flag) {
  const std::string text = cpuinfo();
  const size_t at = text.find(kFlags);
  std::istringstream words(text.substr(at, text.find('\n', at + 1) - at));
  for (std::string word; words >> word;) {
    if (word == flag) return true;
  }
  return false;
}

bool available(Isa isa) { return std::count(available_isas().begin(), available_isas().end(), isa) == 1; }

TEST(AvailableIsas, AgreeWithTheKernel) {
  if (cpuinfo().find(kFlags) == std::string::npos) GTEST_SKIP() << "/proc/cpuinfo is another machine's (qemu-user)";
  EXPECT_EQ(available_isas().front(), Isa::kScalar);
  EXPECT_TRUE(std::is_sorted(available_isas().begin(), available_isas().end()));
  EXPECT_EQ(available(Isa::kAvx2), machine_has("avx2") && machine_has("fma") && machine_has("f16c"));
  EXPECT_EQ(available(Isa::kAvxVnni), machine_has("avx_vnni"));
  EXPECT_EQ(available(Isa::kAvx512), machine_has("avx512f") && machine_has("avx512bw") && machine_has("avx512vl") &&
                                         machine_has("avx512dq") && machine_has("avx512_vnni"));
  EXPECT_TRUE(machine_has("amx_int8") || !available(Isa::kAmx));
  EXPECT_EQ(available(Isa::kNeon), machine_has("asimddp"));
  EXPECT_EQ(available(Isa::kNeonI8mm), machine_has("i8mm"));
}

/// STOKER_ISA for a scope.
struct IsaVariable {
  explicit IsaVariable(const char* value) { setenv("STOKER_ISA", value, 1); }
  ~IsaVariable() { unsetenv("STOKER_ISA"); }
};

TEST(PickIsa, TheBestUnlessTold) {
  unsetenv("STOKER_ISA");
  EXPECT_EQ(*pick_isa(), available_isas().back());
  {
    IsaVariable empty("");
    EXPECT_EQ(*pick_isa(), available_isas().back());
  }
  for (Isa isa : available_isas()) {
    IsaVariable variable(std::string(isa_name(isa)).c_str());
    EXPECT_EQ(*pick_isa(), isa);
  }
}

TEST(PickIsa, UnknownAndAbsentOnesAreRefused) {
  for (const char* name : {"avx1024", "AVX2", "scalar ", "\x1b[31m"}) {
    IsaVariable variable(name);
    const Result<Isa> isa = pick_isa();
    ASSERT_FALSE(isa) << name;
    EXPECT_EQ(isa.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(isa.error().message.find("names no instruction set; this machine has: scalar"), std::string::npos);
    EXPECT_EQ(isa.error().message.find('\x1b'), std::string::npos);
  }
  for (Isa isa : {Isa::kAvx2, Isa::kAvxVnni, Isa::kAvx512, Isa::kAmx, Isa::kNeon, Isa::kNeonI8mm}) {
    if (available(isa)) continue;
    IsaVariable variable(std::string(isa_name(isa)).c_str());
    const Result<Isa> picked = pick_isa();
    ASSERT_FALSE(picked) << isa_name(isa);
    EXPECT_EQ(picked.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(picked.error().message.find("is not available here; this machine has: scalar"), std::string::npos);
  }
}

TEST(IsIntel, AsTheKernelSays) {
  const auto text = read_text("/proc/cpuinfo", 1 << 20);
  ASSERT_TRUE(text);
  EXPECT_EQ(is_intel(), text->find("GenuineIntel") != std::string::npos);
}

TEST(CpuModel, IsKnown) {
  EXPECT_FALSE(cpu_model().empty());
  EXPECT_EQ(cpu_model().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace stoker
